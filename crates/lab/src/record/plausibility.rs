// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no machine can do: rules that a record must satisfy before its figures may stand in a table.
//!
//! Each rule is a name and a pure function of the record and what is known of the machine. A rule that cannot be
//! applied, because the floor or the counter is not there, is silent: a violation is a proof, not a suspicion.

use super::result::Floors;
use super::series::Quantity;
use super::{Outcome, Record, SideCounters, Violation};
use crate::about::About;
use crate::mechanism::{self, Waits};
use crate::trial::cell::{Pattern, Timing, WaitPolicy};

/// What the rules need to know besides the record.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// All readings of the machine's floors taken in the run so far.
    pub floors: &'a [Floors],
    /// The clock's step, nanoseconds; 0 where it is not known.
    pub clock_step_ns: f64,
}

/// A rule: its name and meaning, and its evidence against a record, one text for each breach.
struct Rule {
    about: About,
    evidence: fn(&Record, &Known) -> Vec<String>,
}

/// Every rule, in the order in which violations are reported. The one list to extend.
const RULES: [Rule; 9] = [
    Rule {
        about: About {
            name: "below-floor",
            what: "A time is shorter than the machine can be: no word reaches another core faster than a cache line does, \
                   and on one core a waiter runs only after a switch.",
            taken: "The figure against half the lowest reading of its floor in the whole run; on two cores a cache-line hop \
                    each way, on one core a switch, and for a surely blocked wake the two-core wake.",
            misleads: "Where a floor is missing, or rests on fewer than twenty samples because others used the CPUs, the rule is \
                       silent.",
        },
        evidence: below_floor,
    },
    Rule {
        about: About {
            name: "before-its-cause",
            what: "A waiter was awake before its notifier's call: the clocks of the two CPUs are out of step.",
            taken: "A round trip or wake-up latency that came out as nothing.",
            misleads: "Clocks that are out of step in the other direction make wakes longer, and are not seen here: `doorbell \
                       doctor` tells the skew.",
        },
        evidence: before_its_cause,
    },
    Rule {
        about: About {
            name: "longer-than-run",
            what: "A time, or the sum of times that follow each other, is longer than the trial itself.",
            taken: "The longest time, the sum of a closed loop's times and each side's CPU time against the window, with one \
                    per cent and a millisecond to spare.",
            misleads: "An open loop's times overlap: only the longest is held against the window there.",
        },
        evidence: longer_than_run,
    },
    Rule {
        about: About {
            name: "never-slept",
            what: "Waits that are called blocked, or surely blocked, were no sleeps.",
            taken: "The kernel counts a voluntary switch for every sleep: fewer than one for a hundred waits that block, or \
                    than nine for ten that are surely blocked, breaks the rule, and so do fewer than nine proofs for ten \
                    notifications.",
            misleads: "A fast notifier finds the waiter awake now and then: that is no breach.",
        },
        evidence: never_slept,
    },
    Rule {
        about: About {
            name: "poll-took-interrupts",
            what: "Waits that are called polling slept, or were woken by interrupts.",
            taken: "Voluntary switches of the waiting sides beyond one for a hundred waits, or more than one rescheduling \
                    interrupt for two.",
            misleads: "Interrupts are counted for the CPU and not for the task: a few of others are allowed for.",
        },
        evidence: poll_took_interrupts,
    },
    Rule {
        about: About {
            name: "clock-grid",
            what: "The shortest time is a property of the clock and not of the mechanism.",
            taken: "A minimum of fewer than three steps of the clock, or of the grid on which the times themselves lie.",
            misleads: "A grid finer than a thousandth of the time is not seen, and does not matter.",
        },
        evidence: clock_grid,
    },
    Rule {
        about: About {
            name: "not-where-pinned",
            what: "A side that was pinned was seen on another CPU, or moved.",
            taken: "The CPU at both ends of the window, and the kernel's count of migrations.",
            misleads: "Where the kernel shows no migrations, one there and back is not seen.",
        },
        evidence: not_where_pinned,
    },
    Rule {
        about: About {
            name: "counts-disagree",
            what: "What was sent, seen, lost and timed cannot be counts of the same notifications.",
            taken: "Both sides' sequence numbers and the number of samples. A loss is believed only of a mechanism that drops: \
                    elsewhere one lost token would make every later one stand for the message before its own.",
            misleads: "It says that the count is wrong, not which.",
        },
        evidence: counts_disagree,
    },
    Rule {
        about: About {
            name: "load-was-not-there",
            what: "A trial that is called loaded was not: the proof of its load is missing, a worker did nothing, or a CPU \
                   was idle under a worker for every CPU.",
            taken: "The slices of work each worker counted while the trial ran, and the share of the trial for which each \
                    CPU was busy, which must be 90 % where there is a worker for every CPU.",
            misleads: "Busy shares are not judged in trials of less than 0.2 s, where the kernel's ticks of 10 ms tell too \
                       little, nor under churn, which sleeps between its wakes.",
        },
        evidence: load_was_not_there,
    },
];

