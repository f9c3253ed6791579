// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread sends and receives: for counting instructions, which are the same on a busy machine
//! (`../../instructions`). A message is stamped with its number, sent, and summed up where it lies.

use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
use doorbell::channel::{Gather, Lanes, Sender, TypedReceiver, TypedSender};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Offer, Segment};
use doorbell::wait::Futex;
use std::hint::black_box;
use std::sync::Arc;

/// So many messages lie in the channel before they are received.
const BATCH: u64 = 16;
/// There is room for so many, as in the comparisons.
const DEPTH: usize = 256;

#[derive(clap::Args)]
pub struct Arguments {
    /// doorbell-push, doorbell-send, doorbell-batch, doorbell-values, rtrb, rtrb-chunks or
    /// crossbeam; gather or publish
    channel: String,
    /// How many
    messages: u64,
    /// Their bytes: 8, 64 or 1024. Of gather and publish, how many
    /// lanes or subscribers there are, of which one is used
    size: u32,
}

fn sum<const S: usize>(message: &[u8; S]) -> u64 {
    let words = message.as_chunks::<8>().0.iter();
    words.fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// The message with this number.
#[inline(always)]
fn stamp<const S: usize>(letter: &mut [u8; S], number: u64) -> &[u8; S] {
    letter[..8].copy_from_slice(&number.to_ne_bytes());
    letter
}

fn pass<const S: usize>(messages: u64, mut send: impl FnMut(&[u8; S]), mut receive: impl FnMut() -> u64) {
    let (mut total, mut letter) = (0_u64, Box::new([7; S]));
    for batch in 0..messages / BATCH {
        for number in 0..BATCH {
            send(stamp(&mut letter, black_box(batch + number)));
        }
        for _ in 0..BATCH {
            total = total.wrapping_add(receive());
        }
    }
    black_box(total);
}

fn one_to_one<const S: usize>(channel: &str, messages: u64) -> anyhow::Result<()> {
    // Nothing is calibrated for the futex: valgrind ends the threads that do it.
    let pair =
        || doorbell::channel::pair_waiting_by::<Futex>(DEPTH as u64 * (S as u64 + 16)).expect("memory");
    macro_rules! receive {
        ($receiver:ident) => {
            || {
                let message = $receiver.try_recv().expect("the sender lives").expect("sent");
                sum::<S>((&*message).try_into().expect("the size sent"))
            }
        };
    }
    match channel {
        // In a closure for each, which the compiler takes apart as it does the others'.
        "doorbell-push" => {
            let (mut sender, mut receiver) = pair();
            pass::<S>(messages, |message| sender.push(message).expect("room"), receive!(receiver));
        }
        "doorbell-send" => {
            let (mut sender, mut receiver) = pair();
            pass::<S>(messages, |message| sender.send(message).expect("room"), receive!(receiver));
        }
        "doorbell-batch" => {
            let (mut sender, mut receiver) = pair();
            let (mut total, mut letter) = (0_u64, Box::new([7; S]));
            for round in 0..messages / BATCH {
                let mut batch = sender.batch();
                for number in 0..BATCH {
                    batch.push(stamp(&mut letter, black_box(round + number))).expect("room");
                }
                drop(batch);
                let run = receiver.try_recv_batch().expect("the sender lives").take(BATCH as usize);
                run.for_each(|message| {
                    total = total.wrapping_add(sum::<S>((&*message).try_into().expect("the size sent")));
                });
            }
            black_box(total);
        }
        "doorbell-values" => {
            let (sender, receiver) = pair();
            let mut sender = TypedSender::<[u8; S], _, _>::new(sender);
            let mut receiver = TypedReceiver::<[u8; S], _, _>::new(receiver);
            let (mut total, mut letter) = (0_u64, Box::new([7; S]));
            for round in 0..messages / BATCH {
                let mut batch = sender.try_batch(BATCH as usize).expect("room");
                for number in 0..BATCH {
                    batch.push(stamp(&mut letter, black_box(round + number))).expect("made for as many");
                }
                drop(batch);
                let values = receiver.try_recv_batch().expect("the sender lives");
                values.iter().for_each(|message| total = total.wrapping_add(sum(message)));
            }
            black_box(total);
        }
        "rtrb" => {
            let (mut producer, mut consumer) = rtrb::RingBuffer::<[u8; S]>::new(DEPTH);
            let receive = || {
                let chunk = consumer.read_chunk(1).expect("sent");
                let it = sum(&chunk.as_slices().0[0]);
                chunk.commit_all();
                it
            };
            pass(messages, |message| producer.push(*message).expect("room"), receive);
        }
        "rtrb-chunks" => {
            let (mut producer, mut consumer) = rtrb::RingBuffer::<[u8; S]>::new(DEPTH);
            let (mut total, mut letter) = (0_u64, Box::new([7; S]));
            for round in 0..messages / BATCH {
                let chunk = producer.write_chunk_uninit(BATCH as usize).expect("room");
                let mut number = round;
                chunk.fill_from_iter(std::iter::from_fn(|| {
                    number += 1;
                    Some(*stamp(&mut letter, black_box(number)))
                }));
                let chunk = consumer.read_chunk(BATCH as usize).expect("sent");
                let (first, second) = chunk.as_slices();
                first.iter().chain(second).for_each(|message| total = total.wrapping_add(sum(message)));
                chunk.commit_all();
            }
            black_box(total);
        }
        "crossbeam" => {
            let (sender, receiver) = crossbeam_channel::bounded::<[u8; S]>(DEPTH);
            let receive = || sum(&receiver.try_recv().expect("sent"));
            pass::<S>(messages, |message| sender.try_send(*message).expect("room"), receive);
        }
        _ => anyhow::bail!("there is no channel {channel}"),
    }
    Ok(())
}

/// One of `lanes` senders is busy.
fn gather(lanes: u32, messages: u64) {
    let offer = Offer::of_lanes(Lanes::new(lanes, 1, 4096).expect("lanes that fit"));
    let segment = Arc::new(Segment::for_threads(&offer).expect("memory"));
    let mut gather = Gather::<Trusted, Futex>::at_waiting_by(&segment, 0).expect("free");
    let attach = |lane| Sender::<Trusted, Futex>::at_waiting_by(&segment, lane).expect("free");
    let mut senders: Vec<_> = (0..lanes).map(attach).collect();
    let receive = || {
        let (_, message) = gather.try_recv().expect("the senders live").expect("sent");
        sum::<8>((&*message).try_into().expect("the size sent"))
    };
    pass::<8>(messages, |message| senders[0].push(message).expect("room"), receive);
}

/// None of `count` subscribers receives anything.
fn publish(count: u32, messages: u64) {
    let mut publisher = Publisher::<Futex>::waiting_by(1 << 16).expect("memory");
    let subscribers: Vec<Subscriber<Trusted, Futex>> =
        (0..count).map(|_| publisher.subscribe_waiting_by(WhenSlow::Gap).expect("memory")).collect();
    (0..messages)
        .for_each(|number| publisher.publish(&black_box(number).to_ne_bytes()).expect("nobody waits"));
    drop(subscribers);
}

pub fn run(Arguments { channel, messages, size }: &Arguments) -> anyhow::Result<bool> {
    match (channel.as_str(), *size) {
        ("gather", lanes) => gather(lanes, *messages),
        ("publish", subscribers) => publish(subscribers, *messages),
        (channel, 8) => one_to_one::<8>(channel, *messages)?,
        (channel, 64) => one_to_one::<64>(channel, *messages)?,
        (channel, 1024) => one_to_one::<1024>(channel, *messages)?,
        (_, size) => anyhow::bail!("messages have 8, 64 or 1024 bytes, not {size}"),
    }
    Ok(true)
}
