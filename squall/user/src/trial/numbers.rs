// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of spaces that are used again.

use squall_scheduler::call::Call;

use crate::arm::across;
use crate::hostile::company::{LEAVES_A_MARK, LOOKS_FOR_THE_MARK, WAITS_FOR_ITS_PARENT};
use crate::hostile::start;
use crate::kernel::{call, counters, exit, must, say, wait};
use crate::scheduler::{connect, knock, knocks_of};

/// Where the mark is left in a page of mail.
pub(crate) const MARK: usize = 3;

/// Processes that are made and end, to see what becomes of translations.
const LIVES: u64 = 20;

/// Flushes of translations while so many processes are copied from this one and end.
fn flushes() -> u64 {
    let before = counters().flushes;
    for _ in 0..LIVES {
        if call(Call::Fork, [0; 4]) == 0 {
            exit(0);
        }
        wait();
    }
    counters().flushes - before
}

/// Two processes, of which the second, one of the kind `what`, shares mail with the first. That one
/// has ended, and its number is the next that is given out: all others were used since.
pub(super) fn used_up(what: usize, me: usize) -> Option<(usize, usize)> {
    let first = start(WAITS_FOR_ITS_PARENT, 0);
    let friend = start(what, first);
    connect(friend);
    knocks_of(friend, me)?;
    must(Call::Kill, [first, 0, 0, 0]);
    while wait().is_some_and(|(number, _)| number + 1 != first) {
        if call(Call::Fork, [1, 0, 0, 0]) == 0 {
            exit(0);
        }
    }
    Some((first, friend))
}

/// Whether a space with a number that was used before is told nothing of who had it, and enters a
/// hart only when that has forgotten its translations, which an emulator does anyhow: so the
/// flushes are counted. It takes as many spaces as there are numbers.
pub(crate) fn run(me: usize) -> bool {
    // The number after the first space's has none before it that a child could have.
    across::run_beside(2, 1, me, &mut |_, _| {});
    let fresh = flushes();
    let Some((first, friend)) = used_up(LEAVES_A_MARK, me) else { return false };
    let again = start(LOOKS_FOR_THE_MARK, friend);
    connect(again);
    knock(friend, me, 0);
    if knocks_of(friend, me).is_none() {
        return false;
    }
    knock(again, me, 0);
    let unmarked = wait() == Some((again, 0));
    must(Call::Kill, [friend, 0, 0, 0]);
    wait();
    let used = flushes();
    say!("{{\"numbers\":{},\"flushes\":[{fresh},{used}]}}", again == first && unmarked);
    again == first && unmarked && used >= LIVES
}
