// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries' channels of values: polled, or waiting as the library does.

use super::depth;
use super::parcel::{MOST_INLINE, Parcel};
use crate::channels::idle::poll;
use crate::channels::link::{End, Link, Place, link};
use crate::channels::many::{SENDERS, gather};
use crate::library::{Library, Receives, Sends};
use std::marker::PhantomData;

struct Blocking<P, O, I>(O, I, PhantomData<fn(P)>);

impl<const S: usize, P: Parcel<S>, O: Sends<P>, I: Receives<P>> End<S> for Blocking<P, O, I> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.0.send(P::pack(message));
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(self.1.receive().bytes());
    }
}

struct Polled<P, O, I>(O, I, PhantomData<fn(P)>);

impl<const S: usize, P: Parcel<S>, O: Sends<P>, I: Receives<P>> End<S> for Polled<P, O, I> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        let mut parcel = Some(P::pack(message));
        poll(|| self.0.try_send(&mut parcel).then_some(()));
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        read(poll(|| self.1.try_receive()).bytes());
    }
}

/// A way to make a pair of ends, and one to make a gathering: once
/// for each way of waiting and each kind of parcel.
macro_rules! ways {
    ($pair:ident, $many:ident, $end:ident) => {
        pub fn $pair<const S: usize, L>() -> Result<Box<dyn Link>, String>
        where
            L: Library<[u8; S]> + Library<Box<[u8; S]>>,
        {
            fn open<const S: usize, P: Parcel<S>, L: Library<P>>() -> Result<Box<dyn Link>, String> {
                let ((out, their_in), (their_out, back)) = (L::bounded(depth(S)), L::bounded(depth(S)));
                link::<S, _, _>(
                    Place::Threads,
                    move || $end(out, back, PhantomData::<fn(P)>),
                    move || $end(their_out, their_in, PhantomData::<fn(P)>),
                )
            }
            if S <= MOST_INLINE { open::<S, [u8; S], L>() } else { open::<S, Box<[u8; S]>, L>() }
        }

        pub fn $many<const S: usize, L>() -> Result<Box<dyn Link>, String>
        where
            L: Library<[u8; S], Sender: Clone> + Library<Box<[u8; S]>, Sender: Clone>,
        {
            fn open<const S: usize, P: Parcel<S>, L: Library<P, Sender: Clone>>()
            -> Result<Box<dyn Link>, String> {
                let (out, back) = L::bounded(depth(S) * SENDERS);
                let theirs = (0..SENDERS)
                    .map(|_| out.clone())
                    .map(|out| move || $end(out, (), PhantomData::<fn(P)>))
                    .collect();
                gather::<S, _, _>(Place::Threads, move || $end((), back, PhantomData::<fn(P)>), theirs)
            }
            if S <= MOST_INLINE { open::<S, [u8; S], L>() } else { open::<S, Box<[u8; S]>, L>() }
        }
    };
}

ways!(polled, many_polled, Polled);
ways!(blocking, many_blocking, Blocking);
