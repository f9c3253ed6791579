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
    /// For each frame from `first` on, in how many maps it is.
    users: &'static mut [u32],
    used: usize,
}

impl Frames {
    /// Nothing, until the memory is known.
    pub(crate) const fn none() -> Self {
        Self { first: 0, end: 0, fresh: 0, spare: 0, users: &mut [], used: 0 }
    }

    /// The memory from `start` to `end`, physical addresses. What counts the frames lies in the first of them.
    pub(crate) fn over(start: usize, end: usize) -> Self {
        let start = start.next_multiple_of(FRAME);
        let frames = (end - start) / FRAME;
        let first = (start + frames * size_of::<u32>()).next_multiple_of(FRAME);
        // SAFETY: the machine says that there is memory, and nothing else lies there.
        let users = unsafe { core::slice::from_raw_parts_mut(mapped::<u32>(start), (end - first) / FRAME) };
        users.fill(0);
        Self { first, end, fresh: first, spare: 0, users, used: 0 }
    }

    /// A zeroed frame that is in one map; its physical address.
    pub(crate) fn take(&mut self) -> Option<usize> {
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
        self.users[(frame - self.first) / FRAME] = 1;
        self.used += 1;
        Some(frame)
    }

    /// It is in one more map. Of the kernel's own memory, which programs are in, no count is kept.
    pub(crate) fn share(&mut self, frame: usize) {
        if frame < self.first {
            return;
        }
        self.users[(frame - self.first) / FRAME] += 1;
    }

    /// In how many maps it is.
    pub(crate) fn users(&self, frame: usize) -> u32 {
        self.users[(frame - self.first) / FRAME]
    }

    /// It is in one map less.
    pub(crate) fn give_back(&mut self, frame: usize) {
        if frame < self.first {
            return;
        }
        let users = &mut self.users[(frame - self.first) / FRAME];
        *users -= 1;
        if *users == 0 {
            // SAFETY: it was in no other map.
            unsafe { *mapped::<usize>(frame) = self.spare };
            self.spare = frame;
            self.used -= 1;
        }
    }

    /// Frames in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Frames there are.
    pub(crate) fn all(&self) -> usize {
        self.users.len()
    }
}
