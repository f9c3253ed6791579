// SPDX-License-Identifier: MIT OR Apache-2.0
//! flume, bounded.

use super::depth;
use super::parcel::{MOST_INLINE, Parcel};
use crate::idle::poll;
use crate::link::{End, Link, Place, link};
use crate::many::{SENDERS, gather};
use flume::{Receiver, Sender, TrySendError, bounded};

struct Blocking<P>(Sender<P>, Receiver<P>);

impl<const S: usize, P: Parcel<S>> End<S> for Blocking<P> {
    #[inline]
    fn send(&mut self, message: &[u8; S]) {
        assert!(self.0.send(P::pack(message)).is_ok(), "the partner lives");
    }
    #[inline]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(self.1.recv().expect("the partner lives").bytes());
    }
}

struct Polled<P>(Sender<P>, Receiver<P>);

impl<const S: usize, P: Parcel<S>> End<S> for Polled<P> {
    #[inline]
    fn send(&mut self, message: &[u8; S]) {
        let mut parcel = Some(P::pack(message));
        poll(|| match self.0.try_send(parcel.take()?) {
            Ok(()) => Some(()),
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                parcel = Some(back);
                None
            }
        });
    }
    #[inline]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(poll(|| self.1.try_recv().ok()).bytes());
    }
}

fn open<const S: usize, P: Parcel<S>, E: End<S> + Send + 'static>(
    end: fn(Sender<P>, Receiver<P>) -> E,
) -> Result<Box<dyn Link>, String> {
    let ((out, their_in), (their_out, back)) = (bounded(depth(S)), bounded(depth(S)));
    link::<S, _, _>(Place::Threads, move || end(out, back), move || end(their_out, their_in))
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE { open::<S, [u8; S], _>(Polled) } else { open::<S, Box<[u8; S]>, _>(Polled) }
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE { open::<S, [u8; S], _>(Blocking) } else { open::<S, Box<[u8; S]>, _>(Blocking) }
}

fn open_many<const S: usize, P: Parcel<S>, E: End<S> + Send + 'static>(
    end: fn(Sender<P>, Receiver<P>) -> E,
) -> Result<Box<dyn Link>, String> {
    let (out, back) = bounded(depth(S) * SENDERS);
    let both = || (out.clone(), back.clone());
    let theirs = (0..SENDERS).map(|_| both()).map(|(out, back)| move || end(out, back)).collect();
    let (out, back) = both();
    gather::<S, _, _>(Place::Threads, move || end(out, back), theirs)
}

pub fn many_polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE {
        open_many::<S, [u8; S], _>(Polled)
    } else {
        open_many::<S, Box<[u8; S]>, _>(Polled)
    }
}

pub fn many_blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE {
        open_many::<S, [u8; S], _>(Blocking)
    } else {
        open_many::<S, Box<[u8; S]>, _>(Blocking)
    }
}
