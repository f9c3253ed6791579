// SPDX-License-Identifier: MIT OR Apache-2.0
//! An address space: a process of the classic kind, and what an executor of coroutines runs in. The
//! kernel schedules spaces.

use core::ptr;

use squall_scheduler::image::MAIL;
use squall_scheduler::pool::{LEVELS, Part};

use crate::frames::{FIRST, FRAME, Purse};
use crate::kernel::{Kernel, wait_until_left};
use crate::kernel_stack;
use crate::page_table::{LEFT_BEHIND, NoMemory, PRIVATE, PageTable, READ, USER, WRITE, frame_of, mapped};
use crate::ready::Place;

/// Space IDs, which serve as ASIDs too: as many as an ASID's 16 bits allow, if the command line
/// does not say that there are fewer. 0 is the kernel's.
pub(crate) const SPACES: usize = 1 << 16;

/// Everything of one space that is the kernel's. It fills less than a
/// frame and lies in one of its own.
#[repr(C)]
pub(crate) struct Space {
    /// Its place among those that are ready.
    pub(crate) place: Place,
    /// The program counter, then `x1` to `x31`, of a space that was interrupted or made a call. The
    /// first is 0 if it yielded from the shared scheduler, which leaves nothing in registers.
    pub(crate) registers: [usize; 32],
    /// Its page table, for the register of that name.
    pub(crate) satp: usize,
    /// The address in its executor at which it continues after it yielded.
    pub(crate) resume_point: usize,
    pub(crate) number: usize,
    /// Who pays for its memory.
    pub(crate) purse: Purse,
    pub(crate) level: usize,
    pub(crate) state: State,
    pub(crate) table: PageTable,
    /// The top of its kernel stack; 0 if it has none and runs on the hart's.
    pub(crate) kernel_stack: usize,
    /// Its saved stack pointer while it is off its kernel stack.
    pub(crate) left: usize,
    /// The part of the pool, in the kernel's map; null for a process without an executor.
    pub(crate) part: *mut Part,
    /// The end of what [`squall_scheduler::call::Call::Grow`] gave.
    pub(crate) heap_end: usize,
    /// Bytes already granted by a call for memory (`Grow`) that is not finished.
    pub(crate) given: usize,
    /// When its alarm goes off; `u64::MAX` if none is set.
    pub(crate) alarm: u64,
    /// Whose alarm goes off next.
    pub(crate) later: *mut Space,
    pub(crate) parent: *mut Space,
    /// Children that live, then those that ended and were not waited
    /// for, as lists through `sibling`.
    pub(crate) children: *mut Space,
    pub(crate) zombies: *mut Space,
    pub(crate) sibling: *mut Space,
    pub(crate) elder: *mut Space,
    pub(crate) exit_code: usize,
    /// It shares mail with others, or did.
    pub(crate) connected: bool,
    /// It is to end as soon as its hart is in the kernel.
    pub(crate) doomed: bool,
}

/// What a space does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// On a hart, or in the ready queue.
    Runnable,
    /// In `Call::Park`, until its part has the token.
    Parked,
    /// In `Call::Wait`, with the place for the exit code.
    Waiting(usize),
    /// Ended; its number and code are kept for the parent.
    Ended,
}

/// A queue's place is its space: the trap's entry relies on it.
const _: () = assert!(size_of::<Space>() <= FRAME && core::mem::offset_of!(Space, place) == 0);

/// The resume point of a space that is not to go on: it faults there, since nothing is ever mapped
/// at the page of address 0, and is ended for that fault, or, if it was killed, at the look at
/// `doomed` that every trap but `GiveWay` begins with.
pub(crate) const NOWHERE: usize = 2;

/// Registers by number.
pub(crate) const SP: usize = 2;
pub(crate) const A0: usize = 10;
pub(crate) const A7: usize = 17;

impl Space {
    /// The space that a ready queue's place belongs to.
    ///
    /// # Safety
    /// `place` is a space's.
    pub(crate) unsafe fn of(place: *mut Place) -> *mut Space {
        place.cast()
    }

    /// Whether it stands in the ready queue.
    pub(crate) fn is_ready(&self) -> bool {
        !self.place.previous.is_null()
    }

    /// Copies `bytes` into the space (`write`) or out of it, page by page; false if the range is
    /// not accessible.
    pub(crate) fn copy(
        &mut self,
        kernel: &mut Kernel,
        address: usize,
        bytes: &mut [u8],
        write: bool,
    ) -> bool {
        let (mut address, mut rest) = (address, bytes);
        while !rest.is_empty() {
            if write {
                match self.table.copy_on_write(address, &mut kernel.frames) {
                    Ok(true) => kernel.translations_changed(),
                    Ok(false) => {}
                    Err(NoMemory) => return false,
                }
            }
            let Some((place, room)) = self.table.reach(address, write) else { return false };
            let (now, later) = rest.split_at_mut(room.min(rest.len()));
            // SAFETY: `reach` found these bytes to be the space's; no reference is made to them.
            unsafe {
                match write {
                    true => place.copy_from_nonoverlapping(now.as_ptr(), now.len()),
                    false => place.copy_to_nonoverlapping(now.as_mut_ptr(), now.len()),
                }
            }
            address = address.wrapping_add(now.len());
            rest = later;
        }
        true
    }

