// SPDX-License-Identifier: MIT OR Apache-2.0
//! rtrb, polled: it has no way of waiting. A message is read where it lies.

use super::depth;
use super::parcel::{MOST_INLINE, Parcel};
use crate::channels::idle::poll;
use crate::channels::link::{End, Link, Place, link};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

struct Polled<P>(Producer<P>, Consumer<P>);

impl<const S: usize, P: Parcel<S>> End<S> for Polled<P> {
    #[inline]
    fn send(&mut self, message: &[u8; S]) {
        let mut parcel = Some(P::pack(message));
        poll(|| match self.0.push(parcel.take()?) {
            Ok(()) => Some(()),
            Err(PushError::Full(back)) => {
                parcel = Some(back);
                None
            }
        });
    }
    #[inline]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let mut read = Some(read);
        poll(|| {
            let chunk = self.1.read_chunk(1).ok()?;
            read.take()?(chunk.as_slices().0[0].bytes());
            chunk.commit_all();
            Some(())
        });
    }
}

fn open<const S: usize, P: Parcel<S>>() -> Result<Box<dyn Link>, String> {
    let ((out, their_in), (their_out, back)) =
        (RingBuffer::<P>::new(depth(S)), RingBuffer::<P>::new(depth(S)));
    link::<S, _, _>(Place::Threads, move || Polled(out, back), move || Polled(their_out, their_in))
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE { open::<S, [u8; S]>() } else { open::<S, Box<[u8; S]>>() }
}
