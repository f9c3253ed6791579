// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which mechanism, in words, and the table behind it.

use super::answer::could_be;
use super::axis::relation;
use super::columns::{Columns, dash};
use super::figures::percentile;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, alike, count, time, time_ns};
use crate::wording::{counted, multiple};
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::question::{By, Pick, Shape};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::verdict::{Finding, Status};
use doorbell_verdict::pick::{Picked, Ranked, Unfit};
use doorbell_verdict::ratio::Standing;

/// Names in the verdict before the rest becomes a number.
const NAMES: usize = 4;

/// The verdict, the ranked table, and what the others lack.
pub fn subsections(picked: &Picked, question: &Pick) -> Vec<Subsection> {
    let mut lead = Vec::new();
    if question.shape == Shape::ManyToOne {
        let note = "What was measured is one notifier of many: all these take any number, and how \
            they get in each other's way was not measured.";
        lead.push(note.to_owned());
    }
    let out = Columns::none()
        .with(word("not a candidate"), |(subject, _): &(String, Unfit)| subject.clone())
        .with(word("why"), |(_, why)| why.to_string())
        .table(&picked.out);
    let title = format!("Left out: {}", counted(picked.out.len() as u64, "mechanism"));
    let told = Subsection { title: verdict(picked, question), lead, ..Subsection::default() };
    let out = Subsection::of_table(title, out, Vec::new()).map(Subsection::aside);
    let tables = [table(picked, question), out];
    std::iter::once(told).chain(tables.into_iter().flatten()).collect()
}

fn measured(picked: &Picked) -> &'static str {
    match picked.quantity {
        Quantity::RoundTrip => "a round trip",
        Quantity::LastWake => "until the last is awake",
        _ => "a wake-up",
    }
}

/// The verdict in a sentence or two.
pub fn verdict(picked: &Picked, question: &Pick) -> String {
    if question.traffic.is_some() {
        return under(picked, question);
    }
    let by = match question.by {
        By::P50 => "",
        By::P99 => " at the 99th percentile",
    };
    let figure = |ranked: &Ranked| {
        let ps = match question.by {
            By::P50 => ranked.figures_ps[0],
            By::P99 => ranked.figures_ps[1],
        };
        let cpu = ranked.cpu_ns.map_or_else(String::new, |cpu| format!(" and {} of CPU", time_ns(cpu)));
        format!("{} {}{by}{cpu}", time(ps as f64), measured(picked))
    };
    let behind = |ranked: &Ranked| {
        ranked.behind.map_or_else(
            || "may take as long or longer (inconclusive)".to_owned(),
            |ratio| format!("takes {}", multiple(ratio, " times as long")),
        )
    };
    match (&picked.choice, &picked.ranked[..]) {
        (Ok(1), [best, rest @ ..]) => {
            let second = match rest {
                [] => "nothing else that serves the needs was measured".to_owned(),
                [second, ..] => format!("the runner-up, {}, {}", second.subject, behind(second)),
            };
            format!("Use {}: {}; {second}.", best.subject, figure(best))
        }
        (Ok(open), ranked) => {
            let names: Vec<String> = ranked.iter().take(*open).enumerate().map(named).collect();
            let shown = match names.len() {
                0..=NAMES => names.join(", "),
                all => format!("{} and {} more", names[..NAMES].join(", "), all - NAMES),
            };
            let best = ranked.first().map(figure).unwrap_or_default();
            let next = ranked.get(*open).map_or_else(
                || "nothing else that serves the needs was measured".to_owned(),
                |next| format!("the next, {}, {}", next.subject, behind(next)),
            );
            let open = ranked[..*open].iter().any(|ranked| ranked.standing == Standing::Inconclusive);
            let lead = if open { "Any may be the fastest of" } else { "Use any of" };
            format!("{lead} {shown}: {best} for the first; {next}.")
        }
        (Err(why), _) => format!("Inconclusive: {why}."),
    }
}

