// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long to spin before sleeping: at each gap, the knee of latency and CPU time.
//!
//! Spinning buys latency with CPU time. What it buys is worth it as long as a microsecond of
//! latency costs no more than `worth` microseconds of CPU time; the point of the curve where that
//! ends is its knee, and it is where `latency × worth + CPU time` is least (the marginal rate of
//! substitution of J. Branke, K. Deb, H. Dierolf, M. Osswald, *Finding knees in multi-objective
//! optimization*, PPSN 2004, for a rate that is given and not averaged over).
//!
//! Both are means per notification, so that they add up: the wake, and the CPU time of the waiter
//! with what the notifier spends in its call. What the notifier spends to keep the gap is the
//! harness's and does not count.

use std::collections::BTreeMap;

use super::by_block::{beside, together};
use super::conditions::other_conditions;
use super::hung::hung;
use super::looks;
use super::ratio::{Ratio, Standing};
use super::slices::{Apart, FEWEST_PAIRS, Levels, Sample};
use super::verdict::{Least, Reason};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Until, WaitPolicy};
use doorbell_results::record::question::By;
use doorbell_results::record::{Quantity, Record, ResultFile, Variant};

/// Ways that cost the same within this share are as good as each
/// other: the next longer spin costs more than that.
const RELEVANT: f64 = 0.1;

#[derive(Debug, Clone, PartialEq)]
pub struct Spun {
    pub subject: String,
    pub placement: Placement,
    /// How many microseconds of CPU time a microsecond of latency is worth.
    pub worth: f64,
    /// Each gap, the shortest first.
    pub gaps: Vec<Gap>,
    /// Configurations one way that are not among them: in what their
    /// conditions are others, and how many.
    pub left_out: BTreeMap<String, usize>,
    /// What the harness itself adds to a round trip, nanoseconds.
    pub harness_ns: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Nanoseconds between notifications.
    pub gap_ns: u64,
    /// The ways to wait, the best first.
    pub ways: Vec<WaitCost>,
    /// What to do; of ways that cost the same, the one that spins least.
    pub choice: Result<WaitPolicy, Reason>,
}

/// One way to wait at one gap.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitCost {
    pub wait: WaitPolicy,
    /// Mean wake of all blocks, nanoseconds.
    pub wake_ns: f64,
    /// The [level](Levels::level) of the blocks' medians, and the 99th percentile of all wakes,
    /// nanoseconds; the second is no less.
    pub percentiles_ns: [f64; 2],
    /// CPU time of a wake-up, nanoseconds: see `Variant::cpu_ns_per_wake`.
    pub cpu_ns: f64,
    /// The [level](Levels::level) of what it costs in each block,
    /// nanoseconds of CPU time: what `behind` is a ratio of.
    pub cost_ns: f64,
    /// The cost as a multiple of the best one's; none of the best,
    /// and where there are too few blocks.
    pub behind: Option<Ratio>,
    /// Against the best, by the cost.
    pub standing: Standing,
    /// Trials with figures, and notifications in them.
    pub trials: usize,
    pub seen: u64,
    /// Trials that met interference to the end.
    pub interfered: usize,
}

impl Gap {
    pub fn chosen(&self) -> Option<&WaitCost> {
        self.ways.iter().find(|way| self.choice == Ok(way.wait))
    }

    /// How many times as much as the least the choice could cost,
    /// where it was not shown to cost the same.
    pub fn at_most(&self) -> Option<f64> {
        let chosen = self.chosen().filter(|way| way.standing == Standing::Inconclusive)?;
        chosen.behind.map(|ratio| ratio.high)
    }
}

/// One block's figures of one way to wait.
struct Trial {
    wake_ns: f64,
    cpu_ns: f64,
}

