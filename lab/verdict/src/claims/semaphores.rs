// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of a study of semaphores in place of sockets: one sender, 20 to 2000 receivers.

use super::{Bound, Reading, Source};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::plan::semaphores::{DATAGRAM, NAME, NAMED, SYSTEM_V, WINDOWS};
use doorbell_results::record::{Quantity, ResultFile, Variant};

pub static SOURCE: Source = Source {
    name: NAME,
    about: "a study, in Chinese, of semaphores as notification in place of sockets: one sender, 20 \
        to 2000 receivers, POSIX named and System V semaphores on 12 CPUs under CentOS 7.9; its \
        own tables are lost",
    more: "--grid",
    command: "doorbell fanout --grid",
    machine: "a machine with 12 CPUs or more, left alone, on which 2000 receivers may sleep \
        (doorbell doctor)",
    claims: claims! {
        Some(1), "Linux: a post costs 1 to 2 µs in every scenario", Every Bound { inside: 0.0, ..Bound::between(1.0, 2.0) },
            |result| Ok(times("mean cost of a post", of_the_study(result), Some(32), |_| true, POST));
        Some(2), "Linux: 2000 named POSIX semaphores, full load, unpinned: notified after more \
            than 157 µs on average",
            Together Bound::above(157.0),
            |result| Ok(times("mean", of_the_study(result), None, |it| is_named_under_load(it) && !it.pinned, WAKE));
        Some(3), "Linux: the same pinned: less than 7 µs", Together Bound::below(7.0),
            |result| Ok(times("mean", of_the_study(result), None, |it| is_named_under_load(it) && it.pinned, WAKE));
        None, "Linux: all else equal, pinning lowers the mean clearly", Every Bound::below(1.0), pinned_to_unpinned;
        Some(4), "Linux: below 10 µs on average in every pinned scenario but 2000 System V \
            semaphores with a time-out of 100 ms",
            // Half of the table, without its two with a time-out.
            Every Bound::below(10.0),
            |result| Ok(times("mean", of_the_study(result), Some(14), |it| it.pinned && !is_excepted(it), WAKE));
        None, "Linux: some scenarios are quicker under full load than on the idle machine", Any Bound::below(1.0), loaded_to_idle;
        None, "one semaphore for all receivers wakes some twice and others not at all",
            Seen Bound::exactly(1.0, f64::INFINITY), rounds_with_both;
        Some(5), "Linux: the socket transport in use takes several hundred µs, pinned and with huge pages",
            Seen Bound::above(100.0), other_transport;
        None, "under these conditions: rounds 1 s apart, 20 of them; a load of 20 processes that \
            outlasts the test by 30 s, on 12 CPUs at 100 %; from 20 to 2000 semaphores, without \
            time-out and with one of 100 ms",
            Seen Bound::exactly(7.0, 7.0), conditions;
        Some(14), "Linux: 128 System V semaphore sets by default (CentOS 7.9), too few for a set each",
            Seen Bound::exactly(128.0, 128.0), default_sets;
        Some(15), "Linux: named POSIX semaphores meet no limit (of 32,000) up to 2000",
            Seen Bound::exactly(2000.0, f64::INFINITY), most_named;
        Some(16), "Windows: releasing a semaphore costs less than 10 µs on average", Every Bound::below(10.0),
            |result| Ok(times("a release", on_windows(result)?, Some(WINDOWS_TABLE), |_| true, POST));
        Some(17), "Windows: 20 semaphores without a time-out: notified after some tens of µs on average",
            Every Bound::between(10.0, 100.0),
            |result| Ok(times("mean", on_windows(result)?, Some(WINDOWS_TABLE / 4), is_quick, WAKE));
        Some(18), "Windows: in all other scenarios notified after some hundreds of µs on average",
            Every Bound::between(100.0, 1000.0),
            |result| Ok(times("mean", on_windows(result)?, Some(WINDOWS_TABLE / 4 * 3), |it| !is_quick(it), WAKE));
    },
};

/// One variant as the study would have named it.
#[derive(Debug, Clone)]
struct Scenario<'result> {
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