/// Each mechanism against the best, for programs.
pub fn findings(picked: &Picked, question: &Pick) -> Vec<Finding> {
    let (figure, place) = match question.by {
        By::P50 => ("p50", 0),
        By::P99 => ("p99", 1),
    };
    let told = picked.ranked.iter().enumerate().map(|(rank, ranked)| {
        let (status, why) = match (rank, ranked.standing) {
            (0, _) => (Status::Answered, "the best".to_owned()),
            (_, Standing::Slower) => (Status::Answered, "slower".to_owned()),
            (_, Standing::Faster) => (Status::Answered, "faster".to_owned()),
            (_, Standing::Same { within }) => {
                (Status::Answered, format!("the same within {:.1} %", within * 100.0))
            }
            (_, Standing::Inconclusive) => (Status::Inconclusive, "inconclusive".to_owned()),
        };
        let name = if question.traffic.is_some() { way(ranked) } else { ranked.subject.clone() };
        let finding = Finding::new(name, figure, status, "ns").because(why);
        // The interval is that of the multiple of the best.
        match ranked.behind {
            Some(ratio) => Finding {
                unit: "ratio".to_owned(),
                ..finding.valued(ratio.estimate, Some([ratio.low, ratio.high]))
            },
            None => finding.valued(ranked.figures_ps[place] as f64 / 1e3, None),
        }
    });
    told.collect()
}

/// The verdict on wake-ups that come as they do: what to use, what to
/// expect, what comes second, and how sure it is.
fn under(picked: &Picked, question: &Pick) -> String {
    let best = match (&picked.choice, picked.ranked.first()) {
        (Err(why), None) => return format!("Inconclusive: {why}{}.", nearest(picked)),
        (Err(why), _) => return format!("Inconclusive: {why}."),
        (_, None) => return "Inconclusive: nothing has figures.".to_owned(),
        (_, Some(best)) => best,
    };
    let share = |ranked: &Ranked| {
        ranked.cpu_ns.map_or_else(
            || "CPU time not counted".to_owned(),
            |cpu| format!("{:.0} % of a CPU", cpu * 100.0 / question.gap_ns.max(1) as f64),
        )
    };
    let open = picked.ranked.iter().filter(|ranked| ranked.standing != Standing::Slower).count();
    let second = match picked.ranked.get(1) {
        None => "Nothing else that serves was measured.".to_owned(),
        Some(second) => {
            let behind = second.behind.map_or_else(
                || "how much longer is inconclusive".to_owned(),
                |ratio| multiple(ratio, " times as long"),
            );
            format!("Second, {}: {behind}, {}.", way(second), share(second))
        }
    };
    let sure = match (open, picked.ranked.len()) {
        (_, 1) => String::new(),
        (1, _) => " All others are slower, sure in 95 of 100 runs.".to_owned(),
        (open, all) if open == all => {
            " None of them is shown to be slower; this one takes the least CPU time.".to_owned()
        }
        (open, all) => format!(
            " {} not shown to be slower and take more CPU time; {} slower, sure in 95 of 100 runs.",
            if open == 2 { "One other is".to_owned() } else { format!("{} others are", open - 1) },
            if all - open == 1 { "one is".to_owned() } else { format!("{} are", all - open) },
        ),
    };
    let [p50, p99] = alike([best.figures_ps[0] as f64, best.figures_ps[1] as f64]);
    format!(
        "Use {}: awake {p50} after it is due (p50), {p99} (p99), for {}. {second}{sure}",
        way(best),
        share(best),
    )
}

/// Where nothing is cheap enough, the cheapest of what is too dear.
fn nearest(picked: &Picked) -> String {
    let too_dear = picked.out.iter().filter_map(|(name, why)| match why {
        Unfit::TooDear { takes, .. } => Some((name, why, *takes)),
        Unfit::Other(_) => None,
    });
    too_dear
        .min_by(|a, b| a.2.total_cmp(&b.2))
        .map_or_else(String::new, |(name, why, _)| format!("; the nearest, {name}, {why}"))
}

/// How a means waits, in a column.
fn wait(ranked: &Ranked) -> String {
    match ranked.wait {
        WaitPolicy::Block => "sleeps".to_owned(),
        WaitPolicy::Spin => "spins".to_owned(),
        WaitPolicy::SpinThenBlock { spin_ns } => format!("spins {}", time_ns(spin_ns as f64)),
        WaitPolicy::Timeout { timeout_ns } => format!("until {}", time_ns(timeout_ns as f64)),
    }
}

