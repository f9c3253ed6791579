// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of two address spaces, or three, that take turns: every hand-off goes to the next space.
//!
//! The spaces yield after every turn, stand in one queue of the kernel, and hold as many of the
//! tasks each. The first task of the first space takes the readings. The others' tasks have two
//! turns more, for they begin and end a turn later. Each space counts its own turns, and says at
//! its end how many they were.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::{Call, Executor, GREATEST_CODE, TURN_BY_TURN};

use super::{LEVEL, turn};
use crate::future;
use crate::kernel::{call, counters, exit, spawn, wait};
use crate::program;
use crate::record::{Counted, Reading, Record, bytes_each};
use crate::scheduler::{Mail, connect, connection, knock, knocks_of, take_part, tasks_are_ready, yield_now};
use crate::stackful::{start, start_on};

static ME: AtomicUsize = AtomicUsize::new(0);
static PARENT: AtomicUsize = AtomicUsize::new(0);
static TURNS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

const ROOMY: usize = 8 << 10;

/// Where the parent knocks when all sides stand ready, and where a
/// side knocks when it does, and when it has measured.
const GO: u32 = 0;

/// The exit code of a side that could not begin. Others say how many turns they took.
const COULD_NOT_BEGIN: usize = GREATEST_CODE;

/// Turns of a task of the other sides that are not counted.
const UNCOUNTED: usize = 2;

/// Where the measuring side leaves what it counted for the parent,
/// and after that the bytes of a task.
const LEFT_FOR_THE_PARENT: usize = 0;

/// What a side is told beside the number of turns.
const SECOND: usize = 1 << 62;
const BESIDE: usize = 1 << 60;

/// What the tasks are: stackful, the same with twelve values in use, futures.
pub(crate) const STACKFUL: usize = 0;
pub(crate) const KEEPING: usize = 1 << 59;
pub(crate) const POLLED: usize = 1 << 61;
/// Stackful, in three spaces: with two the kernel's ring has one entry beside the running one,
/// which is the shortest case.
pub(crate) const THREE: usize = 1 << 58;

fn spaces(kind: usize) -> usize {
    if kind & THREE != 0 { 3 } else { 2 }
}

/// What comes of it, measured.
pub(crate) fn run(subject: &'static str, tasks: usize, turns: usize, kind: usize, me: usize) -> bool {
    let mut counted = None;
    let Some(done) = turns_of_all(tasks, turns, kind, me, &mut counted, &mut |_, _| {}) else { return false };
    let Some((counted, bytes)) = counted else { return false };
    let tasks = tasks / spaces(kind) * spaces(kind);
    // Every hand-off was to the next side.
    let record = Record { subject, tasks, turns, done, space_changes: Some(tasks * turns), bytes, moves: 0 };
    record.print(counted);
    true
}

/// A pair with others beside it, so that nothing can be said of its
/// changes of address space; whether all had their turns. `other` is
/// told of another child that ends meanwhile, with its code.
pub(crate) fn run_beside(tasks: usize, turns: usize, me: usize, other: &mut dyn FnMut(usize, usize)) -> bool {
    turns_of_all(tasks, turns, BESIDE, me, &mut None, other) == Some(tasks * turns)
}

