// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of the makers of tornado-os: switching between coroutines against switching between processes, and running
//! many tasks against forking as many processes.

use super::{Claim, Ruling, Source, TOO_NEAR, against};
use crate::experiment::tasks::{BOARD, MAKING, SWITCHING};
use crate::experiment::tasks_limits::CEILING;
use crate::record::series::Quantity;
use crate::record::{Figure, ResultFile};
use crate::task::timer_ticks as ticks;
use crate::trial::cell::Pattern;

use Ruling::{CannotTell, Confirmed, Contradicted};

/// The study.
pub static SOURCE: Source = Source {
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
            says: "K210: the more tasks the less processes lag behind, from 1.37 times at 100 to 1.01 times at 380",
            judge: lag_shrinks,
        },
        Claim {
            row: None,
            says: "all but the switch of context is alike in both, so what lies between them is the switch",
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
            judge: |result| fork_takes(result, &MAKING, 2.85),
        },
        Claim {
            row: None,
            says: "K210: for 10 to 80 of them at least 37 times",
            judge: |result| fork_takes(result, &BOARD, 37.3),
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
                let text = "those are times of an emulator and of a board of 403 MHz; ratios and growth are judged above";
                (CannotTell, text.to_owned())
            },
        },
    ],
};

/// Its coroutines and its processes, on its queue.
const COROUTINES: &str = "stackless-rotating";
const PROCESSES: &str = "process-pair-rotating";

/// What brings the missing cells.
const MORE: &str = "--document runs them";

/// The median of `quantity` of the arm of `subject` with `tasks` tasks of `yields` turns, unloaded and without a working set;
/// nanoseconds.
fn median(result: &ResultFile, subject: &str, [tasks, yields]: [u32; 2], quantity: Quantity) -> Option<f64> {
    let arms = result.arms();
    let arm = arms.iter().find(|arm| {
        let cell = arm.cell;
        cell.subject == subject
            && cell.pattern == Pattern::Tasks { tasks, yields }
            && cell.size == 0
            && cell.load.is_none()
    })?;
    Some(arm.histogram(quantity)?.quantile(0.5) as f64 / 1e3)
}

fn hand_off(result: &ResultFile, subject: &str, tasks: u32) -> Option<f64> {
    median(result, subject, [tasks, 1], Quantity::HandOff)
}

