// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's channels. Between those who trust each other a message is read where it lies; an
//! untrusted one is copied out first.

use super::depth;
use crate::channels::idle::poll;
use crate::channels::letter::Letter;
use crate::channels::link::{End, Link, Place, link};
use doorbell::channel::{Lanes, Message, Receiver, SendError, Sender, TypedReceiver, TypedSender};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Offer, Segment, socket};
use doorbell::wait::{Adaptive, Futex, Wait};
use std::ops::Range;
use std::sync::Arc;

/// One lane for each direction.
fn lanes<const S: usize>() -> Result<Lanes, String> {
    // Three eighths of a ring must take the message, and all of it `depth` of them.
    let bytes = ((S + 16) * depth(S)).max((S + 64) * 3);
    Lanes::new(2, 2, bytes as u64).ok_or_else(|| format!("no lanes of {bytes} bytes"))
}

/// How the bytes of a message are read.
trait Reading<T: Trust, const S: usize>: Default {
    fn read(&mut self, message: &Message<'_, T>, read: impl FnOnce(&[u8; S]));
}

#[derive(Default)]
struct InPlace;

impl<const S: usize> Reading<Trusted, S> for InPlace {
    #[inline(always)]
    fn read(&mut self, message: &Message<'_, Trusted>, read: impl FnOnce(&[u8; S])) {
        read((&**message).try_into().expect("the size sent"));
    }
}

struct Copied<const S: usize>(Box<[u8; S]>);

impl<const S: usize> Default for Copied<S> {
    fn default() -> Self {
        Self(vec![0; S].try_into().expect("S bytes"))
    }
}

impl<const S: usize> Reading<Untrusted, S> for Copied<S> {
    #[inline(always)]
    fn read(&mut self, message: &Message<'_, Untrusted>, read: impl FnOnce(&[u8; S])) {
        assert_eq!(message.copy_to(self.0.as_mut_slice()), S, "the size sent");
        read(&self.0);
    }
}

/// Looks again and again, and never rings.
struct Polled<T: Trust, R> {
    sender: Sender<T>,
    receiver: Receiver<T>,
    reading: R,
}

impl<T: Trust, R: Reading<T, S>, const S: usize> End<S> for Polled<T, R> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        poll(|| match self.sender.push(message) {
            Ok(()) => Some(()),
            Err(SendError::Full) => None,
            Err(error) => panic!("{error}"),
        });
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let mut read = Some(read);
        poll(|| {
            let message = self.receiver.try_recv().expect("the partner lives")?;
            self.reading.read(&message, read.take()?);
            Some(())
        });
    }
}

/// As [`Polled`], but a stream goes in batches, each with one ring, and comes in runs.
struct Batched<T: Trust>(Polled<T, InPlace>);

impl<const S: usize> End<S> for Batched<Trusted> {
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
            for message in self.0.receiver.try_recv_batch().expect("the partner lives").take(most as usize) {
                read((*message).try_into().expect("the size sent"));
                received += 1;
            }
            (received > 0).then_some(received)
        })
    }
}

/// As [`Polled`], but rings for every message: what that costs who sends to one who never sleeps.
struct Ringing<T: Trust>(Polled<T, InPlace>);

impl<const S: usize> End<S> for Ringing<Trusted> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.0.sender.send(message).expect("the partner lives");
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        self.0.receive(read);
    }
}

/// Values of one type: a stream goes in batches, each of which is one record, and comes as slices.
struct Values<const S: usize> {
    sender: TypedSender<[u8; S], Trusted>,
    receiver: TypedReceiver<[u8; S], Trusted>,
}

impl<const S: usize> Values<S> {
    fn over(Polled { sender, receiver, .. }: Polled<Trusted, InPlace>) -> Self {
        Self { sender: TypedSender::new(sender), receiver: TypedReceiver::new(receiver) }
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

/// Rings for every message, and waits by `W`.
struct Waiting<T: Trust, W: Wait, R> {
    sender: Sender<T, W>,
    receiver: Receiver<T, W>,
    reading: R,
}

impl<T: Trust, W: Wait, R: Reading<T, S>, const S: usize> End<S> for Waiting<T, W, R> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.sender.send(message).expect("the partner lives");
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let message = self.receiver.recv().expect("the partner lives");
        self.reading.read(&message, read);
    }
}

/// An end and whatever must live as long.
struct Keeping<E, K> {
    end: E,
    _kept: K,
}

impl<E: End<S>, K, const S: usize> End<S> for Keeping<E, K> {
    #[inline(always)]
    fn send(&mut self, message: &[u8; S]) {
        self.end.send(message);
    }
    #[inline(always)]
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        self.end.receive(read);
    }
    #[inline(always)]
    fn send_run(&mut self, letter: &mut Letter<S>, numbers: Range<u64>) {
        self.end.send_run(letter, numbers);
    }
    #[inline(always)]
    fn receive_run(&mut self, most: u64, read: impl FnMut(&[u8; S])) -> u64 {
        self.end.receive_run(most, read)
    }
    fn late(&self) -> u64 {
        self.end.late()
    }
}

