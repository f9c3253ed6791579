// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a change at an edge of a program, beside what was predicted, in words.

use super::columns::Columns;
use super::program::{mechanism, waker};
use super::style::Role;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, alike, count};
use super::what_if::{named, unpriced};
use crate::wording::counted;
use doorbell_results::record::change::Change;
use doorbell_results::record::question::{Verify, Within};
use doorbell_results::record::verdict::{Finding, Status};
use doorbell_verdict::what_if::verify::{Compared, Figure, Unverified, Verified};

/// What came of a prediction, or why nothing can be held against it.
pub fn verified(question: &Verify, found: &Result<Verified, Unverified>) -> Vec<Subsection> {
    let Verify { letter, change, .. } = question;
    let verified = match found {
        Ok(verified) => verified,
        Err(why) => {
            let title = format!("What came cannot be told: {}.", unverified(why));
            return vec![Subsection { title, role: Role::Error, ..Subsection::default() }];
        }
    };
    let title = match verified.held() {
        Status::Passed => "The prediction held.".to_owned(),
        Status::Failed => "The prediction did not hold.".to_owned(),
        Status::Inconclusive => "Whether the prediction held is not known.".to_owned(),
        Status::Answered => format!("Tried, and not predicted: {}.", unpriced(change)),
    };
    let role = if verified.held() == Status::Failed { Role::Error } else { Role::Heading };
    let edge = format!(
        "{}. Edge {letter}: {} wakes {} by {}.",
        named(letter, change),
        waker(&question.waker),
        question.waiter,
        mechanism(&question.mechanism)
    );
    let table = Some(compared(verified));
    let told = Subsection { title, role, lead: vec![edge], table, ..Subsection::default() };
    let lead = vec![notes(change, verified).join(" ")];
    vec![told, Subsection { lead, ..Subsection::default() }]
}

fn compared(verified: &Verified) -> Table {
    let predicted = verified.held() != Status::Answered;
    let head = format!("Real, {}", counted(2 * verified.blocks as u64, "run"));
    let show = |one: &Compared, value: f64| match one.figure {
        Figure::P50 => Scale::for_ps([one.now * 1e3]).show_ns(value),
        Figure::Cpu => format!("{value:.3}"),
        Figure::Wakes => count(value.max(0.0).round() as u64),
    };
    let percent = |share: f64| format!("{:+.0} %", 100.0 * share);
    Columns::none()
        .with(word(head), figure_name)
        .with(number("now"), |one| show(one, one.now))
        .with_if(predicted, word("predicted"), |one| {
            let predicted = one.predicted.as_ref();
            predicted.map_or_else(String::new, |predicted| within(predicted, |value| show(one, value)))
        })
        .with(word("came"), |one| within(&one.came, |value| show(one, value)))
        .with_if(predicted, word("off by"), |one| percent(one.error.value))
        .with_if(predicted, word("held"), |one| in_a_word(one.held).to_owned())
        .with_if(!predicted, word("change"), |one| within(&one.error, percent))
        .table(&verified.compared)
}

/// A value with its interval, where that is one.
fn within(Within { value, low, high }: &Within, show: impl Fn(f64) -> String) -> String {
    match low.is_finite() && high > low {
        true => format!("{} [{}, {}]", show(*value), show(*low), show(*high)),
        false => show(*value),
    }
}

fn figure_name(one: &Compared) -> String {
    match one.figure {
        Figure::P50 => format!("p50, {}", Scale::for_ps([one.now * 1e3]).unit.sign()),
        Figure::Cpu => "CPU, cores".to_owned(),
        Figure::Wakes => "wake-ups/s".to_owned(),
    }
}

fn in_a_word(held: Status) -> &'static str {
    match held {
        Status::Passed => "yes",
        Status::Failed => "no",
        Status::Inconclusive => "?",
        Status::Answered => "-",
    }
}

/// How that stands for programs.
pub fn status(found: &Result<Verified, Unverified>) -> Status {
    found.as_ref().map_or(Status::Inconclusive, Verified::held)
}

/// Each figure, for programs: what came with the change.
pub fn findings(question: &Verify, found: &Result<Verified, Unverified>) -> Vec<Finding> {
    let compared = found.iter().flat_map(|verified| &verified.compared);
    let told = compared.map(|Compared { figure, came, held, .. }| {
        let (name, unit) = match figure {
            Figure::P50 => ("p50", "ns"),
            Figure::Cpu => ("cpu", "ratio"),
            Figure::Wakes => ("wake-ups per second", "count"),
        };
        let configuration = named(&question.letter, &question.change);
        Finding::new(configuration, name, *held, unit).valued(came.value, Some([came.low, came.high]))
    });
    told.collect()
}