/// What `result` says, if a microsecond of latency is worth `worth` of CPU time; none if it has no
/// one-way trials without a time-out.
pub fn spin(result: &ResultFile, worth: f64) -> Option<Spun> {
    let variants = result.variants();
    let one_way = |variant: &&Variant| variant.configuration.pattern.one_way() && !variant.is_harness();
    let first = variants.iter().find(one_way)?.configuration;
    let mut gaps = BTreeMap::<u64, Vec<&Variant>>::new();
    let mut left_out = BTreeMap::new();
    for variant in variants.iter().filter(one_way) {
        // Neither a spin nor a sleep until the notification comes.
        let timed =
            matches!(variant.configuration.wait, WaitPolicy::Timeout { .. }).then(|| TIMED.to_owned());
        let common = || other_conditions(&whatever_gap(variant.configuration), &whatever_gap(first));
        let at_this_gap = || {
            let first = gaps.get(&variant.configuration.pattern.gap_ns())?.first()?;
            other_conditions(&whatever_wait(variant.configuration), &whatever_wait(first.configuration))
        };
        match timed.or_else(common).or_else(at_this_gap) {
            Some(conditions) => *left_out.entry(conditions).or_default() += 1,
            None => gaps.entry(variant.configuration.pattern.gap_ns()).or_default().push(variant),
        }
    }
    if gaps.is_empty() {
        return None;
    }
    let harness = variants.iter().find(|variant| variant.is_harness());
    let harness = harness.map(|variant| variant.medians_ns(Quantity::RoundTrip));
    Some(Spun {
        subject: first.subject.clone(),
        placement: first.placement.clone(),
        worth,
        left_out,
        gaps: gaps
            .iter()
            .map(|(gap_ns, variants)| {
                gap(*gap_ns, variants, worth, looks::error(&result.plan) / gaps.len() as f64)
            })
            .collect(),
        harness_ns: harness.and_then(|medians| super::statistics::median(&medians)),
    })
}

/// Why configurations are left out that wait with a time-out.
const TIMED: &str = "which wait with a time-out";

/// A configuration in which the way to wait is no matter: what is compared.
fn whatever_wait(configuration: &Configuration) -> Configuration {
    Configuration { wait: WaitPolicy::Block, ..configuration.clone() }
}

/// And neither is the gap, nor the window, which goes by it: what one run has in common.
fn whatever_gap(configuration: &Configuration) -> Configuration {
    Configuration {
        pattern: Pattern::OneWay { gap_ns: 0 },
        until: Until::default(),
        ..whatever_wait(configuration)
    }
}

fn gap(gap_ns: u64, variants: &[&Variant], worth: f64, error: f64) -> Gap {
    let trials: Vec<BTreeMap<u32, Trial>> = variants
        .iter()
        .map(|variant| variant.usable().filter_map(|record| Some((record.block, trial(record)?))).collect())
        .collect();
    let cost = |trial: &Trial| trial.wake_ns * worth + trial.cpu_ns;
    let costs: Vec<Sample> = trials
        .iter()
        .map(|trials| trials.iter().map(|(block, trial)| (*block, cost(trial))).collect())
        .collect();
    let levels = Levels::of_blocks(&costs);
    let ranked = levels.ranked(0..variants.len());
    let order: Vec<usize> = ranked.into_iter().map(|(variant, _)| variant).collect();
    let Some(&best) = order.first() else {
        return Gap { gap_ns, ways: Vec::new(), choice: Err(Reason::NoFigures) };
    };
    // Which is the best is chosen from the same figures: all pairs share the error.
    let each = error / (order.len() * (order.len() - 1) / 2).max(1) as f64;
    let middles = together(variants, Quantity::Wake, By::P50);
    let behind = |index: usize| levels.apart(best, index, each).filter(|_| index != best).map(Apart::ratio);
    let ways: Vec<WaitCost> = order
        .iter()
        .filter_map(|&index| {
            let variant = variants[index];
            let p50_ps = (middles.level(index)? * 1e3).round() as u64;
            let percentiles_ps = beside(variant, Quantity::Wake, [0.5, 0.99], (0, p50_ps))?;
            Some(WaitCost {
                wait: variant.configuration.wait,
                wake_ns: variant.histogram(Quantity::Wake)?.mean() / 1e3,
                percentiles_ns: percentiles_ps.map(|ps| ps as f64 / 1e3),
                cpu_ns: variant.cpu_ns_per_wake()?,
                cost_ns: levels.level(index)?,
                behind: behind(index),
                standing: match behind(index) {
                    _ if index == best => Standing::Same { within: 0.0 },
                    Some(ratio) => ratio.behind(RELEVANT),
                    None => Standing::Inconclusive,
                },
                trials: trials[index].len(),
                seen: variant.tally().seen,
                interfered: variant.usable().filter(|record| record.had_interference()).count(),
            })
        })
        .collect();
    let choice = match variants.iter().find_map(|variant| hung(variant)) {
        Some(hung) => Err(hung),
        None => choose(&ways, gap_ns),
    };
    Gap { gap_ns, ways, choice }
}

