// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of mail that one who ended has left stays its holder's until that one gives it up,
//! whoever has the number by then: its hart may remember the page at any moment.

use core::ptr::with_exposed_provenance_mut;

use squall_scheduler::call::Call;
use squall_scheduler::image::MAIL;

use super::numbers::used_up;
use crate::hostile::company::{LOOKS_AT_NEW_MAIL, SCRIBBLES_OVER_OLD_MAIL};
use crate::hostile::start;
use crate::kernel::{must, say, spawn, time, wait};
use crate::program;
use crate::scheduler::{connect, knock, take_part};

/// Shares mail with `other`, and writes addresses of the kernel into it for ever, without a call.
pub(crate) fn scribble(other: usize, me: usize, parent: usize) {
    take_part(0, 0);
    connect(other);
    connect(parent);
    knock(parent, me, 0);
    let mail = with_exposed_provenance_mut::<usize>(MAIL + other * 4096);
    loop {
        // SAFETY: mapped, and nobody relies on what is there.
        unsafe { mail.write_volatile(0x8020_0000) };
    }
}

/// Timebase ticks, 0.2 s: so long that a busy host lets both harts run.
const LOOKS_FOR: u64 = 2_000_000;

/// Whether mail with `other`, which never asks for it, stays as it was made.
pub(crate) fn stays_empty(other: usize) -> bool {
    connect(other);
    let mail = with_exposed_provenance_mut::<usize>(MAIL + other * 4096);
    let begin = time();
    while time() - begin < LOOKS_FOR {
        // SAFETY: mapped by `connect`.
        if unsafe { mail.read_volatile() } != 0 {
            return false;
        }
    }
    true
}

/// On two harts or more that run at the same time, with few numbers. The first space's.
pub(crate) fn run(me: usize) -> bool {
    must(Call::Tick, [0; 4]);
    // The number before the one that is used again is to be a child's.
    spawn(program::ENDS, [0; 2], program::LEVEL);
    wait();
    let Some((first, scribbler)) = used_up(SCRIBBLES_OVER_OLD_MAIL, me) else { return false };
    let again = start(LOOKS_AT_NEW_MAIL, scribbler);
    let well = again == first && wait() == Some((again, 0));
    must(Call::Kill, [scribbler, 0, 0, 0]);
    wait();
    say!("{{\"stale\":{}}}", !well);
    well
}
