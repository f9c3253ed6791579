// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user programs, one file in ELF, which lies in the kernel's
//! memory. What is only read is mapped from there.

use elf::ElfBytes;
use elf::abi::{PF_W, PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use squall_scheduler::image::{IMAGE, STACK_TOP};

use crate::frames::{FRAME, Frames};
use crate::page_table::{EXECUTE, NoMemory, READ, USER, WRITE, frame_of, mapped, physical};
use crate::scheduler_image;
use crate::space::{SP, Space};

/// Bytes of a process's first stack; below it nothing is mapped.
const STACK: usize = 16 << 10;

#[repr(C, align(4096))]
struct Aligned<T: ?Sized>(T);

static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!(env!("SQUALL_USER")));

/// Fills the lower half of a new space.
pub(crate) fn load(space: &mut Space, frames: &mut Frames) -> Result<(), NoMemory> {
    let file = &FILE.0;
    let Ok(elf) = ElfBytes::<LittleEndian>::minimal_parse(file) else {
        panic!("the user programs are no ELF file")
    };
    for segment in elf.segments().into_iter().flatten().filter(|segment| segment.p_type == PT_LOAD) {
        let (address, offset) = (segment.p_vaddr as usize, segment.p_offset as usize);
        let (in_file, in_memory) = (segment.p_filesz as usize, segment.p_memsz as usize);
        let first = address / FRAME * FRAME;
        let before = address - first;
        if segment.p_flags & PF_W == 0 {
            let flags = READ | USER | if segment.p_flags & PF_X != 0 { EXECUTE } else { 0 };
            for page in (0..before + in_memory).step_by(FRAME) {
                let frame = physical(&raw const file[offset - before]) + page;
                space.table.map(first + page, frame, flags, frames)?;
            }
            continue;
        }
        space.table.map_new(first, before + in_memory, READ | WRITE, frames)?;
        for at in 0..in_file {
            let page = (address + at) / FRAME * FRAME;
            let Some(entry) = space.table.find(page) else { return Err(NoMemory) };
            // SAFETY: a page just mapped, which is this space's alone.
            unsafe { mapped::<u8>(frame_of(*entry) + (address + at) % FRAME).write(file[offset + at]) };
        }
    }
    for (index, page) in scheduler_image::pages().enumerate() {
        space.table.map(IMAGE + index * FRAME, physical(page as *const u8), READ | EXECUTE | USER, frames)?;
    }
    space.table.map_new(STACK_TOP - STACK, STACK, READ | WRITE, frames)?;
    space.registers[0] = elf.ehdr.e_entry as usize;
    space.registers[SP] = STACK_TOP;
    Ok(())
}
