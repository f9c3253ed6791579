// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misdeeds by mail.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::{Call, KILLED};
use squall_scheduler::image::MAIL;

use super::company::{CONNECTS, Relay, SLEEPS_UNDISTURBED, WAKES_BY_ALARM};
use super::{refused, start};
use crate::kernel::{call, exit, must, wait};
use crate::scheduler::{connect, take_part};

pub(super) fn scribble_over_mail() {
    let me = must(Call::Myself, [0; 4]);
    let child = start(WAKES_BY_ALARM, me);
    let mail: *const AtomicU64 = (&raw const *connect(child)).cast();
    let mut word = 1_u64;
    for _ in 0..20_000 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        // SAFETY: within the page, of words that are atomic for both.
        unsafe { (*mail.add(word as usize % 32)).store(word, Relaxed) };
        if word.is_multiple_of(64) {
            call(Call::Yield, [0; 4]);
        }
    }
    exit(if wait() == Some((child, 0)) { 0 } else { 3 })
}

/// Whoever has not connected sleeps on, whatever others do with the
/// mail that they share with it, and when they end.
pub(super) fn kick_uninvited() {
    let me = must(Call::Myself, [0; 4]);
    take_part(0, 0);
    let relay = Relay::start(me);
    let sleeps = start(SLEEPS_UNDISTURBED, relay.number());
    connect(sleeps);
    relay.wait_for(sleeps);
    let ends = start(CONNECTS, sleeps);
    relay.wait_for(ends);
    for _ in 0..100 {
        refused(Call::Kick, [sleeps, 0, 0, 0]);
        call(Call::Yield, [0; 4]);
    }
    if wait() != Some((ends, 0)) {
        exit(3);
    }
    must(Call::Kill, [sleeps, 0, 0, 0]);
    exit(if wait() == Some((sleeps, KILLED)) { 0 } else { 3 })
}

/// Mail is out of reach until both have asked for it: for the process's own instructions and for
/// the kernel on its behalf.
pub(super) fn read_mail_unasked() {
    let me = must(Call::Myself, [0; 4]);
    take_part(0, 0);
    let relay = Relay::start(me);
    let other = start(CONNECTS, me);
    // It is not waited for: with that its page would go.
    relay.wait_for(other);
    let page = MAIL + other * 4096;
    refused(Call::Print, [page, 8, 0, 0]);
    refused(Call::Count, [page, 0, 0, 0]);
    super::reach::write_word(page);
}
