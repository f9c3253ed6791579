// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of one type, one by one and in batches.

use doorbell::PeerViolation;
use doorbell::channel::{Receiver, RecvError, SendError, Sender, TypedReceiver, TypedSender, pair};
use doorbell::peer::{Trusted, Untrusted};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Its size divides neither a word nor a line.
#[derive(FromBytes, IntoBytes, Immutable, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Odd([u8; 13]);

/// Beyond what a place in the ring is aligned to.
#[derive(FromBytes, IntoBytes, Immutable, Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
struct Line([u64; 8]);

fn odd(number: u64) -> Odd {
    let mut bytes = [!number as u8; 13];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    Odd(bytes)
}

fn line(number: u64) -> Line {
    Line([number; 8])
}

/// Sends batches of one to seven values, and takes them by turns one
/// by one and as many as there are.
fn exchange<M, T>(sender: Sender<T>, receiver: Receiver<T>, value: fn(u64) -> M)
where
    M: FromBytes + IntoBytes + Immutable + Copy + PartialEq + std::fmt::Debug + Send + 'static,
    T: doorbell::peer::Trust,
{
    let mut sender = TypedSender::<M, _, _>::new(sender);
    let mut receiver = TypedReceiver::<M, _, _>::new(receiver);
    let mut sent = 0;
    let mut received = 0;
    for round in 0..2000_u64 {
        let wanted = round % 7 + 1;
        let mut batch = sender.try_batch(wanted as usize).unwrap();
        for _ in 0..wanted {
            batch.push(&value(sent)).unwrap();
            sent += 1;
        }
        assert_eq!(batch.push(&value(sent)), Err(SendError::Full));
        drop(batch);
        sender.try_send(&value(sent)).unwrap();
        sent += 1;
        for _ in 0..round % 4 {
            if let Some(got) = receiver.try_recv().unwrap() {
                assert_eq!(got, value(received));
                received += 1;
            }
        }
        loop {
            let values = receiver.try_recv_batch().unwrap();
            if values.is_empty() {
                break;
            }
            for got in values {
                assert_eq!(*got, value(received));
                received += 1;
            }
        }
        assert_eq!(received, sent);
    }
}

#[test]
fn values_of_any_size_and_alignment_come_in_order_whether_taken_alone_or_together() {
    let (sender, receiver) = pair(4096).unwrap();
    exchange::<u64, _>(sender, receiver, |number| number);
    let (sender, receiver) = pair(4096).unwrap();
    exchange(sender, receiver, odd);
    let (sender, receiver) = pair(4096).unwrap();
    exchange(sender, receiver, line);
}

#[test]
fn the_values_of_one_who_is_not_trusted_are_copied_out() {
    let (host, join) = crate::meet::meet(&crate::other::segment(1, 1, 4096));
    let sender = Sender::<Untrusted>::attach(&host, 0).unwrap();
    let receiver = Receiver::<Untrusted>::attach(&join, 0).unwrap();
    exchange(sender, receiver, odd);
}

#[test]
fn a_slice_longer_than_a_record_may_be_goes_in_several() {
    let (sender, receiver) = pair(4096).unwrap();
    let (mut sender, mut receiver) =
        (TypedSender::<Odd, Trusted, _>::new(sender), TypedReceiver::<Odd, _, _>::new(receiver));
    let values: Vec<Odd> = (0..10_000).map(odd).collect();
    let sending = std::thread::spawn(move || sender.send_all(&values));
    for number in 0..10_000 {
        assert_eq!(receiver.recv(), Ok(odd(number)));
    }
    assert_eq!(sending.join().unwrap(), Ok(()));
    assert_eq!(receiver.recv(), Err(RecvError::Closed));
}

#[test]
fn a_message_that_is_not_made_of_values_is_told_and_gone() {
    let (mut sender, receiver) = pair(4096).unwrap();
    let mut receiver = TypedReceiver::<Odd, _, _>::new(receiver);
    for length in [0, 1, 12, 14, 27] {
        sender.send(&[7; 40][..length]).unwrap();
        let violation = PeerViolation::LengthOutOfRange { length: length as u64, available: 13 };
        assert_eq!(receiver.recv(), Err(violation.into()));
    }
    sender.send(odd(5).as_bytes()).unwrap();
    assert_eq!(receiver.recv_batch(), Ok(&[odd(5)][..]));
}

#[test]
fn a_batch_into_which_nothing_was_put_sends_nothing() {
    let (sender, receiver) = pair(4096).unwrap();
    let mut sender = TypedSender::<u64, _, _>::new(sender);
    let mut receiver = TypedReceiver::<u64, _, _>::new(receiver);
    drop(sender.batch(5).unwrap());
    assert_eq!(receiver.try_recv(), Ok(None));
    assert!(matches!(sender.batch(100_000), Err(SendError::TooLong { .. })));
}