fn notes(change: &Change, verified: &Verified) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(both) = verified.stale {
        let [then, now] = alike(both.map(|ns| ns * 1e3));
        lines.push(format!(
            "The program is not what it was when it was recorded: without the change p50 was \
             {then} then and is {now} now; record it again."
        ));
    }
    if verified.compared.iter().any(|compared| compared.held == Status::Inconclusive) {
        lines.push(
            "Where there is a question mark the runs differ too much; more blocks (--blocks) and \
             longer runs (--time) tell more."
                .to_owned(),
        );
    }
    match change {
        Change::Spin(_) => lines.push(
            "What a spinning waiter is handed is no wake-up any more and leaves no event: its p50 \
             is not seen, and the wake-ups that are left are compared instead."
                .to_owned(),
        ),
        Change::Batch(_) => lines.push(
            "How long a notification waited for its batch leaves no event: the wake-ups that are \
             left are compared instead."
                .to_owned(),
        ),
        _ => {}
    }
    match &verified.lasted {
        Some(([before, after], Within { value, low, high })) => {
            let [before, after] = alike([before * 1e3, after * 1e3]);
            lines.push(format!(
                "A run took {before} without the change and {after} with it, {value:.3} times as \
                 long [{low:.3}, {high:.3}]."
            ));
        }
        None => lines.push(
            "How fast the program's own work went is not seen: its runs did not end by themselves."
                .to_owned(),
        ),
    }
    lines.push(
        "Runs without the change and with it came in turn; intervals are 95 %, from block to block."
            .to_owned(),
    );
    lines
}

fn unverified(why: &Unverified) -> String {
    match why {
        Unverified::NoBlock => "no two runs, with the change and without it, came to their end".to_owned(),
        Unverified::Several { name, threads } => format!(
            "{} are called {name}, and which of them the edge's is cannot be known in another run; \
             give threads names of their own",
            counted(*threads, "thread")
        ),
        Unverified::Gone => {
            "a run without the change has no such edge: is it the command that was recorded, and \
             with the same flags (--children)?"
                .to_owned()
        }
        Unverified::GoneWithChange => {
            "a run with the change has no such edge: nobody was woken so".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::fitted;
    use doorbell_results::anatomy::program::{By, Mechanism, Object, Wait, Waker};
    use std::time::Duration;

    #[test]
    fn what_came_stands_beside_what_was_predicted_with_whether_it_held() {
        let within = |value: f64| Within { value, low: value * 0.9, high: value * 1.1 };
        let of = |figure, now, value, held| {
            let (predicted, came) = (Some(within(value)), within(value * 1.05));
            Compared { figure, now, predicted, came, error: within(0.05), held }
        };
        let mut came = Verified {
            blocks: 5,
            compared: vec![
                of(Figure::P50, 33_000.0, 2000.0, Status::Passed),
                of(Figure::Cpu, 0.5, 0.4, Status::Inconclusive),
            ],
            stale: None,
            lasted: Some(([2e9, 1e9], within(0.5))),
        };
        let style = Style { width: 80, color: false, unicode: true };
        let told = |change: &Change, found: &Result<Verified, Unverified>| {
            let question = Verify {
                letter: "A".to_owned(),
                waker: Waker::Thread { name: "waker".to_owned() },
                waiter: "waiter".to_owned(),
                mechanism: Mechanism { wait: Wait::Child, object: Object::None, by: By::End },
                change: change.clone(),
                predicted: None,
            };
            let text = fitted(&verified(&question, found), 1..=9, 20, &style);
            assert!(text.lines().all(|line| crate::style::width(line) <= 80), "{text}");
            text
        };
        insta::assert_snapshot!("pinned", told(&Change::Pin([0, 0]), &Ok(came.clone())));
        let mut tried = came.clone();
        for compared in &mut tried.compared {
            (compared.predicted, compared.held) = (None, Status::Answered);
        }
        insta::assert_snapshot!("not_predicted", told(&Change::Nice(-10), &Ok(tried)));
        came.compared[1].figure = Figure::Wakes;
        came.lasted = None;
        came.stale = Some([33_000.0, 5000.0]);
        insta::assert_snapshot!("spun", told(&Change::Spin(Duration::from_micros(18)), &Ok(came)));
        for (why, part) in [
            (Unverified::NoBlock, "came to their end"),
            (Unverified::Several { name: "worker".to_owned(), threads: 4 }, "4 threads are called worker"),
            (Unverified::Gone, "--children"),
            (Unverified::GoneWithChange, "with the change"),
        ] {
            assert!(told(&Change::Pin([0, 0]), &Err(why)).replace('\n', " ").contains(part), "{part}");
        }
    }
}
