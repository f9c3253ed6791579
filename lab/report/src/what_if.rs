// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change at an edge of a recorded program would do, in words.

use std::time::Duration;

use super::style::Style;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, alike, count, time_ns};
use crate::wording::counted;
use doorbell_results::anatomy::program::{Edge, Engine};
use doorbell_results::record::ResultFile;
use doorbell_results::record::change::Policy;
use doorbell_verdict::what_if::{self, BUSY, Change, FEWEST, Kind, Refusal, STEADY, Tried, WhatIf, Within};

/// What was found of `change` at the edge called `letter`, or why nothing was.
pub fn told(letter: &str, change: &Change, found: &Result<WhatIf, Refusal>, style: &Style) -> String {
    let what_if = match found {
        Ok(what_if) => what_if,
        Err(refusal) => {
            let line =
                format!("What it would do if {} is not known: {}.", named(letter, change), why(refusal));
            return style.wrap(&line, 0);
        }
    };
    let WhatIf { wakes, spared, p50_now_ns, p50_ns, cpu, busy } = what_if;
    let Within { value, low, high } = p50_ns;
    let scale = Scale::for_ps([p50_now_ns * 1e3]);
    let show = |ns: &f64| scale.show(ns * 1e3);
    let mut table = Table::new(vec![
        word("What if"),
        word(format!("p50, {}", scale.unit.sign())),
        word("CPU, cores"),
        number("spared"),
    ]);
    table.row(vec![
        named(letter, change),
        format!("{} → {} [{}, {}]", show(p50_now_ns), show(value), show(low), show(high)),
        format!("{} [{}, {}]", cores(cpu.value), cores(cpu.low), cores(cpu.high)),
        format!("{:.0} %", 100.0 * spared),
    ]);
    let how = match change {
        Change::Spin(_) => "the waits gone through again, each as if the thread spun first",
        Change::Pin(_) => {
            "p50 is how long the waker stayed on its CPU after it woke; CPU is by this machine's \
             round trips on one CPU and on two"
        }
        Change::Mechanism(_) => {
            "both figures are those of the record and the difference between this machine's round \
             trips by the two"
        }
        Change::Batch(_) => "each notification waits for the end of its batch",
        Change::Nice(_) | Change::Scheduler(_) | Change::TimerSlack(_) => "by what was measured here",
    };
    let believe = format!(
        "{}, of a thread that was awake for {:.0} % of the time: {how}. 95 % intervals are from \
         resampled stretches of the record. CPU is that of waker and waiter together. p99 is not \
         predicted: what comes while the thread is awake leaves no event.",
        counted(*wakes, "wake-up"),
        100.0 * busy
    );
    table.render(style) + &style.wrap(&believe, 0)
}

/// The best spin, and one CPU for both, at the worst edges: a table for the first screen.
pub fn first(result: &ResultFile) -> Subsection {
    let tried = what_if::first(result);
    let lead = match what_if::program(result) {
        Some(program) if program.engine == Engine::Own => Vec::new(),
        Some(program) if program.machine_costs.is_none() && !program.edges.is_empty() => vec![
            "What if it spun, or ran on one CPU? `doorbell trace whatif` says so, once it has \
             measured for ten seconds what that costs here."
                .to_owned(),
        ],
        _ => Vec::new(),
    };
    let now = tried.iter().filter_map(|tried| Some(tried.found.as_ref().ok()?.1.p50_now_ns * 1e3));
    let scale = Scale::for_ps(now);
    let mut table = Table::new(vec![
        word("What if"),
        word(format!("p50, {}", scale.unit.sign())),
        word("CPU, cores"),
        word("believe"),
    ]);
    for Tried { place, kind, found } in &tried {
        let letter = Edge::letter(*place);
        let row = match found {
            Ok((change, WhatIf { p50_now_ns, p50_ns, cpu, busy, .. })) => vec![
                named(&letter, change),
                format!("{} → {}", scale.show(p50_now_ns * 1e3), scale.show(p50_ns.value * 1e3)),
                cores(cpu.value),
                match kind {
                    Kind::Spin => format!("replayed, {:.0} % busy", 100.0 * busy),
                    Kind::Pin => "by when the waker leaves".to_owned(),
                },
            ],
            Err(refusal) => {
                let asked = match kind {
                    Kind::Spin => "spins",
                    Kind::Pin => "on one CPU",
                };
                vec![format!("{letter} {asked}"), "?".to_owned(), "?".to_owned(), in_short(refusal)]
            }
        };
        table.row(row);
    }
    Subsection { lead, table: Some(table).filter(|table| !table.is_empty()), ..Subsection::default() }
}

