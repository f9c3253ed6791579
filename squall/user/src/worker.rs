// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random spawning, waking, sleeping and killing.
//!
//! Two workers make a pair. Each has some tasks; task i of one and task i of the other wake each
//! other by turns, so a wake-up that is lost is a pair that never ends. In between they yield,
//! sleep between nothing and a minute, or make a process that ends at once. The first space makes
//! several pairs at a time, kills one or both of some at random moments, and looks after each round
//! that all memory came back. Whose partner was killed hears of it from the kernel, and ends.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};

use squall_scheduler::call::{Call, Executor, TURN_BY_TURN};
use squall_scheduler::mailbox::GONE;
use squall_scheduler::pool::Task;

use crate::arm::LEVEL;
use crate::kernel::{call, counters, exit, grow, must, say, spawn, time, wait};
use crate::program;
use crate::scheduler::{
    Mail, block, connect, connection, from, insert, knock, knocks_of, sleep_for, take_mail, take_part, task,
    tasks_are_ready, yield_now,
};
use crate::stackful::start_on;

/// Tasks of a worker, a door each.
const TASKS: usize = 4;
/// Times that two tasks wake each other.
const TURNS: usize = 40;
/// Pairs at a time.
const PAIRS: usize = 3;
/// The door of the parent's word that all is set.
const GO: u32 = 63;
/// The exit code of one whose partner has ended.
const ALONE: usize = 4;
const STACK: usize = 8 << 10;

/// What a worker's tasks share. One runs at a time, and nobody else has them.
static ME: AtomicUsize = AtomicUsize::new(0);
static PARTNER: AtomicUsize = AtomicUsize::new(0);
static SEED: AtomicUsize = AtomicUsize::new(0);
static ALIVE: AtomicUsize = AtomicUsize::new(TASKS);
/// A task sleeps for less than two to the power of this, in timebase
/// ticks of 100 ns, with all magnitudes as likely.
static LONGEST_SLEEP: AtomicUsize = AtomicUsize::new(0);
static PARTNER_IS_GONE: AtomicBool = AtomicBool::new(false);
static WOKEN: [AtomicUsize; TASKS] = [const { AtomicUsize::new(0) }; TASKS];
static WAKE_AT: [AtomicUsize; TASKS] = [const { AtomicUsize::new(usize::MAX) }; TASKS];

/// The next of a row of numbers that look random (xorshift; G. Marsaglia, 2003).
fn random(below: usize) -> usize {
    let mut seed = SEED.load(Relaxed);
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    SEED.store(seed, Relaxed);
    (seed >> 11) % below
}

/// So many rounds. The first space's.
pub(crate) fn soak(rounds: usize, seed: usize, longest_sleep: usize, me: usize) -> bool {
    SEED.store(seed.max(1), Relaxed);
    must(Call::Tick, [3_000, 0, 0, 0]);
    let begin = time();
    let (mut killed, mut alone, mut ended) = (0, 0, 0);
    let mut used = counters().frames_used;
    for round in 0..rounds {
        let mut workers = [0; 2 * PAIRS];
        for pair in workers.chunks_mut(2) {
            for worker in pair.iter_mut() {
                *worker =
                    spawn(program::WORKER, [random(usize::MAX >> 8) + 1, longest_sleep], program::LEVEL);
                connect(*worker);
            }
            for (own, other) in [(0, 1), (1, 0)] {
                connection(pair[own]).scratch[0].store(pair[other] as u64, Release);
                knock(pair[own], me, GO);
            }
        }
        let mut dead = [false; 2 * PAIRS];
        for pair in 0..PAIRS {
            if random(3) == 0 {
                // In the midst of what they do.
                sleep_for(random(1 << random(longest_sleep)), me);
                let which = random(3);
                for side in (0..2).filter(|side| which != *side) {
                    // It may have ended already.
                    call(Call::Kill, [workers[2 * pair + side], 0, 0, 0]);
                    dead[2 * pair + side] = true;
                }
            }
        }
        while let Some((number, code)) = wait() {
            let Some(worker) = workers.iter().position(|worker| *worker == number) else { continue };
            match code {
                0 => ended += 1,
                ALONE if dead[worker ^ 1] => alone += 1,
                _ if dead[worker] => killed += 1,
                _ => {
                    say!("round {round}: worker {number} ended with {code}");
                    return false;
                }
            }
        }
        let now = counters();
        // The tables for mail grow by a page when the numbers of spaces do by 512.
        if now.spaces != 1 || (round > 0 && now.frames_used > used + 1) {
            say!("round {round}: {} spaces left, {} frames instead of {used}", now.spaces, now.frames_used);
            return false;
        }
        used = now.frames_used;
    }
    let seconds = (time() - begin) / 10_000_000;
    say!(
        "{{\"soak\":{rounds},\"ended\":{ended},\"killed\":{killed},\"alone\":{alone},\"guest_seconds\":{seconds}}}"
    );
    true
}