/// Makes the sides, lets them begin together, and waits for their end. The sum of the turns that
/// are to be counted, as the sides counted them each for itself.
fn turns_of_all(
    tasks: usize,
    turns: usize,
    kind: usize,
    me: usize,
    counted: &mut Option<(Counted, usize)>,
    other: &mut dyn FnMut(usize, usize),
) -> Option<usize> {
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
    let all_stand_ready = sides.iter().all(|side| knocks_of(*side, me).is_some());
    for &side in sides {
        if all_stand_ready {
            knock(side, me, GO);
        } else {
            // The other may wait for ever.
            call(Call::Kill, [side, 0, 0, 0]);
        }
    }
    if all_stand_ready && kind & BESIDE == 0 && knocks_of(sides[0], me).is_some() {
        let left = &connection(sides[0]).scratch[LEFT_FOR_THE_PARENT..];
        let words = Counted::default();
        let bytes = left[words.len()].load(Relaxed) as usize;
        *counted = Some((core::array::from_fn(|word| left[word].load(Relaxed)), bytes));
    }
    let (mut ended, mut taken) = (0, 0_usize);
    while ended < sides.len() {
        let (number, code) = wait()?;
        if sides.contains(&number) {
            ended += 1;
            taken = taken.saturating_add(code);
        } else {
            other(number, code);
        }
    }
    taken.checked_sub(UNCOUNTED * each * (sides.len() - 1))
}

/// One of the sides.
pub(crate) fn side(tasks: usize, what: usize, me: usize, parent: usize) -> ! {
    let (second, polled) = (what & SECOND != 0, what & POLLED != 0);
    let turns = what & !(SECOND | POLLED | BESIDE | KEEPING | THREE);
    ME.store(me, Relaxed);
    PARENT.store(parent, Relaxed);
    TURNS.store(turns + if second { UNCOUNTED } else { 0 }, Relaxed);
    let before = counters();
    let executor = if polled { Executor::Future } else { Executor::Stackful };
    if !take_part(tasks, executor as usize | TURN_BY_TURN) {
        exit(COULD_NOT_BEGIN);
    }
    connect(parent);
    let measures = !second && what & BESIDE == 0;
    let futures = if polled {
        let Some(first) = future::room(tasks) else { exit(COULD_NOT_BEGIN) };
        for index in 0..tasks {
            future::start(first.wrapping_add(index), LEVEL, body(measures && index == 0));
        }
        Some(first)
    } else {
        let Some(stack) = crate::kernel::grow(ROOMY) else { exit(COULD_NOT_BEGIN) };
        let (first, others): (extern "C" fn(usize), extern "C" fn(usize)) = match what & KEEPING {
            0 => (measure::<0>, turns_only::<0>),
            _ => (measure::<12>, turns_only::<12>),
        };
        start_on(0, stack.wrapping_add(ROOMY), LEVEL, if measures { first } else { others });
        if !start(1..tasks, LEVEL, others) {
            exit(COULD_NOT_BEGIN);
        }
        None
    };
    if measures {
        // Nobody else takes memory meanwhile.
        BYTES.store(bytes_each(&before, tasks), Relaxed);
    }
    knock(parent, me, GO);
    if knocks_of(parent, me).is_none() {
        exit(COULD_NOT_BEGIN);
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
    exit(turn::taken())
}

extern "C" fn turns_only<const KEPT: usize>(_: usize) {
    yield_now();
    turn::take_all::<KEPT>(TURNS.load(Relaxed), yield_now);
}

extern "C" fn measure<const KEPT: usize>(_: usize) {
    yield_now();
    let begin = Reading::begin();
    turn::take_all::<KEPT>(TURNS.load(Relaxed), yield_now);
    leave_for_the_parent(begin.until(&Reading::end()));
}

async fn body(measures: bool) {
    future::yield_now().await;
    let begin = measures.then(Reading::begin);
    for _ in 0..TURNS.load(Relaxed) {
        turn::take();
        future::yield_now().await;
    }
    if let Some(begin) = begin {
        leave_for_the_parent(begin.until(&Reading::end()));
    }
}

/// What this side counted.
fn leave_for_the_parent(counted: Counted) {
    let (me, parent) = (ME.load(Relaxed), PARENT.load(Relaxed));
    let left = &connection(parent).scratch[LEFT_FOR_THE_PARENT..];
    for (place, word) in left.iter().zip(counted.into_iter().chain([BYTES.load(Relaxed) as u64])) {
        place.store(word, Relaxed);
    }
    knock(parent, me, GO);
}
