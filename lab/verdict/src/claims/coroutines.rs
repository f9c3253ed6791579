// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of the makers of tornado-os: switching between coroutines against switching between
//! processes, and running many tasks against forking as many processes.

use super::{Bound, Reading, Source, TOO_NEAR, counts_instructions};
use doorbell_results::figure::task::CEILING;
use doorbell_results::figure::timer_ticks as ticks;
use doorbell_results::record::{Quantity, ResultFile, Variant};

/// Numbers of tasks in the study's comparison of switching.
pub const SWITCHING: [u32; 8] = [100, 150, 200, 250, 300, 320, 350, 380];

/// What it printed on an emulator for each of [`SWITCHING`], by coroutine and by process: mean
/// counts of timer interrupts 5000 units of the timebase apart, which is [`INTERVAL_NS`].
pub const PRINTED_SWITCHING: [[f64; 2]; 8] = [
    [9.5, 13.6],
    [12.8, 20.9],
    [19.7, 29.9],
    [29.7, 44.1],
    [39.6, 53.6],
    [43.8, 67.6],
    [48.4, 74.4],
    [62.2, 81.2],
];

/// 5000 units of a timebase of 10 MHz, that of QEMU's board `virt`; nanoseconds.
pub const INTERVAL_NS: f64 = 500_000.0;

/// What it printed on an emulator for each of [`MAKING`], by coroutine, and by forking on
/// rCore-Tutorial: mean differences of its `get_time`, whose unit it does not say.
pub const PRINTED_MAKING: [[f64; 2]; 6] =
    [[13.2, 40.6], [14.0, 75.8], [26.4, 125.8], [43.8, 158.2], [59.4, 224.6], [83.8, 238.8]];

/// Numbers of tasks in its comparison of making tasks, on an emulator.
pub const MAKING: [u32; 6] = [50, 100, 150, 200, 250, 300];

pub const BOARD: [u32; 8] = [10, 20, 30, 40, 50, 60, 70, 80];

/// The part that each kind of task plays in the claims.
pub const PARTS: [(&str, &str); 8] = [
    ("stackless", COROUTINES_ALONE),
    ("stackless-rotating", COROUTINES),
    ("process-pair", PROCESSES_ALONE),
    ("process-pair-rotating", PROCESSES),
    ("life-future", FUTURES),
    ("life-future-rotating", FUTURES_ROTATING),
    ("life-fork", FORKS),
    ("timer-ticks", "ticks"),
];

pub static SOURCE: Source = Source {
    name: "tornado-os",
    about: "chapter 9 of the documentation, in Chinese, of the kernel tornado-os: coroutines and \
        processes on its shared scheduler, and fork under rCore-Tutorial, on QEMU 5.2 and on a \
        K210 board, in counts of timer interrupts",
    more: "--document with --placement same-core runs them",
    command: "doorbell tasks --document --placement same-core",
    machine: "any machine; by counts of instructions: doorbell vm run --guest squall --chapter -- tasks",
    claims: claims! {
        None, "100 to 380 tasks take less time as coroutines than in processes", Every Bound::above(1.0), lags;
        None, "QEMU: as processes they take 1.31 to 1.63 times as long", Every Bound::about(1.31, 1.63, TOO_NEAR), lags;
        None, "K210: the more tasks the less processes lag behind (there from 1.37 times at 100 to \
            1.01 times at 380)",
            Every Bound::below(1.0), lag_grows;
        None, "all but the switch of context is the same in both, so what lies between them is the switch",
            Every Bound::exactly(0.0, 1.0), moved_by_the_queue;
        None, "QEMU: a task as a coroutine takes 1.7 times as long among 380 as among 100",
            Every Bound::about(1.72, 1.72, TOO_NEAR), tasks_slow_each_other;
        None, "QEMU: forking, ending and waiting for 50 to 300 processes takes 2.8 to 5.4 times as \
            long as running as many coroutines",
            Every Bound::between(LEAST_ON_QEMU, 5.4), |result| forks_to_futures(result, &MAKING, LEAST_ON_QEMU);
        None, "K210: for 10 to 80 of them at least 37 times",
            Every Bound::above(LEAST_ON_BOARD), |result| forks_to_futures(result, &BOARD, LEAST_ON_BOARD);
        None, "QEMU: a fork costs the same among 50 as among 300, within 20 %", Every Bound::below(1.2), forks_slow_each_other;
        // The study's differences between neighbouring numbers of tasks begin at a tenth.
        None, "condition: timer interrupts 5000 units of the timebase apart tell how long a run takes",
            Every Bound::below(10.0), tick_of_a_run;
        None, "condition: means of 10 repetitions", Seen Bound::exactly(10.0, f64::INFINITY), repetitions;
        None, "K210: no more than 80 processes fit", Seen Bound::below(81.0), room_for_processes;
        None, "QEMU: 9.5 to 62.2 timer interrupts by coroutine, 13.6 to 81.2 by process; K210: 9.0 \
            to 97.6, 12.3 to 99.0",
            Seen Bound::between(9.0, 99.0), |_| {
                let text = "no result can: those are times of an emulator on its host and of a \
                    board of 403 MHz, and not of this machine; ratios and growth are judged above";
                Err(text.to_owned())
            };
    },
};