    /// Whether it asked for the page of mail that `from` shares with it.
    pub(crate) fn has_accepted(&self, from: &Space) -> bool {
        let place = MAIL + from.number * FRAME;
        self.table.find(place).is_some_and(|entry| *entry & USER != 0)
            && same_page(&self.table, place, &from.table, MAIL + self.number * FRAME)
    }

    /// The page of mail shared with `other`, made if there is none; its address in this space.
    /// `other` cannot reach it until it asks for it, too. Each space unmaps only its own mapping
    /// of a page shared with a space that has ended: the other's may be in use at this moment, on
    /// another hart.
    pub(crate) fn connect(&mut self, other: &mut Space, kernel: &mut Kernel) -> Result<usize, NoMemory> {
        let (here, there) = (MAIL + other.number * FRAME, MAIL + self.number * FRAME);
        if self.table.find(here).is_some_and(|entry| *entry & LEFT_BEHIND != 0) {
            self.table.unmap(here, &mut kernel.frames);
            kernel.translations_changed();
        }
        if let Some(entry) = self.table.find(here) {
            *entry |= USER;
            return Ok(here);
        }
        let flags = READ | WRITE | PRIVATE;
        let found = other.table.find(there).map(|entry| (frame_of(*entry), *entry & LEFT_BEHIND != 0));
        let frame = match found {
            // It asked while this space had another page there.
            Some((frame, false)) => {
                kernel.frames.share(frame);
                frame
            }
            _ => kernel.frames.take().ok_or(NoMemory)?,
        };
        self.table
            .map(here, frame, flags | USER, &mut kernel.frames)
            .inspect_err(|NoMemory| kernel.frames.give_back(frame))?;
        if found.is_none() {
            if let Err(NoMemory) = other.table.map(there, frame, flags, &mut kernel.frames) {
                self.table.unmap(here, &mut kernel.frames);
                return Err(NoMemory);
            }
            kernel.frames.share(frame);
        }
        self.connected = true;
        other.connected = true;
        Ok(here)
    }
}