/// The program [`program::WORKER`].
pub(crate) fn run(seed: usize, longest_sleep: usize, me: usize, parent: usize) -> ! {
    LONGEST_SLEEP.store(longest_sleep, Relaxed);
    SEED.store(seed, Relaxed);
    ME.store(me, Relaxed);
    let how = Executor::Stackful as usize | if random(2) == 0 { TURN_BY_TURN } else { 0 };
    if !take_part(TASKS, how) {
        exit(2);
    }
    connect(parent);
    if knocks_of(parent, me).is_none() {
        exit(2);
    }
    let partner = connection(parent).scratch[0].load(Acquire) as usize;
    if call(Call::Connect, [partner, 0, 0, 0]) < 0 {
        exit(ALONE);
    }
    PARTNER.store(partner, Relaxed);
    let mail = Mail { me, others: [parent, partner], count: 2 };
    let Some(stacks) = grow(TASKS * STACK) else { exit(2) };
    for index in 0..TASKS {
        start_on(index, stacks.wrapping_add((index + 1) * STACK), LEVEL + index % 2, live);
    }
    while ALIVE.load(Relaxed) > 0 {
        let there_is_mail = mail.listen();
        deliver();
        if tasks_are_ready() {
            yield_now();
        } else if !there_is_mail && ALIVE.load(Relaxed) > 0 {
            if PARTNER_IS_GONE.load(Relaxed) && WAKE_AT.iter().all(|at| at.load(Relaxed) == usize::MAX) {
                // All its knocks were delivered, and more will not come.
                exit(ALONE);
            }
            must(Call::Park, [0; 4]);
        }
    }
    exit(0)
}

/// Wakes the tasks that the partner knocked for, and those whose time
/// has come; sets the alarm for the others.
fn deliver() {
    let partner = PARTNER.load(Relaxed);
    let told = take_mail();
    let knocks = from(partner, ME.load(Relaxed)).collect();
    if told & GONE != 0 && call(Call::Connect, [partner, 0, 0, 0]) < 0 {
        PARTNER_IS_GONE.store(true, Relaxed);
    }
    let now = time() as usize;
    let mut next = usize::MAX;
    for index in 0..TASKS {
        let mut wake = knocks & 1 << index != 0;
        if wake {
            WOKEN[index].store(WOKEN[index].load(Relaxed) + 1, Relaxed);
        }
        if WAKE_AT[index].load(Relaxed) <= now {
            WAKE_AT[index].store(usize::MAX, Relaxed);
            wake = true;
        }
        next = next.min(WAKE_AT[index].load(Relaxed));
        if wake {
            insert(task(index).cast::<Task>(), LEVEL + index % 2);
        }
    }
    if next != usize::MAX {
        must(Call::Alarm, [next - now, 0, 0, 0]);
    }
}

extern "C" fn live(index: usize) {
    let (me, partner) = (ME.load(Relaxed), PARTNER.load(Relaxed));
    for turn in 0..TURNS {
        match random(8) {
            0 => {
                let wake_at = time() as usize + random(1 << random(LONGEST_SLEEP.load(Relaxed) + 1));
                WAKE_AT[index].store(wake_at, Relaxed);
                // The executor has to hear of it; woken early by a knock, it sleeps on.
                while WAKE_AT[index].load(Relaxed) != usize::MAX {
                    block();
                }
            }
            1 => {
                // A forked process has no executor; it ends without a word.
                if call(Call::Fork, [random(2), 0, 0, 0]) == 0 {
                    exit(0);
                }
                while wait().is_some() {}
            }
            2 | 3 => yield_now(),
            _ => {}
        }
        if me < partner {
            knock(partner, me, index as u32);
        }
        while WOKEN[index].load(Relaxed) <= turn {
            block();
        }
        if me > partner {
            knock(partner, me, index as u32);
        }
    }
    ALIVE.store(ALIVE.load(Relaxed) - 1, Relaxed);
}
