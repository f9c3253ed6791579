// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared: a link of two ends, and the loops that run over it, the same for all.

use crate::channels::idle;
use crate::channels::letter::{Letter, Reader, Tally};
use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
pub use crate::partner::Place;
use crate::partner::{Desk, Partner};
use crate::statistics::quantile;
use std::ops::Range;

/// One end, made by the side that uses it. `S` is the size of every message.
pub trait End<const S: usize> {
    fn send(&mut self, message: &[u8; S]);
    /// Hands the next message to `read`: where it lies if the channel allows that, else a copy.
    fn receive(&mut self, read: impl FnOnce(&[u8; S]));
    /// Sends the messages with these numbers: in one go where that is how the channel is used.
    #[inline(always)]
    fn send_run(&mut self, letter: &mut Letter<S>, numbers: Range<u64>) {
        numbers.for_each(|number| self.send(letter.stamp(number)));
    }
    /// Hands the next messages to `read`, one at least and `most` at most. Returns how many.
    #[inline(always)]
    fn receive_run(&mut self, most: u64, read: impl FnMut(&[u8; S])) -> u64 {
        debug_assert!(most > 0);
        self.receive(read);
        1
    }
    /// Messages that were found only because a wait had a time-out.
    fn late(&self) -> u64 {
        0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There and back.
    RoundTrip,
    /// One way, as fast as both sides can.
    Stream,
    /// One way to a receiver that is slower than any channel: the sender always finds it full.
    Full,
    /// Several senders to one receiver.
    Gather,
}

impl Kind {
    /// As it is ordered.
    fn code(self) -> u64 {
        self as u64
    }

