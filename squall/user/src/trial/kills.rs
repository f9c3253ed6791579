// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that are ended at random moments, whatever they do just then on their own harts.
//!
//! No slice ends and nobody else interrupts, so one whom the kernel misses goes on for ever. In
//! every other round all do the same and are ended at once: one that hands over as it is ended may
//! take the interrupt that was meant for another.

use squall_scheduler::call::{Call, KILLED, TURN_BY_TURN};

use crate::hostile::company::VICTIM;
use crate::hostile::start;
use crate::kernel::{call, counters, exit, must, say, wait};
use crate::scheduler::{sleep_for, take_mail, take_part, yield_now};

/// What they do, over and over. Those that yield, by whichever call, take turns among themselves.
const LIVES: &[fn()] = &[
    || core::hint::spin_loop(),
    yield_now,
    yield_now,
    || {
        call(Call::Yield, [0; 4]);
    },
    || {
        call(Call::YieldInEntry, [0; 4]);
    },
    || {
        call(Call::YieldInEntry, [0; 4]);
    },
    || {
        must(Call::Alarm, [3, 0, 0, 0]);
        must(Call::Park, [0; 4]);
        take_mail();
    },
    || {
        if call(Call::Fork, [1, 0, 0, 0]) == 0 {
            exit(0);
        }
        while wait().is_some() {}
    },
];

/// One of them.
pub(crate) fn live(which: usize) {
    if !take_part(0, TURN_BY_TURN) {
        exit(2);
    }
    loop {
        LIVES[which % LIVES.len()]();
    }
}

/// So many rounds, in each of which as many as there are lives are
/// made and ended. The first space's.
pub(crate) fn run(rounds: usize, seed: usize, me: usize) -> bool {
    must(Call::Tick, [0; 4]);
    let mut random = seed.max(1);
    let mut used = counters().frames_used;
    for round in 0..rounds {
        let mut victims = [0; LIVES.len()];
        for (which, victim) in victims.iter_mut().enumerate() {
            *victim = start(VICTIM, if round % 2 == 0 { which } else { round / 2 });
        }
        for victim in victims {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if round % 2 == 0 || victim == victims[0] {
                sleep_for((random >> 11) % 2000, me);
            }
            must(Call::Kill, [victim, 0, 0, 0]);
        }
        while let Some((number, code)) = wait() {
            if victims.contains(&number) && code != KILLED {
                say!("round {round}: process {number} ended with {code:#x}");
                return false;
            }
        }
        let now = counters();
        // As in `worker`: the tables for mail grow by a page at times. Nobody connects here.
        if now.spaces != 1 || (round > 0 && now.frames_used > used) {
            say!("round {round}: {} spaces left, {} frames instead of {used}", now.spaces, now.frames_used);
            return false;
        }
        used = now.frames_used;
    }
    say!("{{\"kills\":{}}}", rounds * LIVES.len());
    true
}