/// A means with its wait and placement.
fn way(ranked: &Ranked) -> String {
    let wait = match ranked.wait {
        WaitPolicy::Block => String::new(),
        WaitPolicy::Spin => " that spins".to_owned(),
        WaitPolicy::SpinThenBlock { spin_ns } => {
            format!(" that spins {} before it sleeps", time_ns(spin_ns as f64))
        }
        WaitPolicy::Timeout { timeout_ns } => {
            format!(" with a time-out of {}", time_ns(timeout_ns as f64))
        }
    };
    format!("{}{wait}, {}", ranked.subject, relation(&ranked.placement.relation))
}

/// One that was not shown to be slower than the best, which is the first of them.
fn named((place, ranked): (usize, &Ranked)) -> String {
    match (place, ranked.standing, ranked.behind) {
        (0, ..) | (_, _, None) => ranked.subject.clone(),
        (_, Standing::Same { within }, _) => {
            format!("{} (same within {:.1} %)", ranked.subject, within * 100.0)
        }
        (_, _, Some(ratio)) => format!("{} ({})", ranked.subject, could_be(ratio)),
    }
}

fn table(picked: &Picked, question: &Pick) -> Option<Subsection> {
    if picked.ranked.is_empty() {
        return None;
    }
    let scale = Scale::for_ps(picked.ranked.iter().map(|ranked| ranked.figures_ps[0] as f64));
    let goes_by = match question.by {
        By::P50 => "p50 behind",
        By::P99 => "p99 behind",
    };
    // Of wake-ups as they come these are chosen together, and else all are alike in them.
    let together = question.traffic.is_some();
    let figures =
        [(number("p50"), (0, 0.5)), (number("p99"), (1, 0.99)), (number("p99.9").keep(4), (2, 0.999))];
    let best = picked.ranked.first();
    let mut table = Columns::none()
        .with(word("mechanism"), |ranked: &Ranked| ranked.subject.clone())
        .with_if(together, word("wait"), wait)
        .with_if(together, word("placement"), |ranked| relation(&ranked.placement.relation))
        .each(figures, |ranked, (place, q)| {
            percentile(ranked.figures_ps[*place] as f64, *q, ranked.count, scale)
        })
        .with(number("CPU"), |ranked| ranked.cpu_ns.map_or_else(dash, |ns| scale.show_ns(ns)))
        .with(number(goes_by).keep(5), |ranked| match ranked.behind {
            _ if best.is_some_and(|best| std::ptr::eq(best, ranked)) => "best".to_owned(),
            Some(ratio) => {
                let alike = if ranked.standing == Standing::Slower { "" } else { "= " };
                format!("{alike}{}", multiple(ratio, ""))
            }
            None => "= inconclusive".to_owned(),
        })
        .with(number("lost or late").keep(1), |ranked| count(ranked.missed))
        .with(number("trials").keep(2), |ranked| count(ranked.trials[0] as u64))
        .with(number("count").keep(3), |ranked| count(ranked.count))
        .table(&picked.ranked);
    if let Some(harness) = picked.harness_ns {
        let mut line = vec![String::new(); if together { 3 } else { 1 }];
        line[0] = "null (the harness itself)".to_owned();
        line.push(scale.show_ns(harness));
        table.row(line);
    }
    Subsection::of_table(format!("Ranked, {}", scale.unit.sign()), table, vec![note(picked)])
}

fn note(picked: &Picked) -> String {
    let one = picked.ranked.iter().all(|ranked| Some(&ranked.placement) == picked.placement.as_ref());
    let placed = picked.placement.as_ref().filter(|_| one).map_or_else(String::new, |placement| {
        let cpus = placement.cpus.map_or_else(String::new, |[a, b]| format!(" (CPUs {a}, {b})"));
        format!("{}{cpus}. ", relation(&placement.relation))
    });
    format!(
        "{placed}{}: {}. CPU: of a wake-up, the notifier's call and the waiter's time. Behind: as \
         a multiple of the best, block by block, with an interval, all of which hold together in \
         95 of 100 runs; those marked = were not shown to be slower.",
        picked.quantity.name(),
        picked.quantity.definition()
    )
}