/// What each rule means.
pub fn rules() -> impl Iterator<Item = About> {
    RULES.iter().map(|rule| rule.about)
}

/// The rules that `record` breaks, with the values.
pub fn violations(record: &Record, known: &Known) -> Vec<Violation> {
    RULES
        .iter()
        .flat_map(|rule| {
            let broken = |evidence| Violation { rule: rule.about.name.to_owned(), evidence };
            (rule.evidence)(record, known).into_iter().map(broken)
        })
        .collect()
}

/// How far below the lowest reading of a floor a figure must be to be impossible. The floors themselves move: the same
/// cache-line program took 43 to 240 ns within an hour on one virtual machine, but its lowest readings within a run
/// stayed within a factor of two.
const SLACK: f64 = 0.5;

/// Fewest samples of which the lowest is a floor. On a machine whose CPUs others use a single sample may hold their time
/// slices, and its share of the reading's time may be used up by it; of twenty one at least lies within a slice of its own.
const FEWEST: u64 = 20;

/// The lowest reading of a floor in the whole run, times [`SLACK`].
fn floor_ns(known: &Known, name: &str) -> Option<f64> {
    let readings = known.floors.iter().flat_map(|reading| &reading.floors);
    let lowest = readings.filter(|floor| floor.name == name && floor.count >= FEWEST).map(|floor| floor.min_ns);
    lowest.min_by(f64::total_cmp).map(|ns| ns * SLACK)
}

/// How the waiter really waits: the policy of the cell, else what the mechanism does. None for operations and tasks.
fn waits(record: &Record) -> Option<Waits> {
    if matches!(record.cell.pattern, Pattern::Operation { .. } | Pattern::Tasks { .. }) {
        return None;
    }
    let entry = mechanism::find(&record.cell.subject).ok()?;
    match (entry.waits(), record.cell.wait) {
        (Waits::Nothing, _) => Some(Waits::Nothing),
        (_, WaitPolicy::Spin) => Some(Waits::Spins),
        (waits, WaitPolicy::Block) => Some(waits),
        // Spins for a while, or wakes by the clock: neither surely sleeps nor surely polls.
        (_, WaitPolicy::SpinThenBlock { .. } | WaitPolicy::Timeout { .. }) => None,
    }
}

/// Whether the sides are pinned to one CPU, to two, or not at all.
fn same_cpu(record: &Record) -> Option<bool> {
    record.cell.placement.cpus.map(|[first, second]| first == second)
}

/// Sides that do nothing but wait, and how often: the far side, and both where the near one does not pause.
fn waiting_sides(record: &Record) -> (impl Iterator<Item = &SideCounters>, u64) {
    let there_and_back = matches!(record.cell.pattern, Pattern::PingPong { gap_ns: 0 });
    let skipped = usize::from(!there_and_back);
    (record.sides.iter().skip(skipped), record.tally.seen * if there_and_back { 2 } else { 1 })
}

