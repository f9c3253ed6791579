// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whoever yields early keeps its share of the hart, and has no more.

use squall_scheduler::call::{Call, TURN_BY_TURN};

use crate::hostile::company::{GIVES_WAY_EARLY, NEVER_GIVES_WAY};
use crate::hostile::{SLICE, start};
use crate::kernel::{must, say, time, wait};
use crate::scheduler::{take_part, yield_now};

/// One process yields at nine tenths of each slice, another never does. What each had of the
/// hart, in timebase ticks.
pub(crate) fn run() {
    must(Call::Tick, [SLICE, 0, 0, 0]);
    let early = start(GIVES_WAY_EARLY, 0);
    start(NEVER_GIVES_WAY, 0);
    let mut had = [0; 2];
    while let Some((number, ticks)) = wait() {
        had[usize::from(number != early)] = ticks;
    }
    say!("{{\"slices\":{had:?}}}");
}

/// Ticks in which this process had its hart, until both have had enough: two readings of the clock
/// in a row lie closer together than any other process's turn is long.
pub(crate) fn run_for_long(gives_way: bool) -> usize {
    const NEXT: u64 = 20;
    take_part(0, TURN_BY_TURN);
    let (mut last, mut had) = (time(), 0);
    let (end, mut turn) = (last + 1000 * SLICE as u64, last);
    while last < end {
        let now = time();
        if now - last < NEXT {
            had += now - last;
        } else {
            turn = now;
        }
        last = now;
        if gives_way && now - turn > SLICE as u64 / 10 * 9 {
            yield_now();
        }
    }
    had as usize
}