const HUNDRED_MS: WaitPolicy = WaitPolicy::Timeout { timeout_ns: 100_000_000 };

fn is_system_v(scenario: &Scenario) -> bool {
    scenario.part == SYSTEM_V
}

fn is_of_the_study(scenario: &Scenario) -> bool {
    scenario.part == NAMED || is_system_v(scenario)
}

fn scenarios<'result>(result: &'result ResultFile) -> Vec<Scenario<'result>> {
    let scenario = |variant: Variant<'result>| {
        let receivers = variant.configuration.pattern.receivers()?;
        let mean = |quantity| Some(variant.histogram(quantity)?.mean() / 1e6);
        Some(Scenario {
            configuration: variant.configuration,
            part: result.plan.parts.get(&variant.configuration.subject).map_or("", String::as_str),
            receivers,
            pinned: variant.configuration.placement.relation != Pinning::Unpinned.name(),
            wake_us: mean(Quantity::Wake),
            post_us: mean(Quantity::Notify)?,
        })
    };
    result.variants().into_iter().filter_map(scenario).collect()
}

/// Its scenarios on Linux; none of them were run on another system.
fn of_the_study(result: &ResultFile) -> Vec<Scenario<'_>> {
    if result.machine.kernel.system.is_some() {
        return Vec::new();
    }
    scenarios(result).into_iter().filter(is_of_the_study).collect()
}

/// Its scenarios on Windows that are of the study's table; what Wine
/// answered for Windows decides nothing about Windows.
fn on_windows(result: &ResultFile) -> Result<Vec<Scenario<'_>>, String> {
    let kernel = &result.machine.kernel;
    if let Some(name) = &kernel.stand_in {
        return Err(format!("this is Wine, not Windows ({name})"));
    }
    if kernel.system.as_deref() != Some("Windows") {
        return Err("this is not Windows; there: doorbell-other-systems fanout --grid".to_owned());
    }
    let mut scenarios = scenarios(result);
    scenarios.retain(|scenario| scenario.part == WINDOWS && is_in_table(scenario));
    Ok(scenarios)
}

/// Both numbers, both waits, pinned or not, idle or under full load.
const WINDOWS_TABLE: usize = 16;

const POST: fn(&Scenario) -> Option<f64> = |scenario| Some(scenario.post_us);
const WAKE: fn(&Scenario) -> Option<f64> = |scenario| scenario.wake_us;

fn is_quick(scenario: &Scenario) -> bool {
    scenario.receivers == 20 && scenario.configuration.wait == WaitPolicy::Block
}

/// 2000 named semaphores under load.
fn is_named_under_load(scenario: &Scenario) -> bool {
    scenario.part == NAMED && scenario.receivers == 2000 && scenario.configuration.load.is_some()
}

fn is_excepted(scenario: &Scenario) -> bool {
    is_system_v(scenario) && scenario.receivers == 2000 && scenario.configuration.wait == HUNDRED_MS
}

fn named(scenario: &Scenario) -> String {
    let wait = match scenario.configuration.wait {
        WaitPolicy::Timeout { timeout_ns } => format!(", time-out {} ms", timeout_ns / 1_000_000),
        _ => String::new(),
    };
    let load = if scenario.configuration.load.is_some() { "loaded" } else { "idle" };
    let pinned = if scenario.pinned { "pinned" } else { "unpinned" };
    format!("{} x {}{wait}, {pinned}, {load}", scenario.configuration.subject, scenario.receivers)
}

/// Whether the study's table has it.
fn is_in_table(scenario: &Scenario) -> bool {
    (is_of_the_study(scenario) || scenario.part == WINDOWS)
        && [20, 2000].contains(&scenario.receivers)
        && [WaitPolicy::Block, HUNDRED_MS].contains(&scenario.configuration.wait)
}

/// How many scenarios of a table of `all` (named and System V, 20 and 2000, both waits, pinned or
/// not, idle or full) are missing.
fn missing(scenarios: &[Scenario], all: usize) -> usize {
    let kind = |scenario: &Scenario| {
        let configuration = scenario.configuration;
        (
            is_system_v(scenario),
            scenario.receivers,
            configuration.wait == HUNDRED_MS,
            scenario.pinned,
            configuration.load.is_some(),
        )
    };
    let there: std::collections::BTreeSet<_> =
        scenarios.iter().filter(|scenario| is_in_table(scenario)).map(kind).collect();
    all - there.len()
}