fn trial(record: &Record) -> Option<Trial> {
    let wake = record.series.get(&Quantity::Wake)?;
    let (cpu_ns, _) = record.cpu_per_wake()?;
    (wake.mean_ns > 0.0 && cpu_ns > 0.0).then_some(Trial { wake_ns: wake.mean_ns, cpu_ns })
}

/// Of what costs the same as the best the one that spins least: to sleep, else the shortest spin.
/// Nothing where one that spins less may cost the same or more; but where all that may be the best
/// outlast the gap, the shortest of them, for until the notification comes they do the
/// same; and where all of them end before it, to sleep at once, for the others sleep as well and
/// have spun besides. For the same reason none of them is open where the best outlasts the gap and
/// to sleep at once takes longer.
fn choose(ways: &[WaitCost], gap_ns: u64) -> Result<WaitPolicy, Reason> {
    if ways.len() < 2 {
        return Err(Reason::OneWait);
    }
    let trials = ways.iter().map(|way| way.trials).min().unwrap_or(0);
    if trials < FEWEST_PAIRS {
        return Err(Reason::FewTrials { trials, takes: FEWEST_PAIRS });
    }
    let spins_ns = |wait: &WaitPolicy| match wait {
        WaitPolicy::SpinThenBlock { spin_ns } => *spin_ns,
        WaitPolicy::Spin => u64::MAX,
        WaitPolicy::Block | WaitPolicy::Timeout { .. } => 0,
    };
    let sleeps_longer =
        ways.iter().any(|way| way.wait == WaitPolicy::Block && way.standing == Standing::Slower);
    let vain = sleeps_longer && ways.first().is_some_and(|best| spins_ns(&best.wait) >= gap_ns);
    let open =
        ways.iter().filter(|way| way.standing != Standing::Slower && !(vain && spins_ns(&way.wait) < gap_ns));
    let outlast = open.clone().all(|way| spins_ns(&way.wait) >= gap_ns);
    let in_vain = open.clone().all(|way| spins_ns(&way.wait) < gap_ns);
    // What leads by chance is no answer while a spin that would hit
    // could cost less by as much as matters.
    let may_cost_less = |way: &&WaitCost| {
        way.standing == Standing::Inconclusive
            && spins_ns(&way.wait) >= gap_ns
            && way.behind.is_none_or(|ratio| ratio.low < 1.0 / (1.0 + RELEVANT))
    };
    let rival = open.clone().find(may_cost_less);
    let could_cost =
        |way: &WaitCost, what| Err(Reason::CouldCost { wait: way.wait, ratio: way.behind, what });
    match open.min_by_key(|way| spins_ns(&way.wait)) {
        Some(way) if outlast && matches!(way.wait, WaitPolicy::SpinThenBlock { .. }) => Ok(way.wait),
        Some(way) if in_vain && way.wait == WaitPolicy::Block => Ok(way.wait),
        Some(way) if way.standing == Standing::Inconclusive => could_cost(way, Least::Least),
        Some(way) => match rival.filter(|rival| rival.wait != way.wait) {
            Some(rival) => could_cost(rival, Least::Leading),
            None => Ok(way.wait),
        },
        None => Ok(WaitPolicy::Block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Scheduler, Timing, Trace};
    use doorbell_results::record::sample;

    /// What a waiter costs whose sleep takes 8 µs of latency and 6 µs
    /// of CPU time, and who looks every 100 ns.
    fn model(gap_ns: u64, wait: WaitPolicy) -> (f64, f64) {
        let slept = |spun: f64| (8000.0, 6000.0 + spun);
        let hit = (100.0, gap_ns as f64 + 100.0);
        match wait {
            WaitPolicy::Spin => hit,
            WaitPolicy::SpinThenBlock { spin_ns } if spin_ns > gap_ns => hit,
            WaitPolicy::SpinThenBlock { spin_ns } => slept(spin_ns as f64),
            _ => slept(0.0),
        }
    }

    fn result(gaps_ns: &[u64], noise: f64) -> ResultFile {
        let waits = [5, 12, 60].map(|us| WaitPolicy::SpinThenBlock { spin_ns: us * 1000 });
        let configurations: Vec<Configuration> = gaps_ns
            .iter()
            .flat_map(|&gap_ns| {
                let all = [WaitPolicy::Block, WaitPolicy::Spin].into_iter().chain(waits);
                all.map(move |wait| Configuration {
                    pattern: Pattern::OneWay { gap_ns },
                    wait,
                    ..sample::configuration("futex")
                })
            })
            .collect();
        let mut result = sample::result(&configurations, 8, |_, _| 16_000.0);
        let mut random = fastrand::Rng::with_seed(3);
        for record in &mut result.records {
            let (wake, cpu) = model(record.configuration.pattern.gap_ns(), record.configuration.wait);
            let factor = (noise * (random.f64() - 0.5)).exp();
            record.series.insert(Quantity::Wake, sample::series(wake * factor, 1000));
            record.series.insert(Quantity::Notify, sample::series(500.0, 1000));
            record.sides[1].side = "waiter".to_owned();
            record.sides[1].user_ns = (cpu * factor * 1000.0) as u64;
            record.sides[1].system_ns = 0;
        }
        result
    }

    /// Puts other times in the place of each wake, nanoseconds; nothing where there are none.
    fn rewake(
        mut result: ResultFile,
        mut ns: impl FnMut(WaitPolicy, &mut fastrand::Rng) -> Option<f64>,
    ) -> ResultFile {
        let mut random = fastrand::Rng::with_seed(9);
        for record in &mut result.records {
            if let Some(ns) = ns(record.configuration.wait, &mut random) {
                record.series.insert(Quantity::Wake, sample::series(ns, 1000));
            }
        }
        result
    }

    /// A time around `ns` that is off by chance, the further the greater `spread` is.
    fn around(ns: f64, spread: f64, random: &mut fastrand::Rng) -> f64 {
        ns * (spread * (random.f64() - 0.5)).exp()
    }

    fn choices(result: &ResultFile, worth: f64) -> Vec<Result<WaitPolicy, Reason>> {
        spin(result, worth).unwrap().gaps.into_iter().map(|gap| gap.choice).collect()
    }

    #[test]
    fn a_short_gap_is_spun_through_and_a_long_one_slept_through() {
        let result = result(&[10_000, 1_000_000], 0.02);
        assert_eq!(
            choices(&result, 1.0),
            [Ok(WaitPolicy::SpinThenBlock { spin_ns: 12_000 }), Ok(WaitPolicy::Block)]
        );
        let spun = spin(&result, 1.0).unwrap();
        let best = &spun.gaps[0].ways[0];
        assert!((best.cost_ns / 10_700.0 - 1.0).abs() < 0.02, "{best:?}");
        let ways = spun.gaps[0].ways[1..].iter();
        assert!(ways.clone().all(|way| (way.standing != Standing::Slower) == (way.cost_ns < 11_000.0)));
    }

    /// A change of a configuration, and what it is a change of.
    type Change = (fn(&mut Configuration), &'static str);

    /// Variants of other sizes, schedulers or windows were compared
    /// with those that wait in another way.
    #[test]
    fn only_variants_that_differ_in_nothing_but_the_wait_are_compared() {
        let alone = result(&[10_000], 0.02);
        let ways = |result: &ResultFile| spin(result, 1.0).unwrap().gaps[0].ways.len();
        assert!(spin(&alone, 1.0).unwrap().left_out.is_empty());
        let changes: [Change; 7] = [
            (|configuration| configuration.size = 64, "message"),
            (|configuration| configuration.scheduler = Scheduler::Fifo, "scheduler"),
            (|configuration| configuration.timing = Timing::Blocked, "timing"),
            (|configuration| configuration.until = Until::count(7), "window"),
            (|configuration| configuration.trace = Some(Trace::Stages), "trace"),
            (|configuration| configuration.injected_slowdown_ppm = Some(50_000), "slowdown on purpose"),
            (|configuration| configuration.latency_limit_us = Some(0), "latency limit"),
        ];
        for (change, axis) in changes {
            let mut both = alone.clone();
            let mut other = result(&[10_000], 0.02);
            sample::configurations(&mut other).for_each(change);
            both.plan.configurations.extend(other.plan.configurations);
            both.records.extend(other.records);
            assert_eq!((ways(&both), ways(&alone)), (5, 5), "{axis}");
            // Nothing was said of them.
            let left_out = [(format!("measured under other conditions: {axis}"), 5)];
            assert_eq!(spin(&both, 1.0).unwrap().left_out, left_out.into());
        }
    }

    #[test]
    fn waits_with_a_time_out_are_left_out_and_that_is_said() {
        let mut timed = result(&[10_000], 0.02);
        let wait = WaitPolicy::Timeout { timeout_ns: 1_000_000 };
        let spins = sample::configurations(&mut timed).filter(|one| one.wait == WaitPolicy::Spin);
        spins.for_each(|one| one.wait = wait);
        let spun = spin(&timed, 1.0).unwrap();
        assert_eq!((spun.gaps[0].ways.len(), &spun.left_out), (4, &BTreeMap::from([(TIMED.to_owned(), 1)])));
        timed.plan.configurations.retain(|configuration| configuration.wait == wait);
        timed.records.retain(|record| record.configuration.wait == wait);
        assert_eq!(spin(&timed, 1.0), None);
    }

    #[test]
    fn what_latency_is_worth_moves_the_knee() {
        let result = result(&[10_000, 50_000], 0.02);
        assert_eq!(choices(&result, 0.1), [Ok(WaitPolicy::Block), Ok(WaitPolicy::Block)]);
        assert_eq!(
            choices(&result, 20.0),
            [
                Ok(WaitPolicy::SpinThenBlock { spin_ns: 12_000 }),
                Ok(WaitPolicy::SpinThenBlock { spin_ns: 60_000 })
            ]
        );
    }

    #[test]
    fn the_waiter_sleeps_where_that_was_shown_to_cost_as_much_and_not_where_nothing_was_shown() {
        // At 13.5 µs spinning costs 0.1 + 13.6 + 0.5, and sleeping 8 + 6 + 0.5.
        assert_eq!(choices(&result(&[13_500], 0.02), 1.0), [Ok(WaitPolicy::Block)]);
        let open = &choices(&result(&[12_600], 3.0), 1.0)[0];
        assert!(
            matches!(open, Err(why) if why.to_string().contains("to sleep at once could cost")),
            "{open:?}"
        );
    }

    /// "For gaps of 5 µs nothing can be told", where to sleep cost
    /// three times as much as any spin that outlasts the gap.
    #[test]
    fn where_only_those_that_outlast_the_gap_are_open_the_shortest_of_them_is_chosen() {
        let outlasts =
            |wait| matches!(wait, WaitPolicy::Spin | WaitPolicy::SpinThenBlock { spin_ns: 12_000 | 60_000 });
        let result = rewake(result(&[5_000], 0.02), |wait, random| {
            Some(if outlasts(wait) { around(5_000.0, 0.5, random) } else { 15_000.0 })
        });
        let spun = spin(&result, 1.0).unwrap();
        let gap = &spun.gaps[0];
        assert!(gap.ways.iter().any(|way| way.standing == Standing::Inconclusive), "{gap:?}");
        assert!(matches!(gap.choice, Ok(WaitPolicy::SpinThenBlock { .. })), "{gap:?}");
    }

    #[test]
    fn where_only_those_that_end_before_the_notification_are_open_it_is_to_sleep_at_once() {
        let result = rewake(result(&[100_000], 0.02), |wait, random| {
            Some(around(20_000.0, 1.2, random)).filter(|_| wait != WaitPolicy::Spin)
        });
        let spun = spin(&result, 1.0).unwrap();
        let gap = &spun.gaps[0];
        let open = |way: &&WaitCost| way.standing == Standing::Inconclusive;
        assert!(gap.ways.iter().filter(open).count() > 0, "{gap:?}");
        assert_eq!(gap.choice, Ok(WaitPolicy::Block), "{gap:?}");
    }

    /// "For gaps of 20 µs nothing can be told: to spin 2 µs could cost 1.00 to 2.27 times the
    /// least", where to sleep at once cost 1.15 times as much and more.
    #[test]
    fn a_spin_that_ends_before_the_notification_is_not_open_where_to_sleep_at_once_takes_longer() {
        let short = WaitPolicy::SpinThenBlock { spin_ns: 5_000 };
        let result = rewake(result(&[10_000], 0.02), |wait, random| {
            Some(around(6_000.0, 5.0, random)).filter(|_| wait == short)
        });
        let spun = spin(&result, 1.0).unwrap();
        let gap = &spun.gaps[0];
        let way = |wait| gap.ways.iter().find(|way| way.wait == wait).unwrap();
        assert_eq!(way(short).standing, Standing::Inconclusive);
        assert_eq!(way(WaitPolicy::Block).standing, Standing::Slower);
        assert_eq!(gap.choice, Ok(WaitPolicy::SpinThenBlock { spin_ns: 12_000 }), "{gap:?}");
    }

    /// "For gaps of 10 µs sleep at once", and status 0, beside "spin 1.25 (0.01 to 160)
    /// inconclusive": on a busy machine to sleep led by chance.
    #[test]
    fn what_leads_is_no_answer_while_a_spin_that_hits_may_cost_a_tenth() {
        let result = rewake(result(&[10_000], 0.02), |wait, random| {
            Some(match wait {
                WaitPolicy::Block => 20_000.0,
                WaitPolicy::SpinThenBlock { spin_ns: 5_000 } => 80_000.0,
                _ => around(80_000.0, 6.0, random),
            })
        });
        let spun = spin(&result, 1.0).unwrap();
        let gap = &spun.gaps[0];
        assert_eq!(gap.ways[0].wait, WaitPolicy::Block, "{gap:?}");
        assert!(gap.ways.iter().any(|way| way.behind.is_some_and(|ratio| ratio.low < 0.9)), "{gap:?}");
        assert!(matches!(&gap.choice, Err(why) if why.to_string().contains("times what leads")), "{gap:?}");
    }

    /// "136 least" above "94.1, 1.82 times as much": the one was the mean of all samples, the other
    /// a ratio of levels. And p50 stood above p99, where a block that was held up had few
    /// samples: it weighs as much as any in the level, and nothing in a percentile of all.
    #[test]
    fn figures_stand_in_the_order_of_their_ratios_and_percentiles_rise() {
        let mut result = result(&[10_000], 0.02);
        for record in result.records.iter_mut().filter(|record| record.block % 2 == 0) {
            let held_up =
                if record.configuration.wait == WaitPolicy::Block { 4_000_000.0 } else { 400_000.0 };
            record.series.insert(Quantity::Wake, sample::series(held_up, 2));
        }
        let spun = spin(&result, 1.0).unwrap();
        let ways = &spun.gaps[0].ways;
        for way in ways {
            assert!(way.percentiles_ns[0] <= way.percentiles_ns[1], "{way:?}");
            let ratio = way.behind.map_or(1.0, |ratio| ratio.estimate);
            assert!((way.cost_ns / ways[0].cost_ns / ratio - 1.0).abs() < 1e-9, "{ways:?}");
        }
    }

    #[test]
    fn a_wait_that_did_not_end_leaves_its_gap_open() {
        let mut result = result(&[10_000], 0.02);
        result.records[0].outcome = doorbell_results::record::Outcome::Hung { last_seen: Vec::new() };
        assert!(matches!(&choices(&result, 1.0)[0], Err(why) if why.to_string().contains("did not end")));
    }

    #[test]
    fn too_few_trials_tell_nothing() {
        let mut few = result(&[10_000], 0.02);
        few.records.retain(|record| record.block < 3);
        assert!(matches!(&choices(&few, 1.0)[0], Err(why) if why.to_string().contains("--blocks")));
        assert_eq!(spin(&sample::result(&[sample::configuration("futex")], 4, |_, _| 16_000.0), 1.0), None);
    }
}
