// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several senders and one receiver: how they are opened, and the
//! loops that run over them, the same for all.

use crate::channels::idle;
use crate::channels::letter::{Letter, Reader, Tally, number};
use crate::channels::link::{Block, End, Link, Order, Place, own_cpu};
use crate::clock::{nanoseconds_per_tick, pin, process_cpu, ticks};
use crate::partner::{Desk, Partner};

/// How many senders there are. Where there are two cores, they share the second.
pub const SENDERS: usize = 3;

/// A message's number says whose it is: messages of one sender come in order, those of two in any.
const OF_ONE: u32 = 40;

struct Gathered<E, const S: usize> {
    place: Place,
    /// Dropped first: what a channel leaves in the file system goes
    /// with its last user, and that shall be this side.
    senders: Vec<Partner>,
    receiver: E,
    readers: [Reader<S>; SENDERS],
}

/// Starts the senders, whose ends `theirs` makes, and opens our end.
/// Senders only send, and the receiver only receives.
///
/// # Errors
/// What the senders wrote before they ended is on standard error.
pub fn gather<const S: usize, A, B>(
    place: Place,
    ours: impl FnOnce() -> A,
    theirs: Vec<impl FnOnce() -> B + Send + 'static>,
) -> Result<Box<dyn Link>, String>
where
    A: End<S> + 'static,
    B: End<S> + 'static,
{
    assert_eq!(theirs.len(), SENDERS);
    let start = |end: Box<dyn FnOnce() -> B + Send>| {
        Partner::start(place, move |desk| serve::<S, B>(place, &desk, end()))
    };
    let senders = theirs.into_iter().map(|end| start(Box::new(end))).collect::<Result<Vec<_>, _>>()?;
    let receiver = ours();
    senders.iter().try_for_each(|sender| sender.report().map(drop))?;
    Ok(Box::new(Gathered { place, senders, receiver, readers: std::array::from_fn(|_| Reader::new()) }))
}

fn serve<const S: usize, E: End<S>>(place: Place, desk: &Desk, mut end: E) {
    let mut letter = Letter::<S>::new();
    desk.report([0; 8]);
    while let Some([sender, cpu, shared, count, ..]) = desk.order() {
        idle::share_cpu(shared == 1);
        pin(cpu as usize);
        let cpu = own_cpu(place);
        (0..count).for_each(|number| end.send(letter.stamp(sender << OF_ONE | number)));
        desk.report([own_cpu(place) - cpu, 0, 0, 0, 0, 0, 0, 0]);
    }
}

impl<E: End<S>, const S: usize> Link for Gathered<E, S> {
    fn block(&mut self, order: Order) -> Result<Block, String> {
        let Order { cpus, warm, count, .. } = order;
        let Self { place, senders, receiver, readers } = self;
        let many = SENDERS as u64;
        // Whole shares.
        let count = count.div_ceil(many) * many;
        let shared = cpus.0 == cpus.1;
        idle::share_cpu(shared);
        pin(cpus.0);
        for (number, reader) in readers.iter_mut().enumerate() {
            reader.restart((number as u64) << OF_ONE);
        }
        let late_before = receiver.late();
        let mut receive = |receiver: &mut E| {
            receiver.receive(|bytes| {
                let sender = (number(bytes) >> OF_ONE) as usize;
                // A damaged number is nobody's: the first counts it.
                let sender = if sender < SENDERS { sender } else { 0 };
                readers[sender].read(bytes);
            });
        };
        let cpu = process_cpu();
        for (number, sender) in senders.iter().enumerate() {
            let each = warm + count / many;
            sender.order([number as u64, cpus.1 as u64, u64::from(shared), each, 0, 0, 0, 0])?;
        }
        // Until all are at it.
        (0..warm * many).for_each(|_| receive(receiver));
        let start = ticks();
        (0..count).for_each(|_| receive(receiver));
        let elapsed = ticks().wrapping_sub(start) as f64 * nanoseconds_per_tick();
        let mut theirs = 0;
        for sender in senders.iter() {
            theirs += sender.report()?[0];
        }
        // Threads share a process, whose time is ours.
        let cpu = process_cpu() - cpu + if *place == Place::Processes { theirs } else { 0 };
        let all = count + warm * many;
        Ok(Block {
            nanoseconds: elapsed / count as f64,
            elapsed,
            round_trips: Vec::new(),
            cpu: cpu as f64 / all as f64,
            sent: all,
            tally: readers.iter().fold(Tally::default(), |sum, reader| sum + reader.tally),
            late: receiver.late() - late_before,
        })
    }
}