/// How many times as long forks take at least, on the emulator and on the board.
const LEAST_ON_QEMU: f64 = 2.85;
const LEAST_ON_BOARD: f64 = 37.3;

/// Its coroutines and its processes, on its queue and on one that is O(1).
pub const COROUTINES: &str = "coroutines on the study's queue";
pub const COROUTINES_ALONE: &str = "coroutines";
pub const PROCESSES: &str = "processes on the study's queue";
pub const PROCESSES_ALONE: &str = "processes";

/// Tasks that are made, run once and reaped: as coroutines, and by forking.
pub const FUTURES: &str = "lives of coroutines";
pub const FUTURES_ROTATING: &str = "lives of coroutines on the study's queue";
pub const FORKS: &str = "lives of forked processes";

/// The variants that may be compared: unloaded, without a working set, and all on the same CPU, as
/// the study's machines had one.
fn alike(result: &ResultFile) -> Vec<Variant<'_>> {
    let mut variants = result.variants();
    variants.retain(|variant| {
        let configuration = variant.configuration;
        configuration.pattern.tasks().is_some()
            && configuration.size == 0
            && configuration.load.is_none()
            && configuration.placement.cpus.is_some_and(|[first, second]| first == second)
    });
    let cpus = variants.first().map(|variant| variant.configuration.placement.cpus);
    variants.retain(|variant| Some(variant.configuration.placement.cpus) == cpus);
    variants
}

/// The median of `quantity` of the variant that plays `part`, with
/// `tasks` tasks of `yields` turns; nanoseconds.
fn median(result: &ResultFile, part: &str, [tasks, yields]: [u32; 2], quantity: Quantity) -> Option<f64> {
    let variants = alike(result);
    let wanted = Some((tasks, yields));
    let variant = variants.iter().find(|variant| {
        result.plan.plays(&variant.configuration.subject, part)
            && variant.configuration.pattern.tasks() == wanted
    })?;
    Some(variant.histogram(quantity)?.quantile(0.5) as f64 / 1e3)
}

/// Of a hand-off; nanoseconds.
pub fn hand_off(result: &ResultFile, part: &str, tasks: u32) -> Option<f64> {
    median(result, part, [tasks, 1], Quantity::HandOff)
}

/// Of a task made, run once and reaped; nanoseconds.
pub fn life(result: &ResultFile, part: &str, tasks: u32) -> Option<f64> {
    median(result, part, [tasks, 0], Quantity::Life)
}

/// `of` for each number of tasks that has it.
fn over(series: &[u32], unit: &str, of: impl Fn(u32) -> Option<f64>) -> Reading {
    let figures: Vec<(String, Option<f64>)> = series
        .iter()
        .filter_map(|tasks| Some((*tasks, of(*tasks)?)))
        .map(|(tasks, value)| (format!("{value:.2}{unit} at {tasks}"), Some(value)))
        .collect();
    let seen = match &figures[..] {
        [] => "nothing".to_owned(),
        [(only, _)] => only.clone(),
        [(first, _), .., (last, _)] => format!("{first}, {last}"),
    };
    Reading { seen, missing: series.len() - figures.len(), figures }
}

/// How many times as long the processes take as the coroutines, both on the study's queue.
fn lag(result: &ResultFile, tasks: u32) -> Option<f64> {
    Some(hand_off(result, PROCESSES, tasks)? / hand_off(result, COROUTINES, tasks)?)
}

