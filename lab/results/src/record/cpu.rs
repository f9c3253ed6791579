// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a wake-up costs in CPU time: one definition for every verb.

use super::{Quantity, Record, SideCounters};

/// CPU time of the two sides for one notification and the wake-up that
/// it makes: the notifier's call and all that the waiter runs. What a
/// notifier spends between its calls keeps the gap and is the harness's.
///
/// Back to back each side notifies and waits, and the whole of both is for two wake-ups a round.
/// With a gap the side that answers pays for one of each and keeps no gap. One way it is the
/// waiter's time and the notifier's call. Of what notifies nobody it is all that both spent, for
/// each thing done; of a fan-out, for each wake-up.
impl Record {
    /// CPU time a wake-up, nanoseconds, and the wake-ups it is the mean of; none where none was
    /// seen or no time was counted.
    pub fn cpu_per_wake(&self) -> Option<(f64, u64)> {
        let spent = |side: &SideCounters| side.user_ns.saturating_add(side.system_ns) as f64;
        let all = || self.sides.iter().map(spent).sum::<f64>();
        let pattern = self.configuration.pattern;
        let seen = self.tally.seen;
        let whole = match (pattern.between_two(), pattern.there_and_back()) {
            (true, true) if pattern.back_to_back() => all() / 2.0,
            (true, true) => spent(self.sides.get(1)?),
            (true, false) => {
                let waiter = self.sides.iter().find(|side| side.side == "waiter").map(spent)?;
                waiter + self.call_cpu_ns()? * seen as f64
            }
            (false, _) => all(),
        };
        (seen > 0 && whole > 0.0).then(|| (whole / seen as f64, seen))
    }

    /// CPU time of the notifier's call, nanoseconds, as the thread's own clock told it. Where it
    /// did not (a file of before 2026-11-26, a system that counts by ticks) it is the mean of
    /// how long calls lasted, none of them counted as longer than 95 of 100 are: on a busy
    /// machine one in some hundred loses its CPU for milliseconds, in which others run.
    fn call_cpu_ns(&self) -> Option<f64> {
        if let Some(told) = self.sides.iter().find_map(|side| side.call_ns) {
            return Some(told);
        }
        let calls = self.series.get(&Quantity::Notify)?.decode().ok()?;
        let longest = calls.quantile(0.95);
        let whole: f64 = calls.buckets().map(|(ps, count)| ps.min(longest) as f64 * count as f64).sum();
        (calls.count() > 0).then(|| whole / calls.count() as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::configuration::Pattern;
    use crate::record::{Histogram, Quantity, Record, Series, sample};

    /// A trial of a thousand wake-ups, each of which costs the notifier 2 µs and the waiter 3 µs,
    /// whatever `pattern` it is told in; of a notifier that keeps a gap, 50 µs go into that.
    fn trial(pattern: Pattern) -> Record {
        let mut record = sample::record(sample::configuration("futex"), 0, 16_000.0);
        record.configuration.pattern = pattern;
        record.tally.seen = 1000;
        let mut calls = Histogram::new();
        calls.record_many(2_000_000, 1000);
        record.series.insert(Quantity::Notify, Series::from(&calls));
        let (notifier, waiter) = match pattern {
            Pattern::PingPong { gap_ns: 0 } => (5_000, 5_000),
            Pattern::PingPong { .. } => (55_000, 5_000),
            _ => (52_000, 3_000),
        };
        for (side, (name, ns)) in record.sides.iter_mut().zip([("notifier", notifier), ("waiter", waiter)]) {
            side.side = name.to_owned();
            (side.user_ns, side.system_ns) = (0, ns * 1000);
        }
        record
    }

    /// `spin`, `ping` and `pick` gave three figures, apart by a factor of five.
    #[test]
    fn one_wake_up_costs_the_same_in_whichever_pattern_it_was_measured() {
        let gap_ns = 50_000;
        let patterns = [
            Pattern::PingPong { gap_ns: 0 },
            Pattern::PingPong { gap_ns },
            Pattern::OneWay { gap_ns },
            Pattern::OpenLoop { gap_ns },
        ];
        for pattern in patterns {
            let (cpu_ns, wakes) = trial(pattern).cpu_per_wake().unwrap();
            assert!((cpu_ns - 5_000.0).abs() < 5.0 && wakes == 1000, "{pattern:?}: {cpu_ns}");
        }
        // On a busy machine the mean of what calls lasted was 40 µs, and a wake-up cost 74 µs of CPU time
        // in `spin` and 51 in `ping`.
        for told in [None, Some(2_000.0)] {
            let mut busy = trial(Pattern::OpenLoop { gap_ns });
            let mut calls = Histogram::new();
            calls.record_many(2_000_000, 990);
            calls.record_many(4_000_000_000, 10);
            busy.series.insert(Quantity::Notify, Series::from(&calls));
            busy.sides[0].call_ns = told;
            let (cpu_ns, _) = busy.cpu_per_wake().unwrap();
            assert!((cpu_ns - 5_000.0).abs() < 5.0, "{told:?}: {cpu_ns}");
        }
        let mut none = trial(Pattern::OneWay { gap_ns });
        none.series.remove(&Quantity::Notify);
        assert_eq!(none.cpu_per_wake(), None, "a call that was not timed is no call of no time");
    }
}
