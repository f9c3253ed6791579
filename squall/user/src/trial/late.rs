// SPDX-License-Identifier: MIT OR Apache-2.0
//! Alarms come in time while another process asks for half the memory
//! in one call: it is zeroed piece by piece.

use squall_scheduler::call::Call;

use crate::hostile::company::TAKES_AT_ONCE;
use crate::hostile::start;
use crate::kernel::{counters, must, say, time, wait};
use crate::scheduler::sleep_for;

/// Timebase ticks of each sleep.
const SLEEP: usize = 100;

/// By how many timebase ticks the latest alarm was late. The first
/// space's, which goes before the other.
pub(crate) fn run(me: usize) -> bool {
    let before = counters();
    let half = before.frames / 2;
    let child = start(TAKES_AT_ONCE, half as usize * 4096);
    let (mut sleeps, mut latest) = (0, 0);
    while counters().frames_used < before.frames_used + half {
        let begin = time();
        sleep_for(SLEEP, me);
        latest = latest.max(time() - begin - SLEEP as u64);
        sleeps += 1;
    }
    let ended = wait() == Some((child, 0));
    must(Call::Tick, [0; 4]);
    say!("{{\"late\":{latest},\"sleeps\":{sleeps}}}");
    ended
}
