// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's channels. Between those who trust each other a message is read where it lies; an
//! untrusted one is copied out first.

use super::depth;
use crate::channels::idle::poll;
use crate::channels::letter::Letter;
use crate::channels::link::{End, Link, Place, link};
use crate::hosted;
use doorbell::channel::{Lanes, Message, Receiver, SendError, Sender, TypedReceiver, TypedSender};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Offer, Segment};
use doorbell::wait::{Adaptive, Wait};
use std::ops::Range;
use std::sync::Arc;

/// `lanes` lanes from one to `receivers`.
pub(super) fn lanes<const S: usize>(lanes: usize, receivers: u32) -> Result<Lanes, String> {
    // Three eighths of a ring must take the message, and all of it `depth` of them.
    let bytes = ((S + 16) * depth(S)).max((S + 64) * 3);
    let laid_out = Lanes::new(lanes as u32, receivers, bytes as u64);
    laid_out.ok_or_else(|| format!("no {lanes} lanes of {bytes} bytes"))
}

/// How the bytes of a message are read.
pub(super) trait Reading<const S: usize>: Trust + Sized {
    fn read(message: &Message<'_, Self>, buffer: &mut [u8; S], read: impl FnOnce(&[u8; S]));
}

impl<const S: usize> Reading<S> for Trusted {
    #[inline(always)]
    fn read(message: &Message<'_, Self>, _: &mut [u8; S], read: impl FnOnce(&[u8; S])) {
        read((&**message).try_into().expect("the size sent"));
    }
}

impl<const S: usize> Reading<S> for Untrusted {
    #[inline(always)]
    fn read(message: &Message<'_, Self>, buffer: &mut [u8; S], read: impl FnOnce(&[u8; S])) {
        assert_eq!(message.copy_to(buffer), S, "the size sent");
        read(buffer);
    }
}

pub(super) fn buffer<const S: usize>() -> Box<[u8; S]> {
    vec![0; S].try_into().expect("S bytes")
}

/// Both ends of one side. It rings for every message, or never; it waits by `W`, or looks again and
/// again. What it costs to ring for one who never sleeps is seen by a side that rings and looks.
pub(super) struct Ends<T: Trust, W: Wait, const S: usize, const RINGS: bool, const WAITS: bool> {
    sender: Sender<T, W>,
    receiver: Receiver<T, W>,
    buffer: Box<[u8; S]>,
    /// A connection lives as long as its ends.
    kept: Option<Connection<T>>,
}

impl<W: Wait + Default, const S: usize, const RINGS: bool, const WAITS: bool>
    Ends<Trusted, W, S, RINGS, WAITS>
{
    fn at(segment: &Segment, out: u32, back: u32) -> Self {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        let receiver = Receiver::at_waiting_by(segment, back).expect("free");
        Self { sender, receiver, buffer: buffer(), kept: None }
    }
}

impl<T: Trust, W: Wait + Default, const S: usize, const RINGS: bool, const WAITS: bool>
    Ends<T, W, S, RINGS, WAITS>
{
    fn attach(connection: Connection<T>, out: u32, back: u32) -> Self {
        let sender = Sender::attach_waiting_by(&connection, out).expect("free");
        let receiver = Receiver::attach_waiting_by(&connection, back).expect("free");
        Self { sender, receiver, buffer: buffer(), kept: Some(connection) }
    }
}

impl<T: Reading<S>, W: Wait, const S: usize, const RINGS: bool, const WAITS: bool> End<S>
    for Ends<T, W, S, RINGS, WAITS>
{
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        if RINGS {
            return self.sender.send(message).expect("the partner lives");
        }
        poll(|| match self.sender.push(message) {
            Ok(()) => Some(()),
            Err(SendError::Full) => None,
            Err(error) => panic!("{error}"),
        });
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        if WAITS {
            let message = self.receiver.recv().expect("the partner lives");
            return T::read(&message, &mut self.buffer, read);
        }
        let mut read = Some(read);
        poll(|| {
            let message = self.receiver.try_recv().expect("the partner lives")?;
            T::read(&message, &mut self.buffer, read.take()?);
            Some(())
        });
    }
}

type Polled<const S: usize> = Ends<Trusted, Adaptive, S, false, false>;

/// As what looks and never rings, but a stream goes in batches, each with one ring, and comes in runs.
struct Batched<const S: usize>(Polled<S>);

