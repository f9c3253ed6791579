// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sv39: three levels of 512 entries, pages of 4 KiB (RISC-V privileged specification, 4.4).
//!
//! The upper half of every address space is the kernel's map of all memory, the same tables in all,
//! marked global: entering the kernel changes no page table. The lower half is the process's.

use crate::frames::{FRAME, Frames};
use crate::register::{read, write};

/// The kernel's map: physical address + `BASE`.
pub(crate) const BASE: usize = 0xffff_ffc0_0000_0000;

/// Addresses of processes end here.
pub(crate) const USER_END: usize = 1 << 38;

const ENTRIES: usize = 512;

pub(crate) const VALID: usize = 1;
pub(crate) const READ: usize = 1 << 1;
pub(crate) const WRITE: usize = 1 << 2;
pub(crate) const EXECUTE: usize = 1 << 3;
pub(crate) const USER: usize = 1 << 4;
const GLOBAL: usize = 1 << 5;
const ACCESSED: usize = 1 << 6;
const DIRTY: usize = 1 << 7;
/// For software: to be copied when it is written.
pub(crate) const COPY_ON_WRITE: usize = 1 << 8;
/// For software: stays with its space; a fork does not pass it on.
pub(crate) const PRIVATE: usize = 1 << 9;
/// For software, of mail, which is private and never copied: the space that shared it has ended.
pub(crate) const LEFT_BEHIND: usize = COPY_ON_WRITE;

const FLAGS: usize = 0x3ff;

/// Numbers of address spaces that this processor tells apart: what is written to bits of `satp`
/// that it lacks does not stay (RISC-V privileged specification, 4.1.11).
pub(crate) fn numbers() -> usize {
    const NUMBERS: usize = 0xffff << 44;
    let satp = read!("satp");
    write!("satp", satp | NUMBERS);
    let kept = read!("satp") & NUMBERS;
    write!("satp", satp);
    (kept >> 44) + 1
}

/// One level of a page table.
#[repr(C, align(4096))]
pub(crate) struct Table([usize; ENTRIES]);

/// The root that the boot's harts use, and idle ones: no process in
/// it. `main.rs` fills in the first gigabytes.
#[unsafe(link_section = ".bss.boot")]
pub(crate) static mut ROOT: Table = Table([0; ENTRIES]);

/// The gigabyte that the kernel lies in, in pieces of 2 MiB.
#[unsafe(link_section = ".bss.boot")]
pub(crate) static mut KERNEL_GIGABYTE: Table = Table([0; ENTRIES]);

/// The kernel's address of a physical one.
pub(crate) fn mapped<T>(physical: usize) -> *mut T {
    (BASE + physical) as *mut T
}

/// The physical address of something in the kernel's map.
pub(crate) fn physical<T>(pointer: *const T) -> usize {
    pointer as usize - BASE
}

/// An entry that leads to a frame.
const fn entry(frame: usize, flags: usize) -> usize {
    frame >> 2 | flags
}

/// The frame that an entry leads to.
pub(crate) const fn frame_of(entry: usize) -> usize {
    entry >> 10 << 12
}

/// Maps all memory, before anything else: the kernel's own code may be read and executed,
/// everything else read and written.
///
/// # Safety
/// Runs once, on physical addresses, with `writable` the first physical address that is not code.
pub(crate) unsafe fn map_all_memory(root: *mut Table, kernel_gigabyte: *mut Table, writable: usize) {
    const GIGABYTE: usize = 1 << 30;
    const PIECE: usize = 2 << 20;
    const KERNEL: usize = 0x8000_0000;
    let data = VALID | READ | WRITE | GLOBAL | ACCESSED | DIRTY;
    let code = VALID | READ | EXECUTE | GLOBAL | ACCESSED | DIRTY;
    // SAFETY: the tables are the kernel's, and nobody else runs yet.
    unsafe {
        for gigabyte in 0..ENTRIES / 2 {
            (*root).0[ENTRIES / 2 + gigabyte] = entry(gigabyte * GIGABYTE, data);
        }
        for piece in 0..ENTRIES {
            let address = KERNEL + piece * PIECE;
            let flags = if address >= writable { data } else { code };
            (*kernel_gigabyte).0[piece] = entry(address, flags);
        }
        let inner = entry(kernel_gigabyte as usize, VALID);
        (*root).0[(BASE / GIGABYTE + KERNEL / GIGABYTE) % ENTRIES] = inner;
        // Where the processor is while it turns translation on.
        (*root).0[KERNEL / GIGABYTE] = inner;
    }
}

