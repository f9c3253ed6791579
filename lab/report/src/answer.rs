// SPDX-License-Identifier: MIT OR Apache-2.0
//! The survey's answer in words.

use super::axis;
use super::subsection::Subsection;
use super::unit::{plain, time_ns as ns};
use super::wording::multiple;
use doorbell_results::quantity::short;
use doorbell_verdict::answer::{Answer, Need, Pick, Placed};
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::provisional::Provisional;
use doorbell_verdict::ratio::{Ratio, Standing};

const UNTOLD: &str = "What this machine cannot show";

/// Names in a list before the rest becomes a number.
const NAMES: usize = 5;

/// The whole answer for the terminal, where the end is what stands above the prompt: what cannot be
/// told comes first, for it may be long, and what was found after it.
pub fn on_a_terminal(answer: &Answer) -> Vec<Subsection> {
    let provisional = answer.trust.provisional.map(|found| vec![provisional(found)]);
    let provisional = Subsection::of_lines("", provisional.unwrap_or_default());
    let (found, untold): (Vec<_>, Vec<_>) =
        subsections(answer).into_iter().partition(|told| told.title != UNTOLD);
    provisional.into_iter().chain(untold).chain(found).collect()
}

/// The answer by its questions; those without a finding are left out.
pub fn subsections(answer: &Answer) -> Vec<Subsection> {
    let all = [
        ("Which mechanism", answer.picks.iter().map(pick).collect()),
        ("Where to pin", placements(&answer.placements)),
        ("What the length of the sleep costs", sleeps(answer)),
        ("How far to believe this", trust(answer)),
        (UNTOLD, answer.untold.iter().map(|line| format!("{line}.")).collect()),
    ];
    all.into_iter().filter_map(|(title, lines)| Subsection::of_lines(title, lines)).collect()
}

/// What stands before all that a run says where others interfered with most of it.
pub fn provisional(found: Provisional) -> String {
    format!(
        "Provisional: other work interfered with {} of {} trials; intervals hold what it did to \
         them, an idle machine may say otherwise.",
        found.trials, found.of
    )
}

/// How far from the same a ratio could be, as "-2 % to +9 %".
pub fn could_be(ratio: Ratio) -> String {
    let percent = |end: f64| match (end - 1.0) * 100.0 {
        percent if percent.is_infinite() => "any number of %".to_owned(),
        percent if percent.abs() < 9.95 => format!("{percent:+.1} %"),
        percent => format!("{percent:+.0} %"),
    };
    format!("{} to {}", percent(ratio.low), percent(ratio.high))
}

fn words(relation: &str) -> String {
    match relation {
        "same-core" => "both sides on one core".to_owned(),
        "unpinned" => "unpinned".to_owned(),
        other => format!("two cores ({})", axis::relation(other)),
    }
}

fn pick(pick: &Pick) -> String {
    let need = match pick.need {
        Need::Fastest => "regardless of CPU cost",
        Need::Sleeps => "and the waiter sleeps",
        Need::Descriptor => "and the waiter sleeps on a descriptor, beside others in poll or epoll",
    };
    let cpu = pick.cpu_ns.map_or_else(String::new, |cpu| format!(", {} of CPU", ns(cpu)));
    format!(
        "{}, {need}: {}, {} a round trip{cpu}{}.",
        words(&pick.relation),
        pick.best,
        ns(pick.round_trip_ns),
        others(pick)
    )
}

/// How the others stand to the best: the same, perhaps the same, slower.
fn others(pick: &Pick) -> String {
    let of = |wanted: fn(Standing) -> bool| pick.others.iter().filter(move |other| wanted(other.standing));
    let same = of(|verdict| matches!(verdict, Standing::Same { .. }));
    let same: Vec<String> = same.map(|other| other.subject.clone()).collect();
    let open = of(|verdict| verdict == Standing::Inconclusive);
    let open: Vec<String> = open
        .map(|other| match other.ratio {
            Some(ratio) => format!("{} ({})", other.subject, could_be(ratio)),
            None => format!("{} (too few blocks)", other.subject),
        })
        .collect();
    let mut parts = Vec::new();
    if !same.is_empty() {
        parts.push(format!("the same within {} %: {}", RELEVANT * 100.0, listed(&same)));
    }
    if !open.is_empty() {
        parts.push(format!("inconclusive: {}", listed(&open)));
    }
    if let Some(next) = of(|verdict| verdict == Standing::Slower).next() {
        let by = next.ratio.map_or_else(String::new, |ratio| {
            format!(", {} by a factor of {}", next.subject, multiple(ratio, ""))
        });
        let who = if parts.is_empty() { "every other" } else { "every one else" };
        parts.push(format!("{who} is slower{by}"));
    }
    parts.into_iter().map(|part| format!("; {part}")).collect()
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
            let best = pinned.min_by(|a, b| a.round_trip_ns.total_cmp(&b.round_trip_ns))?;
            // Left alone a trial runs on one core or on two: its time is told as a multiple, trial by trial.
            let figures: Vec<String> = own
                .iter()
                .filter(|placed| placed.relation != "unpinned")
                .map(|placed| format!("{} {}", words(&placed.relation), ns(placed.round_trip_ns)))
                .collect();
            let free = own.iter().find(|placed| placed.relation == "unpinned");
            let gain = free.map_or_else(String::new, |free| gain(best, free));
            Some(format!("{subject}, round trip: {}.{gain}", figures.join(", ")))
        })
        .collect()
}