/// A change at the edge called `letter`.
pub fn named(letter: &str, change: &Change) -> String {
    let told = |span: &Duration| time_ns(span.as_nanos() as f64);
    match change {
        Change::Spin(spin) => format!("{letter} spins {}", told(spin)),
        Change::Pin([one, other]) if one == other => format!("{letter} on CPU {one}"),
        Change::Pin([one, other]) => format!("{letter} on CPUs {one} and {other}"),
        Change::Mechanism(mechanism) => format!("{letter} by {mechanism}"),
        Change::Batch(batch) => format!("{letter} in batches of {}", told(batch)),
        Change::Nice(nice) => format!("{letter} at nice {nice}"),
        Change::Scheduler(Policy::Other) => format!("{letter} under SCHED_OTHER"),
        Change::Scheduler(Policy::Batch) => format!("{letter} under SCHED_BATCH"),
        Change::Scheduler(Policy::Fifo(priority)) => format!("{letter} under SCHED_FIFO {priority}"),
        Change::TimerSlack(slack) => format!("{letter} with timer slack {}", told(slack)),
    }
}

/// Why a change has no prediction, if nobody measured what it does.
pub fn unpriced(change: &Change) -> String {
    format!("nothing that was measured here says what {change} does to this edge")
}

fn cores(share: f64) -> String {
    format!("{share:+.3}")
}

/// A refusal in a column.
fn in_short(refusal: &Refusal) -> String {
    let percent = |share: &f64| format!("{:.0} %", 100.0 * share);
    match refusal {
        Refusal::TooShort { wakes } => format!("too few: {}", counted(*wakes as u64, "wake-up")),
        Refusal::Busy { share } => format!("thread {} busy", percent(share)),
        Refusal::Unsteady { .. } => "the load changed".to_owned(),
        Refusal::OneCpu => "there is one CPU".to_owned(),
        Refusal::NoGain { longest } => {
            format!("no gain up to {}", time_ns(longest.as_nanos() as f64))
        }
        Refusal::NoThread => "woken from outside".to_owned(),
        Refusal::WakerUnseen { .. } => "waker's leaving not seen".to_owned(),
        Refusal::WakerGoesOn { ran_ns, .. } => format!("waker goes on for {}", time_ns(*ran_ns)),
        Refusal::TooBusyTogether { share } => format!("both {} busy", percent(share)),
        Refusal::NotKept => "too rare".to_owned(),
        Refusal::NoCosts | Refusal::NoPrice { .. } => "not measured here".to_owned(),
        Refusal::NoProgram
        | Refusal::WakesUnseen
        | Refusal::NoEdge { .. }
        | Refusal::Apart
        | Refusal::NoCpu { .. }
        | Refusal::NotListed
        | Refusal::SameMechanism { .. }
        | Refusal::Unpriced { .. } => "not known".to_owned(),
    }
}

