// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of the makers of tornado-os: switching between coroutines against switching between processes, and running
//! many tasks against forking as many processes.

use super::{Claim, Decision, Source, TOO_NEAR, against, counts_instructions};
use Decision::{CannotTell, Confirmed, Contradicted};
use doorbell_results::figure::task::CEILING;
use doorbell_results::figure::timer_ticks as ticks;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Variant};
/// Numbers of tasks in the study's comparison of switching.
pub const SWITCHING: [u32; 8] = [100, 150, 200, 250, 300, 320, 350, 380];

/// What it printed on an emulator for each of [`SWITCHING`], by coroutine and by process: mean counts of timer interrupts 5000 units of
/// the timebase apart, which is [`INTERVAL_NS`].
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

/// What it printed on an emulator for each of [`MAKING`], by coroutine, and by forking on rCore-Tutorial: mean differences of its
/// `get_time`, whose unit it does not say.
pub const PRINTED_MAKING: [[f64; 2]; 6] =
    [[13.2, 40.6], [14.0, 75.8], [26.4, 125.8], [43.8, 158.2], [59.4, 224.6], [83.8, 238.8]];

/// Numbers of tasks in its comparison of making tasks, on an emulator.
pub const MAKING: [u32; 6] = [50, 100, 150, 200, 250, 300];

/// The same on a board.
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
    about: "chapter 9 of the documentation, in Chinese, of the kernel tornado-os: coroutines and processes on its shared \
            scheduler, and fork under rCore-Tutorial, on QEMU 5.2 and on a K210 board, in counts of timer interrupts",
    claims: &[
        Claim {
            row: None,
            says: "100 to 380 tasks take less time as coroutines than in processes",
            judge: coroutines_win,
        },
        Claim {
            row: None,
            says: "QEMU: as processes they take 1.31 to 1.63 times as long",
            judge: ratio_is_as_printed,
        },
        Claim {
            row: None,
            says: "K210: the more tasks the less processes lag behind (there from 1.37 times at 100 to 1.01 times at 380)",
            judge: lag_shrinks,
        },
        Claim {
            row: None,
            says: "all but the switch of context is the same in both, so what lies between them is the switch",
            judge: difference_is_the_switch,
        },
        Claim {
            row: None,
            says: "QEMU: a task as a coroutine takes 1.7 times as long among 380 as among 100",
            judge: tasks_slow_each_other,
        },
        Claim {
            row: None,
            says: "QEMU: forking, ending and waiting for 50 to 300 processes takes 2.8 to 5.4 times as long as running as many \
                   coroutines",
            judge: |result| fork_takes(result, &MAKING, 2.85, 5.4),
        },
        Claim {
            row: None,
            says: "K210: for 10 to 80 of them at least 37 times",
            judge: |result| fork_takes(result, &BOARD, 37.3, f64::INFINITY),
        },
        Claim {
            row: None,
            says: "QEMU: a fork costs the same among 50 as among 300, within 20 %",
            judge: forks_do_not_slow_each_other,
        },
        Claim {
            row: None,
            says: "condition: timer interrupts 5000 units of the timebase apart tell how long a run takes",
            judge: ticks_tell,
        },
        Claim { row: None, says: "condition: means of 10 repetitions", judge: ten_repetitions },
        Claim { row: None, says: "K210: no more than 80 processes fit", judge: eighty_fit },
        Claim {
            row: None,
            says: "QEMU: 9.5 to 62.2 timer interrupts by coroutine, 13.6 to 81.2 by process; K210: 9.0 to 97.6, 12.3 to 99.0",
            judge: |_| {
                let text = "no result can: those are times of an emulator on its host and of a board of 403 MHz, and not of this \
                            machine; ratios and growth are judged above";
                (CannotTell, text.to_owned())
            },
        },
    ],
};

