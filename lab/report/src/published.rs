// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two tables of the study whose claims a run of tasks is held against, as they were printed,
//! beside the same experiments here.

use super::columns::{Columns, dash};
use super::subsection::Subsection;
use super::table::{Table, number};
use super::wording::four_digits;
use doorbell_results::record::ResultFile;
use doorbell_verdict::claims::coroutines::{
    COROUTINES, COROUTINES_ALONE, FORKS, FUTURES, FUTURES_ROTATING, INTERVAL_NS, MAKING, PRINTED_MAKING,
    PRINTED_SWITCHING, PROCESSES, PROCESSES_ALONE, hand_off, life,
};

/// Both tables, as far as the result has their experiments.
pub(super) fn subsections(result: &ResultFile) -> [Option<Subsection>; 2] {
    use doorbell_verdict::claims::coroutines::SWITCHING;
    let run = |part: &'static str| {
        move |tasks: u32| Some(hand_off(result, part, tasks)? * f64::from(tasks) / INTERVAL_NS)
    };
    let lives =
        |part: &'static str| move |tasks: u32| Some(life(result, part, tasks)? * f64::from(tasks) / 1e3);
    let switching = table(
        &SWITCHING,
        &PRINTED_SWITCHING,
        [[&run(COROUTINES), &run(PROCESSES)], [&run(COROUTINES_ALONE), &run(PROCESSES_ALONE)]],
    );
    let making = table(
        &MAKING,
        &PRINTED_MAKING,
        [[&lives(FUTURES_ROTATING), &lives(FORKS)], [&lives(FUTURES), &lives(FORKS)]],
    );
    let queues = "First as printed (QEMU, a mean), then here on the study's queue, then on one \
        that is O(1). Times: by process as a multiple of by coroutine.";
    [
        Subsection::of_table(
            "The study's table of switching beside this run",
            switching,
            vec![format!(
                "{queues} All are whole runs, in intervals of 0.5 ms; here they are worked out \
                 from the medians and not counted."
            )],
        ),
        Subsection::of_table(
            "The study's table of making tasks beside this run",
            making,
            vec![format!(
                "{queues} Tasks made, run once and reaped. As printed in a unit that the study \
                 does not say, and processes on another kernel; here all tasks together, in µs."
            )],
        ),
    ]
}

/// By coroutine and by process.
type ByCoroutineAndProcess<'a> = [&'a dyn Fn(u32) -> Option<f64>; 2];

/// A number of tasks, and what it takes as printed, on the study's queue and on one that is O(1).
type Line = (u32, [[Option<f64>; 2]; 3]);

fn table(numbers: &[u32], printed: &[[f64; 2]], here: [ByCoroutineAndProcess<'_>; 2]) -> Table {
    let line = |(tasks, printed): (&u32, &[f64; 2])| {
        let [own, quick] = here.map(|sides| sides.map(|side| side(*tasks)));
        (*tasks, [printed.map(Some), own, quick])
    };
    let mut lines: Vec<Line> = numbers.iter().zip(printed).map(line).collect();
    lines.retain(|(_, [_, here @ ..])| here.iter().flatten().any(Option::is_some));
    let heads = [
        [number("printed: coroutine"), number("printed: process"), number("printed: times")],
        [number("its queue: coroutine"), number("its queue: process"), number("its queue: times")],
        [number("O(1): coroutine"), number("O(1): process"), number("O(1): times")],
    ];
    let cell = |(_, all): &Line, of: usize, what: usize| match (all[of], what) {
        ([coroutine, process], 2) => coroutine.zip(process).map(|(coroutine, process)| process / coroutine),
        (both, what) => both[what],
    };
    let mut columns = Columns::none().with(number("tasks"), |(tasks, _): &Line| tasks.to_string());
    for (of, heads) in heads.into_iter().enumerate() {
        columns = columns.each(heads.into_iter().zip(0..), move |line, what| {
            cell(line, of, *what).map_or_else(dash, four_digits)
        });
    }
    columns.table(&lines)
}
