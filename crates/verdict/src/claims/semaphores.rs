// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of a study of semaphores in place of sockets: one sender, 20 to 2000 receivers.

use std::cmp::Ordering::{Greater, Less};

use super::{Claim, Decision, Source, against};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Variant};

use Decision::{CannotTell, Confirmed, Contradicted};

/// The part that each fan-out plays in the claims.
pub const PARTS: [(&str, &str); 4] = [
    ("sem-posix-named", NAMED),
    ("sem-sysv", SYSTEM_V),
    ("sem-sysv-many", SYSTEM_V),
    ("unix-dgram", DATAGRAM),
];

pub static SOURCE: Source = Source {
    name: "semaphores",
    about: "a study, in Chinese, of semaphores as notification in place of sockets: one sender, 20 to 2000 receivers, \
            POSIX named and System V semaphores on 12 CPUs under CentOS 7.9; its own tables are lost",
    claims: &[
        Claim {
            row: Some(1),
            says: "Linux: a post costs 1 to 2 µs in every scenario",
            judge: post_costs_one_to_two,
        },
        Claim {
            row: Some(2),
            says: "Linux: 2000 named POSIX semaphores, full load, unpinned: notified after more than 157 µs on average",
            judge: |result| mean_beyond(result, false, 157.0),
        },
        Claim {
            row: Some(3),
            says: "Linux: the same pinned: less than 7 µs",
            judge: |result| mean_beyond(result, true, 7.0),
        },
        Claim {
            row: None,
            says: "Linux: all else equal, pinning lowers the mean clearly",
            judge: pinning_lowers,
        },
        Claim {
            row: Some(4),
            says: "Linux: below 10 µs on average in every pinned scenario but 2000 System V semaphores with a time-out of \
                   100 ms",
            judge: pinned_is_single_digit,
        },
        Claim {
            row: None,
            says: "Linux: some scenarios are quicker under full load than on the idle machine",
            judge: load_helps,
        },
        Claim {
            row: None,
            says: "one semaphore for all receivers wakes some twice and others not at all",
            judge: one_for_all_misses,
        },
        Claim {
            row: Some(5),
            says: "Linux: the socket transport in use takes several hundred µs, pinned and with huge pages",
            judge: other_transport,
        },
        Claim {
            row: None,
            says: "under these conditions: rounds 1 s apart, 20 of them; a load of 20 processes that outlasts the test by 30 s, on 12 \
                   CPUs at 100 %; from 20 to 2000 semaphores, without time-out and with one of 100 ms",
            judge: conditions,
        },
        Claim {
            row: Some(14),
            says: "Linux: 128 System V semaphore sets by default (CentOS 7.9), too few for a set each",
            judge: default_sets,
        },
        Claim {
            row: Some(15),
            says: "Linux: named POSIX semaphores meet no limit (of 32,000) up to 2000",
            judge: no_limit_met,
        },
    ],
};

/// One variant as the study would have named it.
#[derive(Debug, Clone)]
struct Scene<'result> {
    configuration: &'result Configuration,
    /// What its subject is to the study.
    part: &'result str,
    receivers: u32,
    pinned: bool,
    /// Mean wake-up latency, microseconds; none where wakes belong to no post.
    wake_us: Option<f64>,
    /// Mean cost of a post, microseconds.
    post_us: f64,
}

const NAMED: &str = "named POSIX semaphores";
const SYSTEM_V: &str = "System V semaphores";
const DATAGRAM: &str = "datagrams";
const HUNDRED_MS: WaitPolicy = WaitPolicy::Timeout { timeout_ns: 100_000_000 };

fn is_system_v(scene: &Scene) -> bool {
    scene.part == SYSTEM_V
}

fn is_of_the_study(scene: &Scene) -> bool {
    scene.part == NAMED || is_system_v(scene)
}

fn scenes<'result>(result: &'result ResultFile) -> Vec<Scene<'result>> {
    let scene = |variant: Variant<'result>| {
        let receivers = variant.configuration.pattern.receivers()?;
        let mean = |quantity| Some(variant.histogram(quantity)?.mean() / 1e6);
        Some(Scene {
            configuration: variant.configuration,
            part: result.plan.parts.get(&variant.configuration.subject).map_or("", String::as_str),
            receivers,
            pinned: variant.configuration.placement.relation != Pinning::Unpinned.name(),
            wake_us: mean(Quantity::Wake),
            post_us: mean(Quantity::Notify)?,
        })
    };
    result.variants().into_iter().filter_map(scene).collect()
}

