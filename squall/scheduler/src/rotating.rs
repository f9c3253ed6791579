// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ready queue of the document that this kernel checks, with its two faults: a ring of 400
//! entries from which a task is deleted by taking every entry out and putting back all but one, and
//! which counts itself 16 entries too long once it has wrapped.
//!
//! It is here so that the document's tables can be had again, and be
//! explained. Nothing else uses it.

/// Entries of the ring.
pub const ENTRIES: usize = 400;

/// One task of one space.
#[derive(Debug, Clone, Copy)]
struct Entry {
    space: u32,
    task: u32,
}

/// The ring.
#[repr(C)]
#[derive(Debug)]
pub struct Rotating {
    front: usize,
    tail: usize,
    entries: [Entry; ENTRIES],
}

impl Rotating {
    /// The entries it believes to hold: the difference of the ends, modulo 2⁶⁴ and then modulo 400.
    /// As 2⁶⁴ mod 400 is 16, a ring whose tail has wrapped counts 16 too many.
    fn length(&self) -> usize {
        self.tail.wrapping_sub(self.front) % ENTRIES
    }

    fn full(&self) -> bool {
        self.length() == ENTRIES - 1
    }

    fn push(&mut self, entry: Entry) -> bool {
        if self.full() {
            return false;
        }
        self.entries[self.tail % ENTRIES] = entry;
        self.tail = (self.tail + 1) % ENTRIES;
        true
    }

    /// Takes the head out: what a delete of the head would be if it did not take out all others.
    pub fn take_head(&mut self) -> bool {
        self.pop().is_some()
    }

    fn pop(&mut self) -> Option<Entry> {
        if self.length() == 0 {
            return None;
        }
        let entry = self.entries[self.front % ENTRIES];
        self.front = (self.front + 1) % ENTRIES;
        Some(entry)
    }

    /// Adds a task; false if there is no room, or seems to be none.
    pub fn add(&mut self, space: u32, task: u32) -> bool {
        self.push(Entry { space, task })
    }

    /// The space and the task at the head.
    pub fn peek(&self) -> Option<(u32, u32)> {
        let entry = self.entries[self.front % ENTRIES];
        (self.length() != 0).then_some((entry.space, entry.task))
    }

    /// Deletes `task`; says how many entries were taken out and put back.
    pub fn delete(&mut self, task: u32) -> usize {
        let mut moves = 0;
        for _ in 0..self.length() {
            let Some(entry) = self.pop() else { break };
            moves += 1;
            if entry.task != task {
                self.push(entry);
                moves += 1;
            }
        }
        moves
    }
}