fn lags(result: &ResultFile) -> Result<Reading, String> {
    let mut lags = over(&SWITCHING, " times as long", |tasks| lag(result, tasks));
    lags.seen = format!("in processes {}, both on the study's queue", lags.seen);
    if counts_instructions(result) {
        lags.seen += "; what is counted are instructions";
    }
    Ok(lags)
}

/// A figure of the fewest tasks and one of the most, or none of either.
fn ends<T>(of: impl Fn(u32) -> Option<T>) -> Option<(T, T)> {
    of(SWITCHING[0]).zip(of(SWITCHING[7]))
}

fn lag_grows(result: &ResultFile) -> Result<Reading, String> {
    let Some((few, many)) = ends(|tasks| lag(result, tasks)) else { return Ok(Reading::default()) };
    let text = format!("{few:.2} times at {}, {many:.2} times at {}", SWITCHING[0], SWITCHING[7]);
    Ok(Reading::one(many / few, text))
}

/// With a queue in which a delete is one step, the same two experiments should
/// lie as far apart as with the study's, if only the switch lay between them.
/// By so many nanoseconds, and not so many times: what both sides share
/// changes a ratio of them, also where it has no part in the difference.
fn moved_by_the_queue(result: &ResultFile) -> Result<Reading, String> {
    let at = |tasks| {
        let [slow, quick] = [COROUTINES, COROUTINES_ALONE].map(|part| hand_off(result, part, tasks));
        let [process, bare] = [PROCESSES, PROCESSES_ALONE].map(|part| hand_off(result, part, tasks));
        Some((Apart { coroutine: slow?, process: process? }, Apart { coroutine: quick?, process: bare? }))
    };
    let Some(((few, few_bare), (many, many_bare))) = ends(at) else { return Ok(Reading::default()) };
    let share = |slow: &Apart, quick: &Apart| (1.0 - quick.coroutine / slow.coroutine) * 100.0;
    let text = format!(
        "processes take {:.0} ns more at 100 tasks and {:.0} ns more at 380 with the study's \
         queue, {:.0} and {:.0} ns more without; that queue is {:.0} and {:.0} % of a coroutine's \
         time, which a ratio of the two hides. A process polls no future, here as in the study, \
         and what that saves is in every difference",
        few.by(),
        many.by(),
        few_bare.by(),
        many_bare.by(),
        share(&few, &few_bare),
        share(&many, &many_bare),
    );
    let exact = counts_instructions(result);
    let figures = [few.moved(&few_bare, exact), many.moved(&many_bare, exact)];
    let named = ["the difference at 100", "the difference at 380"].map(str::to_owned);
    Ok(Reading { seen: text, figures: named.into_iter().zip(figures).collect(), missing: 0 })
}

/// A coroutine and a process on the same queue, nanoseconds a hand-off.
struct Apart {
    coroutine: f64,
    process: f64,
}

impl Apart {
    /// By how much the process takes longer.
    fn by(&self) -> f64 {
        self.process - self.coroutine
    }

    /// How far the difference may be off where figures are times:
    /// each of its two by as much as decides nothing.
    fn slack(&self) -> f64 {
        (self.process + self.coroutine) * TOO_NEAR
    }

    /// How far apart both differences are, in what is as good as the same; none where they are too
    /// small to be seen beside what they are taken from, which no difference is between `exact`
    /// counts. Of those a difference that is off by less than decides a time is the same.
    fn moved(&self, other: &Self, exact: bool) -> Option<f64> {
        let moved = (self.by() - other.by()).abs();
        if exact {
            return Some(moved / (TOO_NEAR * self.by().abs().max(other.by().abs())).max(f64::MIN_POSITIVE));
        }
        let slack = self.slack() + other.slack();
        let seen = self.by().abs().min(other.by().abs()) > 2.0 * slack;
        (moved > slack || seen).then_some(moved / slack)
    }
}

/// How many times as long a coroutine takes among the most as among the fewest; where that is too
/// near once, it was not seen to grow.
fn tasks_slow_each_other(result: &ResultFile) -> Result<Reading, String> {
    let grown = |part| ends(|tasks| hand_off(result, part, tasks)).map(|(few, many)| many / few);
    let Some(ratio) = grown(COROUTINES) else { return Ok(Reading::default()) };
    let bare = grown(COROUTINES_ALONE)
        .map_or_else(String::new, |bare| format!(", on the O(1) queue {bare:.2} times"));
    let seen = (ratio - 1.0).abs() > TOO_NEAR;
    Ok(Reading::one(seen.then_some(ratio), format!("on the study's queue {ratio:.2} times{bare}")))
}