impl Kernel {
    /// A new space with an empty lower half.
    pub(crate) fn new_space(
        &mut self,
        parent: *mut Space,
        level: usize,
    ) -> Result<&'static mut Space, NoMemory> {
        let payer = self.frames.payer;
        if payer != FIRST && self.numbers_of[usize::from(payer)] >= self.numbers / 4 * 3 {
            return Err(NoMemory);
        }
        let number = self.free_number().ok_or(NoMemory)?;
        let frame = self.frames.take().ok_or(NoMemory)?;
        let stack = match self.kernel_stacks {
            true => {
                self.frames.take().ok_or(NoMemory).inspect_err(|NoMemory| self.frames.give_back(frame))?
            }
            false => 0,
        };
        // Below the first space's level: whom that one yields to by the short way
        // (`give_way_locked`) is entered without a switch to its kernel stack.
        let level = if stack != 0 { level.min(LEVELS - 2) } else { level };
        let table = PageTable::new(&mut self.frames).inspect_err(|NoMemory| {
            self.frames.give_back(frame);
            self.frames.give_back(stack);
        })?;
        let space = mapped::<Space>(frame);
        // SAFETY: the frame is new and large enough; `parent` lives or is null.
        let space = unsafe {
            space.write(Space {
                registers: [0; 32],
                satp: table.satp(if self.keep_translations { number } else { 0 }),
                resume_point: NOWHERE,
                place: Place { next: ptr::null_mut(), previous: ptr::null_mut(), queue: self.queue(level) },
                number,
                purse: payer,
                level,
                state: State::Runnable,
                table,
                kernel_stack: 0,
                left: 0,
                part: ptr::null_mut(),
                heap_end: squall_scheduler::image::HEAP,
                given: 0,
                alarm: u64::MAX,
                later: ptr::null_mut(),
                parent,
                children: ptr::null_mut(),
                zombies: ptr::null_mut(),
                sibling: ptr::null_mut(),
                elder: ptr::null_mut(),
                exit_code: 0,
                connected: false,
                doomed: false,
            });
            &mut *space
        };
        if stack != 0 {
            kernel_stack::lay_out(space, mapped::<u8>(stack + FRAME).addr());
        }
        self.spaces[number] = space;
        self.numbers_of[usize::from(payer)] += 1;
        self.counters.spaces += 1;
        if let Some(parent) = space_at(parent) {
            link(&mut parent.children, space);
        }
        Ok(space)
    }

    /// A number that no space has: the next free one in rotation, so that a number is not soon
    /// used again, and its translations are likely to be gone.
    fn free_number(&mut self) -> Option<usize> {
        for _ in 1..self.numbers {
            self.last_number = self.last_number % (self.numbers - 1) + 1;
            if self.last_number == 1 && self.counters.spaces > 0 {
                self.numbers_used_up = true;
            }
            if self.spaces[self.last_number].is_null() {
                if self.numbers_used_up {
                    self.flush_everywhere();
                }
                return Some(self.last_number);
            }
        }
        None
    }

    /// Ends a space that no hart runs: its memory goes, its code waits
    /// for the parent, its children become the first space's, and whom it
    /// shared mail with is told. With the first space the machine stops.
    pub(crate) fn end(&mut self, space: *mut Space, code: usize) {
        // SAFETY: spaces live until they are reaped, and change under the kernel's lock only.
        let space = unsafe { &mut *space };
        if space.number == 1 {
            // At most a panic's status, 101: the kernel's own codes, such as `FAULTED`, would not
            // fit the status with which the emulator exits.
            crate::stop(code.min(101));
        }
        self.make_unready(space);
        self.cancel_alarm(space);
        self.counters.spaces -= 1;
        wait_until_left(space);
        space.part = ptr::null_mut();
        if space.connected {
            let mut place = MAIL;
            while let Some(page) = space.table.next_page(place, MAIL + SPACES * FRAME) {
                if let Some(other) =
                    space_at(self.spaces[(page - MAIL) / FRAME]).filter(|other| other.state != State::Ended)
                {
                    if other.has_accepted(space) {
                        self.tell_gone(other);
                    }
                    if let Some(entry) = other.table.find(MAIL + space.number * FRAME) {
                        *entry |= LEFT_BEHIND;
                    }
                }
                place = page + FRAME;
            }
        }
        core::mem::replace(&mut space.table, PageTable::none()).free(&mut self.frames);
        (space.state, space.exit_code) = (State::Ended, code);
        let first = self.spaces[1];
        while let Some(child) = space_at(space.children) {
            unlink(&mut space.children, child);
            child.parent = first;
            if let Some(first) = space_at(first) {
                link(&mut first.children, child);
            }
        }
        while let Some(zombie) = space_at(space.zombies) {
            unlink(&mut space.zombies, zombie);
            self.reap(zombie);
        }
        let Some(parent) = space_at(space.parent) else { return };
        unlink(&mut parent.children, space);
        link(&mut parent.zombies, space);
        if let State::Waiting(place) = parent.state {
            self.hand_over_zombie(parent, place);
            self.make_ready(parent);
        }
    }

    /// Takes back a space that never ran.
    pub(crate) fn abandon(&mut self, space: &mut Space) {
        if let Some(parent) = space_at(space.parent) {
            unlink(&mut parent.children, space);
        }
        space.parent = ptr::null_mut();
        self.end(space, 0);
        self.reap(space);
    }

    /// Gives the parent, which waits or is about to, a child that ended.
    pub(crate) fn hand_over_zombie(&mut self, parent: &mut Space, place: usize) {
        let Some(zombie) = space_at(parent.zombies) else { return };
        let mut code = zombie.exit_code.to_le_bytes();
        // The page that the code is written to may have to be copied.
        self.frames.payer = parent.purse;
        parent.registers[A0] = zombie.number;
        if place != 0 && !parent.copy(self, place, &mut code, true) {
            parent.registers[A0] = squall_scheduler::call::Refusal::BadAddress as usize;
        }
        // The child has ended: the page shared with it is unmapped.
        if parent.table.unmap(MAIL + zombie.number * FRAME, &mut self.frames) {
            self.translations_changed();
        }
        unlink(&mut parent.zombies, zombie);
        self.reap(zombie);
    }

    fn reap(&mut self, zombie: &mut Space) {
        self.spaces[zombie.number] = ptr::null_mut();
        self.numbers_of[usize::from(zombie.purse)] -= 1;
        self.take_back_stack(zombie);
        self.frames.give_back(crate::page_table::physical(zombie));
    }
}

/// Whether two spaces have the same page at these addresses.
fn same_page(one: &PageTable, here: usize, other: &PageTable, there: usize) -> bool {
    one.find(here)
        .is_some_and(|entry| other.find(there).is_some_and(|other| frame_of(*entry) == frame_of(*other)))
}

/// A space by its pointer in a list.
pub(crate) fn space_at(space: *mut Space) -> Option<&'static mut Space> {
    // SAFETY: spaces live until they are reaped, and are in lists only while they live. The kernel's
    // lock is held, and no two references to one space are used at a time.
    unsafe { space.as_mut() }
}

fn link(list: &mut *mut Space, space: &mut Space) {
    (space.sibling, space.elder) = (*list, ptr::null_mut());
    if let Some(first) = space_at(*list) {
        first.elder = space;
    }
    *list = space;
}

fn unlink(list: &mut *mut Space, space: &mut Space) {
    match space_at(space.elder) {
        Some(elder) => elder.sibling = space.sibling,
        None => *list = space.sibling,
    }
    if let Some(sibling) = space_at(space.sibling) {
        sibling.elder = space.elder;
    }
    (space.sibling, space.elder) = (ptr::null_mut(), ptr::null_mut());
}