fn threads<const S: usize, E: End<S> + Send + 'static>(
    end: fn(&Segment, u32, u32) -> E,
) -> Result<Box<dyn Link>, String> {
    let segment = Segment::for_threads(&Offer::of_lanes(lanes::<S>()?)).map_err(|error| error.to_string())?;
    let ours = Arc::new(segment);
    let theirs = Arc::clone(&ours);
    link::<S, _, _>(Place::Threads, move || end(&ours, 0, 1), move || end(&theirs, 1, 0))
}

fn processes<const S: usize, T: Trust, E: End<S> + 'static>(
    end: fn(&Connection<T>, u32, u32) -> E,
) -> Result<Box<dyn Link>, String> {
    let (ours, theirs) = socket::pair().map_err(|error| error.to_string())?;
    let lanes = lanes::<S>()?;
    let host = move || {
        let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes)).expect("memory"));
        let connection = unsafe { socket::host_over_as::<T>(ours, &segment) }.expect("the partner joins");
        Keeping { end: end(&connection, 0, 1), _kept: connection }
    };
    let join = move || {
        let connection =
            unsafe { doorbell::rendezvous::Join::<T>::of() }.over(theirs).expect("the host offers");
        Keeping { end: end(&connection, 1, 0), _kept: connection }
    };
    link::<S, _, _>(Place::Processes, host, join)
}

fn polled<T: Trust, R: Reading<T, S>, const S: usize>(
    connection: &Connection<T>,
    out: u32,
    back: u32,
) -> Polled<T, R> {
    let sender = Sender::attach_waiting_by(connection, out).expect("free");
    Polled {
        sender,
        receiver: Receiver::attach_waiting_by(connection, back).expect("free"),
        reading: R::default(),
    }
}

fn waiting<T: Trust, W: Wait + Default, R: Reading<T, S>, const S: usize>(
    connection: &Connection<T>,
    out: u32,
    back: u32,
) -> Waiting<T, W, R> {
    let sender = Sender::attach_waiting_by(connection, out).expect("free");
    Waiting {
        sender,
        receiver: Receiver::attach_waiting_by(connection, back).expect("free"),
        reading: R::default(),
    }
}

pub fn threads_polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, Polled<Trusted, InPlace>>(|segment, out, back| {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        Polled { sender, receiver: Receiver::at_waiting_by(segment, back).expect("free"), reading: InPlace }
    })
}

pub fn threads_ringing<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, Ringing<Trusted>>(|segment, out, back| {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        let receiver = Receiver::at_waiting_by(segment, back).expect("free");
        Ringing(Polled { sender, receiver, reading: InPlace })
    })
}

pub fn threads_batched<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, Batched<Trusted>>(|segment, out, back| {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        let receiver = Receiver::at_waiting_by(segment, back).expect("free");
        Batched(Polled { sender, receiver, reading: InPlace })
    })
}

pub fn processes_batched<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Trusted, _>(|connection, out, back| {
        Batched(polled::<Trusted, InPlace, S>(connection, out, back))
    })
}

pub fn threads_values<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, Values<S>>(|segment, out, back| {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        let receiver = Receiver::at_waiting_by(segment, back).expect("free");
        Values::over(Polled { sender, receiver, reading: InPlace })
    })
}

pub fn processes_values<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Trusted, _>(|connection, out, back| {
        Values::over(polled::<Trusted, InPlace, S>(connection, out, back))
    })
}

pub fn threads_adaptive<const S: usize>() -> Result<Box<dyn Link>, String> {
    threads::<S, Waiting<Trusted, Adaptive, InPlace>>(|segment, out, back| {
        let sender = Sender::at_waiting_by(segment, out).expect("free");
        Waiting { sender, receiver: Receiver::at_waiting_by(segment, back).expect("free"), reading: InPlace }
    })
}

pub fn processes_polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Trusted, _>(polled::<Trusted, InPlace, S>)
}

pub fn processes_futex<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Trusted, _>(waiting::<Trusted, Futex, InPlace, S>)
}

pub fn processes_adaptive<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Trusted, _>(waiting::<Trusted, Adaptive, InPlace, S>)
}

pub fn untrusted_polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Untrusted, _>(polled::<Untrusted, Copied<S>, S>)
}

pub fn untrusted_adaptive<const S: usize>() -> Result<Box<dyn Link>, String> {
    processes::<S, Untrusted, _>(waiting::<Untrusted, Adaptive, Copied<S>, S>)
}