fn of_the_study(result: &ResultFile) -> Vec<Scene<'_>> {
    scenes(result).into_iter().filter(is_of_the_study).collect()
}

fn named(scene: &Scene) -> String {
    let wait = match scene.configuration.wait {
        WaitPolicy::Timeout { timeout_ns } => format!(", time-out {} ms", timeout_ns / 1_000_000),
        _ => String::new(),
    };
    let load = if scene.configuration.load.is_some() { "loaded" } else { "idle" };
    let pinned = if scene.pinned { "pinned" } else { "unpinned" };
    format!("{} x {}{wait}, {pinned}, {load}", scene.configuration.subject, scene.receivers)
}

/// What of the whole table (named and System V, 20 and 2000, both waits, pinned or not, idle or full) is missing.
fn missing(scenes: &[Scene], of_interest: impl Fn(bool, u32, WaitPolicy, bool) -> bool) -> usize {
    let mut missing = 0;
    for system_v in [false, true] {
        for receivers in [20, 2000] {
            for wait in [WaitPolicy::Block, HUNDRED_MS] {
                for pinned in [false, true] {
                    for loaded in [false, true] {
                        let there = scenes.iter().any(|scene| {
                            is_system_v(scene) == system_v
                                && scene.receivers == receivers
                                && scene.configuration.wait == wait
                                && scene.pinned == pinned
                                && scene.configuration.load.is_some() == loaded
                        });
                        if of_interest(system_v, receivers, wait, pinned) && !there {
                            missing += 1;
                        }
                    }
                }
            }
        }
    }
    missing
}

/// A claim about every scene: `outside` are those that break it, `near` those too near to tell.
fn about_all(
    number: usize,
    outside: &[String],
    near: usize,
    missing: usize,
    seen: &str,
) -> (Decision, String) {
    if number == 0 {
        return (CannotTell, "no such scenario was measured".to_owned());
    }
    if let Some(first) = outside.first() {
        return (
            Contradicted,
            format!("{seen}; {} of {number} scenarios break it, such as {first}", outside.len()),
        );
    }
    if near > 0 {
        return (CannotTell, format!("{seen}; {near} of {number} scenarios are too near the bound"));
    }
    if missing > 0 {
        let text = format!(
            "{seen}; it holds in the {number} scenarios measured, and {missing} of the table are missing (--grid)"
        );
        return (CannotTell, text);
    }
    (Confirmed, format!("{seen}, in all {number} scenarios"))
}

/// The least and the greatest, as words.
fn range(values: impl Iterator<Item = f64> + Clone) -> String {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    format!("{least:.2} to {most:.2} µs")
}

fn post_costs_one_to_two(result: &ResultFile) -> (Decision, String) {
    let scenes = of_the_study(result);
    let surely_outside = |scene: &&Scene| {
        against(scene.post_us, 1.0) == Some(Less) || against(scene.post_us, 2.0) == Some(Greater)
    };
    let outside: Vec<String> = scenes
        .iter()
        .filter(surely_outside)
        .map(|scene| format!("{} with {:.2} µs", named(scene), scene.post_us))
        .collect();
    let near = scenes.iter().filter(|scene| !(1.0..=2.0).contains(&scene.post_us)).count() - outside.len();
    let seen = format!("mean cost of a post {}", range(scenes.iter().map(|scene| scene.post_us)));
    about_all(scenes.len(), &outside, near, missing(&scenes, |_, _, _, _| true), &seen)
}

/// 2000 named semaphores under load: above the bound unpinned, below it pinned.
fn mean_beyond(result: &ResultFile, pinned: bool, bound_us: f64) -> (Decision, String) {
    let scenes: Vec<Scene> = of_the_study(result)
        .into_iter()
        .filter(|scene| {
            scene.part == NAMED
                && scene.receivers == 2000
                && scene.pinned == pinned
                && scene.configuration.load.is_some()
        })
        .collect();
    let means: Vec<f64> = scenes.iter().filter_map(|scene| scene.wake_us).collect();
    if means.is_empty() {
        let how = if pinned { "pinned" } else { "unpinned" };
        return (CannotTell, format!("2000 named semaphores under load, {how}, were not measured"));
    }
    let seen = format!("mean {} in {} scenarios", range(means.iter().copied()), means.len());
    let wanted = if pinned { Less } else { Greater };
    let verdicts: Vec<_> = means.iter().map(|mean| against(*mean, bound_us)).collect();
    if verdicts.iter().all(|verdict| *verdict == Some(wanted)) {
        (Confirmed, seen)
    } else if verdicts.iter().all(|verdict| *verdict == Some(wanted.reverse())) {
        (Contradicted, seen)
    } else {
        (CannotTell, format!("{seen}: on both sides of the bound or too near it"))
    }
}