    /// Does it go one way?
    pub fn is_one_way(self) -> bool {
        self != Self::RoundTrip
    }
}

/// So many messages of a stream are sent or received in one go by channels that can.
pub const RUN: u64 = 16;

/// What a slow receiver does with each message: so many nanoseconds of work.
const WORK: u64 = 2000;

fn work() {
    let ticks_of_work = (WORK as f64 / nanoseconds_per_tick()) as u64;
    let begun = ticks();
    while ticks().wrapping_sub(begun) < ticks_of_work {
        std::hint::spin_loop();
    }
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub kind: Kind,
    pub cpus: (usize, usize),
    /// Round trips before the clock starts, which find the partner awake.
    pub warm: u64,
    /// Round trips or messages that count.
    pub count: u64,
}

/// What came of it.
pub struct Block {
    /// Time of a round trip (median) or of a message that goes one way (mean), in nanoseconds.
    pub nanoseconds: f64,
    /// All of it, in nanoseconds.
    pub elapsed: f64,
    /// Each round trip in nanoseconds; nothing of what goes one way.
    pub round_trips: Vec<u64>,
    /// Processor time of both sides for one, in nanoseconds.
    pub cpu: f64,
    pub sent: u64,
    /// Of both sides.
    pub tally: Tally,
    pub late: u64,
}

/// A link whose message size is not in its type.
pub trait Link {
    fn block(&mut self, order: Order) -> Result<Block, String>;
}

struct Linked<E, const S: usize> {
    /// Dropped first: what a channel leaves in the file system goes
    /// with its last user, and that shall be this side.
    partner: Partner,
    end: E,
    letter: Letter<S>,
    reader: Reader<S>,
}

/// Starts the partner and opens both ends.
///
/// # Errors
/// What the partner wrote before it ended is on standard error.
pub fn link<const S: usize, A, B>(
    place: Place,
    ours: impl FnOnce() -> A,
    theirs: impl FnOnce() -> B + Send + 'static,
) -> Result<Box<dyn Link>, String>
where
    A: End<S> + 'static,
    B: End<S> + 'static,
{
    let partner = Partner::start(place, move |desk| serve::<S, B>(place, &desk, theirs()))?;
    let end = ours();
    partner.report()?;
    Ok(Box::new(Linked { partner, end, letter: Letter::new(), reader: Reader::new() }))
}

fn serve<const S: usize, E: End<S>>(place: Place, desk: &Desk, mut end: E) {
    let (mut letter, mut reader) = (Letter::<S>::new(), Reader::<S>::new());
    desk.report([0; 8]);
    while let Some([kind, cpu, shared, warm, count, ..]) = desk.order() {
        idle::share_cpu(shared == 1);
        pin(cpu as usize);
        reader.restart(0);
        let late = end.late();
        let mut number = 0;
        let mut answer = |end: &mut E, reader: &mut Reader<S>| {
            end.receive(|bytes| reader.read(bytes));
            end.send(letter.stamp(number));
            number += 1;
        };
        (0..warm).for_each(|_| answer(&mut end, &mut reader));
        let cpu = own_cpu(place);
        if kind == Kind::Stream.code() {
            let mut left = count;
            while left > 0 {
                left -= end.receive_run(left.min(RUN), |bytes| reader.read(bytes));
            }
        } else if kind == Kind::Full.code() {
            (0..count).for_each(|_| {
                end.receive(|bytes| reader.read(bytes));
                work();
            });
        } else {
            (0..count).for_each(|_| answer(&mut end, &mut reader));
        }
        let ended = ticks();
        let Tally { received, missing, repeated, corrupt } = reader.tally;
        let cpu = own_cpu(place) - cpu;
        desk.report([ended, cpu, received, missing, repeated, corrupt, end.late() - late, 0]);
    }
}

/// Threads share a process, whose time the other side reads.
pub fn own_cpu(place: Place) -> u64 {
    if place == Place::Processes { process_cpu() } else { 0 }
}

impl<E: End<S>, const S: usize> Link for Linked<E, S> {
    fn block(&mut self, order: Order) -> Result<Block, String> {
        let Order { kind, cpus, warm, count } = order;
        let Self { partner, end, letter, reader } = self;
        let (one_way, shared) = (kind.is_one_way(), u64::from(cpus.0 == cpus.1));
        idle::share_cpu(shared == 1);
        pin(cpus.0);
        reader.restart(0);
        let late_before = end.late();
        partner.order([kind.code(), cpus.1 as u64, shared, warm, count, 0, 0, 0])?;
        let mut number = 0;
        let mut call = |end: &mut E, reader: &mut Reader<S>| {
            end.send(letter.stamp(number));
            end.receive(|bytes| reader.read(bytes));
            number += 1;
        };
        (0..warm).for_each(|_| call(end, reader));
        let mut took = Vec::with_capacity(if one_way { 0 } else { count as usize });
        let cpu = process_cpu();
        let start = ticks();
        if kind == Kind::Stream {
            let mut next = warm;
            while next < warm + count {
                let run = next..(next + RUN).min(warm + count);
                next = run.end;
                end.send_run(letter, run);
            }
        } else if one_way {
            (warm..warm + count).for_each(|number| end.send(letter.stamp(number)));
        } else {
            let mut before = start;
            for _ in 0..count {
                call(end, reader);
                // One reading a round trip, the end of one being the start of the next.
                let now = ticks();
                took.push(now.wrapping_sub(before));
                before = now;
            }
        }
        let [ended, their_cpu, received, missing, repeated, corrupt, late, _] = partner.report()?;
        let cpu = process_cpu() - cpu + their_cpu;
        let scale = nanoseconds_per_tick();
        let elapsed = ended.wrapping_sub(start) as f64 * scale;
        let round_trips: Vec<u64> = took.iter().map(|ticks| (*ticks as f64 * scale).round() as u64).collect();
        let nanoseconds = if one_way {
            elapsed / count as f64
        } else {
            quantile(&mut took.iter().map(|ticks| *ticks as f64 * scale).collect::<Vec<_>>(), 0.5)
        };
        Ok(Block {
            nanoseconds,
            elapsed,
            round_trips,
            cpu: cpu as f64 / count as f64,
            sent: if one_way { 2 * warm + count } else { 2 * (warm + count) },
            tally: reader.tally + Tally { received, missing, repeated, corrupt },
            late: end.late() - late_before + late,
        })
    }
}
