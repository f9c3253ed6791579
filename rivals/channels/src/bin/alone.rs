// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread sends and receives: for counting instructions, which are the same on a busy machine (`../../instructions`).

use doorbell::wait::Futex;
use std::hint::black_box;

/// So many messages lie in the channel before they are received.
const BATCH: u64 = 64;
const SIZE: usize = 8;

fn run(messages: u64, mut send: impl FnMut(&[u8; SIZE]), mut receive: impl FnMut() -> u64) {
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

fn main() {
    let usage = "alone doorbell-push|doorbell-send|rtrb|crossbeam MESSAGES";
    let mut arguments = std::env::args().skip(1);
    let (channel, messages) = (arguments.next(), arguments.next().and_then(|count| count.parse().ok()));
    let (Some(channel), Some(messages)) = (channel, messages) else {
        eprintln!("{usage}");
        std::process::exit(2);
    };
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
                run(messages, |message| sender.send(message).expect("room"), receive!());
            } else {
                run(messages, |message| sender.push(message).expect("room"), receive!());
            }
        }
        "rtrb" => {
            let (mut producer, mut consumer) = rtrb::RingBuffer::<[u8; SIZE]>::new(128);
            let receive = || u64::from_ne_bytes(consumer.pop().expect("sent"));
            run(messages, |message| producer.push(*message).expect("room"), receive);
        }
        "crossbeam" => {
            let (sender, receiver) = crossbeam_channel::bounded::<[u8; SIZE]>(128);
            let receive = || u64::from_ne_bytes(receiver.try_recv().expect("sent"));
            run(messages, |message| sender.try_send(*message).expect("room"), receive);
        }
        _ => {
            eprintln!("{usage}");
            std::process::exit(2);
        }
    }
}