/// Its coroutines and its processes, on its queue and on one that is O(1).
pub const COROUTINES: &str = "coroutines on the study's queue";
pub const COROUTINES_ALONE: &str = "coroutines";
pub const PROCESSES: &str = "processes on the study's queue";
pub const PROCESSES_ALONE: &str = "processes";

/// Tasks that are made, run once and reaped: as coroutines, and by forking.
pub const FUTURES: &str = "lives of coroutines";
pub const FUTURES_ROTATING: &str = "lives of coroutines on the study's queue";
pub const FORKS: &str = "lives of forked processes";

/// What brings the missing configurations.
const MORE: &str = "--document with --placement same-core runs them";

/// The variants that may be compared: unloaded, without a working set, and all on the same CPU, as the study's machines had one.
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

/// The median of `quantity` of the variant that plays `part`, with `tasks` tasks of `yields` turns; nanoseconds.
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

/// `of` for each number of tasks that has it, and how many have not.
fn over(series: &[u32], of: impl Fn(u32) -> Option<f64>) -> (Vec<(u32, f64)>, usize) {
    let found: Vec<(u32, f64)> = series.iter().filter_map(|tasks| Some((*tasks, of(*tasks)?))).collect();
    let missing = series.len() - found.len();
    (found, missing)
}

/// How many times as long the processes take as the coroutines, both on the study's queue.
fn lag(result: &ResultFile, tasks: u32) -> Option<f64> {
    Some(hand_off(result, PROCESSES, tasks)? / hand_off(result, COROUTINES, tasks)?)
}

fn listed(values: &[(u32, f64)], unit: &str) -> String {
    let one = |(tasks, value): &(u32, f64)| format!("{value:.2}{unit} at {tasks}");
    match values {
        [] => "nothing".to_owned(),
        [only] => one(only),
        [first, .., last] => format!("{}, {}", one(first), one(last)),
    }
}

/// Where configurations are missing, what there is decides nothing but a contradiction.
fn unless_missing(decision: Decision, missing: usize, text: String) -> (Decision, String) {
    match (decision, missing) {
        (Confirmed, 1..) => (CannotTell, format!("{text}; {missing} numbers of tasks are missing ({MORE})")),
        _ => (decision, text),
    }
}

fn none() -> (Decision, String) {
    (CannotTell, format!("no such configurations were measured; {MORE}"))
}

fn coroutines_win(result: &ResultFile) -> (Decision, String) {
    let (lags, missing) = over(&SWITCHING, |tasks| lag(result, tasks));
    if lags.is_empty() {
        return none();
    }
    let mut text = format!("in processes {}, both on the study's queue", listed(&lags, " times as long"));
    let sides: Vec<_> = lags.iter().map(|(_, lag)| against(*lag, 1.0)).collect();
    let near = sides.iter().filter(|side| side.is_none()).count();
    if near > 0 {
        text += &format!("; of {} ratios {near} are nearer 1 than decides a time", sides.len());
        if counts_instructions(result) {
            text += ", and what is counted are instructions";
        }
    }
    let decision = if sides.contains(&Some(std::cmp::Ordering::Less)) {
        Contradicted
    } else if sides.contains(&None) {
        CannotTell
    } else {
        Confirmed
    };
    unless_missing(decision, missing, text)
}

fn ratio_is_as_printed(result: &ResultFile) -> (Decision, String) {
    let (lags, missing) = over(&SWITCHING, |tasks| lag(result, tasks));
    if lags.is_empty() {
        return none();
    }
    let inside = |(_, lag): &&(u32, f64)| (1.31 * (1.0 - TOO_NEAR)..=1.63 * (1.0 + TOO_NEAR)).contains(lag);
    let within = lags.iter().filter(inside).count();
    let text = format!("{}; {within} of {} within", listed(&lags, " times"), lags.len());
    unless_missing(if within == lags.len() { Confirmed } else { Contradicted }, missing, text)
}

