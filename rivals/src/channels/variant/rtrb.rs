// SPDX-License-Identifier: MIT OR Apache-2.0
//! rtrb, polled: it has no way of waiting. A message is copied into its place and read where it
//! lies, whatever its size: that is its best use.

use super::depth;
use crate::channels::idle::poll;
use crate::channels::letter::Letter;
use crate::channels::link::{End, Link, Place, link};
use rtrb::{Consumer, Producer, RingBuffer};
use std::ops::Range;

struct Polled<const S: usize>(Producer<[u8; S]>, Consumer<[u8; S]>);

impl<const S: usize> End<S> for Polled<S> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        poll(|| {
            let mut chunk = self.0.write_chunk_uninit(1).ok()?;
            let place = chunk.as_mut_slices().0[0].as_mut_ptr();
            // SAFETY: it is the chunk's, for one message, and initialised by this.
            // JUSTIFICATION: by value a long message would go over the stack.
            unsafe {
                place.copy_from_nonoverlapping(message, 1);
                chunk.commit_all();
            }
            Some(())
        });
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let mut read = Some(read);
        poll(|| {
            let chunk = self.1.read_chunk(1).ok()?;
            read.take()?(&chunk.as_slices().0[0]);
            chunk.commit_all();
            Some(())
        });
    }
}

/// A stream goes in chunks.
struct Chunks<const S: usize>(Polled<S>);

impl<const S: usize> End<S> for Chunks<S> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.0.send(message);
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        self.0.receive(read);
    }
    #[inline(always)]
    fn send_run(&mut self, letter: &mut Letter<S>, mut numbers: Range<u64>) {
        poll(|| {
            let mut chunk = self.0.0.write_chunk_uninit((numbers.end - numbers.start) as usize).ok()?;
            let (first, second) = chunk.as_mut_slices();
            for (place, number) in first.iter_mut().chain(second).zip(&mut numbers) {
                // SAFETY: it is the chunk's, for one message.
                unsafe { place.as_mut_ptr().copy_from_nonoverlapping(letter.stamp(number), 1) };
            }
            // SAFETY: all of it was written.
            unsafe { chunk.commit_all() };
            Some(())
        });
    }
    #[inline(always)]
    fn receive_run(&mut self, most: u64, mut read: impl FnMut(&[u8; S])) -> u64 {
        poll(|| {
            let there = self.0.1.slots().min(most as usize);
            if there == 0 {
                return None;
            }
            let chunk = self.0.1.read_chunk(there).ok()?;
            let (first, second) = chunk.as_slices();
            first.iter().chain(second).for_each(&mut read);
            chunk.commit_all();
            Some(there as u64)
        })
    }
}

fn open<const S: usize, E: End<S> + Send + 'static>(
    end: fn(Polled<S>) -> E,
) -> Result<Box<dyn Link>, String> {
    let ((out, their_in), (their_out, back)) = (RingBuffer::new(depth(S)), RingBuffer::new(depth(S)));
    link::<S, _, _>(Place::Threads, move || end(Polled(out, back)), move || end(Polled(their_out, their_in)))
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    open::<S, _>(|polled| polled)
}

pub fn chunks<const S: usize>() -> Result<Box<dyn Link>, String> {
    open::<S, _>(Chunks)
}
