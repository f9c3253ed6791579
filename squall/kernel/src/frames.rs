// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of physical memory: 4 KiB each, given out zeroed, counted by how many maps they are in.

use crate::page_table::mapped;

/// Bytes of a frame.
pub(crate) const FRAME: usize = 4096;

/// The memory that is not the kernel's own.
pub(crate) struct Frames {
    first: usize,
    end: usize,
    /// Frames from here on were never used.
    fresh: usize,
    /// The frame that was given back last; its first word has the address of the one before it.
    spare: usize,
    frames: &'static mut [Frame],
    used: usize,
    /// Who pays for what is taken.
    pub(crate) payer: Purse,
    /// Frames that each purse paid for.
    paid: [usize; PURSES],
}

/// What is known of a frame.
#[derive(Clone, Copy)]
struct Frame {
    /// In how many maps it is.
    users: u32,
    payer: Purse,
}

/// Who pays for a frame: the first space, or a child of it together
/// with all that descend from that child.
pub(crate) type Purse = u8;

pub(crate) const PURSES: usize = 1 << Purse::BITS;

/// The first space's, which has no limit.
pub(crate) const FIRST: Purse = 0;

impl Frames {
    /// Nothing, until the memory is known.
    pub(crate) const fn none() -> Self {
        Self {
            first: 0,
            end: 0,
            fresh: 0,
            spare: 0,
            frames: &mut [],
            used: 0,
            payer: FIRST,
            paid: [0; PURSES],
        }
    }

    /// The memory from `start` to `end`, physical addresses. What
    /// counts the frames lies in the first of them.
    pub(crate) fn over(start: usize, end: usize) -> Self {
        let start = start.next_multiple_of(FRAME);
        let count = (end - start) / FRAME;
        let first = (start + count * size_of::<Frame>()).next_multiple_of(FRAME);
        // SAFETY: the machine says that there is memory, and nothing
        // else lies there; as zeroes it is valid.
        let frames = unsafe {
            let place = mapped::<Frame>(start);
            place.write_bytes(0, (end - first) / FRAME);
            core::slice::from_raw_parts_mut(place, (end - first) / FRAME)
        };
        Self { first, end, fresh: first, frames, ..Self::none() }
    }

    /// A purse that nobody pays from. With all in use, one that is shared.
    pub(crate) fn free_purse(&self) -> Purse {
        (1..Purse::MAX).find(|purse| self.paid[usize::from(*purse)] == 0).unwrap_or(Purse::MAX)
    }

    /// Frames that the payer may still take.
    pub(crate) fn left(&self) -> usize {
        let free = self.frames.len() - self.used;
        match self.payer {
            FIRST => free,
            purse => free.min(self.limit().saturating_sub(self.paid[usize::from(purse)])),
        }
    }

    /// Frames that one purse may pay for: so many that whoever takes
    /// all it gets leaves some for the others.
    fn limit(&self) -> usize {
        self.frames.len() / 4 * 3
    }

    /// A zeroed frame that is in one map; its physical address.
    pub(crate) fn take(&mut self) -> Option<usize> {
        if self.left() == 0 {
            return None;
        }
        let frame = if self.spare != 0 {
            let frame = self.spare;
            // SAFETY: a spare frame is nobody's, and its first word was written when it was given back.
            self.spare = unsafe { *mapped::<usize>(frame) };
            frame
        } else if self.fresh + FRAME <= self.end {
            self.fresh += FRAME;
            self.fresh - FRAME
        } else {
            return None;
        };
        // SAFETY: the frame is nobody's.
        unsafe { mapped::<[usize; FRAME / 8]>(frame).write([0; FRAME / 8]) };
        self.frames[(frame - self.first) / FRAME] = Frame { users: 1, payer: self.payer };
        self.paid[usize::from(self.payer)] += 1;
        self.used += 1;
        Some(frame)
    }

    /// It is in one more map. Of the kernel's own memory, which programs are in, no count is kept.
    pub(crate) fn share(&mut self, frame: usize) {
        if frame < self.first {
            return;
        }
        self.frames[(frame - self.first) / FRAME].users += 1;
    }

    /// In how many maps it is.
    pub(crate) fn users(&self, frame: usize) -> u32 {
        self.frames[(frame - self.first) / FRAME].users
    }

    /// It is in one map less.
    pub(crate) fn give_back(&mut self, frame: usize) {
        if frame < self.first {
            return;
        }
        let Frame { users, payer } = &mut self.frames[(frame - self.first) / FRAME];
        *users -= 1;
        if *users == 0 {
            // SAFETY: it was in no other map.
            unsafe { *mapped::<usize>(frame) = self.spare };
            self.spare = frame;
            self.paid[usize::from(*payer)] -= 1;
            self.used -= 1;
        }
    }

    /// Frames in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Frames there are.
    pub(crate) fn all(&self) -> usize {
        self.frames.len()
    }
}
