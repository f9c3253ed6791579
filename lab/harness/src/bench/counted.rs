// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a side counts the recorded part of a slice.

use super::account::{Opened, Place, Seen};
use crate::side::Side;
use crate::task;
use crate::usage::Usage;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::SideCounters;

impl Side {
    pub(crate) fn open_slice(&mut self) -> Ticks {
        let (migrations, cpu) = (self.migrations(), task::cpu());
        // Around what is used: who has the CPU taken away beside the reading used no more than there was.
        let at = self.clock.now_awake();
        let usage = Usage::read();
        self.account.opened = Some(Opened { usage, at, cpu, migrations });
        self.clock.now_awake()
    }

    /// Closes it, if it was opened: so many `rounds` were timed, and then
    /// `middle_ps` is asked for what one of their middle half took. That
    /// sorts, for some microseconds, and is no part of what is counted.
    pub(crate) fn close_slice(&mut self, rounds: u32, middle_ps: &mut dyn FnMut() -> f64) {
        let Some(opened) = self.account.opened.take() else { return };
        let used = Usage::read().since(&opened.usage);
        let now = self.clock.now();
        let (cpu, migrations) = (task::cpu(), self.migrations());
        let account = &mut self.account;
        account.used = account.used.with(&used, u64::saturating_add);
        account.window += now.saturating_sub(opened.at);
        account.readings += 1;
        account.cpus = vec![*account.cpus.first().unwrap_or(&opened.cpu), cpu];
        // Where a side is pinned each slice brings it back, which is no migration of the slice.
        let moved = migrations.zip(opened.migrations).map(|(now, then)| now.saturating_sub(then));
        let moved = moved.or(self.configuration.placement.cpus.map(|_| u64::from(opened.cpu != cpu)));
        account.migrations = moved.map(|moved| account.migrations.unwrap_or(0) + moved);
        let Place { turn, place } = account.at;
        account.slices.push(Seen {
            turn,
            place,
            rounds,
            middle_ns: middle_ps() / 1000.0,
            switches: used.voluntary_switches,
        });
    }

    /// Moves between CPUs so far, of a side that the scheduler may
    /// move; reading them takes some 20 µs.
    fn migrations(&self) -> Option<u64> {
        self.configuration.placement.cpus.is_none().then(task::migrations).flatten()
    }

    /// Makes what was counted over all slices the side's counters.
    pub(crate) fn settle_account(&mut self) {
        let account = &self.account;
        let readings_ns = account.readings * self.reading_ns;
        let used = &account.used;
        self.counters = SideCounters {
            cpus: account.cpus.clone(),
            migrations: account.migrations,
            user_ns: used.user_ns.saturating_sub(readings_ns.saturating_sub(used.system_ns)),
            system_ns: used.system_ns.saturating_sub(readings_ns),
            window_ns: self.clock.ps(account.window) / 1000,
            call_ns: self.counters.call_ns,
            ..used.counters(self.role.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    /// To sort 256 numbers took 3 us of CPU time of a slice of a millisecond.
    #[test]
    fn what_is_computed_of_a_slice_is_no_part_of_what_it_used() {
        let mut side = crate::fake_side::side(None, 0);
        side.open_slice();
        side.close_slice(16, &mut || {
            (0..50).for_each(|_| std::thread::sleep(Duration::from_micros(1)));
            5000.0
        });
        let [slice] = side.account.slices[..] else { panic!("{:?}", side.account.slices) };
        assert_eq!((slice.switches, slice.middle_ns), (0, 5.0), "each sleep is a switch");
    }
}