pub(super) fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoProgram => "the result is of no recorded program; `doorbell trace` makes one".to_owned(),
        Refusal::NoEdge { edges } => {
            format!(
                "it has no such edge, only {}; `doorbell show --details` has their letters",
                counted(*edges as u64, "edge")
            )
        }
        Refusal::WakesUnseen => {
            "who woke its threads, and when, `--engine own` is not told; `--engine bpf` and \
             `--engine tracefs` are"
                .to_owned()
        }
        Refusal::NotKept => {
            "of so rare an edge the wake-ups are not kept one by one; only those of the first \
             twelve are"
                .to_owned()
        }
        Refusal::TooShort { wakes } => format!(
            "{} of it were recorded, and it takes {}; record for longer with --time",
            counted(*wakes as u64, "wake-up"),
            count(FEWEST as u64)
        ),
        Refusal::Busy { share } => format!(
            "its thread was awake for {:.0} % of the time, and beyond {:.0} % messages queue up, \
             which leaves no event",
            100.0 * share,
            100.0 * BUSY
        ),
        Refusal::Unsteady { halves_ns } => {
            let [first, second] = alike(halves_ns.map(|ns| ns * 1e3));
            format!(
                "the program changed while it was recorded: the median sleep was {first} in the \
                 first half and {second} in the second, and they may differ by a factor of {STEADY}"
            )
        }
        Refusal::OneCpu => "on one CPU a spinning waiter keeps its waker from running".to_owned(),
        Refusal::NoCosts => {
            "the result given with --costs has no back-to-back round trips of both a spinning and \
             a sleeping waiter on two CPUs; `doorbell tune -o FILE` makes one"
                .to_owned()
        }
        Refusal::NoPrice { mechanism, same_cpu } => format!(
            "what a wake-up by {mechanism} costs on {} was not measured; `doorbell pairs \
             {mechanism} futex spin -o FILE` does, and `--costs FILE` reads it",
            if *same_cpu { "one CPU" } else { "those two CPUs" }
        ),
        Refusal::NoGain { longest } => format!(
            "no spin up to {} saves more waiting than it costs CPU time",
            time_ns(longest.as_nanos() as f64)
        ),
        Refusal::Apart => {
            "where the two ran is not in the record, so only one CPU for both can be held against \
             it: pin=0,0"
                .to_owned()
        }
        Refusal::NoCpu { cpu } => format!("the machine has no CPU {cpu} that the recorder might use"),
        Refusal::NoThread => {
            "it is woken by the kernel or by another program, and pinning moves only threads of \
             this one"
                .to_owned()
        }
        Refusal::WakerUnseen { share } => format!(
            "how long the waker stayed on its CPU was seen of {:.0} % of the wake-ups; record it \
             again, with all its processes (-p, --children)",
            100.0 * share
        ),
        Refusal::WakerGoesOn { ran_ns, wake_ns } => {
            let [ran, wake] = alike([ran_ns * 1e3, wake_ns * 1e3]);
            format!(
                "the waker works on for {ran} after it woke, and whether the scheduler lets the \
                 waiter in before is not known (a wake-up on one CPU takes {wake})"
            )
        }
        Refusal::TooBusyTogether { share } => {
            format!("both threads together would take {:.0} % of one CPU", 100.0 * share)
        }
        Refusal::NotListed => "by what it wakes is nothing that `doorbell list` has and could \
            measure"
            .to_owned(),
        Refusal::SameMechanism { mechanism } => format!("it wakes by {mechanism} already"),
        Refusal::Unpriced { change } => {
            format!("{}; `--verify -- COMMAND` tries it", unpriced(change))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_has_both_figures_their_intervals_and_how_far_to_believe_it() {
        let within = |value: f64| Within { value, low: value * 0.9, high: value * 1.1 };
        let what_if = WhatIf {
            wakes: 2000,
            spared: 0.9,
            p50_now_ns: 33_000.0,
            p50_ns: within(300.0),
            cpu: within(0.01),
            busy: 0.04,
        };
        let style = Style { width: 80, color: false, unicode: true };
        let text = told("A", &Change::Spin(Duration::from_micros(18)), &Ok(what_if), &style);
        assert!(text.lines().all(|line| crate::style::width(line) <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn every_refusal_says_why_and_what_to_do_or_what_the_limit_is() {
        for (refusal, part) in [
            (Refusal::NoProgram, "doorbell trace"),
            (Refusal::NoEdge { edges: 2 }, "only 2 edges"),
            (Refusal::NotKept, "first twelve"),
            (Refusal::TooShort { wakes: 3 }, "it takes 300"),
            (Refusal::Busy { share: 0.5 }, "beyond 30 %"),
            (Refusal::Unsteady { halves_ns: [1e3, 2e3] }, "factor of 1.5"),
            (Refusal::OneCpu, "one CPU"),
            (Refusal::NoCosts, "doorbell tune"),
            (Refusal::NoPrice { mechanism: "pipe".to_owned(), same_cpu: true }, "doorbell pairs pipe"),
            (Refusal::NoGain { longest: Duration::from_micros(500) }, "no spin up to 500"),
            (Refusal::Apart, "pin=0,0"),
            (Refusal::NoCpu { cpu: 9 }, "no CPU 9"),
            (Refusal::NoThread, "only threads of this one"),
            (Refusal::WakerUnseen { share: 0.1 }, "10 % of the wake-ups"),
            (Refusal::WakerGoesOn { ran_ns: 4e4, wake_ns: 1500.0 }, "works on for 40"),
            (Refusal::TooBusyTogether { share: 1.1 }, "110 % of one CPU"),
            (Refusal::NotListed, "doorbell list"),
            (Refusal::SameMechanism { mechanism: "futex".to_owned() }, "by futex already"),
            (Refusal::Unpriced { change: Change::Nice(-10) }, "what nice=-10 does to this edge; `--verify"),
        ] {
            let short = in_short(&refusal);
            assert!(short.chars().count() <= 24, "a column has no room for it: {short}");
            let text = told("B", &Change::Pin([0, 0]), &Err(refusal), &Style::PLAIN);
            // Wherever lines are broken.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("B on CPU 0") && text.contains(part), "{text}");
        }
    }
}
