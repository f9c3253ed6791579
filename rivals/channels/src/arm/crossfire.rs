// SPDX-License-Identifier: MIT OR Apache-2.0
//! crossfire, bounded: one to one, and many to one.

use super::depth;
use super::parcel::{MOST_INLINE, Parcel};
use crate::idle::poll;
use crate::link::{End, Link, Place, link};
use crate::many::{SENDERS, gather};
use crossfire::{MTx, Rx, TrySendError, Tx, mpsc, spsc};

struct Blocking<P: 'static>(Tx<spsc::Array<P>>, Rx<spsc::Array<P>>);

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

struct Polled<P: 'static>(Tx<spsc::Array<P>>, Rx<spsc::Array<P>>);

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
    end: fn(Tx<spsc::Array<P>>, Rx<spsc::Array<P>>) -> E,
) -> Result<Box<dyn Link>, String> {
    let ((out, their_in), (their_out, back)) =
        (spsc::bounded_blocking(depth(S)), spsc::bounded_blocking(depth(S)));
    link::<S, _, _>(Place::Threads, move || end(out, back), move || end(their_out, their_in))
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE { open::<S, [u8; S], _>(Polled) } else { open::<S, Box<[u8; S]>, _>(Polled) }
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE { open::<S, [u8; S], _>(Blocking) } else { open::<S, Box<[u8; S]>, _>(Blocking) }
}

/// Of many senders, or their receiver.
enum One<P: 'static> {
    Sends(MTx<mpsc::Array<P>>),
    Receives(Rx<mpsc::Array<P>>),
}

impl<P> One<P> {
    fn out(&mut self) -> &mut MTx<mpsc::Array<P>> {
        let Self::Sends(out) = self else { panic!("it receives") };
        out
    }
    fn back(&mut self) -> &mut Rx<mpsc::Array<P>> {
        let Self::Receives(back) = self else { panic!("it sends") };
        back
    }
}

struct OneBlocking<P: 'static>(One<P>);

impl<const S: usize, P: Parcel<S>> End<S> for OneBlocking<P> {
    #[inline]
    fn send(&mut self, message: &[u8; S]) {
        assert!(self.0.out().send(P::pack(message)).is_ok(), "the partner lives");
    }
    #[inline]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(self.0.back().recv().expect("the partner lives").bytes());
    }
}

struct OnePolled<P: 'static>(One<P>);

impl<const S: usize, P: Parcel<S>> End<S> for OnePolled<P> {
    #[inline]
    fn send(&mut self, message: &[u8; S]) {
        let mut parcel = Some(P::pack(message));
        poll(|| match self.0.out().try_send(parcel.take()?) {
            Ok(()) => Some(()),
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
                parcel = Some(back);
                None
            }
        });
    }
    #[inline]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(poll(|| self.0.back().try_recv().ok()).bytes());
    }
}

fn open_many<const S: usize, P: Parcel<S>, E: End<S> + Send + 'static>(
    end: fn(One<P>) -> E,
) -> Result<Box<dyn Link>, String> {
    let (out, back) = mpsc::bounded_blocking(depth(S) * SENDERS);
    let theirs = (0..SENDERS).map(|_| out.clone()).map(|out| move || end(One::Sends(out))).collect();
    gather::<S, _, _>(Place::Threads, move || end(One::Receives(back)), theirs)
}

pub fn many_polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE {
        open_many::<S, [u8; S], _>(OnePolled)
    } else {
        open_many::<S, Box<[u8; S]>, _>(OnePolled)
    }
}

pub fn many_blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    if S <= MOST_INLINE {
        open_many::<S, [u8; S], _>(OneBlocking)
    } else {
        open_many::<S, Box<[u8; S]>, _>(OneBlocking)
    }
}
