// SPDX-License-Identifier: MIT OR Apache-2.0
//! The survey's answer in words.

use super::axis;
use super::style::{Role, Style};
use super::unit::time;
use doorbell_results::quantity::short;
use doorbell_verdict::answer::{Answer, Need, Pick, Placed, Time, shown_slower};

/// The title of what was not found.
const UNTOLD: &str = "What this machine cannot tell";

/// Names in a list before the rest becomes a number.
const NAMES: usize = 5;

/// The whole answer for the terminal, where the end is what stands above the prompt: what cannot be told comes first, for
/// it may be long, and what was found after it.
pub fn answer(answer: &Answer, style: &Style) -> String {
    let mut out = String::new();
    let (found, untold): (Vec<_>, Vec<_>) =
        paragraphs(answer).into_iter().partition(|paragraph| paragraph.title != UNTOLD);
    for paragraph in untold.into_iter().chain(found) {
        out.push_str(&format!("\n{}\n", style.paint(Role::Heading, &style.text(paragraph.title))));
        out.extend(paragraph.lines.iter().map(|line| style.wrap(line, 2)));
    }
    out
}

/// One question and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paragraph {
    /// The question, in few words.
    pub title: &'static str,
    /// One finding each; never empty.
    pub lines: Vec<String>,
}

/// The answer by its questions; those without a finding are left out.
pub fn paragraphs(answer: &Answer) -> Vec<Paragraph> {
    let all = [
        ("Which mechanism", answer.picks.iter().map(pick).collect()),
        ("Where to pin", placements(&answer.placements)),
        ("What the length of the sleep costs", sleeps(answer)),
        ("How far to believe this", trust(answer)),
        (UNTOLD, answer.untold.iter().map(|line| format!("{line}.")).collect()),
    ];
    all.into_iter()
        .map(|(title, lines): (_, Vec<String>)| Paragraph { title, lines })
        .filter(|paragraph| !paragraph.lines.is_empty())
        .collect()
}

fn words(relation: &str) -> String {
    match relation {
        "same-core" => "both sides on one core".to_owned(),
        "unpinned" => "unpinned".to_owned(),
        other => format!("two cores ({})", axis::relation(other)),
    }
}

fn ns(time_ns: f64) -> String {
    time(time_ns * 1000.0)
}

fn pick(pick: &Pick) -> String {
    let need = match pick.need {
        Need::Fastest => "regardless of CPU cost",
        Need::Sleeps => "and the waiter sleeps",
        Need::Descriptor => "and the waiter sleeps on a descriptor, beside others in poll or epoll",
    };
    let cpu = pick.cpu_ns.map_or_else(String::new, |cpu| format!(", {} of CPU", ns(cpu)));
    let rest = match &pick.as_good[..] {
        [] => "every other was shown to be slower".to_owned(),
        names => format!("no difference shown to {}", listed(names)),
    };
    format!(
        "{}, {need}: {}, {} a round trip{cpu}; {rest}.",
        words(&pick.relation),
        pick.best,
        ns(pick.round_trip.median_ns)
    )
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0..=NAMES => names.join(", "),
        more => format!("{} and {} more", names[..NAMES].join(", "), more - NAMES),
    }
}

fn placements(placed: &[Placed]) -> Vec<String> {
    let mut subjects: Vec<&str> = placed.iter().map(|placed| placed.subject.as_str()).collect();
    subjects.dedup();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
        .into_iter()
        .filter_map(|subject| {
            let own: Vec<&Placed> = placed.iter().filter(|placed| placed.subject == subject).collect();
            let pinned = own.iter().filter(|placed| placed.relation != "unpinned");
            let best = pinned.min_by(|a, b| a.round_trip.median_ns.total_cmp(&b.round_trip.median_ns))?;
            let figures: Vec<String> = own
                .iter()
                .map(|placed| format!("{} {}", words(&placed.relation), ns(placed.round_trip.median_ns)))
                .collect();
            let free = own.iter().find(|placed| placed.relation == "unpinned");
            let gain = free.map_or_else(String::new, |free| gain(best, free));
            Some(format!("{subject}, round trip: {}.{gain}", figures.join(", ")))
        })
        .collect()
}

fn gain(best: &Placed, free: &Placed) -> String {
    let apart = |slow: &Time, fast: &Time| shown_slower(slow, fast, 1);
    let moves = free.migrations_per_s.filter(|moves| *moves >= 1.0).map_or_else(String::new, |moves| {
        format!(" (the scheduler moved the sides {moves:.0} times a second)")
    });
    let ratio = free.round_trip.median_ns / best.round_trip.median_ns;
    if apart(&free.round_trip, &best.round_trip) {
        format!(" Pinning to {} is worth a factor of {ratio:.2}{moves}.", words(&best.relation))
    } else if apart(&best.round_trip, &free.round_trip) {
        format!(" Left alone it is faster than pinned anywhere, by a factor of {:.2}{moves}.", 1.0 / ratio)
    } else {
        format!(" No difference shown between unpinned and the best pinning{moves}.")
    }
}

fn sleeps(answer: &Answer) -> Vec<String> {
    let sleeps = answer.sleeps.iter().map(|slept| {
        let ((short_gap, short_wake), (long_gap, long_wake)) = (&slept.short, &slept.long);
        format!(
            "{}: a waiter that slept {} wakes in {}, one that slept {} in {}{}.",
            slept.subject,
            short(*short_gap),
            ns(short_wake.median_ns),
            short(*long_gap),
            ns(long_wake.median_ns),
            match long_wake.median_ns / short_wake.median_ns {
                // Nothing that a longer sleep makes quicker: chance, or a machine that changed in between.
                ratio if ratio < 1.05 => ": the length of the sleep costs nothing here".to_owned(),
                ratio => format!(", a factor of {ratio:.1}"),
            }
        )
    });
    let notify = answer.notify.iter().map(|notified| {
        format!(
            "The notifier's own cost, {}: {} while the waiter is awake, {} to wake it.",
            notified.subject,
            ns(notified.awake.median_ns),
            ns(notified.asleep.median_ns)
        )
    });
    sleeps.chain(notify).collect()
}

fn trust(answer: &Answer) -> Vec<String> {
    let trust = &answer.trust;
    let mut lines = Vec::new();
    if let Some(harness) = trust.harness_ns {
        lines.push(format!(
            "The harness itself is {} of every round trip that is taken with stamps.",
            ns(harness)
        ));
    }
    if let Some(ratio) = trust.over_bare {
        let why = if ratio < 1.0 {
            " (less than 1: the two are different trials, and the way of a cache line between two cores is not equally long \
             in each)"
        } else {
            ""
        };
        lines
            .push(format!("Spinning took {ratio:.2} times what two bare loops take on the same cores{why}."));
    }
    let count = |number: usize, what: &str| match number {
        0 => format!("none {what}"),
        number => format!("{number} {what}"),
    };
    lines.push(format!(
        "{} trials: {}, {}, {}.",
        trust.trials,
        count(trust.interfered, "with interference to the last try"),
        count(trust.implausible, "with figures that cannot be true"),
        count(trust.broken, "hung or failed")
    ));
    if let Some((name, spread)) = trust.primitive_spread.iter().max_by(|a, b| a.1.total_cmp(b.1)) {
        lines.push(format!(
            "The machine's primitive costs moved by up to a factor of {spread:.2} during the run ({}).",
            name.replace('-', " ")
        ));
    }
    lines
}