/// Pairs of scenes that differ in `apart` alone; the first of a pair is the one for which `first` holds.
fn pairs<'result>(
    scenes: &[Scene<'result>],
    first: impl Fn(&Scene) -> bool,
    same: impl Fn(&Scene, &Scene) -> bool,
) -> Vec<(Scene<'result>, Scene<'result>)> {
    let (ones, others): (Vec<_>, Vec<_>) = scenes.iter().cloned().partition(|scene| first(scene));
    ones.iter()
        .flat_map(|one| {
            others.iter().filter(|other| same(one, other)).map(|other| (one.clone(), other.clone()))
        })
        .collect()
}

fn same_but_pinning(a: &Scene, b: &Scene) -> bool {
    let placement = b.configuration.placement.clone();
    Configuration { placement, ..a.configuration.clone() } == *b.configuration
}

fn same_but_load(a: &Scene, b: &Scene) -> bool {
    let load = b.configuration.load.clone();
    Configuration { load, ..a.configuration.clone() } == *b.configuration
}

/// Ratio of the means of a pair.
fn ratio((a, b): &(Scene, Scene)) -> Option<f64> {
    Some(a.wake_us? / b.wake_us?)
}

fn pinning_lowers(result: &ResultFile) -> (Decision, String) {
    let pairs = pairs(&of_the_study(result), |scene| scene.pinned, same_but_pinning);
    let ratios: Vec<f64> = pairs.iter().filter_map(ratio).collect();
    if ratios.is_empty() {
        return (CannotTell, "no scenario was measured both pinned and unpinned".to_owned());
    }
    let lower = ratios.iter().filter(|ratio| against(**ratio, 1.0) == Some(Less)).count();
    let higher = ratios.iter().filter(|ratio| against(**ratio, 1.0) == Some(Greater)).count();
    let seen = format!(
        "pinned, the mean is {} times the unpinned one; lower in {lower} of {} pairs of scenarios, higher in {higher}",
        range(ratios.iter().copied()).replace(" µs", ""),
        ratios.len()
    );
    match (lower, higher) {
        (_, 1..) => (Contradicted, seen),
        (lower, 0) if lower == ratios.len() => (Confirmed, seen),
        _ => (CannotTell, seen),
    }
}

fn pinned_is_single_digit(result: &ResultFile) -> (Decision, String) {
    let excepted = |system_v: bool, receivers: u32, wait: WaitPolicy| {
        system_v && receivers == 2000 && wait == HUNDRED_MS
    };
    let scenes: Vec<Scene> = of_the_study(result)
        .into_iter()
        .filter(|scene| {
            scene.pinned && !excepted(is_system_v(scene), scene.receivers, scene.configuration.wait)
        })
        .collect();
    let means = || scenes.iter().filter_map(|scene| Some((scene, scene.wake_us?)));
    let outside: Vec<String> = means()
        .filter(|(_, mean)| against(*mean, 10.0) == Some(Greater))
        .map(|(scene, mean)| format!("{} with {mean:.1} µs", named(scene)))
        .collect();
    let near = means().filter(|(_, mean)| against(*mean, 10.0).is_none()).count();
    let seen = format!("mean {}", range(means().map(|(_, mean)| mean)));
    let missing =
        missing(&scenes, |system_v, receivers, wait, pinned| pinned && !excepted(system_v, receivers, wait));
    about_all(means().count(), &outside, near, missing, &seen)
}