fn lag_shrinks(result: &ResultFile) -> (Decision, String) {
    let ends = lag(result, SWITCHING[0]).zip(lag(result, SWITCHING[7]));
    let Some((few, many)) = ends else { return none() };
    let text = format!("{few:.2} times at {}, {many:.2} times at {}", SWITCHING[0], SWITCHING[7]);
    match against(many, few) {
        Some(std::cmp::Ordering::Less) => (Confirmed, format!("it shrinks: {text}")),
        Some(_) => (Contradicted, text),
        None => (CannotTell, format!("too near: {text}")),
    }
}

/// With a queue in which a delete is one step, the same two experiments should lie as far apart as with the study's, if only
/// the switch lay between them. By so many nanoseconds, and not so many times: what both sides share changes a ratio of them,
/// also where it has no part in the difference.
fn difference_is_the_switch(result: &ResultFile) -> (Decision, String) {
    let at = |tasks| {
        let [slow, quick] = [COROUTINES, COROUTINES_ALONE].map(|part| hand_off(result, part, tasks));
        let [process, bare] = [PROCESSES, PROCESSES_ALONE].map(|part| hand_off(result, part, tasks));
        Some((Apart { coroutine: slow?, process: process? }, Apart { coroutine: quick?, process: bare? }))
    };
    let ends = [SWITCHING[0], SWITCHING[7]].map(at);
    let [Some((few, few_bare)), Some((many, many_bare))] = ends else { return none() };
    let share = |slow: &Apart, quick: &Apart| (1.0 - quick.coroutine / slow.coroutine) * 100.0;
    let text = format!(
        "processes take {:.0} ns more at 100 tasks and {:.0} ns more at 380 with the study's queue, {:.0} and {:.0} ns more \
         without; that queue is {:.0} and {:.0} % of a coroutine's time, which a ratio of the two hides. A process polls no \
         future, here as in the study, and what that saves is in every difference",
        few.by(),
        many.by(),
        few_bare.by(),
        many_bare.by(),
        share(&few, &few_bare),
        share(&many, &many_bare),
    );
    let exact = counts_instructions(result);
    match [few.as_far_as(&few_bare, exact), many.as_far_as(&many_bare, exact)] {
        [Some(true), Some(true)] => (Confirmed, text),
        [Some(false), _] | [_, Some(false)] => (Contradicted, text),
        _ => (CannotTell, text),
    }
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

    /// How far the difference may be off where figures are times: each of its two by as much as decides nothing.
    fn slack(&self) -> f64 {
        (self.process + self.coroutine) * TOO_NEAR
    }

    /// Whether both differences are the same; none where they are too small to be seen beside what they are taken from, which no
    /// difference is between `exact` counts. Of those a difference that is off by less than decides a time is the same.
    fn as_far_as(&self, other: &Self, exact: bool) -> Option<bool> {
        let moved = (self.by() - other.by()).abs();
        if exact {
            return Some(moved <= TOO_NEAR * self.by().abs().max(other.by().abs()));
        }
        let slack = self.slack() + other.slack();
        let seen = self.by().abs().min(other.by().abs()) > 2.0 * slack;
        if moved > slack { Some(false) } else { seen.then_some(true) }
    }
}

fn tasks_slow_each_other(result: &ResultFile) -> (Decision, String) {
    let grown = |part| {
        let many = hand_off(result, part, SWITCHING[7])?;
        Some(many / hand_off(result, part, SWITCHING[0])?)
    };
    let Some(ratio) = grown(COROUTINES) else { return none() };
    let bare = grown(COROUTINES_ALONE)
        .map_or_else(String::new, |bare| format!(", on the O(1) queue {bare:.2} times"));
    let text = format!("on the study's queue {ratio:.2} times{bare}");
    match against(ratio, 1.0) {
        Some(std::cmp::Ordering::Greater) if against(ratio, 1.72).is_none() => (Confirmed, text),
        Some(std::cmp::Ordering::Greater) => {
            (Contradicted, format!("it grows, but by another factor: {text}"))
        }
        Some(_) => (Contradicted, text),
        None => (CannotTell, format!("too near: {text}")),
    }
}