/// How many times as long forks take as coroutines. The study's coroutines ran on its queue, so on
/// one that is O(1), where forks take more times as long, only that they take fewer than the
/// `least` claimed decides anything.
fn forks_to_futures(result: &ResultFile, series: &[u32], least: f64) -> Result<Reading, String> {
    let ratios = |part| {
        over(series, " times as long", |tasks| Some(life(result, FORKS, tasks)? / life(result, part, tasks)?))
    };
    let (own, mut quick) = (ratios(FUTURES_ROTATING), ratios(FUTURES));
    let quick_says = format!("on a queue that is O(1) {}", quick.seen);
    if !own.figures.is_empty() {
        return Ok(Reading { seen: format!("on the study's queue {}; {quick_says}", own.seen), ..own });
    }
    quick.seen = format!("{quick_says}; on the study's it was not measured, which Squall's --document does");
    quick.missing += series.len();
    quick.figures.iter_mut().for_each(|(_, ratio)| *ratio = ratio.filter(|ratio| *ratio < least));
    Ok(quick)
}

fn forks_slow_each_other(result: &ResultFile) -> Result<Reading, String> {
    let each = over(&MAKING, " ns", |tasks| life(result, FORKS, tasks));
    let values = || each.figures.iter().filter_map(|(_, ns)| *ns);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if each.figures.is_empty() {
        return Ok(each);
    }
    let text = format!("{least:.0} to {most:.0} ns each, {:.2} times", most / least);
    Ok(Reading { missing: each.missing, ..Reading::one(most / least, text) })
}

/// The figure `name` of the trials of timer-ticks, from the fewest tasks to the most.
fn of_ticks(result: &ResultFile, name: &str) -> Vec<(u32, f64)> {
    let variants = alike(result);
    let usable = variants
        .iter()
        .filter(|variant| result.plan.plays(&variant.configuration.subject, "ticks"))
        .flat_map(Variant::usable);
    let figures = usable.filter_map(|record| {
        let (tasks, _) = record.configuration.pattern.tasks()?;
        Some((tasks, record.figures.iter().find(|figure| figure.name == name)?.value))
    });
    let mut figures: Vec<(u32, f64)> = figures.collect();
    figures.sort_by_key(|(tasks, _)| *tasks);
    figures
}

/// The share of a run that one tick is, percent: the more the shorter
/// the run, so the fewest tasks decide.
fn tick_of_a_run(result: &ResultFile) -> Result<Reading, String> {
    let steps = of_ticks(result, ticks::STEP);
    let (Some((few, most)), Some((many, least))) = (steps.first().copied(), steps.last().copied()) else {
        return Ok(Reading::default());
    };
    let worst = of_ticks(result, ticks::WORST).into_iter().map(|(_, worst)| worst).reduce(f64::max);
    let off =
        worst.map_or_else(String::new, |worst| format!("; means of ten runs were off by up to {worst:.0} %"));
    let text = format!("one tick is {most:.0} % of a run of {few} tasks, {least:.0} % of one of {many}{off}");
    Ok(Reading::one(worst.unwrap_or(0.0).max(most), text))
}

fn repetitions(result: &ResultFile) -> Result<Reading, String> {
    if counts_instructions(result) {
        let runs = of_ticks(result, ticks::RUNS).into_iter().map(|(_, runs)| runs).reduce(f64::min);
        let Some(runs) = runs else { return Ok(Reading::default()) };
        let text = format!(
            "times are counts of instructions, of which any number of repetitions has the first as \
             its mean; ticks are means of {runs:.0} runs"
        );
        return Ok(Reading::one(runs, text));
    }
    let variants = alike(result);
    let generations = variants.iter().map(|variant| {
        let made = variant.usable().filter_map(|record| record.series.get(&Quantity::Create));
        made.map(|series| series.count).sum::<u64>()
    });
    // A configuration that was skipped, or failed, has no mean.
    let Some(fewest) = generations.filter(|count| *count > 0).min() else { return Ok(Reading::default()) };
    let text = format!("each configuration that was measured has at least {fewest} generations");
    Ok(Reading::one(fewest as f64, text))
}

