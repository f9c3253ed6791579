// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of two address spaces, or three, that take turns: every hand-off goes to the next space.
//!
//! The spaces give way after every turn, stand in one ring of the kernel, and hold as many of the tasks each. The first task of
//! the first space takes the readings. The others' tasks have two turns more, for they begin and end a turn later.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::{Call, Executor, TURN_BY_TURN};

use super::{LEVEL, turn};
use crate::future;
use crate::kernel::{call, counters, exit, spawn, wait};
use crate::program;
use crate::record::{Reading, Record, bytes_each};
use crate::scheduler::{Mail, connect, knock, knocks_of, take_part, tasks_are_ready, yield_now};
use crate::stackful::{start, start_on};

static TASKS: AtomicUsize = AtomicUsize::new(0);
static TURNS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static SPACES: AtomicUsize = AtomicUsize::new(0);

const ROOMY: usize = 8 << 10;

/// Where the parent knocks when both sides stand ready, and where a side knocks when it does.
const GO: u32 = 0;

/// What a side is told beside the number of turns.
const SECOND: usize = 1 << 62;
const BESIDE: usize = 1 << 60;

/// What the tasks are: stackful, the same with twelve values in use, futures.
pub(crate) const STACKFUL: usize = 0;
pub(crate) const KEEPING: usize = 1 << 59;
pub(crate) const POLLED: usize = 1 << 61;
/// Stackful, in three spaces: with two the kernel's ring has one entry beside the running one, which is the shortest case.
pub(crate) const THREE: usize = 1 << 58;

fn spaces(kind: usize) -> usize {
    if kind & THREE != 0 { 3 } else { 2 }
}

/// What comes of a pair, measured.
pub(crate) fn run(tasks: usize, turns: usize, kind: usize, me: usize) -> bool {
    pair(tasks, turns, kind, me, &mut None)
}

/// A pair with others beside it, so that nothing can be said of its changes of address space; whether all had their turns.
/// Another child that ends meanwhile is put into `other`, with its code.
pub(crate) fn run_beside(tasks: usize, turns: usize, me: usize, other: &mut Option<(usize, usize)>) -> bool {
    pair(tasks, turns, BESIDE, me, other)
}

/// Makes both sides, lets them begin together, and waits for their end.
fn pair(tasks: usize, turns: usize, kind: usize, me: usize, other: &mut Option<(usize, usize)>) -> bool {
    let mut sides = [0; 3];
    let sides = &mut sides[..spaces(kind)];
    let each = tasks / sides.len();
    for (index, side) in sides.iter_mut().enumerate() {
        let second = if index == 0 { 0 } else { SECOND };
        *side = spawn(program::SIDE, [each, turns | second | kind], program::LEVEL);
    }
    let sides = &*sides;
    for &side in sides {
        connect(side);
    }
    let both_stand_ready = sides.iter().all(|side| knocks_of(*side, me).is_some());
    for &side in sides {
        if both_stand_ready {
            knock(side, me, GO);
        } else {
            // The other may wait for ever.
            call(Call::Kill, [side, 0, 0, 0]);
        }
    }
    let (mut ended, mut went_well) = (0, both_stand_ready);
    while ended < sides.len() {
        let Some((number, code)) = wait() else { return false };
        if sides.contains(&number) {
            ended += 1;
            went_well &= code == 0;
        } else {
            *other = Some((number, code));
        }
    }
    went_well
}

/// One of the two spaces.
pub(crate) fn side(tasks: usize, what: usize, me: usize, parent: usize) -> ! {
    let (second, polled) = (what & SECOND != 0, what & POLLED != 0);
    let turns = what & !(SECOND | POLLED | BESIDE | KEEPING | THREE);
    SPACES.store(spaces(what), Relaxed);
    TASKS.store(spaces(what) * tasks, Relaxed);
    TURNS.store(turns + if second { 2 } else { 0 }, Relaxed);
    let before = counters();
    let executor = if polled { Executor::Future } else { Executor::Stackful };
    if !take_part(tasks, executor as usize | TURN_BY_TURN) {
        exit(2);
    }
    connect(parent);
    let measures = !second && what & BESIDE == 0;
    let futures = if polled {
        let Some(first) = future::room(tasks) else { exit(2) };
        for index in 0..tasks {
            future::start(first.wrapping_add(index), LEVEL, body(measures && index == 0));
        }
        Some(first)
    } else {
        let Some(stack) = crate::kernel::grow(ROOMY) else { exit(2) };
        let (first, others): (extern "C" fn(usize), extern "C" fn(usize)) = match what & KEEPING {
            0 => (measure::<0>, turns_only::<0>),
            _ => (measure::<12>, turns_only::<12>),
        };
        start_on(0, stack.wrapping_add(ROOMY), LEVEL, if measures { first } else { others });
        if !start(1..tasks, LEVEL, others) {
            exit(2);
        }
        None
    };
    if measures {
        // Nobody else takes memory meanwhile.
        BYTES.store(bytes_each(&before, tasks), Relaxed);
    }
    knock(parent, me, GO);
    if knocks_of(parent, me).is_none() {
        exit(2);
    }
    let mail = Mail { me, others: [parent, 0], count: 1 };
    // The executor is also run when a kick comes late; it takes the token and goes on.
    while tasks_are_ready() {
        mail.listen();
        match futures {
            Some(first) => {
                future::run(first);
            }
            None => yield_now(),
        }
    }
    let wanted = tasks * TURNS.load(Relaxed);
    exit(if turn::taken() == wanted { 0 } else { 3 })
}

extern "C" fn turns_only<const KEPT: usize>(_: usize) {
    yield_now();
    turn::take_all::<KEPT>(TURNS.load(Relaxed), yield_now);
}

extern "C" fn measure<const KEPT: usize>(_: usize) {
    yield_now();
    let begin = Reading::begin();
    turn::take_all::<KEPT>(TURNS.load(Relaxed), yield_now);
    let subject = match (KEPT, SPACES.load(Relaxed)) {
        (0, 3) => "stackful-across-3-spaces",
        (0, _) => "stackful-across",
        _ => "stackful-across-keeping-12",
    };
    report(subject, &begin, &Reading::end());
}

async fn body(measures: bool) {
    future::yield_now().await;
    let begin = measures.then(Reading::begin);
    for _ in 0..TURNS.load(Relaxed) {
        turn::take();
        future::yield_now().await;
    }
    if let Some(begin) = begin {
        report("future-across", &begin, &Reading::end());
    }
}

/// Every hand-off of this side was to the next and came back from the last: what the kernel counted must be its turns times the spaces.
fn report(subject: &'static str, begin: &Reading, end: &Reading) {
    let (tasks, turns) = (TASKS.load(Relaxed), TURNS.load(Relaxed));
    let record = Record {
        subject,
        tasks,
        turns,
        done: SPACES.load(Relaxed) * turn::taken(),
        space_changes: Some(tasks * turns),
        bytes: BYTES.load(Relaxed),
        moves: 0,
    };
    record.print(begin, end);
}