/// Whether all ratios lie between `least` and `most`; infinity is no bound. The study's coroutines ran on its queue, so on one that is
/// O(1), where forks take more times as long, only that they take fewer than claimed decides anything.
fn fork_takes(result: &ResultFile, series: &[u32], least: f64, most: f64) -> (Decision, String) {
    let ratio =
        |part: &'static str| move |tasks| Some(life(result, FORKS, tasks)? / life(result, part, tasks)?);
    let on_its_queue = over(series, ratio(FUTURES_ROTATING));
    let quick = over(series, ratio(FUTURES));
    let without_its_queue = on_its_queue.0.is_empty();
    let quick_says = format!("on a queue that is O(1) {}", listed(&quick.0, " times as long"));
    let ((ratios, missing), says, beside) = if without_its_queue {
        (quick, quick_says, "; on the study's it was not measured, which Squall's --document does".to_owned())
    } else {
        let says = format!("on the study's queue {}", listed(&on_its_queue.0, " times as long"));
        (on_its_queue, says, format!("; {quick_says}"))
    };
    let values = || ratios.iter().map(|(_, ratio)| *ratio);
    let extremes = values().min_by(f64::total_cmp).zip(values().max_by(f64::total_cmp));
    let Some((lowest, highest)) = extremes else { return none() };
    let (decision, beyond) = match (against(lowest, least), against(highest, most)) {
        (Some(std::cmp::Ordering::Less), _) => (Contradicted, ", less than claimed"),
        _ if without_its_queue => (CannotTell, ""),
        (_, Some(std::cmp::Ordering::Greater)) => (Contradicted, ", more than claimed"),
        (Some(_), Some(_)) => (Confirmed, ""),
        _ => (CannotTell, ", too near what is claimed"),
    };
    unless_missing(decision, missing, says + beyond + &beside)
}

