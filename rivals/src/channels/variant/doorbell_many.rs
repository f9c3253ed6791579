// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's `Gather`: a lane for each sender. Senders who trust each other share a segment;
//! the others have one each.

use super::doorbell::{Reading, buffer, lanes};
use crate::channels::idle::poll;
use crate::channels::link::{End, Link, Place};
use crate::channels::many::{SENDERS, gather};
use crate::hosted;
use doorbell::channel::{Gather, SendError, Sender};
use doorbell::peer::{Trust, Trusted};
use doorbell::rendezvous::{Connection, Offer, Segment};
use doorbell::wait::Wait;
use std::sync::Arc;

/// One of the senders.
struct Sends<T: Trust, W: Wait> {
    sender: Sender<T, W>,
    /// Looks for room again and again, and never rings.
    polls: bool,
}

impl<T: Trust, W: Wait, const S: usize> End<S> for Sends<T, W> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        if !self.polls {
            return self.sender.send(message).expect("the partner lives");
        }
        poll(|| match self.sender.push(message) {
            Ok(()) => Some(()),
            Err(SendError::Full) => None,
            Err(error) => panic!("{error}"),
        });
    }
    fn receive(&mut self, _: impl FnOnce(&[u8; S])) {
        panic!("it sends");
    }
}

/// Their receiver.
struct Receives<T: Trust, W: Wait, const S: usize> {
    gather: Gather<T, W>,
    polls: bool,
    buffer: Box<[u8; S]>,
    /// Connections, where there are any.
    _kept: Vec<Connection<T>>,
}

impl<T: Reading<S>, W: Wait, const S: usize> End<S> for Receives<T, W, S> {
    fn send(&mut self, _: &[u8; S]) {
        panic!("it receives");
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let Self { gather, buffer, .. } = self;
        if !self.polls {
            let (_, message) = gather.recv().expect("the partners live");
            return T::read(&message, buffer, read);
        }
        let mut read = Some(read);
        poll(|| {
            let (_, message) = gather.try_recv().expect("the partners live")?;
            T::read(&message, buffer, read.take()?);
            Some(())
        });
    }
}

pub fn threads<const S: usize, W: Wait + Default + 'static>(polls: bool) -> Result<Box<dyn Link>, String> {
    let segment =
        Segment::for_threads(&Offer::of_lanes(lanes::<S>(SENDERS, 1)?)).map_err(|error| error.to_string())?;
    let segment = Arc::new(segment);
    let theirs = (0..SENDERS as u32)
        .map(|lane| {
            let segment = Arc::clone(&segment);
            move || Sends {
                sender: Sender::<Trusted, W>::at_waiting_by(&segment, lane).expect("free"),
                polls,
            }
        })
        .collect();
    let ours = move || {
        let gather = Gather::<Trusted, W>::at_waiting_by(&segment, 0).expect("free");
        Receives { gather, polls, buffer: buffer(), _kept: Vec::new() }
    };
    gather::<S, Receives<Trusted, W, S>, _>(Place::Threads, ours, theirs)
}

pub(super) fn processes<const S: usize, T: Reading<S>, W: Wait + Default + 'static>(
    polls: bool,
) -> Result<Box<dyn Link>, String> {
    let lanes = lanes::<S>(SENDERS / hosted::segments::<T>(SENDERS), 1)?;
    let (ours, theirs) = hosted::sockets(SENDERS)?;
    let sends = |socket| {
        move || Sends { sender: Sender::<T, W>::attach_any(&hosted::join(socket)).expect("free"), polls }
    };
    let ours = move || {
        let (gather, kept) = hosted::gather(ours, lanes);
        Receives { gather, polls, buffer: buffer(), _kept: kept }
    };
    let theirs = theirs.into_iter().map(sends).collect();
    gather::<S, Receives<T, W, S>, _>(Place::Processes, ours, theirs)
}
