// SPDX-License-Identifier: MIT OR Apache-2.0
//! What honest processes do beside hostile ones, and those that a trial sets against each other.

use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::Call;
use squall_scheduler::mailbox::ALARM;

use super::reach::give_way_alone;
use super::registers::fill_registers;
use super::{SLICE, forever, start};
use crate::kernel::{call, exit, grow, must, pass, wait};
use crate::scheduler::{Mail, connect, connection, from, knock, knocks_of, take_mail, take_part};
use crate::trial::{kills, numbers::MARK, slices, stale, zombies};

/// What to do, in place of a misdeed's number.
pub(crate) const FULL: usize = 1000;
pub(crate) const COPIER: usize = 1001;
pub(crate) const WAITS_FOR_ITS_PARENT: usize = 1002;
pub(crate) const WAKES_BY_ALARM: usize = 1003;
pub(crate) const SLEEPS_UNDISTURBED: usize = 1004;
pub(crate) const CONNECTS: usize = 1005;
pub(crate) const SETS_AN_ALARM: usize = 1006;
pub(crate) const YIELDS: usize = 1007;
pub(crate) const GIVES_WAY_EARLY: usize = 1008;
pub(crate) const NEVER_GIVES_WAY: usize = 1009;
pub(crate) const LEAVES_A_MARK: usize = 1010;
pub(crate) const LOOKS_FOR_THE_MARK: usize = 1011;
pub(crate) const TAKES_AT_ONCE: usize = 1012;
pub(crate) const VICTIM: usize = 1013;
pub(crate) const SCRIBBLES_OVER_OLD_MAIL: usize = 1014;
pub(crate) const LOOKS_AT_NEW_MAIL: usize = 1015;
pub(crate) const RELAYS: usize = 1016;
pub(crate) const MAKES_ZOMBIES: usize = 1017;

/// Does it; `word` is another process's number, or what is said there.
pub(super) fn keep(what: usize, word: usize, me: usize, parent: usize) {
    match what {
        FULL => fill_registers(),
        COPIER => copy_for_ever(),
        WAITS_FOR_ITS_PARENT => {
            take_part(0, 0);
            connect(parent);
            exit(usize::from(knocks_of(parent, me).is_none()));
        }
        WAKES_BY_ALARM => wake_by_alarm(word, me),
        SLEEPS_UNDISTURBED => {
            take_part(0, 0);
            connect(word);
            knock(word, me, 0);
            Mail { me, others: [0; 2], count: 0 }.sleep();
            exit(3);
        }
        CONNECTS => {
            connect(word);
        }
        SETS_AN_ALARM => {
            take_part(0, 0);
            must(Call::Alarm, [usize::MAX, 0, 0, 0]);
            if word != 0 {
                connect(word);
                knock(word, me, 0);
                forever::parks_on();
            }
        }
        RELAYS => relay(word, me),
        MAKES_ZOMBIES => zombies::make(word, me),
        YIELDS => {
            for _ in 0..if word == 0 { 100 } else { word } {
                call(Call::Yield, [0; 4]);
            }
            if word != 0 {
                give_way_alone();
            }
        }
        GIVES_WAY_EARLY => exit(slices::run_for_long(true)),
        NEVER_GIVES_WAY => exit(slices::run_for_long(false)),
        LEAVES_A_MARK => {
            take_part(0, 0);
            connect(word).scratch[MARK].store(1, Relaxed);
            connect(parent);
            knock(parent, me, 0);
            if knocks_of(parent, me).is_some() {
                // Another has the number now.
                connect(word);
                knock(parent, me, 0);
            }
            exit(usize::from(knocks_of(parent, me).is_none()));
        }
        LOOKS_FOR_THE_MARK => {
            take_part(0, 0);
            connect(parent);
            exit(if knocks_of(parent, me).is_some() {
                connect(word).scratch[MARK].load(Relaxed) as usize
            } else {
                2
            });
        }
        TAKES_AT_ONCE => exit(usize::from(grow(word).is_none())),
        VICTIM => kills::live(word),
        SCRIBBLES_OVER_OLD_MAIL => stale::scribble(word, me, parent),
        LOOKS_AT_NEW_MAIL => exit(if stale::stays_empty(word) { 0 } else { 3 }),
        _ => exit(2),
    }
}

/// Who tells this process what it cannot see itself of another that it has not connected with.
pub(super) struct Relay {
    me: usize,
    relay: usize,
}

impl Relay {
    /// Another child, which ends with this process.
    pub(super) fn start(me: usize) -> Self {
        let relay = start(RELAYS, me);
        connect(relay);
        Self { me, relay }
    }

    pub(super) fn number(&self) -> usize {
        self.relay
    }

    /// Waits until `other`, another child, has knocked at the relay, or has ended.
    pub(super) fn wait_for(&self, other: usize) {
        connection(self.relay).scratch[0].store(other as u64, Relaxed);
        knock(self.relay, self.me, 0);
        if knocks_of(self.relay, self.me).is_none() {
            exit(4);
        }
    }
}

fn relay(whom_it_tells: usize, me: usize) -> ! {
    take_part(0, 0);
    connect(whom_it_tells);
    while knocks_of(whom_it_tells, me).is_some() {
        let other = connection(whom_it_tells).scratch[0].load(Relaxed) as usize;
        if call(Call::Connect, [other, 0, 0, 0]) >= 0 {
            knocks_of(other, me);
        }
        knock(whom_it_tells, me, 0);
    }
    exit(0)
}

/// Forks on write and writes, for ever: each page is copied by a
/// fault. Ends only if it finds what it did not write.
fn copy_for_ever() {
    const PAGES: usize = 16;
    let Some(memory) = grow(PAGES * 4096).map(<*mut u8>::cast::<usize>) else { exit(2) };
    for round in 0.. {
        if call(Call::Fork, [1, 0, 0, 0]) == 0 {
            // It has the pages, too, until the last is written.
            pass(4 * SLICE);
            exit(0);
        }
        for page in 0..PAGES {
            // SAFETY: memory that was asked for.
            unsafe {
                let place = memory.add(page * 512);
                if place.read_volatile() != round {
                    exit(3);
                }
                place.write_volatile(round + 1);
            }
            // So long that its slice ends among the pages, and another process makes a call before the next.
            pass(SLICE / 8);
        }
        while wait().is_some() {}
    }
}

/// Wakes by its alarm, time and again, whatever is in its mail from `other`.
fn wake_by_alarm(other: usize, me: usize) -> ! {
    take_part(0, 0);
    connect(other);
    let mail = Mail { me, others: [other, 0], count: 1 };
    for _ in 0..20 {
        must(Call::Alarm, [500, 0, 0, 0]);
        while take_mail() & ALARM == 0 {
            from(other, me).collect();
            mail.sleep();
        }
    }
    exit(0)
}