/// A process's page table.
pub(crate) struct PageTable {
    root: usize,
}

/// There is no memory left.
#[derive(Debug)]
pub(crate) struct NoMemory;

impl PageTable {
    /// That of a space which has ended.
    pub(crate) const fn none() -> Self {
        Self { root: 0 }
    }

    /// An address space with nothing but the kernel in it.
    pub(crate) fn new(frames: &mut Frames) -> Result<Self, NoMemory> {
        let root = frames.take().ok_or(NoMemory)?;
        // SAFETY: the new frame is ours; the kernel's half does not change after boot.
        unsafe {
            let upper = (&raw const ROOT).cast::<usize>().add(ENTRIES / 2);
            upper.copy_to(mapped::<usize>(root).add(ENTRIES / 2), ENTRIES / 2);
        }
        Ok(Self { root })
    }

    /// For `satp`; without a number where translations are not kept.
    pub(crate) fn satp(&self, number: usize) -> usize {
        8 << 60 | number << 44 | self.root >> 12
    }

    /// The entry for `address`, with the tables on the way made if `frames` are given.
    fn walk(&self, address: usize, mut frames: Option<&mut Frames>) -> Result<*mut usize, NoMemory> {
        let mut table = self.root;
        for level in [2, 1] {
            let place = mapped::<usize>(table).wrapping_add(address >> (12 + 9 * level) & 511);
            // SAFETY: a table of this space, whose entries are in it.
            unsafe {
                if *place & VALID == 0 {
                    let below = frames.as_mut().and_then(|frames| frames.take()).ok_or(NoMemory)?;
                    *place = entry(below, VALID);
                }
                table = frame_of(*place);
            }
        }
        Ok(mapped::<usize>(table).wrapping_add(address >> 12 & 511))
    }

    /// The entry for `address`, if there is one; all of it for whoever handles a fault.
    #[allow(clippy::mut_from_ref)] // The entry lies in a frame, not in the `PageTable`.
    pub(crate) fn find(&self, address: usize) -> Option<&mut usize> {
        if address >= USER_END {
            return None;
        }
        let place = self.walk(address, None).ok()?;
        // SAFETY: in a table of this space; spaces change under the kernel's lock only.
        let place = unsafe { &mut *place };
        (*place & VALID != 0).then_some(place)
    }

    /// Maps a frame that the caller has counted for this map.
    pub(crate) fn map(
        &mut self,
        address: usize,
        frame: usize,
        flags: usize,
        frames: &mut Frames,
    ) -> Result<(), NoMemory> {
        let place = self.walk(address, Some(frames))?;
        // SAFETY: in a table of this space.
        unsafe { *place = entry(frame, flags | VALID | ACCESSED | DIRTY) };
        Ok(())
    }

    /// Maps zeroed frames from `address` on, `bytes` of them, where nothing is mapped yet.
    pub(crate) fn map_new(
        &mut self,
        address: usize,
        bytes: usize,
        flags: usize,
        frames: &mut Frames,
    ) -> Result<(), NoMemory> {
        for page in (address / FRAME * FRAME..address + bytes).step_by(FRAME) {
            if self.find(page).is_none() {
                let frame = frames.take().ok_or(NoMemory)?;
                if self.map(page, frame, flags | USER, frames).is_err() {
                    frames.give_back(frame);
                    return Err(NoMemory);
                }
            }
        }
        Ok(())
    }

    /// Takes the page of `address` out of the map; says whether there was one.
    pub(crate) fn unmap(&mut self, address: usize, frames: &mut Frames) -> bool {
        let Some(entry) = self.find(address) else { return false };
        frames.give_back(frame_of(*entry));
        *entry = 0;
        true
    }

    /// The first page that is mapped from `address` on, before `end`,
    /// which is a multiple of what a table of pages covers.
    pub(crate) fn next_page(&self, mut address: usize, end: usize) -> Option<usize> {
        const TABLE: usize = ENTRIES * FRAME;
        // SAFETY: a table of this space.
        let entry_of = |table: usize, index: usize| unsafe { *mapped::<usize>(table).add(index) };
        while address < end {
            let upper = entry_of(self.root, address >> 30 & 511);
            let middle = if upper & VALID != 0 { entry_of(frame_of(upper), address >> 21 & 511) } else { 0 };
            if middle & VALID != 0 {
                let first = address >> 12 & 511;
                let found = (first..ENTRIES).find(|index| entry_of(frame_of(middle), *index) & VALID != 0);
                if let Some(index) = found {
                    return Some(address + (index - first) * FRAME);
                }
            }
            address = (address / TABLE + 1) * TABLE;
        }
        None
    }

