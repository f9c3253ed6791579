// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread sends and receives: for counting instructions, which are the same on a busy machine (`../../instructions`).

use doorbell::wait::Futex;
use std::hint::black_box;

/// So many messages lie in the channel before they are received.
const BATCH: u64 = 64;
const SIZE: usize = 8;

fn pass(messages: u64, mut send: impl FnMut(&[u8; SIZE]), mut receive: impl FnMut() -> u64) {
    let mut sum = 0_u64;
    for batch in 0..messages / BATCH {
        for number in 0..BATCH {
            send(&black_box(batch + number).to_ne_bytes());
        }
        for _ in 0..BATCH {
            sum = sum.wrapping_add(receive());
        }
    }
    black_box(sum);
}

#[derive(clap::Args)]
pub struct Arguments {
    /// doorbell-push, doorbell-send, rtrb or crossbeam
    channel: String,
    /// How many
    messages: u64,
}

/// # Errors
/// There is no such channel.
pub fn run(Arguments { channel, messages }: &Arguments) -> anyhow::Result<bool> {
    let messages = *messages;
    match channel.as_str() {
        "doorbell-push" | "doorbell-send" => {
            // Nothing is calibrated for the futex: valgrind ends the threads that do it.
            let pair = doorbell::channel::pair_waiting_by::<Futex, Futex>(1 << 12);
            let (mut sender, mut receiver) = pair.expect("memory");
            // In a closure for each, which the compiler takes apart as it does the others'.
            macro_rules! receive {
                () => {
                    || {
                        let message = receiver.try_recv().expect("the sender lives").expect("sent");
                        u64::from_ne_bytes((*message).try_into().expect("the size sent"))
                    }
                };
            }
            if channel == "doorbell-send" {
                pass(messages, |message| sender.send(message).expect("room"), receive!());
            } else {
                pass(messages, |message| sender.push(message).expect("room"), receive!());
            }
        }
        "rtrb" => {
            let (mut producer, mut consumer) = rtrb::RingBuffer::<[u8; SIZE]>::new(128);
            let receive = || u64::from_ne_bytes(consumer.pop().expect("sent"));
            pass(messages, |message| producer.push(*message).expect("room"), receive);
        }
        "crossbeam" => {
            let (sender, receiver) = crossbeam_channel::bounded::<[u8; SIZE]>(128);
            let receive = || u64::from_ne_bytes(receiver.try_recv().expect("sent"));
            pass(messages, |message| sender.try_send(*message).expect("room"), receive);
        }
        other => {
            anyhow::bail!("{other}: no such channel; there are doorbell-push, doorbell-send, rtrb, crossbeam")
        }
    }
    Ok(true)
}
