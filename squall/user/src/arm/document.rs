// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document's own experiments, with its queue: `analysis0`,
//! `analysis1` with `analysis2`, and `analysis3`.
//!
//! Its coroutines are polled once, to their end; its processes poll nothing and delete what is at
//! the head, or yield if that is the other's. `queue` says whether a delete rotates the whole ring,
//! as it did, or takes the head out.

use core::pin::pin;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::task::{Context, Poll, Waker};

use squall_scheduler::call::Call;
use squall_scheduler::rotating::Rotating;

use super::turn;
use crate::kernel::{call, exit, grow, spawn, wait};
use crate::program;
use crate::record::{Reading, Record};
use crate::scheduler::{connect, connection, image, knock, knocks_of};

/// How the document's queue deletes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// By taking out every entry and putting back all but one.
    Rotating,
    /// By taking the head out.
    Head,
}

const GO: u32 = 0;
const HEAD: usize = 1 << 62;
const SECOND: usize = 1 << 61;

/// Deletes what is at the head; how many entries were moved.
#[inline(always)]
fn delete(ring: *mut Rotating, task: u32, queue: Queue) -> usize {
    // SAFETY: the ring is this space's, or its own and its neighbour's, of which one runs at a time.
    unsafe {
        match queue {
            Queue::Rotating => (image().rotating_delete)(ring, task),
            Queue::Head => usize::from((image().rotating_take_head)(ring)),
        }
    }
}

/// The space and the task at the head.
#[inline(always)]
fn peek(ring: *mut Rotating) -> Option<(u32, u32)> {
    let (mut space, mut task) = (0, 0);
    // SAFETY: as in `delete`.
    let found = unsafe { (image().rotating_peek)(ring, &raw mut space, &raw mut task) };
    found.then_some((space, task))
}

/// What all its tasks do: nothing.
async fn empty() {
    turn::take();
}

/// `analysis0`, and with `whole` `analysis3`: tasks that are spawned, polled once and deleted. Runs
/// in a space of its own. `used` entries went through the queue before.
pub(crate) fn coroutines(tasks: usize, used: usize, queue: Queue, whole: bool) -> bool {
    let Some(ring) = grow(size_of::<Rotating>()).map(<*mut u8>::cast::<Rotating>) else { return false };
    let Some(futures) = room(empty(), tasks) else { return false };
    let add_all = || {
        for index in 0..tasks {
            // SAFETY: the place was asked for, and the ring is this space's.
            let added = unsafe {
                futures.add(index).write(empty());
                (image().rotating_add)(ring, 0, index as u32)
            };
            assert!(added, "the document's queue has no room for task {index}");
        }
    };
    for _ in 0..used {
        // SAFETY: the ring is this space's.
        let took = unsafe { (image().rotating_add)(ring, 0, 0) && (image().rotating_take_head)(ring) };
        assert!(took, "an empty queue takes one");
    }
    if !whole {
        add_all();
    }
    let begin = Reading::begin();
    if whole {
        add_all();
    }
    let mut moves = 0;
    while let Some((_, task)) = peek(ring) {
        // SAFETY: written when the task was added, and deleted only once.
        let future = unsafe { &mut *futures.add(task as usize) };
        let future = pin!(future);
        // SAFETY: futures stay where they are until they are done.
        let future = unsafe { future.map_unchecked_mut(|future| &mut **future) };
        if future.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(()) {
            moves += delete(ring, task, queue);
        }
    }
    let end = Reading::end();
    let subject = match (whole, queue) {
        (false, Queue::Rotating) => "document-coroutine",
        (false, Queue::Head) => "document-coroutine-head",
        (true, Queue::Rotating) => "document-life",
        (true, Queue::Head) => "document-life-head",
    };
    Record { moves, ..Record::of(subject, tasks, 0, turn::taken()) }.print(begin.until(&end));
    true
}

fn room<F>(_like: F, tasks: usize) -> Option<*mut F> {
    grow(tasks * size_of::<F>().max(1)).map(<*mut u8>::cast)
}

/// `analysis1` and `analysis2`: two spaces whose tasks stand in one
/// queue by turns. Called by the first space.
pub(crate) fn processes(tasks: usize, queue: Queue, me: usize) -> bool {
    let how = if queue == Queue::Head { HEAD } else { 0 };
    let sides = [0, SECOND].map(|side| spawn(program::DOCUMENT_SIDE, [tasks, how | side], program::LEVEL));
    for (side, other) in [(0, 1), (1, 0)] {
        connect(sides[side]).scratch[0].store(sides[other] as u64, Release);
    }
    if !sides.iter().all(|side| knocks_of(*side, me).is_some()) {
        return false;
    }
    for side in sides {
        knock(side, me, GO);
    }
    (0..2).all(|_| wait().is_some_and(|(_, code)| code == 0))
}

/// One of the two.
pub(crate) fn side(tasks: usize, what: usize, me: usize, parent: usize) -> ! {
    let queue = if what & HEAD != 0 { Queue::Head } else { Queue::Rotating };
    if !crate::scheduler::take_part(0, 0) {
        exit(2);
    }
    let up = connect(parent);
    let mut other = 0;
    while other == 0 {
        call(Call::Yield, [0; 4]);
        other = up.scratch[0].load(Acquire) as usize;
    }
    let shared = connect(other);
    let ring = (&raw const connection(other).rotating).cast_mut();
    let first = what & SECOND == 0;
    if first {
        for index in 0..tasks {
            let owner = if index % 2 == 0 { me } else { other };
            // SAFETY: the other space waits for the parent's knock.
            let added = unsafe { (image().rotating_add)(ring, owner as u32, index as u32) };
            assert!(added, "the document's queue has no room for task {index}");
        }
    }
    knock(parent, me, GO);
    if knocks_of(parent, me).is_none() {
        exit(2);
    }
    let begin = first.then(Reading::begin);
    let mut moves = 0;
    while let Some((owner, task)) = peek(ring) {
        if owner as usize == me {
            moves += delete(ring, task, queue);
            turn::take();
        } else {
            call(Call::Yield, [0; 4]);
        }
    }
    let [all_moves, all_done, over] = [&shared.scratch[1], &shared.scratch[2], &shared.scratch[3]];
    all_moves.fetch_add(moves as u64, Relaxed);
    all_done.fetch_add(turn::taken() as u64, Relaxed);
    if let Some(begin) = begin {
        let end = Reading::end();
        // The other has its sums still to add.
        call(Call::Yield, [0; 4]);
        let subject = if queue == Queue::Rotating { "document-process" } else { "document-process-head" };
        let (done, moves) = (all_done.load(Relaxed) as usize, all_moves.load(Relaxed) as usize);
        Record { space_changes: None, moves, ..Record::of(subject, tasks, 0, done) }.print(begin.until(&end));
        over.store(1, Release);
    }
    // The end of a process is no switch: neither may come before the last reading.
    while over.load(Acquire) == 0 {
        call(Call::Yield, [0; 4]);
    }
    exit(0)
}