fn forks_do_not_slow_each_other(result: &ResultFile) -> (Decision, String) {
    let (each, missing) = over(&MAKING, |tasks| life(result, FORKS, tasks));
    let extremes = each
        .iter()
        .map(|(_, ns)| *ns)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    if each.is_empty() {
        return none();
    }
    let apart = extremes.1 / extremes.0;
    let text = format!("{:.0} to {:.0} ns each, {apart:.2} times", extremes.0, extremes.1);
    let decision = match against(apart, 1.2) {
        Some(std::cmp::Ordering::Less) => Confirmed,
        Some(_) => Contradicted,
        None => CannotTell,
    };
    unless_missing(decision, missing, text)
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

/// One tick is the more of a run the shorter the run: the fewest tasks decide.
fn ticks_tell(result: &ResultFile) -> (Decision, String) {
    let steps = of_ticks(result, ticks::STEP);
    let (Some((few, most)), Some((many, least))) = (steps.first().copied(), steps.last().copied()) else {
        return none();
    };
    let worst = of_ticks(result, ticks::WORST).into_iter().map(|(_, worst)| worst).reduce(f64::max);
    let off =
        worst.map_or_else(String::new, |worst| format!("; means of ten runs were off by up to {worst:.0} %"));
    let text = format!("one tick is {most:.0} % of a run of {few} tasks, {least:.0} % of one of {many}{off}");
    // The study's differences between neighbouring numbers of tasks begin at a tenth.
    match against(worst.unwrap_or(0.0).max(most), 10.0) {
        Some(std::cmp::Ordering::Less) => (Confirmed, text),
        Some(_) => (Contradicted, text),
        None => (CannotTell, text),
    }
}

fn ten_repetitions(result: &ResultFile) -> (Decision, String) {
    if counts_instructions(result) {
        let runs = of_ticks(result, ticks::RUNS).into_iter().map(|(_, runs)| runs).reduce(f64::min);
        let Some(runs) = runs else { return none() };
        let text = format!(
            "times are counts of instructions, of which any number of repetitions has the first as its mean; ticks are means of \
             {runs:.0} runs"
        );
        return (if runs >= 10.0 { Confirmed } else { CannotTell }, text);
    }
    let variants = alike(result);
    let counts = variants.iter().map(|variant| {
        variant
            .usable()
            .filter_map(|record| record.series.get(&Quantity::Create))
            .map(|series| series.count)
            .sum::<u64>()
    });
    // A configuration that was skipped, or failed, has no mean.
    let Some(fewest) = counts.filter(|count| *count > 0).min() else { return none() };
    let text = format!("each configuration that was measured has at least {fewest} generations");
    if fewest >= 10 {
        (Confirmed, text)
    } else {
        (CannotTell, format!("{text}, which says how much was asked for here and nothing of the study"))
    }
}

fn eighty_fit(result: &ResultFile) -> (Decision, String) {
    let figures =
        result.records.iter().filter(|record| result.plan.plays(&record.configuration.subject, FORKS));
    let ceiling = figures.flat_map(|record| &record.figures).find(|figure| figure.name == CEILING);
    let here = ceiling.map_or_else(String::new, |ceiling| {
        format!("; here there is room for {:.0} ({})", ceiling.value, ceiling.formula)
    });
    (CannotTell, format!("no result can: this is another machine than a board with 8 MiB{here}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::judge;
    use doorbell_results::configuration::{Configuration, Pattern, Placement};
    use doorbell_results::machine::virtualisation::Vm;
    use doorbell_results::record::{Figure, Histogram, Outcome, Record, Series, sample};

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
            record.series.clear();
            let mut histogram = Histogram::new();
            (0..20).for_each(|_| histogram.record((ns(&record.configuration.subject, tasks) * 1e3) as u64));
            let headline = if yields == 0 { Quantity::Life } else { Quantity::HandOff };
            for quantity in [headline, Quantity::Create] {
                record.series.insert(quantity, Series::from(&histogram));
            }
        }
        result
    }

    fn decision(result: &ResultFile, says: &str) -> (Decision, String) {
        let claim = SOURCE.claims.iter().find(|claim| claim.says.contains(says)).unwrap();
        (claim.judge)(result)
    }

    /// A machine on which a coroutine takes 10 ns, a process 1000 ns more, and an element of the study's queue 2 ns.
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
        assert_eq!(decision(&result, "less time as coroutines").0, Confirmed);
        assert_eq!(decision(&result, "1.31 to 1.63").0, Contradicted);
        assert_eq!(decision(&result, "lag behind").0, Confirmed);
        let (ruled, evidence) = decision(&result, "is the switch");
        assert_eq!(ruled, Confirmed, "{evidence}");
        assert!(evidence.contains("91 and 97 % of a coroutine's time"), "{evidence}");
        assert!(evidence.contains("polls no future"), "{evidence}");
        let (ruled, evidence) = decision(&result, "2.8 to 5.4 times");
        assert_eq!(ruled, Contradicted, "125 to 333 times are not 5.4");
        assert!(evidence.contains("more than claimed"), "{evidence}");
        assert_eq!(decision(&result, "at least 37 times").0, Confirmed);
        assert_eq!(decision(&result, "the same among 50").0, Confirmed);
        assert_eq!(decision(&result, "10 repetitions").0, Confirmed);
        assert_eq!(decision(&result, "5000 units").0, CannotTell);
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
        assert!(evidence.contains("at 80, less than claimed; on a queue that is O(1) 40.0"), "{evidence}");
        // Where only the quick queue was measured, its slower one may make any ratio smaller, and none greater.
        result.records.retain(|record| record.configuration.subject != "life-future-rotating");
        result.plan.configurations.retain(|configuration| configuration.subject != "life-future-rotating");
        let (ruled, evidence) = decision(&result, "at least 37 times");
        assert_eq!(ruled, CannotTell, "{evidence}");
        assert!(evidence.contains("it was not measured"), "{evidence}");
        assert_eq!(decision(&result, "2.8 to 5.4 times").0, CannotTell);
        for record in &mut result.records {
            if record.configuration.subject == "life-fork" {
                let quick = Series::from(&sample::histogram(200.0, 20));
                record.series.insert(Quantity::Life, quick);
            }
        }
        for says in ["at least 37 times", "2.8 to 5.4 times"] {
            assert_eq!(
                decision(&result, says).0,
                Contradicted,
                "twice as long on the quicker queue is less on the other"
            );
        }
    }

    #[test]
    fn a_configuration_that_was_skipped_and_a_run_of_few_generations_contradict_no_condition() {
        let mut result = run(plain);
        result.records[3].outcome = Outcome::Skipped { reason: "ulimit -u".to_owned() };
        result.records[3].series.clear();
        assert_eq!(decision(&result, "10 repetitions").0, Confirmed);
        let few = Series::from(&sample::histogram(100.0, 2));
        result.records[4].series.insert(Quantity::Create, few);
        let (ruled, evidence) = decision(&result, "10 repetitions");
        assert_eq!(ruled, CannotTell);
        assert!(evidence.contains("at least 2 generations"), "{evidence}");
    }

    #[test]
    fn processes_on_two_cpus_are_not_held_against_coroutines_on_one() {
        let mut result = run(plain);
        let configurations = result
            .plan
            .configurations
            .iter_mut()
            .chain(result.records.iter_mut().map(|record| &mut record.configuration));
        configurations
            .filter(|configuration| configuration.subject == "process-pair-rotating")
            .for_each(|configuration| configuration.placement = on([0, 1]));
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
        result.machine.virtualisation.vm = Some(Vm {
            accelerator: "tcg".to_owned(),
            emulator: "QEMU".to_owned(),
            nested: false,
            emulated: true,
            host: None,
            deterministic: true,
        });
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
        assert!(ruled[0].1.contains("of 8 ratios 8 are nearer"), "{}", ruled[0].1);
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
        let figure =
            |value| Figure { name: ticks::RUNS.into(), value, unit: "runs".into(), formula: String::new() };
        record.figures = vec![figure(10.0)];
        ticked.plan.configurations.push(record.configuration.clone());
        ticked.records.push(record);
        assert_eq!(decision(&ticked, "10 repetitions").0, Confirmed);
        ticked.records.last_mut().unwrap().figures = vec![figure(9.0)];
        assert_eq!(decision(&ticked, "10 repetitions").0, CannotTell);
    }

    #[test]
    fn ticks_longer_than_the_run_they_time_are_a_contradiction_with_figures() {
        let mut result = run(plain);
        let mut record = result.records[0].clone();
        record.configuration.subject = "timer-ticks".to_owned();
        for (tasks, step) in [(380, 13.0), (100, 210.0)] {
            record.configuration.pattern = Pattern::Tasks { tasks, yields: 1 };
            record.figures = [(ticks::STEP, step), (ticks::WORST, step / 3.0)]
                .map(|(name, value)| Figure {
                    name: name.into(),
                    value,
                    unit: "%".into(),
                    formula: String::new(),
                })
                .into();
            result.plan.configurations.push(record.configuration.clone());
            result.records.push(record.clone());
        }
        let (ruled, evidence) = decision(&result, "5000 units");
        assert_eq!(ruled, Contradicted);
        let says = "one tick is 210 % of a run of 100 tasks, 13 % of one of 380; means of ten runs were off by up to 70 %";
        assert_eq!(evidence, says);
        for record in result.records.iter_mut().filter(|record| record.configuration.subject == "timer-ticks")
        {
            record.outcome = Outcome::Failed { cause: "killed".to_owned() };
        }
        assert_eq!(decision(&result, "5000 units").0, CannotTell, "what failed decides nothing");
    }
}