fn life(result: &ResultFile, subject: &str, tasks: u32) -> Option<f64> {
    median(result, subject, [tasks, 0], Quantity::Life)
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

/// Where cells are missing, what there is decides nothing but a contradiction.
fn unless_missing(ruling: Ruling, missing: usize, text: String) -> (Ruling, String) {
    match (ruling, missing) {
        (Confirmed, 1..) => (CannotTell, format!("{text}; {missing} numbers of tasks are missing ({MORE})")),
        _ => (ruling, text),
    }
}

fn none() -> (Ruling, String) {
    (CannotTell, format!("no such cells were measured; {MORE}"))
}

fn coroutines_win(result: &ResultFile) -> (Ruling, String) {
    let (lags, missing) = over(&SWITCHING, |tasks| lag(result, tasks));
    if lags.is_empty() {
        return none();
    }
    let text = format!("in processes {}, both on the study's queue", listed(&lags, " times as long"));
    let sides: Vec<_> = lags.iter().map(|(_, lag)| against(*lag, 1.0)).collect();
    let ruling = if sides.contains(&Some(std::cmp::Ordering::Less)) {
        Contradicted
    } else if sides.contains(&None) {
        CannotTell
    } else {
        Confirmed
    };
    unless_missing(ruling, missing, text)
}

fn ratio_is_as_printed(result: &ResultFile) -> (Ruling, String) {
    let (lags, missing) = over(&SWITCHING, |tasks| lag(result, tasks));
    if lags.is_empty() {
        return none();
    }
    let inside = |(_, lag): &&(u32, f64)| (1.31 * (1.0 - TOO_NEAR)..=1.63 * (1.0 + TOO_NEAR)).contains(lag);
    let within = lags.iter().filter(inside).count();
    let text = format!("{}; {within} of {} within", listed(&lags, " times"), lags.len());
    unless_missing(if within == lags.len() { Confirmed } else { Contradicted }, missing, text)
}

fn lag_shrinks(result: &ResultFile) -> (Ruling, String) {
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
/// the switch lay between them.
fn difference_is_the_switch(result: &ResultFile) -> (Ruling, String) {
    let at = |tasks| {
        let slow = hand_off(result, COROUTINES, tasks)?;
        let quick = hand_off(result, "stackless", tasks)?;
        let bare = hand_off(result, "process-pair", tasks)? / quick;
        Some((lag(result, tasks)?, bare, (1.0 - quick / slow) * 100.0))
    };
    let Some(((few, few_bare, few_share), (many, many_bare, many_share))) =
        at(SWITCHING[0]).zip(at(SWITCHING[7]))
    else {
        return none();
    };
    let text = format!(
        "the study's queue is {few_share:.0} % of a coroutine's time at 100 tasks and {many_share:.0} % at 380; without it \
         processes take {few_bare:.1} and {many_bare:.1} times as long, with it {few:.1} and {many:.1} times"
    );
    match (against(few, few_bare), against(many, many_bare)) {
        (None, None) => (Confirmed, text),
        (Some(_), Some(_)) => (Contradicted, text),
        _ => (CannotTell, text),
    }
}

fn tasks_slow_each_other(result: &ResultFile) -> (Ruling, String) {
    let grown = |subject| {
        let many = hand_off(result, subject, SWITCHING[7])?;
        Some(many / hand_off(result, subject, SWITCHING[0])?)
    };
    let Some(ratio) = grown(COROUTINES) else { return none() };
    let bare =
        grown("stackless").map_or_else(String::new, |bare| format!(", on the O(1) queue {bare:.2} times"));
    let text = format!("on the study's queue {ratio:.2} times{bare}");
    match against(ratio, 1.0) {
        Some(std::cmp::Ordering::Greater) if against(ratio, 1.72).is_none() => (Confirmed, text),
        Some(std::cmp::Ordering::Greater) => (CannotTell, format!("it grows, but by another factor: {text}")),
        Some(_) => (Contradicted, text),
        None => (CannotTell, format!("too near: {text}")),
    }
}

fn fork_takes(result: &ResultFile, series: &[u32], least: f64) -> (Ruling, String) {
    let ratio = |tasks| Some(life(result, "life-fork", tasks)? / life(result, "life-future", tasks)?);
    let (ratios, missing) = over(series, ratio);
    let Some(lowest) = ratios.iter().map(|(_, ratio)| *ratio).min_by(f64::total_cmp) else { return none() };
    let text = format!("{}, with {least} asked for at the least", listed(&ratios, " times as long"));
    let ruling = match against(lowest, least) {
        Some(std::cmp::Ordering::Greater) => Confirmed,
        Some(_) => Contradicted,
        None => CannotTell,
    };
    unless_missing(ruling, missing, text)
}

fn forks_do_not_slow_each_other(result: &ResultFile) -> (Ruling, String) {
    let (each, missing) = over(&MAKING, |tasks| life(result, "life-fork", tasks));
    let extremes = each
        .iter()
        .map(|(_, ns)| *ns)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    if each.is_empty() {
        return none();
    }
    let apart = extremes.1 / extremes.0;
    let text = format!("{:.0} to {:.0} ns each, {apart:.2} times", extremes.0, extremes.1);
    let ruling = match against(apart, 1.2) {
        Some(std::cmp::Ordering::Less) => Confirmed,
        Some(_) => Contradicted,
        None => CannotTell,
    };
    unless_missing(ruling, missing, text)
}

/// The figure `name` of the trials of timer-ticks with the most tasks.
fn of_ticks<'a>(result: &'a ResultFile, name: &str) -> Option<&'a Figure> {
    let tasks = |record: &crate::record::Record| match record.cell.pattern {
        Pattern::Tasks { tasks, .. } => tasks,
        _ => 0,
    };
    let usable = result.records.iter().filter(|record| record.cell.subject == "timer-ticks");
    let record = usable.filter(|record| !record.figures.is_empty()).max_by_key(|record| tasks(record))?;
    record.figures.iter().find(|figure| figure.name == name)
}

fn ticks_tell(result: &ResultFile) -> (Ruling, String) {
    let (Some(step), Some(number)) = (of_ticks(result, ticks::STEP), of_ticks(result, ticks::TICKS)) else {
        return none();
    };
    let worst = of_ticks(result, ticks::WORST).map(|worst| worst.value);
    let off =
        worst.map_or_else(String::new, |worst| format!("; means of ten runs were off by up to {worst:.0} %"));
    let text = format!("{:.2} ticks a run, one tick is {:.0} % of it{off}", number.value, step.value);
    // The study's differences between neighbouring numbers of tasks begin at a tenth.
    match against(worst.unwrap_or(0.0).max(step.value), 10.0) {
        Some(std::cmp::Ordering::Less) => (Confirmed, text),
        Some(_) => (Contradicted, text),
        None => (CannotTell, text),
    }
}

fn ten_repetitions(result: &ResultFile) -> (Ruling, String) {
    let arms = result.arms();
    let counts = arms.iter().filter(|arm| matches!(arm.cell.pattern, Pattern::Tasks { .. })).map(|arm| {
        arm.usable()
            .filter_map(|record| record.series.get(&Quantity::Create))
            .map(|series| series.count)
            .sum::<u64>()
    });
    let Some(fewest) = counts.min() else { return none() };
    let text = format!("each cell here has at least {fewest} generations");
    (if fewest >= 10 { Confirmed } else { Contradicted }, text)
}