    /// Calls `each` with the address and the entry of every page of the process.
    fn for_each(
        &self,
        each: &mut dyn FnMut(usize, &mut usize) -> Result<(), NoMemory>,
    ) -> Result<(), NoMemory> {
        for_each_below(self.root, 2, 0, each)
    }

    /// Copies the process's pages from `parent`: their contents, or with `on_write` only the
    /// promise of them. The pool and mail are private and are not passed on. What is lacking
    /// when memory runs out is missing from the copy.
    pub(crate) fn fork(
        &mut self,
        parent: &PageTable,
        on_write: bool,
        frames: &mut Frames,
    ) -> Result<(), NoMemory> {
        parent.for_each(&mut |address, place| {
            let (frame, flags) = (frame_of(*place), *place & FLAGS);
            if flags & PRIVATE != 0 {
                return Ok(());
            }
            let writable = flags & (WRITE | COPY_ON_WRITE) != 0;
            if !writable || on_write {
                if writable {
                    *place = (*place & !WRITE) | COPY_ON_WRITE;
                }
                self.map(address, frame, *place & FLAGS, frames)?;
                frames.share(frame);
                return Ok(());
            }
            let copy = frames.take().ok_or(NoMemory)?;
            // SAFETY: both frames are whole, the new one is ours.
            unsafe { mapped::<u8>(frame).copy_to_nonoverlapping(mapped(copy), FRAME) };
            let flags = (flags & !COPY_ON_WRITE) | WRITE;
            self.map(address, copy, flags, frames).inspect_err(|NoMemory| frames.give_back(copy))
        })
    }

    /// Gives the page of `address` a frame of its own if it is to be copied when written. Says
    /// whether that was the fault.
    pub(crate) fn copy_on_write(&mut self, address: usize, frames: &mut Frames) -> Result<bool, NoMemory> {
        let is_copied = |place: &&mut usize| **place & (COPY_ON_WRITE | PRIVATE) == COPY_ON_WRITE;
        let Some(place) = self.find(address).filter(is_copied) else {
            return Ok(false);
        };
        let old = frame_of(*place);
        let flags = (*place & FLAGS & !COPY_ON_WRITE) | WRITE;
        if frames.users(old) == 1 {
            *place = entry(old, flags);
        } else {
            let copy = frames.take().ok_or(NoMemory)?;
            // SAFETY: both frames are whole, the new one is ours.
            unsafe { mapped::<u8>(old).copy_to_nonoverlapping(mapped(copy), FRAME) };
            frames.give_back(old);
            *place = entry(copy, flags);
        }
        Ok(true)
    }

    /// The kernel's address of `address`, for as many bytes as there are up to the end of the page,
    /// if the process may itself read it, or write it.
    pub(crate) fn reach(&self, address: usize, write: bool) -> Option<(*mut u8, usize)> {
        let needed = USER | if write { WRITE } else { READ };
        let place = self.find(address).filter(|place| **place & needed == needed)?;
        Some((mapped(frame_of(*place) + address % FRAME), FRAME - address % FRAME))
    }

    /// Gives back all frames: those of the process and those of the tables.
    pub(crate) fn free(self, frames: &mut Frames) {
        let _ = self.for_each(&mut |_, place| {
            frames.give_back(frame_of(*place));
            Ok(())
        });
        free_tables(self.root, 2, frames);
    }
}

fn entries(level: usize) -> core::ops::Range<usize> {
    // The upper half of the root is the kernel's.
    0..if level == 2 { ENTRIES / 2 } else { ENTRIES }
}

fn for_each_below(
    table: usize,
    level: usize,
    address: usize,
    each: &mut dyn FnMut(usize, &mut usize) -> Result<(), NoMemory>,
) -> Result<(), NoMemory> {
    for index in entries(level) {
        // SAFETY: a table of a space that the caller holds.
        let place = unsafe { &mut *mapped::<usize>(table).add(index) };
        if *place & VALID != 0 {
            let address = address | index << (12 + 9 * level);
            match level {
                0 => each(address, place)?,
                _ => for_each_below(frame_of(*place), level - 1, address, each)?,
            }
        }
    }
    Ok(())
}

fn free_tables(table: usize, level: usize, frames: &mut Frames) {
    if level > 0 {
        for index in entries(level) {
            // SAFETY: a table of a space that nobody else has any more.
            let entry = unsafe { *mapped::<usize>(table).add(index) };
            if entry & VALID != 0 {
                free_tables(frame_of(entry), level - 1, frames);
            }
        }
    }
    frames.give_back(table);
}