impl<const S: usize> End<S> for Batched<S> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.0.send(message);
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        self.0.receive(read);
    }
    #[inline(always)]
    fn send_run(&mut self, letter: &mut Letter<S>, numbers: Range<u64>) {
        let mut batch = self.0.sender.batch();
        for number in numbers {
            let message = letter.stamp(number);
            poll(|| match batch.push(message) {
                Ok(()) => Some(()),
                Err(SendError::Full) => None,
                Err(error) => panic!("{error}"),
            });
        }
    }
    #[inline(always)]
    fn receive_run(&mut self, most: u64, mut read: impl FnMut(&[u8; S])) -> u64 {
        poll(|| {
            let mut received = 0;
            let messages = self.0.receiver.try_recv_batch().expect("the partner lives");
            for message in messages.take(most as usize) {
                read((*message).try_into().expect("the size sent"));
                received += 1;
            }
            (received > 0).then_some(received)
        })
    }
}

/// Values of one type: a stream goes in batches, each of which is one record, and comes as slices.
struct Values<const S: usize> {
    sender: TypedSender<[u8; S], Trusted>,
    receiver: TypedReceiver<[u8; S], Trusted>,
    _kept: Option<Connection<Trusted>>,
}

impl<const S: usize> Values<S> {
    fn over(Ends { sender, receiver, kept, .. }: Polled<S>) -> Self {
        Self { sender: TypedSender::new(sender), receiver: TypedReceiver::new(receiver), _kept: kept }
    }
}

impl<const S: usize> End<S> for Values<S> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.sender.bytes().send(message).expect("the partner lives");
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let mut read = Some(read);
        let received = self.receive_run(1, |message| read.take().expect("sent alone")(message));
        assert_eq!(received, 1);
    }
    #[inline(always)]
    fn send_run(&mut self, letter: &mut Letter<S>, numbers: Range<u64>) {
        poll(|| match self.sender.try_batch((numbers.end - numbers.start) as usize) {
            Ok(mut batch) => {
                for number in numbers.clone() {
                    batch.push(letter.stamp(number)).expect("made for as many");
                }
                Some(())
            }
            Err(SendError::Full) => None,
            Err(error) => panic!("{error}"),
        });
    }
    #[inline(always)]
    fn receive_run(&mut self, _: u64, mut read: impl FnMut(&[u8; S])) -> u64 {
        poll(|| {
            let values = self.receiver.try_recv_batch().expect("the partner lives");
            values.iter().for_each(&mut read);
            (!values.is_empty()).then_some(values.len() as u64)
        })
    }
}

fn threads<const S: usize, E: End<S> + Send + 'static>(
    end: fn(&Segment, u32, u32) -> E,
) -> Result<Box<dyn Link>, String> {
    let segment =
        Segment::for_threads(&Offer::of_lanes(lanes::<S>(2, 2)?)).map_err(|error| error.to_string())?;
    let ours = Arc::new(segment);
    let theirs = Arc::clone(&ours);
    link::<S, _, _>(Place::Threads, move || end(&ours, 0, 1), move || end(&theirs, 1, 0))
}

fn processes<const S: usize, T: Trust, E: End<S> + 'static>(
    end: fn(Connection<T>, u32, u32) -> E,
) -> Result<Box<dyn Link>, String> {
    let (ours, mut theirs) = hosted::sockets(1)?;
    let lanes = lanes::<S>(2, 2)?;
    let host = move || {
        let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes)).expect("memory"));
        end(hosted::host(ours, &[segment]).remove(0), 0, 1)
    };
    let join = move || end(hosted::join(theirs.remove(0)), 1, 0);
    link::<S, _, _>(Place::Processes, host, join)
}

pub fn between_threads<const S: usize, const RINGS: bool, const WAITS: bool>() -> Result<Box<dyn Link>, String>
{
    threads::<S, _>(Ends::<_, Adaptive, S, RINGS, WAITS>::at)
}

pub fn threads_batched<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, _>(|segment, out, back| Batched(Ends::at(segment, out, back)))
}

pub fn processes_batched<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, _, _>(|connection, out, back| Batched(Ends::attach(connection, out, back)))
}

pub fn threads_values<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, _>(|segment, out, back| Values::<S>::over(Ends::at(segment, out, back)))
}

pub fn processes_values<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, _, _>(|connection, out, back| Values::<S>::over(Ends::attach(connection, out, back)))
}

pub(super) fn polled<const S: usize, T: Reading<S> + 'static>() -> Result<Box<dyn Link>, String> {
    processes::<S, T, _>(Ends::<T, Adaptive, S, false, false>::attach)
}

pub(super) fn waiting<const S: usize, T: Reading<S> + 'static, W: Wait + Default + 'static>()
-> Result<Box<dyn Link>, String> {
    processes::<S, T, _>(Ends::<T, W, S, true, true>::attach)
}