fn range(values: impl Iterator<Item = f64> + Clone) -> String {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    format!("{least:.2} to {most:.2} µs")
}

/// Times of the scenarios that are `meant`, of which the table has `all`, or the claim speaks of
/// those measured alone.
fn times(
    what: &str,
    mut scenarios: Vec<Scenario>,
    all: Option<usize>,
    meant: fn(&Scenario) -> bool,
    of: fn(&Scenario) -> Option<f64>,
) -> Reading {
    scenarios.retain(meant);
    let each: Vec<(&Scenario, f64)> =
        scenarios.iter().filter_map(|scenario| Some((scenario, of(scenario)?))).collect();
    let figure =
        |(scenario, us): &(&Scenario, f64)| (format!("{} with {us:.2} µs", named(scenario)), Some(*us));
    Reading {
        seen: format!("{what} {}", range(each.iter().map(|(_, us)| *us))),
        figures: each.iter().map(figure).collect(),
        missing: all.map_or(0, |all| missing(&scenarios, all)),
    }
}

/// The means of scenarios for which `first` holds, each as a multiple
/// of that of the one it is the `same` as but for this.
fn multiples(
    result: &ResultFile,
    first: fn(&Scenario) -> bool,
    same: fn(&Configuration, &Configuration) -> Configuration,
) -> Vec<(String, Option<f64>)> {
    let (ones, others): (Vec<Scenario>, Vec<Scenario>) = of_the_study(result).into_iter().partition(first);
    let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    let pairs =
        pairs.filter(|(one, other)| same(one.configuration, other.configuration) == *other.configuration);
    let times = |(one, other): (&Scenario, &Scenario)| {
        let times = one.wake_us? / other.wake_us?;
        Some((format!("{} at {times:.2} times", named(one)), Some(times)))
    };
    pairs.filter_map(times).collect()
}

fn pinned_to_unpinned(result: &ResultFile) -> Result<Reading, String> {
    let figures = multiples(
        result,
        |scenario| scenario.pinned,
        |pinned, unpinned| Configuration { placement: unpinned.placement.clone(), ..pinned.clone() },
    );
    let range = range(figures.iter().filter_map(|(_, times)| *times)).replace(" µs", "");
    Ok(Reading { seen: format!("pinned, the mean is {range} times the unpinned one"), figures, missing: 0 })
}

fn loaded_to_idle(result: &ResultFile) -> Result<Reading, String> {
    let figures = multiples(
        result,
        |scenario| scenario.configuration.load.is_some(),
        |loaded, idle| Configuration { load: idle.load.clone(), ..loaded.clone() },
    );
    let best = figures.iter().min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(std::cmp::Ordering::Equal));
    let best = best.map_or("", |(best, _)| best.as_str());
    let power = &result.machine.power;
    let states = if power.idle_states.is_empty() {
        let driver = power.idle_driver.as_deref().unwrap_or("unknown");
        format!("the kernel shows no idle states here (driver {driver})")
    } else {
        power.deepest(&result.machine.topology.usable).map_or_else(
            || "no idle state is allowed here".to_owned(),
            |(name, us)| format!("the deepest idle state here, {name}, takes {us} µs to leave"),
        )
    };
    Ok(Reading { seen: format!("under load {best} the idle mean at best; {states}"), figures, missing: 0 })
}

/// Rounds in which one semaphore for all woke some twice and others not at all.
fn rounds_with_both(result: &ResultFile) -> Result<Reading, String> {
    let variants = result.variants();
    let fanouts =
        variants.iter().flat_map(|variant| variant.usable().filter_map(|record| record.fanout.as_ref()));
    let rounds: Vec<(u64, u64)> = fanouts
        .flat_map(|fanout| fanout.rounds.duplicates.iter().copied().zip(fanout.rounds.misses.iter().copied()))
        .collect();
    if rounds.is_empty() {
        return Err("sem-posix-for-all was not measured".to_owned());
    }
    let both = rounds.iter().filter(|(duplicates, misses)| *duplicates > 0 && *misses > 0).count();
    let [duplicates, misses] = [|round: &(u64, u64)| round.0, |round: &(u64, u64)| round.1]
        .map(|of| rounds.iter().map(of).fold(0, u64::saturating_add));
    let seen = format!(
        "{duplicates} duplicates and {misses} misses in {} rounds; {both} rounds had both",
        rounds.len()
    );
    Ok(Reading::one(both as f64, seen))
}