fn room_for_processes(result: &ResultFile) -> Result<Reading, String> {
    let figures =
        result.records.iter().filter(|record| result.plan.plays(&record.configuration.subject, FORKS));
    let ceiling = figures.flat_map(|record| &record.figures).find(|figure| figure.name == CEILING);
    let here = ceiling.map_or_else(String::new, |ceiling| {
        format!("; here there is room for {:.0} ({})", ceiling.value, ceiling.formula)
    });
    Err(format!("no result can: this is another machine than a board with 8 MiB{here}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Decision::{CannotTell, Confirmed, Contradicted};
    use crate::claims::judge;
    use crate::claims::tests::decided as decision;
    use doorbell_results::configuration::{Configuration, Pattern, Placement};
    use doorbell_results::machine::virtualisation::Vm;
    use doorbell_results::record::{Outcome, Record, sample};

    fn on(cpus: [u32; 2]) -> Placement {
        Placement { relation: "x".to_owned(), cpus: Some(cpus) }
    }

    /// A run of the study's experiments whose times are what `ns` says of kind and number.
    fn run(ns: impl Fn(&str, u32) -> f64) -> ResultFile {
        let mut configurations = Vec::new();
        let configuration = |subject: &str, tasks, yields| Configuration {
            pattern: Pattern::Tasks { tasks, yields },
            placement: on([0, 0]),
            ..sample::configuration(subject)
        };
        for tasks in SWITCHING {
            for subject in ["stackless", "stackless-rotating", "process-pair", "process-pair-rotating"] {
                configurations.push(configuration(subject, tasks, 1));
            }
        }
        for tasks in MAKING.into_iter().chain(BOARD) {
            for subject in ["life-future", "life-future-rotating", "life-fork"] {
                configurations.push(configuration(subject, tasks, 0));
            }
        }
        let mut result = sample::result(&configurations, 1, |_, _| 1.0);
        result.plan.claims = Some(SOURCE.name.to_owned());
        result.plan.parts = PARTS.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into();
        for record in &mut result.records {
            let Pattern::Tasks { tasks, yields } = record.configuration.pattern else { continue };
            let times = sample::series(ns(&record.configuration.subject, tasks), 20);
            let headline = if yields == 0 { Quantity::Life } else { Quantity::HandOff };
            record.series = [(headline, times.clone()), (Quantity::Create, times)].into();
        }
        result
    }

    /// A machine on which a coroutine takes 10 ns, a process 1000 ns
    /// more, and an element of the study's queue 2 ns.
    fn plain(subject: &str, tasks: u32) -> f64 {
        let queue = f64::from(tasks);
        match subject {
            "stackless" => 10.0,
            "stackless-rotating" => 10.0 + queue,
            "process-pair" => 1000.0,
            "process-pair-rotating" => 1000.0 + queue,
            "life-future" => 100.0,
            "life-future-rotating" => 100.0 + queue,
            _ => 50_000.0,
        }
    }

    #[test]
    fn a_machine_with_costly_switches_confirms_the_order_and_contradicts_the_figures() {
        let result = run(plain);
        for (says, ruled, told) in [
            ("less time as coroutines", Confirmed, ""),
            ("1.31 to 1.63", Contradicted, ""),
            ("lag behind", Confirmed, ""),
            ("is the switch", Confirmed, "91 and 97 % of a coroutine's time"),
            ("is the switch", Confirmed, "polls no future"),
            // 125 to 333 times are not 5.4.
            ("2.8 to 5.4 times", Contradicted, "0 of 6 agree with the claim, 6 do not, such as"),
            ("at least 37 times", Confirmed, ""),
            ("the same among 50", Confirmed, ""),
            ("10 repetitions", Confirmed, ""),
            ("5000 units", CannotTell, ""),
        ] {
            let (decision, evidence) = decision(&result, says);
            assert!(decision == ruled && evidence.contains(told), "{says}: {decision:?}, {evidence}");
        }
    }

    #[test]
    fn a_machine_whose_processes_are_as_quick_contradicts_the_order() {
        let result = run(|subject, tasks| match subject {
            "process-pair-rotating" => plain("stackless-rotating", tasks) * 0.8,
            "life-fork" => 90.0,
            _ => plain(subject, tasks),
        });
        assert_eq!(decision(&result, "less time as coroutines").0, Contradicted);
        assert_eq!(decision(&result, "2.8 to 5.4 times").0, Contradicted);
    }

    #[test]
    fn what_lies_between_them_is_judged_by_differences() {
        let says = "is the switch";
        let with = |own: fn(&str, u32) -> f64| decision(&run(own), says).0;
        // A share that both have, however great, is not between them.
        assert_eq!(with(|subject, tasks| 2000.0 + 10.0 * plain(subject, tasks)), Confirmed);
        // A queue that costs a process three times what it costs a coroutine is.
        let dearer = |subject: &str, tasks| match subject {
            "process-pair-rotating" => 1000.0 + 3.0 * f64::from(tasks),
            _ => plain(subject, tasks),
        };
        assert_eq!(with(dearer), Contradicted);
        // Ten nanoseconds between two thousands are not seen.
        let near = |subject: &str, _: u32| if subject.starts_with("process") { 1010.0 } else { 1000.0 };
        assert_eq!(with(near), CannotTell);
    }

    #[test]
    fn forks_within_the_range_confirm_it_and_its_bounds_decide_nothing() {
        let with = |times: f64| {
            let result = run(|subject, tasks| match subject {
                "life-fork" => plain("life-future-rotating", tasks) * times,
                _ => plain(subject, tasks),
            });
            ["2.8 to 5.4 times", "at least 37 times"].map(|says| decision(&result, says).0)
        };
        assert_eq!(with(4.0), [Confirmed, Contradicted]);
        assert_eq!(with(5.4), [CannotTell, Contradicted]);
        assert_eq!(with(37.3), [Contradicted, CannotTell]);
        assert_eq!(with(2.0), [Contradicted, Contradicted]);
    }

    #[test]
    fn forks_are_held_against_coroutines_on_the_queue_that_the_study_had() {
        // On a queue that is O(1) 40 times at any number; with the study's, 36 and fewer from 10 to 80.
        let mut result = run(|subject, tasks| match subject {
            "life-fork" => 4000.0,
            _ => plain(subject, tasks),
        });
        let (ruled, evidence) = decision(&result, "at least 37 times");
        assert_eq!(ruled, Contradicted, "{evidence}");
        assert!(
            evidence.contains("at 80; on a queue that is O(1) 40.0")
                && evidence.contains("7 do not, such as"),
            "{evidence}"
        );
        // Where only the quick queue was measured, its slower one may
        // make any ratio smaller, and none greater.
        result.records.retain(|record| record.configuration.subject != "life-future-rotating");
        result.plan.configurations.retain(|configuration| configuration.subject != "life-future-rotating");
        let (ruled, evidence) = decision(&result, "at least 37 times");
        assert_eq!(ruled, CannotTell, "{evidence}");
        assert!(evidence.contains("it was not measured"), "{evidence}");
        assert_eq!(decision(&result, "2.8 to 5.4 times").0, CannotTell);
        for record in sample::of(&mut result, "life-fork") {
            record.series.insert(Quantity::Life, sample::series(200.0, 20));
        }
        let ruled = ["at least 37 times", "2.8 to 5.4 times"].map(|says| decision(&result, says).0);
        assert_eq!(ruled, [Contradicted; 2], "twice as long on the quicker queue is less on the other");
    }

    #[test]
    fn a_configuration_that_was_skipped_and_a_run_of_few_generations_contradict_no_condition() {
        let mut result = run(plain);
        result.records[3].outcome = Outcome::Skipped { reason: "ulimit -u".to_owned() };
        result.records[3].series.clear();
        assert_eq!(decision(&result, "10 repetitions").0, Confirmed);
        result.records[4].series.insert(Quantity::Create, sample::series(100.0, 2));
        let (ruled, evidence) = decision(&result, "10 repetitions");
        assert_eq!(ruled, CannotTell);
        assert!(evidence.contains("at least 2 generations"), "{evidence}");
    }

    #[test]
    fn processes_on_two_cpus_are_not_held_against_coroutines_on_one() {
        let mut result = run(plain);
        let apart = |one: &mut Configuration| one.placement = on([0, 1]);
        sample::configurations(&mut result)
            .filter(|one| one.subject == "process-pair-rotating")
            .for_each(apart);
        let (ruled, evidence) = decision(&result, "less time as coroutines");
        assert_eq!(ruled, CannotTell, "{evidence}");
        assert!(evidence.contains("same-core"), "{evidence}");
    }

    #[test]
    fn half_the_numbers_confirm_nothing_and_none_says_what_brings_them() {
        let mut result = run(plain);
        let few =
            |record: &Record| !matches!(record.configuration.pattern, Pattern::Tasks { tasks: 200.., .. });
        result.records.retain(few);
        assert_eq!(decision(&result, "less time as coroutines").0, CannotTell);
        result.records.clear();
        for judged in judge(&result) {
            assert_eq!(judged.decision, CannotTell, "{}", judged.claim.says);
        }
        assert!(decision(&result, "lag behind").1.contains("--document"));
    }

    /// The same as counts of instructions, by an emulator whose clock they are.
    fn counted(ns: impl Fn(&str, u32) -> f64) -> ResultFile {
        let mut result = run(ns);
        result.machine.virtualisation.vm = Some(Vm { deterministic: true, ..Vm::default() });
        result
    }

    #[test]
    fn counts_that_repeat_exactly_decide_what_differs_and_not_what_takes_less_time() {
        let near = |subject: &str, tasks: u32| match subject {
            "process-pair-rotating" => plain("stackless-rotating", tasks) * 1.02,
            "process-pair" => plain("stackless", tasks) * 1.02,
            _ => plain(subject, tasks),
        };
        let says = ["less time as coroutines", "is the switch"];
        assert_eq!(says.map(|says| decision(&run(near), says).0), [CannotTell, CannotTell]);
        let ruled = says.map(|says| decision(&counted(near), says));
        assert_eq!(ruled[0].0, CannotTell, "2 % fewer instructions are not less time: {}", ruled[0].1);
        assert!(ruled[0].1.contains("8 are too near to tell"), "{}", ruled[0].1);
        assert_eq!(ruled[1].0, Contradicted, "2.2 and 7.8 ns apart, 0.2 without the queue: {}", ruled[1].1);
        let as_far = |subject: &str, tasks: u32| match subject {
            "process-pair-rotating" => plain("stackless-rotating", tasks) + 2.0,
            "process-pair" => plain("stackless", tasks) + 2.0,
            _ => plain(subject, tasks),
        };
        assert_eq!(decision(&counted(as_far), "is the switch").0, Confirmed);
        // As many as the runs of timer-ticks, not as generations that no count needs.
        assert_eq!(decision(&counted(near), "10 repetitions").0, CannotTell);
        let mut ticked = counted(near);
        let mut record = ticked.records[0].clone();
        record.configuration.subject = "timer-ticks".to_owned();
        record.figures = vec![sample::figure(ticks::RUNS, 10.0)];
        ticked.plan.configurations.push(record.configuration.clone());
        ticked.records.push(record);
        assert_eq!(decision(&ticked, "10 repetitions").0, Confirmed);
        ticked.records.last_mut().unwrap().figures = vec![sample::figure(ticks::RUNS, 9.0)];
        assert_eq!(decision(&ticked, "10 repetitions").0, CannotTell);
    }

    #[test]
    fn ticks_longer_than_the_run_they_time_are_a_contradiction_with_figures() {
        let mut result = run(plain);
        let mut record = result.records[0].clone();
        record.configuration.subject = "timer-ticks".to_owned();
        for (tasks, step) in [(380, 13.0), (100, 210.0)] {
            record.configuration.pattern = Pattern::Tasks { tasks, yields: 1 };
            record.figures =
                vec![sample::figure(ticks::STEP, step), sample::figure(ticks::WORST, step / 3.0)];
            result.plan.configurations.push(record.configuration.clone());
            result.records.push(record.clone());
        }
        let (ruled, evidence) = decision(&result, "5000 units");
        assert_eq!(ruled, Contradicted);
        let says = "one tick is 210 % of a run of 100 tasks, 13 % of one of 380; means of ten runs \
            were off by up to 70 %";
        assert_eq!(evidence, says);
        for record in sample::of(&mut result, "timer-ticks") {
            record.outcome = Outcome::Failed { cause: "killed".to_owned() };
        }
        assert_eq!(decision(&result, "5000 units").0, CannotTell, "what failed decides nothing");
    }
}
