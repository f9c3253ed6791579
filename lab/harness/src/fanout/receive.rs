// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a receiver does.

use std::sync::atomic::Ordering::{Acquire, Release};

use super::table::{ReceiverRow, Table};
use crate::counters::Counters;
use crate::mechanism::{Waiter, Woken};
use crate::role::wait_by_policy;
use crate::side::SideError;
use crate::task;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Ticks;

#[derive(Debug)]
struct Window {
    before: Counters,
    opened: Ticks,
}

impl Window {
    fn open(table: &Table) -> Self {
        Self { before: Counters::read(), opened: table.part.clock.now_awake() }
    }
    fn close(self, table: &Table, row: ReceiverRow) {
        let clock = table.part.clock;
        let window_ns = clock.ps(clock.now().saturating_sub(self.opened)) / 1000;
        row.leave(&Counters::read().since(&self.before, "receiver", window_ns));
    }
}

fn stand_ready(table: &Table, row: ReceiverRow) {
    row.stands_ready(task::number());
    // Pairs with the Acquire load in `notify`: the object that this
    // receiver made is there for the notifier to find.
    table.control.ready.fetch_add(1, Release);
}

fn stopped(table: &Table) -> bool {
    // Pairs with the Release store in `notify`.
    table.control.stop.load(Acquire) != 0
}

fn read_payload(table: &Table) {
    let sum = table
        .payload
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(byte.load(std::sync::atomic::Ordering::Relaxed)));
    std::hint::black_box(sum);
}

/// A receiver with an object of its own.
pub fn own<W: Waiter>(mut waiter: W, number: u32, table: &Table) -> Result<(), SideError> {
    let (part, row) = (&table.part, table.row(number));
    stand_ready(table, row);
    let mut window = Window::open(table);
    let mut round = 0;
    loop {
        let entered = part.clock.now();
        let woken = wait_by_policy(&mut waiter, part.wait, part.clock)?;
        let mut awake = part.clock.now_awake();
        if stopped(table) {
            break;
        }
        // Pairs with the Release store in `notify`.
        let sent = table.sent(round, number).load(Acquire);
        match woken {
            Woken::TimedOut if sent == 0 || sent > entered => {
                // What was posted after this wait began is for the next one to see.
                row.timed_out();
                continue;
            }
            Woken::TimedOut => row.was_late(),
            Woken::Notified if sent == 0 => {
                row.woke_for_nothing();
                continue;
            }
            Woken::Notified => {}
        }
        if !table.payload.is_empty() {
            read_payload(table);
            awake = part.clock.now_awake();
        }
        round += 1;
        if round == part.warmup {
            row.forget();
            window = Window::open(table);
        }
        row.saw(round - 1, awake);
    }
    window.close(table, row);
    Ok(())
}

/// A receiver on the object that all share: it cannot tell whose post it takes.
pub fn shared<W: Waiter>(mut waiter: W, number: u32, table: &Table) -> Result<(), SideError> {
    let (part, row) = (&table.part, table.row(number));
    stand_ready(table, row);
    let window = Window::open(table);
    loop {
        let woken = wait_by_policy(&mut waiter, part.wait, part.clock)?;
        let awake = part.clock.now_awake();
        if stopped(table) {
            break;
        }
        if woken == Woken::TimedOut {
            row.timed_out();
            continue;
        }
        // Pairs with the Release store in `notify`. A post taken after the next round began counts there.
        let round = table.control.round.load(Acquire);
        row.woke(round.saturating_sub(1) as usize, awake);
    }
    window.close(table, row);
    Ok(())
}