fn load_helps(result: &ResultFile) -> (Decision, String) {
    let pairs = pairs(&of_the_study(result), |scene| scene.configuration.load.is_some(), same_but_load);
    let ratios: Vec<(f64, &Scene)> = pairs.iter().filter_map(|pair| Some((ratio(pair)?, &pair.0))).collect();
    let Some((best, scene)) = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return (CannotTell, "no scenario was measured both idle and under load".to_owned());
    };
    let quicker = ratios.iter().filter(|(ratio, _)| against(*ratio, 1.0) == Some(Less)).count();
    let power = &result.machine.power;
    let states = if power.idle_states.is_empty() {
        format!(
            "the kernel shows no idle states here (driver {})",
            power.idle_driver.as_deref().unwrap_or("unknown")
        )
    } else {
        let deepest = power.deepest(&result.machine.topology.usable);
        deepest.map_or_else(
            || "no idle state is allowed here".to_owned(),
            |(name, us)| format!("the deepest idle state here, {name}, takes {us} µs to leave"),
        )
    };
    let seen = format!(
        "quicker under load in {quicker} of {} pairs, at best {best:.2} times the idle mean ({}); {states}",
        ratios.len(),
        named(scene)
    );
    (if quicker > 0 { Confirmed } else { Contradicted }, seen)
}

fn one_for_all_misses(result: &ResultFile) -> (Decision, String) {
    let (mut rounds, mut duplicates, mut misses, mut bad) = (0_u64, 0_u64, 0_u64, 0_u64);
    for fanout in result.variants().iter().flat_map(|variant| variant.usable().collect::<Vec<_>>()) {
        let Some(kept) = fanout.fanout.as_ref().map(|fanout| &fanout.rounds) else { continue };
        for (duplicate, miss) in kept.duplicates.iter().zip(&kept.misses) {
            rounds += 1;
            duplicates = duplicates.saturating_add(*duplicate);
            misses = misses.saturating_add(*miss);
            bad += u64::from(*miss > 0 && *duplicate > 0);
        }
    }
    let seen =
        format!("{duplicates} duplicates and {misses} misses in {rounds} rounds; {bad} rounds had both");
    match (rounds, bad) {
        (0, _) => (CannotTell, "sem-posix-for-all was not measured".to_owned()),
        (_, 0) => (CannotTell, format!("{seen}: what did not happen in these rounds may happen in others")),
        _ => (Confirmed, seen),
    }
}

fn other_transport(result: &ResultFile) -> (Decision, String) {
    let datagrams: Vec<f64> = scenes(result)
        .iter()
        .filter(|scene| scene.part == DATAGRAM && scene.pinned)
        .filter_map(|scene| scene.wake_us)
        .collect();
    let beside = if datagrams.is_empty() {
        String::new()
    } else {
        format!(
            "; a Unix datagram to each receiver, pinned, took {} on average",
            range(datagrams.into_iter())
        )
    };
    (CannotTell, format!("that transport is another program's, and no figure is given{beside}"))
}

/// Which of the study's conditions the run kept, and what it had of each.
fn conditions(result: &ResultFile) -> (Decision, String) {
    let (configurations, scenes) = (&result.plan.configurations, scenes(result));
    let gaps = || configurations.iter().map(|configuration| configuration.pattern.gap_ns() / 1_000_000);
    let rounds = || configurations.iter().filter_map(|configuration| configuration.until.count);
    let loads = || configurations.iter().filter_map(|configuration| configuration.load.as_ref());
    let proofs = || result.records.iter().filter_map(|record| record.load.as_ref());
    let cpus = result.machine.topology.usable.len();
    let busy = proofs().filter_map(|proof| proof.least_busy()).map(|(_, share)| share).reduce(f64::min);
    let outlasted = proofs().map(|proof| proof.outlasted_ns).min();
    let of = |receivers| scenes.iter().any(|scene| scene.receivers == receivers);
    let waited = |wait| scenes.iter().any(|scene| scene.configuration.wait == wait);
    let waits = scenes.iter().map(|scene| match scene.configuration.wait {
        WaitPolicy::Timeout { timeout_ns } => format!("time-out {} ms", timeout_ns / 1_000_000),
        WaitPolicy::Block => "no time-out".to_owned(),
        _ => "other".to_owned(),
    });
    let conditions = [
        (gaps().count() > 0 && gaps().all(|gap| gap == 1000), format!("{} ms apart", distinct(gaps()))),
        (
            rounds().count() > 0 && rounds().all(|rounds| rounds >= 20),
            format!("rounds {}", distinct(rounds())),
        ),
        (
            loads().any(|load| load.workers == 20 && load.kind == "sqrt"),
            format!("load {}", distinct(loads().map(|load| format!("{} of {}", load.workers, load.kind)))),
        ),
        (
            outlasted.is_some_and(|ns| ns >= 30_000_000_000),
            format!("which outlasted each trial by {} ms", outlasted.unwrap_or(0) / 1_000_000),
        ),
        (
            cpus == 12 && busy.is_some_and(|share| share > 0.95),
            format!("{cpus} CPUs, the least busy {:.0} % under load", busy.unwrap_or(0.0) * 100.0),
        ),
        (of(20) && of(2000), format!("receivers {}", distinct(scenes.iter().map(|scene| scene.receivers)))),
        (waited(WaitPolicy::Block) && waited(HUNDRED_MS), distinct(waits)),
    ];
    let kept = conditions.iter().filter(|(kept, _)| *kept).count();
    let had: Vec<&str> = conditions.iter().map(|(_, had)| had.as_str()).collect();
    let decision = if kept == conditions.len() { Confirmed } else { CannotTell };
    (decision, format!("{kept} of {} kept; this run: {}", conditions.len(), had.join("; ")))
}