fn other_transport(result: &ResultFile) -> Result<Reading, String> {
    let told = "; a Unix datagram to each receiver, pinned, took on average";
    let beside = times(told, scenarios(result), None, |it| it.part == DATAGRAM && it.pinned, WAKE);
    let beside = if beside.figures.is_empty() { "" } else { &beside.seen };
    Err(format!("that transport is another program's, and no figure is given{beside}"))
}

/// Which of the study's conditions the run kept, and what it had of each.
fn conditions(result: &ResultFile) -> Result<Reading, String> {
    let (configurations, scenarios) = (&result.plan.configurations, scenarios(result));
    let gaps = || configurations.iter().map(|configuration| configuration.pattern.gap_ns() / 1_000_000);
    let rounds = || configurations.iter().filter_map(|configuration| configuration.until.count);
    let loads = || configurations.iter().filter_map(|configuration| configuration.load.as_ref());
    let proofs = || result.records.iter().filter_map(|record| record.load.as_ref());
    let cpus = result.machine.topology.usable.len();
    let busy = proofs().filter_map(|proof| proof.least_busy()).map(|(_, share)| share).reduce(f64::min);
    let outlasted = proofs().map(|proof| proof.outlasted_ns).min();
    let of = |receivers| scenarios.iter().any(|scenario| scenario.receivers == receivers);
    let waited = |wait| scenarios.iter().any(|scenario| scenario.configuration.wait == wait);
    let waits = scenarios.iter().map(|scenario| match scenario.configuration.wait {
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
        (
            of(20) && of(2000),
            format!("receivers {}", distinct(scenarios.iter().map(|scenario| scenario.receivers))),
        ),
        (waited(WaitPolicy::Block) && waited(HUNDRED_MS), distinct(waits)),
    ];
    let kept = conditions.iter().filter(|(kept, _)| *kept).count();
    let had: Vec<&str> = conditions.iter().map(|(_, had)| had.as_str()).collect();
    Ok(Reading::one(
        kept as f64,
        format!("{kept} of {} kept; this run: {}", conditions.len(), had.join("; ")),
    ))
}

fn distinct<T: Ord + ToString>(values: impl Iterator<Item = T>) -> String {
    let values: std::collections::BTreeSet<T> = values.collect();
    if values.is_empty() {
        return "none".to_owned();
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn default_sets(result: &ResultFile) -> Result<Reading, String> {
    let sets = result.machine.limits.semaphore_sets.ok_or("the kernel does not tell SEMMNI here")?;
    Ok(Reading::one(sets as f64, format!("SEMMNI is {sets} here")))
}

fn most_named(result: &ResultFile) -> Result<Reading, String> {
    let scenarios = of_the_study(result);
    let most =
        scenarios.iter().filter(|scenario| scenario.part == NAMED).map(|scenario| scenario.receivers).max();
    let most = most.ok_or("none were made")?;
    Ok(Reading::one(f64::from(most), format!("{most} were made and none refused")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Decision::{self, CannotTell, Confirmed, Contradicted};
    use crate::claims::judge;
    use crate::claims::tests::decided;
    use doorbell_results::configuration::{Load, Pattern, Placement, Until};
    use doorbell_results::plan::semaphores::PARTS;
    use doorbell_results::record::fanout::{FanOut, Rounds};
    use doorbell_results::record::{Record, sample};

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
        let series = |us: f64| sample::series(us * 1e3, 100);
        let mut record = sample::record(configuration, 0, 1000.0);
        record.series = [(Quantity::Wake, series(wake_us)), (Quantity::Notify, series(post_us))].into();
        record
    }

    /// The study's table of one subject.
    fn table(subject: &'static str) -> impl Iterator<Item = Configuration> {
        (0..16).map(move |place| {
            let bit = |bit: u32| place & (1 << bit) != 0;
            let wait = if bit(1) { HUNDRED_MS } else { WaitPolicy::Block };
            configuration(subject, if bit(0) { 2000 } else { 20 }, wait, bit(2), bit(3))
        })
    }

    /// A grid whose means are what `wake_us` says.
    fn grid(wake_us: impl Fn(&Configuration) -> f64, post_us: f64) -> ResultFile {
        of(table("sem-posix-named").chain(table("sem-sysv")).map(|configuration| {
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
        judge(result).iter().find(|judged| judged.claim.row == Some(row)).unwrap().decision
    }

    /// What is said of claims without a row: of pinning, of load, of a shared semaphore.
    fn said(result: &ResultFile) -> [Decision; 3] {
        ["pinning lowers", "quicker under full load", "one semaphore for all"]
            .map(|words| decided(result, words).0)
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
        assert_eq!(said(&result), [Confirmed, Confirmed, CannotTell]);
        let (decision, kept) = decided(&result, "under these conditions");
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
        assert_eq!(said(&result), [Contradicted, Contradicted, CannotTell]);
    }

    #[test]
    fn the_excepted_scene_breaks_nothing_and_any_other_pinned_one_does() {
        let slow = |subject: &'static str| {
            let wake_us = move |one: &Configuration| {
                let at_2000 = one.pattern.receivers() == Some(2000) && one.wait == HUNDRED_MS;
                if one.subject == subject && at_2000 { 300.0 } else { as_claimed(one) }
            };
            grid(wake_us, 1.5)
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
        assert_eq!(said(&with(vec![0, 2], vec![0, 2]))[2], Confirmed);
        assert_eq!(said(&with(vec![0, 0], vec![0, 0]))[2], CannotTell);
    }

    /// The study's table on Windows, as far as its text tells, measured on `system`, where
    /// `stand_in` answered for it.
    fn windows(system: Option<&str>, stand_in: Option<&str>, others_us: f64) -> ResultFile {
        let mut result = of(table("win-semaphore").map(|configuration| {
            let quick = configuration.wait == WaitPolicy::Block
                && matches!(configuration.pattern, Pattern::FanOut { receivers: 20, .. });
            record(configuration, if quick { 40.0 } else { others_us }, 3.0)
        }));
        result.machine.kernel.system = system.map(str::to_owned);
        result.machine.kernel.stand_in = stand_in.map(str::to_owned);
        result
    }

    #[test]
    fn windows_decides_what_is_claimed_of_windows_and_wine_never_does() {
        let decided = |result: &ResultFile| [16, 17, 18].map(|row| decision(result, row));
        assert_eq!(decided(&windows(Some("Windows"), None, 400.0)), [Confirmed; 3]);
        assert_eq!(decided(&windows(Some("Windows"), None, 9.0)), [Confirmed, Confirmed, Contradicted]);
        assert_eq!(decided(&windows(Some("Windows"), Some("Wine 10.0"), 400.0)), [CannotTell; 3]);
        assert_eq!(decided(&windows(Some("Windows"), Some("Wine 10.0"), 9.0)), [CannotTell; 3]);
        assert_eq!(decided(&windows(None, None, 400.0)), [CannotTell; 3]);
    }

    /// Named semaphores are called the same there.
    #[test]
    fn another_system_decides_nothing_that_is_claimed_of_linux() {
        let mut result = grid(as_claimed, 1.5);
        result.machine.kernel.system = Some("macOS".to_owned());
        for row in [1, 2, 3, 4, 15] {
            assert_eq!(decision(&result, row), CannotTell, "row {row}");
        }
    }

    #[test]
    fn an_empty_run_and_a_run_of_something_else_decide_nothing() {
        let empty = of(std::iter::empty());
        assert!(judge(&empty).iter().all(|judged| judged.decision != Contradicted));
        let ping = sample::result(&[sample::configuration("futex")], 1, |_, _| 1000.0);
        assert!(judge(&ping).is_empty());
    }
}