fn eighty_fit(result: &ResultFile) -> (Ruling, String) {
    let figures = result.records.iter().filter(|record| record.cell.subject == "life-fork");
    let ceiling = figures.flat_map(|record| &record.figures).find(|figure| figure.name == CEILING);
    let here = ceiling.map_or_else(String::new, |ceiling| {
        format!("; here there is room for {:.0} ({})", ceiling.value, ceiling.formula)
    });
    (CannotTell, format!("this is another machine than a board with 8 MiB{here}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Histogram, Record, Series, sample};
    use crate::trial::cell::Cell;
    use crate::verdict::claims::judge;

    /// A run of the study's experiments whose times are what `ns` says of kind and number.
    fn run(ns: impl Fn(&str, u32) -> f64) -> ResultFile {
        let mut cells = Vec::new();
        let cell = |subject: &str, tasks, yields| Cell {
            pattern: Pattern::Tasks { tasks, yields },
            ..sample::cell(subject)
        };
        for tasks in SWITCHING {
            for subject in ["stackless", COROUTINES, "process-pair", PROCESSES] {
                cells.push(cell(subject, tasks, 1));
            }
        }
        for tasks in MAKING.into_iter().chain(BOARD) {
            for subject in ["life-future", "life-fork"] {
                cells.push(cell(subject, tasks, 0));
            }
        }
        let mut result = sample::result(&cells, 1, |_, _| 1.0);
        result.plan.experiment = "tasks".to_owned();
        for record in &mut result.records {
            let Pattern::Tasks { tasks, yields } = record.cell.pattern else { continue };
            record.series.clear();
            let mut histogram = Histogram::new();
            (0..20).for_each(|_| histogram.record((ns(&record.cell.subject, tasks) * 1e3) as u64));
            let headline = if yields == 0 { Quantity::Life } else { Quantity::HandOff };
            for quantity in [headline, Quantity::Create] {
                record.series.insert(quantity, Series::from(&histogram));
            }
        }
        result
    }

    fn ruling(result: &ResultFile, says: &str) -> (Ruling, String) {
        let judged = judge(result).into_iter().find(|judged| judged.claim.says.contains(says)).unwrap();
        (judged.ruling, judged.evidence)
    }

    /// A machine on which a coroutine takes 10 ns, a process 1000 ns more, and an element of the study's queue 2 ns.
    fn plain(subject: &str, tasks: u32) -> f64 {
        let queue = f64::from(tasks);
        match subject {
            "stackless" => 10.0,
            COROUTINES => 10.0 + queue,
            "process-pair" => 1000.0,
            PROCESSES => 1000.0 + queue,
            "life-future" => 100.0,
            _ => 50_000.0,
        }
    }

    #[test]
    fn a_machine_with_costly_switches_confirms_the_order_and_contradicts_what_the_study_takes_it_for() {
        let result = run(plain);
        assert_eq!(ruling(&result, "less time as coroutines").0, Confirmed);
        assert_eq!(ruling(&result, "1.31 to 1.63").0, Contradicted);
        assert_eq!(ruling(&result, "lag behind").0, Confirmed);
        let (ruled, evidence) = ruling(&result, "is the switch");
        assert_eq!(ruled, Contradicted, "{evidence}");
        assert!(evidence.contains("91 % of a coroutine's time at 100 tasks and 97 % at 380"), "{evidence}");
        assert_eq!(ruling(&result, "2.8 to 5.4 times").0, Confirmed);
        assert_eq!(ruling(&result, "at least 37 times").0, Confirmed);
        assert_eq!(ruling(&result, "the same among 50").0, Confirmed);
        assert_eq!(ruling(&result, "10 repetitions").0, Confirmed);
        assert_eq!(ruling(&result, "5000 units").0, CannotTell);
    }

    #[test]
    fn a_machine_whose_processes_are_as_quick_contradicts_the_order() {
        let result = run(|subject, tasks| match subject {
            PROCESSES => plain(COROUTINES, tasks) * 0.8,
            "life-fork" => 90.0,
            _ => plain(subject, tasks),
        });
        assert_eq!(ruling(&result, "less time as coroutines").0, Contradicted);
        assert_eq!(ruling(&result, "2.8 to 5.4 times").0, Contradicted);
    }

    #[test]
    fn half_the_numbers_confirm_nothing_and_none_says_what_brings_them() {
        let mut result = run(plain);
        let few = |record: &Record| !matches!(record.cell.pattern, Pattern::Tasks { tasks: 200.., .. });
        result.records.retain(few);
        assert_eq!(ruling(&result, "less time as coroutines").0, CannotTell);
        result.records.clear();
        for judged in judge(&result) {
            assert_eq!(judged.ruling, CannotTell, "{}", judged.claim.says);
        }
        assert!(ruling(&result, "lag behind").1.contains("--document"));
    }

    #[test]
    fn ticks_longer_than_the_run_they_time_are_a_contradiction_with_figures() {
        let mut result = run(plain);
        let mut record = result.records[0].clone();
        record.cell.subject = "timer-ticks".to_owned();
        record.figures = [(ticks::STEP, 210.0), (ticks::TICKS, 0.48), (ticks::WORST, 90.0)]
            .map(|(name, value)| Figure {
                name: name.into(),
                value,
                unit: "%".into(),
                formula: String::new(),
            })
            .into();
        result.records.push(record);
        let (ruled, evidence) = ruling(&result, "5000 units");
        assert_eq!(ruled, Contradicted);
        assert!(evidence.contains("0.48 ticks a run, one tick is 210 %"), "{evidence}");
    }
}