fn distinct<T: Ord + ToString>(values: impl Iterator<Item = T>) -> String {
    let values: std::collections::BTreeSet<T> = values.collect();
    if values.is_empty() {
        return "none".to_owned();
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn default_sets(result: &ResultFile) -> (Decision, String) {
    match result.machine.limits.semaphore_sets {
        Some(128) => (Confirmed, "SEMMNI is 128 here".to_owned()),
        Some(sets) => (CannotTell, format!("SEMMNI is {sets} here, and this is another system")),
        None => (CannotTell, "the kernel does not tell SEMMNI here".to_owned()),
    }
}

fn no_limit_met(result: &ResultFile) -> (Decision, String) {
    let most =
        of_the_study(result).iter().filter(|scene| scene.part == NAMED).map(|scene| scene.receivers).max();
    match most {
        Some(most @ 2000..) => (Confirmed, format!("{most} were made and none refused")),
        Some(most) => (CannotTell, format!("no more than {most} were made")),
        None => (CannotTell, "none were made".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::judge;
    use doorbell_results::configuration::Load;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::configuration::{Placement, Until};
    use doorbell_results::record::fanout::{FanOut, Rounds};
    use doorbell_results::record::{Histogram, Record, Series, sample};

    fn configuration(
        subject: &str,
        receivers: u32,
        wait: WaitPolicy,
        pinned: bool,
        loaded: bool,
    ) -> Configuration {
        let relation = if pinned { "scatter" } else { "unpinned" };
        Configuration {
            pattern: Pattern::FanOut { receivers, interval_ns: 1_000_000_000 },
            wait,
            placement: Placement { relation: relation.to_owned(), cpus: None },
            until: Until::count(20),
            load: loaded.then(|| Load { kind: "sqrt".to_owned(), workers: 20, pinned: false }),
            ..sample::configuration(subject)
        }
    }

    fn record(configuration: Configuration, wake_us: f64, post_us: f64) -> Record {
        let series = |us: f64| {
            let mut histogram = Histogram::new();
            histogram.record_many((us * 1e6) as u64, 100);
            Series::from(&histogram)
        };
        let mut record = sample::record(configuration, 0, 1000.0);
        record.series = [(Quantity::Wake, series(wake_us)), (Quantity::Notify, series(post_us))].into();
        record
    }

    /// A grid whose means are what `wake_us` says.
    fn grid(wake_us: impl Fn(&Configuration) -> f64, post_us: f64) -> ResultFile {
        let mut configurations = Vec::new();
        for subject in ["sem-posix-named", "sem-sysv"] {
            for receivers in [20, 2000] {
                for wait in [WaitPolicy::Block, HUNDRED_MS] {
                    for pinned in [false, true] {
                        for loaded in [false, true] {
                            configurations.push(configuration(subject, receivers, wait, pinned, loaded));
                        }
                    }
                }
            }
        }
        of(configurations.into_iter().map(|configuration| {
            let wake = wake_us(&configuration);
            record(configuration, wake, post_us)
        }))
    }

    fn of(records: impl Iterator<Item = Record>) -> ResultFile {
        let records: Vec<Record> = records.collect();
        let mut result = sample::result(&[], 1, |_, _| 0.0);
        result.plan.claims = Some(SOURCE.name.to_owned());
        result.plan.parts = PARTS.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into();
        result.plan.configurations = records.iter().map(|record| record.configuration.clone()).collect();
        result.records = records;
        result
    }

    fn decision(result: &ResultFile, row: u32) -> Decision {
        let claim = SOURCE.claims.iter().find(|claim| claim.row == Some(row)).unwrap();
        (claim.judge)(result).0
    }

    fn said(result: &ResultFile, words: &str) -> Decision {
        let claim = SOURCE.claims.iter().find(|claim| claim.says.contains(words)).unwrap();
        (claim.judge)(result).0
    }

    /// The machine of the study, as far as its text tells.
    fn as_claimed(configuration: &Configuration) -> f64 {
        let pinned = configuration.placement.relation == "scatter";
        let loaded = configuration.load.is_some();
        match (pinned, loaded) {
            (true, true) => 6.0,
            (true, false) => 8.0,
            (false, true) => 200.0,
            (false, false) => 90.0,
        }
    }

    #[test]
    fn a_machine_like_the_studys_confirms_it() {
        let result = grid(as_claimed, 1.5);
        for row in [1, 2, 3, 4, 15] {
            assert_eq!(decision(&result, row), Confirmed, "row {row}");
        }
        assert_eq!(said(&result, "pinning lowers"), Confirmed);
        assert_eq!(said(&result, "quicker under full load"), Confirmed);
        let (decision, kept) = conditions(&result);
        // No proof of the load, and other CPUs.
        assert!(decision == CannotTell && kept.starts_with("5 of 7 kept"), "{kept}");
    }

    #[test]
    fn a_machine_unlike_it_contradicts_it() {
        let result = grid(
            |configuration| if configuration.placement.relation == "scatter" { 90.0 } else { 50.0 },
            6.0,
        );
        for row in [1, 2, 3, 4] {
            assert_eq!(decision(&result, row), Contradicted, "row {row}");
        }
        assert_eq!(said(&result, "pinning lowers"), Contradicted);
        assert_eq!(said(&result, "quicker under full load"), Contradicted);
    }

    #[test]
    fn the_excepted_scene_breaks_nothing_and_any_other_pinned_one_does() {
        let slow = |subject: &'static str| {
            grid(
                move |configuration| {
                    let at_2000 = matches!(configuration.pattern, Pattern::FanOut { receivers: 2000, .. });
                    if configuration.subject == subject && at_2000 && configuration.wait == HUNDRED_MS {
                        300.0
                    } else {
                        as_claimed(configuration)
                    }
                },
                1.5,
            )
        };
        assert_eq!(decision(&slow("sem-sysv"), 4), Confirmed);
        assert_eq!(decision(&slow("sem-posix-named"), 4), Contradicted);
    }

    #[test]
    fn part_of_the_table_confirms_no_claim_about_all_of_it_but_can_break_it() {
        let one = |post_us| {
            of([record(configuration("sem-posix-named", 20, WaitPolicy::Block, true, false), 5.0, post_us)]
                .into_iter())
        };
        assert_eq!(decision(&one(1.5), 1), CannotTell);
        assert_eq!(decision(&one(1.5), 4), CannotTell);
        assert_eq!(decision(&one(3.0), 1), Contradicted);
        assert_eq!(decision(&one(2.05), 1), CannotTell, "too near the bound");
        assert_eq!(decision(&one(1.5), 2), CannotTell);
    }

    #[test]
    fn a_shared_semaphore_confirms_by_a_round_that_has_both_a_duplicate_and_a_miss() {
        let with = |duplicates, misses| {
            let mut record =
                record(configuration("sem-posix-for-all", 20, WaitPolicy::Block, false, false), 5.0, 1.0);
            let rounds = Rounds { duplicates, misses, ..Rounds::default() };
            record.fanout = Some(FanOut { rounds, ..FanOut::default() });
            of([record].into_iter())
        };
        assert_eq!(said(&with(vec![0, 2], vec![0, 2]), "one semaphore for all"), Confirmed);
        assert_eq!(said(&with(vec![0, 0], vec![0, 0]), "one semaphore for all"), CannotTell);
        assert_eq!(said(&grid(as_claimed, 1.5), "one semaphore for all"), CannotTell);
    }

    #[test]
    fn an_empty_run_and_a_run_of_something_else_decide_nothing() {
        let empty = of(std::iter::empty());
        assert!(judge(&empty).iter().all(|judged| judged.decision != Contradicted));
        let ping = sample::result(&[sample::configuration("futex")], 1, |_, _| 1000.0);
        assert!(judge(&ping).is_empty());
    }
}