fn gain(best: &Placed, free: &Placed) -> String {
    let moves = free.migrations_per_s.filter(|moves| *moves >= 1.0).map_or_else(String::new, |moves| {
        format!(" (the scheduler moved the sides {moves:.0} times a second)")
    });
    let Some(ratio) = best.unpinned else {
        return format!(" Too few blocks to say what pinning is worth{moves}.");
    };
    let interval = |ratio: Ratio| multiple(ratio, "");
    match ratio.standing(RELEVANT) {
        Standing::Slower => {
            format!(" Pinning to {} is worth a factor of {}{moves}.", words(&best.relation), interval(ratio))
        }
        Standing::Faster => format!(
            " Left alone it is faster than pinned anywhere, by a factor of {}{moves}.",
            interval(ratio.inverse())
        ),
        Standing::Same { within } => {
            format!(" Unpinned and the best pinning are the same within {:.1} %{moves}.", within * 100.0)
        }
        Standing::Inconclusive => format!(
            " Inconclusive between unpinned and the best pinning: unpinned could take {}{moves}.",
            could_be(ratio)
        ),
    }
}

fn sleeps(answer: &Answer) -> Vec<String> {
    let sleeps = answer.sleeps.iter().map(|slept| {
        let ((short_gap, short_ns), (long_gap, long_ns)) = (slept.short_ns, slept.long_ns);
        format!(
            "{}: a waiter that slept {} wakes in {}, one that slept {} in {}{}.",
            slept.subject,
            short(short_gap),
            ns(short_ns),
            short(long_gap),
            ns(long_ns),
            match slept.ratio.map(|ratio| (ratio, ratio.standing(RELEVANT))) {
                Some((ratio, Standing::Slower)) => {
                    format!(", a factor of {}", multiple(ratio, ""))
                }
                // Nothing that a longer sleep makes quicker: the machine was in another state after it.
                Some((_, Standing::Faster | Standing::Same { .. })) => {
                    ": the length of the sleep costs nothing here".to_owned()
                }
                Some((ratio, Standing::Inconclusive)) => format!("; inconclusive ({})", could_be(ratio)),
                None => "; too few blocks to tell them apart".to_owned(),
            }
        )
    });
    let notify = answer.notify.iter().map(|notified| {
        format!(
            "The notifier's own cost, {}: {} while the waiter is awake, {} to wake it.",
            notified.subject,
            ns(notified.awake_ns),
            ns(notified.asleep_ns)
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
            " (less than 1: the two are different trials, and the way of a cache line between two \
             cores is not equally long in each)"
        } else {
            ""
        };
        let times = plain(ratio);
        lines.push(format!("Spinning took {times} times what two bare loops take on the same cores{why}."));
    }
    let count = |number: usize, what: &str| match number {
        0 => format!("none {what}"),
        number => format!("{number} {what}"),
    };
    lines.push(format!(
        "{} trials: {}, {}, {}.",
        trust.trials,
        trust.interfered.map_or_else(
            || "interference not told here".to_owned(),
            |interfered| count(interfered, "with interference to the last try")
        ),
        count(trust.implausible, "with figures that cannot be true"),
        count(trust.broken, "hung or failed")
    ));
    if let Some((name, spread)) = trust.primitive_spread.iter().max_by(|a, b| a.1.total_cmp(b.1)) {
        lines.push(format!(
            "The machine's primitive costs moved by up to a factor of {} during the run ({}).",
            plain(*spread),
            name.replace('-', " ")
        ));
    }
    lines
}