fn below_floor(record: &Record, known: &Known) -> Vec<String> {
    if matches!(waits(record), None | Some(Waits::Nothing)) {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    let mut below = |quantity: Quantity, figure: &str, value: f64, floor: &str, times: f64| {
        if let Some(least) = floor_ns(known, floor).map(|ns| ns * times)
            && value < least
        {
            let name = quantity.name();
            evidence.push(format!("{name} {figure} {value:.1} ns, {times} x {floor} at least {least:.1} ns"));
        }
    };
    for (&quantity, series) in &record.series {
        let hops = match quantity {
            Quantity::RoundTrip => 2.0,
            Quantity::Wake
            | Quantity::WakeBack
            | Quantity::FirstWake
            | Quantity::MedianWake
            | Quantity::LastWake
            | Quantity::Response => 1.0,
            Quantity::Notify
            | Quantity::NotifyRound
            | Quantity::AroundWait
            | Quantity::Operation
            | Quantity::HandOff
            | Quantity::Create
            | Quantity::Reap
            | Quantity::Life => continue,
        };
        match same_cpu(record) {
            // From ring to ring (`trial::role::ping`) a clock reading delayed by an interrupt lengthens one round and
            // shortens the next by as much: single rounds prove nothing there, half of them do.
            Some(false) if from_ring_to_ring(record) => {
                below(quantity, "p50", series.p50_ns, "cache-line-hop", hops);
            }
            // No word reaches another core faster than a cache line does.
            Some(false) => below(quantity, "min", series.min_ns, "cache-line-hop", hops),
            // On one core the waiter runs only after a switch.
            Some(true) => below(quantity, "min", series.min_ns, "same-core-switch", hops),
            None => {}
        }
        let proven = record.cell.timing == Timing::Blocked && waits(record) == Some(Waits::Blocks);
        if proven && same_cpu(record) == Some(false) && quantity == Quantity::Wake {
            below(quantity, "p50", series.p50_ns, "two-core-wake", 1.0);
        }
    }
    evidence
}

fn from_ring_to_ring(record: &Record) -> bool {
    let cell = &record.cell;
    waits(record) == Some(Waits::Spins)
        && cell.timing == Timing::Around
        && cell.pattern == Pattern::PingPong { gap_ns: 0 }
}

/// Readings of two cores' clocks that are out of step make a wake-up end before it began; the difference is then cut to
/// nothing.
fn before_its_cause(record: &Record, _: &Known) -> Vec<String> {
    if waits(record).is_none_or(|waits| waits == Waits::Nothing) {
        return Vec::new();
    }
    [Quantity::RoundTrip, Quantity::Wake, Quantity::WakeBack, Quantity::Response]
        .into_iter()
        .filter_map(|quantity| {
            let series = record.series.get(&quantity).filter(|series| series.count > 0)?;
            // What is recorded as nothing counts as one picosecond.
            (series.min_ns <= 0.001).then(|| {
                format!("{} min {} ns: awake before the notifier's call", quantity.name(), series.min_ns)
            })
        })
        .collect()
}

fn longer_than_run(record: &Record, _: &Known) -> Vec<String> {
    let windows = record.sides.iter().map(|side| side.window_ns);
    let window = windows.chain([record.surroundings.wall_ns]).max().unwrap_or(0);
    if window == 0 {
        return Vec::new();
    }
    // The two clocks behind the figures agree to well under a percent; a millisecond for the ends of the window.
    let limit = window as f64 * 1.01 + 1e6;
    let mut evidence = Vec::new();
    for (&quantity, series) in &record.series {
        if series.max_ns > limit {
            evidence.push(format!("{} max {:.0} ns in a run of {window} ns", quantity.name(), series.max_ns));
        }
        // Rounds of a closed loop follow each other, so their sum fits too.
        let in_turn = matches!(quantity, Quantity::RoundTrip | Quantity::Notify | Quantity::AroundWait);
        let sum = series.mean_ns * series.count as f64;
        if in_turn && sum > limit {
            evidence.push(format!("{} sum {sum:.0} ns in a run of {window} ns", quantity.name()));
        }
    }
    for side in &record.sides {
        // Where the kernel accounts by ticks a side may be charged for one it did not use, 10 ms at 100 Hz.
        let cpu = side.user_ns + side.system_ns;
        if side.window_ns > 0 && cpu as f64 > side.window_ns as f64 * 1.05 + 2e7 {
            evidence.push(format!("the {} used {cpu} ns of CPU in {} ns", side.side, side.window_ns));
        }
    }
    evidence
}

/// A wait that is called blocked has slept: the kernel counts a voluntary switch for each sleep.
fn never_slept(record: &Record, _: &Known) -> Vec<String> {
    if waits(record) != Some(Waits::Blocks) || record.tally.seen == 0 {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    let (sides, waits) = waiting_sides(record);
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    // "Surely blocked" must be so for nearly all; otherwise a notification may come before the waiter is asleep, but
    // if that happened every time the record is not one of blocking.
    let (least, claim) =
        if record.cell.timing == Timing::Blocked { (0.9, "surely blocked") } else { (0.01, "blocking") };
    if !record.sides.is_empty() && (slept as f64) < waits as f64 * least {
        evidence.push(format!("{slept} voluntary switches in {waits} waits that are called {claim}"));
    }
    let (proven, sent) = (record.tally.proven_asleep, record.tally.sent);
    if record.cell.timing == Timing::Blocked && (proven as f64) < sent as f64 * 0.9 {
        evidence.push(format!("proven asleep before {proven} of {sent} notifications"));
    }
    evidence
}

/// A waiter that polls neither sleeps nor needs an interrupt to be woken.
fn poll_took_interrupts(record: &Record, _: &Known) -> Vec<String> {
    let (sides, waits_made) = waiting_sides(record);
    if waits(record) != Some(Waits::Spins) || waits_made == 0 {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    // A spinning side may still sleep now and then, in a page fault or for the signal that ends the run.
    let slept: u64 = sides.map(|side| side.voluntary_switches).sum();
    if slept > 10 + waits_made / 100 {
        evidence.push(format!("{slept} voluntary switches in {waits_made} waits that are called polling"));
    }
    // Rescheduling interrupts of other tasks on the same CPU are not ours; one for every second wait is.
    let rescheduled = record.surroundings.interrupts.get("RES").copied().unwrap_or(0);
    if rescheduled > 100 + waits_made / 2 {
        evidence.push(format!("{rescheduled} rescheduling interrupts in {waits_made} waits"));
    }
    evidence
}

/// A minimum of less than three steps of the clock is a property of the clock.
fn clock_grid(record: &Record, known: &Known) -> Vec<String> {
    if waits(record) == Some(Waits::Nothing) {
        // The null mechanism is there to show the clock.
        return Vec::new();
    }
    let measured =
        [Quantity::RoundTrip, Quantity::Wake, Quantity::WakeBack, Quantity::Response, Quantity::Operation];
    measured
        .into_iter()
        .filter_map(|quantity| {
            let series = record.series.get(&quantity).filter(|series| series.count > 0)?;
            // Operations are timed in batches, so a step of the clock is shared out over the batch.
            let batch = match (quantity, record.cell.pattern) {
                (Quantity::Operation, Pattern::Operation { batch }) => f64::from(batch.max(1)),
                _ => 1.0,
            };
            let grid_ns = series.decode().map_or(0.0, |histogram| histogram.grid_ps() / 1000.0);
            let step = grid_ns.max(known.clock_step_ns / batch);
            (step * 3.0 > series.min_ns && step > 0.001).then(|| {
                format!("{} min {:.1} ns lies on a grid of {step:.1} ns", quantity.name(), series.min_ns)
            })
        })
        .collect()
}

/// A pinned side runs where it was put and does not move.
fn not_where_pinned(record: &Record, _: &Known) -> Vec<String> {
    let Some(cpus) = record.cell.placement.cpus else {
        return Vec::new();
    };
    let mut evidence = Vec::new();
    for (side, cpu) in record.sides.iter().zip(cpus) {
        if let Some(elsewhere) = side.cpus.iter().find(|seen| **seen != cpu) {
            evidence.push(format!("the {} was pinned to CPU {cpu} and seen on CPU {elsewhere}", side.side));
        }
        if let Some(moves @ 1..) = side.migrations {
            evidence.push(format!("the {} was pinned to CPU {cpu} and migrated {moves} times", side.side));
        }
    }
    evidence
}

/// What was sent, seen and timed are views of the same notifications.
fn counts_disagree(record: &Record, _: &Known) -> Vec<String> {
    let tally = &record.tally;
    let mut evidence = Vec::new();
    if matches!(waits(record), Some(Waits::Nothing))
        || matches!(record.cell.pattern, Pattern::Operation { .. } | Pattern::Tasks { .. })
    {
        return evidence;
    }
    if tally.seen > tally.sent + tally.duplicate {
        evidence
            .push(format!("{} seen of {} sent with {} duplicates", tally.seen, tally.sent, tally.duplicate));
    }
    if tally.proven_asleep > tally.sent {
        evidence.push(format!("{} proven asleep of {} sent", tally.proven_asleep, tally.sent));
    }
    if tally.sent > 0 && tally.seen == 0 {
        evidence.push(format!("nothing was seen of {} sent", tally.sent));
    }
    // Where tokens carry no number, one that was lost makes every later one stand for the message before its own.
    let drops = mechanism::find(&record.cell.subject).is_ok_and(|entry| entry.drops());
    if tally.lost > 0 && !drops {
        evidence.push(format!("{} lost by a mechanism that drops nothing", tally.lost));
    }
    for (quantity, most) in
        [(Quantity::RoundTrip, tally.seen), (Quantity::Notify, tally.sent), (Quantity::Response, tally.seen)]
    {
        if let Some(series) = record.series.get(&quantity).filter(|series| series.count > most) {
            evidence.push(format!("{} {} samples of {most} notifications", series.count, quantity.name()));
        }
    }
    evidence
}

/// Busy shares are judged only where ticks of 10 ms tell a tenth of the trial.
const BUSY_RESOLUTION: f64 = 0.05;
/// What a CPU must be busy for under a load that has a worker for every CPU.
const BUSY: f64 = 0.9;

/// A trial called loaded had every worker at work, and with a worker for every CPU no CPU idle.
fn load_was_not_there(record: &Record, _: &Known) -> Vec<String> {
    let Some(load) = &record.cell.load else { return Vec::new() };
    if !matches!(record.outcome, Outcome::Done | Outcome::Partial) {
        return Vec::new();
    }
    let Some(proof) = &record.load else {
        return vec![format!(
            "{} workers of {} were asked for, and no proof of them is there",
            load.workers, load.kind
        )];
    };
    let mut evidence = Vec::new();
    if proof.fewest_slices == 0 {
        evidence.push("a worker did not work while the trial ran".to_owned());
    }
    // Arithmetic never waits; what churns sleeps between its wakes.
    let full = load.workers as usize >= proof.busy.len() && load.kind != "churn";
    if full
        && proof.busy_resolution <= BUSY_RESOLUTION
        && let Some((cpu, share)) = proof.least_busy()
        && share + 2.0 * proof.busy_resolution < BUSY
    {
        evidence.push(format!(
            "CPU {cpu} was busy for {:.1} % of a trial under {} workers",
            share * 100.0,
            load.workers
        ));
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Histogram, Series, sample};

    fn broken(record: &Record, floors: &[Floors], clock_step_ns: f64) -> Vec<String> {
        violations(record, &Known { floors, clock_step_ns }).into_iter().map(|broken| broken.rule).collect()
    }

    fn sane() -> (Record, Vec<Floors>) {
        (
            sample::record(sample::cell("futex"), 0, 16_000.0),
            vec![sample::floors(0, 1.0), sample::floors(1, 1.0)],
        )
    }

    /// Exactly the rule `name` is broken by `record`.
    fn only(name: &str, record: &Record, floors: &[Floors]) {
        assert_eq!(broken(record, floors, 10.0), [name]);
    }

    fn replace(record: &mut Record, quantity: Quantity, histogram: &Histogram) {
        record.series.insert(quantity, Series::from(histogram));
    }

    #[test]
    fn a_sane_record_breaks_no_rule() {
        let (record, floors) = sane();
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
        assert_eq!(broken(&record, &[], 0.0), [""; 0]);
    }

    #[test]
    fn a_sane_record_of_every_mechanism_and_pattern_breaks_no_rule() {
        for entry in mechanism::all() {
            for pattern in [Pattern::PingPong { gap_ns: 0 }, Pattern::OneWay { gap_ns: 1000 }] {
                let mut record = sample::record(sample::cell(entry.name()), 0, 16_000.0);
                record.cell.pattern = pattern;
                if entry.waits() == Waits::Spins {
                    record.sides.iter_mut().for_each(|side| side.voluntary_switches = 0);
                    record.surroundings.interrupts.clear();
                }
                assert_eq!(broken(&record, &[sample::floors(0, 1.0)], 10.0), [""; 0], "{}", entry.name());
            }
        }
    }

    #[test]
    fn a_round_trip_faster_than_two_cache_line_hops_is_below_its_floor() {
        let (mut record, floors) = sane();
        // Two hops of at least 56 ns, halved for the floor's own spread.
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(55.0, 1000));
        only("below-floor", &record, &floors);
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(57.0, 1000));
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    /// On a busy machine a cache-line hop of 1.3 ms, from one sample, once made every true round trip impossible.
    #[test]
    fn a_floor_of_a_few_samples_proves_nothing() {
        let (mut record, mut floors) = sane();
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(55.0, 1000));
        floors.iter_mut().flat_map(|reading| &mut reading.floors).for_each(|floor| floor.count = 19);
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
        floors[0].floors.iter_mut().for_each(|floor| floor.count = 20);
        only("below-floor", &record, &floors);
    }

    #[test]
    fn a_wake_on_the_same_core_faster_than_a_switch_is_below_its_floor() {
        let (mut record, floors) = sane();
        record.cell.placement.cpus = Some([1, 1]);
        record.sides[0].cpus = vec![1, 1];
        replace(&mut record, Quantity::Wake, &sample::histogram(600.0, 1000));
        only("below-floor", &record, &floors);
    }

    #[test]
    fn a_surely_blocked_wake_faster_than_the_machine_wakes_is_below_its_floor() {
        let (mut record, floors) = sane();
        record.cell.timing = Timing::Blocked;
        record.tally.proven_asleep = record.tally.sent;
        replace(&mut record, Quantity::Wake, &sample::histogram(1_000.0, 1000));
        only("below-floor", &record, &floors);
    }

    #[test]
    fn awake_before_the_call_means_clocks_out_of_step() {
        let (mut record, _) = sane();
        let mut wake = sample::histogram(8000.0, 999);
        wake.record(0);
        replace(&mut record, Quantity::Wake, &wake);
        assert_eq!(broken(&record, &[], 0.0), ["before-its-cause"]);
    }

    #[test]
    fn a_latency_of_the_machines_uptime_is_longer_than_the_run() {
        // fio 3.33 printed 2 309 370 ms for a run of one second.
        let (mut record, floors) = sane();
        let mut wake = sample::histogram(8000.0, 999);
        wake.record(2_309_370_000_000_000);
        replace(&mut record, Quantity::Wake, &wake);
        only("longer-than-run", &record, &floors);
    }

    #[test]
    fn round_trips_that_add_up_to_more_than_the_run_are_longer_than_it() {
        let (mut record, floors) = sane();
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(60_000.0, 1000));
        only("longer-than-run", &record, &floors);
    }

    #[test]
    fn more_cpu_time_than_the_run_took_is_longer_than_it() {
        let (mut record, floors) = sane();
        record.sides[1].system_ns = record.sides[1].window_ns * 2;
        only("longer-than-run", &record, &floors);
    }

    #[test]
    fn blocking_without_a_switch_never_slept() {
        let (mut record, floors) = sane();
        record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
        only("never-slept", &record, &floors);
        // The same waits as polling are as they should be.
        record.cell.wait = WaitPolicy::Spin;
        record.surroundings.interrupts.clear();
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    #[test]
    fn surely_blocked_needs_proof_for_nearly_every_wake() {
        let (mut record, floors) = sane();
        record.cell.timing = Timing::Blocked;
        record.tally.proven_asleep = 950;
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
        record.tally.proven_asleep = 850;
        only("never-slept", &record, &floors);
    }

    #[test]
    fn polling_that_sleeps_or_is_woken_by_interrupts_is_no_polling() {
        // fio accepted polled I/O on a device without poll queues and measured interrupts.
        let (mut record, floors) = sane();
        record.cell.wait = WaitPolicy::Spin;
        assert_eq!(broken(&record, &floors, 10.0), ["poll-took-interrupts"; 2]);
        record.sides.iter_mut().for_each(|side| side.voluntary_switches = 3);
        only("poll-took-interrupts", &record, &floors);
    }

    #[test]
    fn a_minimum_on_the_grid_of_a_double_is_the_clocks() {
        // Seconds times 1e9 plus nanoseconds in a double: readings differ by 0, 256 or 512 ns.
        let (mut record, floors) = sane();
        let mut trip = Histogram::new();
        for sample in 0..1000_u64 {
            trip.record([256_000, 512_000, 512_000, 768_000][sample as usize % 4]);
        }
        replace(&mut record, Quantity::RoundTrip, &trip);
        only("clock-grid", &record, &floors);
    }

    #[test]
    fn a_minimum_of_two_known_steps_is_the_clocks_and_of_ten_is_not() {
        let (record, floors) = sane();
        assert_eq!(broken(&record, &floors, 6_000.0), ["clock-grid", "clock-grid"]);
        assert_eq!(broken(&record, &floors, 800.0), [""; 0]);
    }

    #[test]
    fn a_fine_grid_under_a_long_time_is_no_fault() {
        let (mut record, floors) = sane();
        let mut trip = Histogram::new();
        for sample in 0..1000_u64 {
            trip.record(16_000_000 + sample % 5 * 100_000);
        }
        replace(&mut record, Quantity::RoundTrip, &trip);
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    #[test]
    fn a_pinned_side_seen_elsewhere_or_moved_is_not_where_it_was_pinned() {
        let (mut record, floors) = sane();
        record.sides[1].cpus = vec![1, 0];
        only("not-where-pinned", &record, &floors);
        record.sides[1].cpus = vec![1, 1];
        record.sides[0].migrations = Some(2);
        only("not-where-pinned", &record, &floors);
        record.cell.placement.cpus = None;
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    #[test]
    fn more_seen_than_sent_disagrees() {
        let (mut record, floors) = sane();
        record.tally.seen = record.tally.sent + 5;
        only("counts-disagree", &record, &floors);
        record.tally.duplicate = 5;
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    /// One lost token once shifted every later stamp, and the figures stood in the table.
    #[test]
    fn a_loss_is_believed_only_of_mechanisms_that_drop() {
        let (mut record, floors) = sane();
        record.tally.lost = 1;
        record.tally.seen -= 1;
        record.series.remove(&Quantity::RoundTrip);
        only("counts-disagree", &record, &floors);
        record.cell.subject = "udp".to_owned();
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
    }

    #[test]
    fn a_trial_in_which_nothing_was_seen_disagrees() {
        let (mut record, floors) = sane();
        record.cell.subject = "udp".to_owned();
        record.tally.lost = record.tally.sent;
        record.tally.seen = 0;
        record.series.clear();
        only("counts-disagree", &record, &floors);
    }

    #[test]
    fn more_samples_than_notifications_disagree() {
        let (mut record, floors) = sane();
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(8_000.0, 1001));
        only("counts-disagree", &record, &floors);
    }

    #[test]
    fn a_load_without_proof_or_with_an_idle_worker_or_an_idle_cpu_was_not_there() {
        use crate::record::load::LoadProof;
        let (mut record, floors) = sane();
        record.cell.load =
            Some(crate::trial::load::Load { kind: "sqrt".to_owned(), workers: 4, pinned: false });
        only("load-was-not-there", &record, &floors);
        let proof = LoadProof {
            fewest_slices: 7,
            busy: std::collections::BTreeMap::from([(0, 1.0), (1, 0.97)]),
            busy_resolution: 0.01,
            ..LoadProof::default()
        };
        record.load = Some(proof.clone());
        assert_eq!(broken(&record, &floors, 10.0), [""; 0]);
        record.load = Some(LoadProof { fewest_slices: 0, ..proof.clone() });
        only("load-was-not-there", &record, &floors);
        let busy = std::collections::BTreeMap::from([(0, 1.0), (1, 0.5)]);
        record.load = Some(LoadProof { busy: busy.clone(), ..proof.clone() });
        only("load-was-not-there", &record, &floors);
        record.load = Some(LoadProof { busy, busy_resolution: 0.2, ..proof });
        assert_eq!(broken(&record, &floors, 10.0), [""; 0], "ticks too coarse to tell prove nothing");
    }
}
