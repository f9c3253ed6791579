// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ready queue of tornado-os: a ring whose delete takes every
//! element out and puts all but one back.
//!
//! Its `peek` leaves the task at the head in the ring while it runs; only the task that has ended
//! is deleted, and deleting it costs as much as the ring is long. What that does to a figure is the
//! reason why it is here. The ring of the original counts itself 16 too long once it has wrapped;
//! this one does not, so that every kind stays in the order of the queue.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A ring of task numbers in shared memory, one slot longer than there are tasks.
#[derive(Clone, Copy)]
pub(super) struct Rotating {
    slots: &'static [AtomicU32],
    front: &'static AtomicU32,
    tail: &'static AtomicU32,
}

impl Rotating {
    /// An empty ring over `slots`, whose ends are kept in `front` and `tail`.
    pub(super) fn over(
        slots: &'static [AtomicU32],
        front: &'static AtomicU32,
        tail: &'static AtomicU32,
    ) -> Self {
        front.store(0, Relaxed);
        tail.store(0, Relaxed);
        Self { slots, front, tail }
    }

    /// Puts all tasks in that fit, in the order of their numbers.
    pub(super) fn fill(&self) {
        (0..self.slots.len() as u32 - 1).for_each(|task| self.push(task));
    }

    fn after(&self, place: u32) -> u32 {
        let next = place + 1;
        if next as usize == self.slots.len() { 0 } else { next }
    }

    fn length(&self) -> u32 {
        let (front, tail) = (self.front.load(Relaxed), self.tail.load(Relaxed));
        if tail >= front { tail - front } else { tail + self.slots.len() as u32 - front }
    }

    #[inline(always)]
    fn push(&self, task: u32) {
        let tail = self.tail.load(Relaxed);
        self.slots[tail as usize].store(task, Relaxed);
        self.tail.store(self.after(tail), Relaxed);
    }

    #[inline(always)]
    fn pop(&self) -> Option<u32> {
        let task = self.peek()?;
        self.front.store(self.after(self.front.load(Relaxed)), Relaxed);
        Some(task)
    }

    /// The task at the head, which stays there.
    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u32> {
        let front = self.front.load(Relaxed);
        (front != self.tail.load(Relaxed)).then(|| self.slots[front as usize].load(Relaxed))
    }

    /// Takes `task` out, wherever it is, by taking everything out and putting the rest back; says
    /// how many elements were moved.
    pub(super) fn delete(&self, task: u32) -> u64 {
        let length = self.length();
        for _ in 0..length {
            if let Some(other) = self.pop().filter(|other| *other != task) {
                self.push(other);
            }
        }
        length.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(tasks: usize) -> Rotating {
        let slots: Vec<AtomicU32> = (0..=tasks).map(|_| AtomicU32::new(0)).collect();
        let ends: &'static [AtomicU32; 2] = Box::leak(Box::new([AtomicU32::new(9), AtomicU32::new(9)]));
        let ring = Rotating::over(Vec::leak(slots), &ends[0], &ends[1]);
        ring.fill();
        ring
    }

    #[test]
    fn a_delete_moves_as_many_elements_as_there_are_and_keeps_the_order_of_the_rest() {
        let ring = ring(5);
        assert_eq!(ring.delete(2), 5);
        let left: Vec<u32> = std::iter::from_fn(|| ring.pop()).collect();
        assert_eq!(left, [0, 1, 3, 4]);
        assert_eq!(ring.peek(), None);
    }

    #[test]
    fn deleting_all_from_the_head_moves_half_the_square_of_their_number() {
        let ring = ring(380);
        let mut moves = 0;
        while let Some(task) = ring.peek() {
            moves += ring.delete(task);
        }
        // The original counts taking out and putting back: twice as
        // many, and some more for its faulty length.
        assert_eq!(moves, 380 * 381 / 2);
    }
}
