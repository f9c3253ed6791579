// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries' channels of values: polled, or waiting as the library does.

use super::depth;
use super::parcel::{MOST_INLINE, Parcel};
use crate::channels::idle::poll;
use crate::channels::link::{End, Link, Place, link};
use crate::channels::many::{SENDERS, gather};
use crate::library::{Library, Receives, Sends};
use std::marker::PhantomData;

/// Both ends of one side, which looks again and again, or waits as the library does.
struct Ends<P, O, I, const POLLS: bool>(O, I, PhantomData<fn(P)>);

impl<const S: usize, P: Parcel<S>, O: Sends<P>, I: Receives<P>, const POLLS: bool> End<S>
    for Ends<P, O, I, POLLS>
{
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        if !POLLS {
            return self.0.send(P::pack(message));
        }
        let mut parcel = Some(P::pack(message));
        poll(|| self.0.try_send(&mut parcel).then_some(()));
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        if POLLS {
            read(poll(|| self.1.try_receive()).bytes());
        } else {
            read(self.1.receive().bytes());
        }
    }
}

/// Two channels of one kind of parcel.
fn pair_of<const S: usize, const POLLS: bool, P: Parcel<S>, L: Library<P>>() -> Result<Box<dyn Link>, String>
{
    let ((out, their_in), (their_out, back)) = (L::bounded(depth(S)), L::bounded(depth(S)));
    link::<S, _, _>(
        Place::Threads,
        move || Ends::<P, _, _, POLLS>(out, back, PhantomData),
        move || Ends::<P, _, _, POLLS>(their_out, their_in, PhantomData),
    )
}

pub fn pair<const S: usize, const POLLS: bool, L>() -> Result<Box<dyn Link>, String>
where
    L: Library<[u8; S]> + Library<Box<[u8; S]>>,
{
    if S <= MOST_INLINE { pair_of::<S, POLLS, [u8; S], L>() } else { pair_of::<S, POLLS, Box<[u8; S]>, L>() }
}

/// One channel of one kind of parcel, with several senders.
fn many_of<const S: usize, const POLLS: bool, P: Parcel<S>, L: Library<P, Sender: Clone>>()
-> Result<Box<dyn Link>, String> {
    let (out, back) = L::bounded(depth(S) * SENDERS);
    let theirs = (0..SENDERS)
        .map(|_| out.clone())
        .map(|out| move || Ends::<P, _, _, POLLS>(out, (), PhantomData))
        .collect();
    gather::<S, _, _>(Place::Threads, move || Ends::<P, _, _, POLLS>((), back, PhantomData), theirs)
}

pub fn many<const S: usize, const POLLS: bool, L>() -> Result<Box<dyn Link>, String>
where
    L: Library<[u8; S], Sender: Clone> + Library<Box<[u8; S]>, Sender: Clone>,
{
    if S <= MOST_INLINE { many_of::<S, POLLS, [u8; S], L>() } else { many_of::<S, POLLS, Box<[u8; S]>, L>() }
}
