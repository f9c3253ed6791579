// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command prints: the models' answers as text. Nothing here prints by itself.

use crate::model::{
    Chart, Outcome, Protocol, Verdict, polled,
    search::{Effort, search},
    threads::{bell, eventfd, futex, mach_semaphore},
    uintr,
};
use crate::symptoms::{Certainty, SYMPTOMS};
use crate::view::{Glyphs, terminal};
use std::fmt::{self, Write};

/// A mechanism that has a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// User interrupts with their driver.
    Uintr,
    /// User interrupts that are read and polled, without a handler.
    Polled,
    /// A futex used as an event.
    Futex,
    /// A queue with an eventfd.
    Eventfd,
    /// The library's wake protocol.
    Bell,
    /// A Mach semaphore for each receiver.
    MachSemaphore,
}

/// A hazard as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `H4`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// How it loses the wake-up.
    pub mechanism: &'static str,
    /// What the correct protocol does instead.
    pub fix: &'static str,
}

/// A hazard's name that the mechanism does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownHazard {
    /// What was asked for.
    pub asked: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownHazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, known } = self;
        write!(
            f,
            "there is no hazard {asked:?}; use one of {}, or \"list\" to read what they are",
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownHazard {}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// For the terminal; lines that end in a newline.
    pub text: String,
    /// The interleaving, where one was found.
    pub chart: Option<Chart>,
    /// Whether it is the answer that is expected: no fault without a hazard, a fault with one.
    pub expected: bool,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Uintr, Self::Polled, Self::Futex, Self::Eventfd, Self::Bell, Self::MachSemaphore];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uintr => "uintr",
            Self::Polled => "polled",
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
            Self::Bell => "bell",
            Self::MachSemaphore => "mach-semaphore",
        }
    }

    /// The hazards that have a switch, in order.
    #[must_use]
    pub fn hazards(self) -> Vec<Entry> {
        macro_rules! entries {
            ($all:expr) => {
                $all.map(|h| Entry {
                    name: h.name(),
                    title: h.title(),
                    mechanism: h.mechanism(),
                    fix: h.fix(),
                })
                .collect()
            };
        }
        match self {
            Self::Uintr => entries!(uintr::Hazard::ALL.iter()),
            Self::Polled => entries!(polled::Hazard::ALL.iter()),
            Self::Futex => entries!(futex::Hazard::all()),
            Self::Eventfd => entries!(eventfd::Hazard::all()),
            Self::Bell => entries!(bell::Hazard::all()),
            Self::MachSemaphore => entries!(mach_semaphore::Hazard::all()),
        }
    }

    fn entry(self, name: &str) -> Result<Entry, UnknownHazard> {
        let hazards = self.hazards();
        let found = hazards.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)).copied();
        found.ok_or_else(|| UnknownHazard {
            asked: name.to_owned(),
            known: hazards.iter().map(|entry| entry.name).collect(),
        })
    }

    /// Searches the protocol as it should be, one configuration after the other.
    fn prove(self, full: bool) -> Vec<(&'static str, Outcome)> {
        fn all<P: Protocol>(
            models: impl IntoIterator<Item = (&'static str, P)>,
        ) -> Vec<(&'static str, Outcome)> {
            let run = |(name, model): (_, P)| (name, search(&model, Effort::Prove { threads: 2 }, name));
            models.into_iter().map(run).collect()
        }
        match self {
            Self::Uintr => {
                let more = full.then_some(uintr::Config::FULL);
                let configs = uintr::Config::SMALL.into_iter().chain(more);
                configs.map(|config| (config.name, uintr::check(config, None))).collect()
            }
            Self::Polled => polled::Config::ALL
                .into_iter()
                .map(|config| (config.name, polled::check(config, None)))
                .collect(),
            Self::Futex => all([
                ("one waiter, two messages", futex::model(1, 2, None)),
                ("two waiters, two messages", futex::model(2, 2, None)),
            ]),
            Self::Eventfd => all([
                ("producer and consumer", eventfd::model(false, None)),
                ("both ways", eventfd::model(true, None)),
            ]),
            Self::Bell => all([
                ("futex, one notifier", bell::model(bell::Seat::Futex, 1, 2, None)),
                ("futex, two notifiers", bell::model(bell::Seat::Futex, 2, 1, None)),
                ("eventfd, one notifier", bell::model(bell::Seat::Token, 1, 2, None)),
                ("eventfd, two notifiers", bell::model(bell::Seat::Token, 2, 1, None)),
            ]),
            Self::MachSemaphore => all([
                ("two receivers, two rounds", mach_semaphore::model(2, None)),
                ("two receivers, three rounds", mach_semaphore::model(3, None)),
            ]),
        }
    }

    fn explain(self, name: &str, title: &str) -> Option<Outcome> {
        let named = |candidate: &str| candidate.eq_ignore_ascii_case(name);
        Some(match self {
            Self::Uintr => {
                let hazard = uintr::Hazard::from_name(name)?;
                uintr::check(hazard.config(), Some(hazard))
            }
            Self::Polled => {
                let hazard = polled::Hazard::from_name(name)?;
                polled::check(hazard.config(), Some(hazard))
            }
            Self::Futex => {
                let hazard = futex::Hazard::all().find(|h| named(h.name()))?;
                let waiters = if hazard == futex::Hazard::F5 { 2 } else { 1 };
                search(&futex::model(waiters, 1, Some(hazard)), Effort::Explain, title)
            }
            Self::Eventfd => {
                let hazard = eventfd::Hazard::all().find(|h| named(h.name()))?;
                search(&eventfd::model(false, Some(hazard)), Effort::Explain, title)
            }
            Self::Bell => {
                let hazard = bell::Hazard::all().find(|h| named(h.name()))?;
                // As few rings as the mistake needs: the shortest chart.
                let (notifiers, rings) = match hazard {
                    bell::Hazard::B5 => (2, 1),
                    bell::Hazard::B3 | bell::Hazard::B4 => (1, 2),
                    _ => (1, 1),
                };
                search(&bell::model(hazard.seat(), notifiers, rings, Some(hazard)), Effort::Explain, title)
            }
            Self::MachSemaphore => {
                let hazard = mach_semaphore::Hazard::all().find(|h| named(h.name()))?;
                // A receiver takes the other's post only where it waits once more.
                let rounds = if hazard == mach_semaphore::Hazard::M2 { 2 } else { 1 };
                search(&mach_semaphore::model(rounds, Some(hazard)), Effort::Explain, title)
            }
        })
    }
}

/// Searches the mechanism without a mistake in it. `full` adds the
/// largest configuration, which takes minutes.
#[must_use]
pub fn correct(mechanism: Mechanism, full: bool) -> Answer {
    let outcomes = mechanism.prove(full);
    let states: usize = outcomes.iter().map(|(_, outcome)| outcome.states).sum();
    let mut text = String::new();
    let mut chart = None;
    for (name, outcome) in &outcomes {
        let verdict = match &outcome.verdict {
            Verdict::Clean => "no fault".to_owned(),
            Verdict::Fault(fault) => {
                chart.get_or_insert_with(|| fault.chart.clone());
                format!("FAULT: {}", fault.property.violation)
            }
        };
        line(
            &mut text,
            &format!(
                "  {name:24} {:>12} states, depth {:>3}: {verdict}",
                grouped(outcome.states),
                outcome.depth
            ),
        );
    }
    let expected = chart.is_none();
    let head = if expected { "no fault found" } else { "a fault was found" };
    let text = format!("{}: {head} in {} states.\n{text}", mechanism.name(), grouped(states));
    Answer { text, chart, expected }
}

/// Puts one mistake in and shows the shortest interleaving that suffers from it.
///
/// # Errors
/// [`UnknownHazard`] with the names there are.
pub fn hazard(mechanism: Mechanism, name: &str, glyphs: Glyphs) -> Result<Answer, UnknownHazard> {
    let entry = mechanism.entry(name)?;
    let title = format!("{}: {}", entry.name, entry.title);
    let outcome = mechanism.explain(name, &title).expect("the entry was found by the same name");
    let states = grouped(outcome.states);
    let Verdict::Fault(fault) = outcome.verdict else {
        let text = format!("{title}\n\nNot found in {states} states, although the mistake is in.\n");
        return Ok(Answer { text, chart: None, expected: false });
    };
    let mut text = terminal(&fault.chart, glyphs);
    line(&mut text, "");
    line(&mut text, &format!("    Mechanism: {}.", entry.mechanism));
    line(&mut text, &format!("    Instead:   {}.", entry.fix));
    for symptom in SYMPTOMS.iter().filter(|symptom| symptom.hazards.contains(&entry.name)) {
        line(&mut text, &format!("    Seen:      {} ({}).", symptom.seen, certainty(symptom.certainty)));
    }
    let length = fault.chart.steps.len();
    line(&mut text, &format!("    The shortest such run has {length} steps; found after {states} states."));
    Ok(Answer { text, chart: Some(fault.chart), expected: true })
}

/// The mistakes that can be put in, those that cannot and why, and the field notes they explain.
#[must_use]
pub fn list(mechanism: Mechanism) -> String {
    let mut text = String::new();
    for entry in mechanism.hazards() {
        line(&mut text, &format!("{:4} {}", entry.name, entry.title));
        line(&mut text, &format!("       {}", entry.mechanism));
    }
    if mechanism == Mechanism::Uintr {
        line(&mut text, "\nNot switches here:");
        for (name, title, reason) in uintr::ELSEWHERE {
            line(&mut text, &format!("{name:4} {title}: {reason}"));
        }
    }
    line(&mut text, "\nSeen in the field, and what explains it:");
    let names: Vec<_> = mechanism.hazards().iter().map(|entry| entry.name).collect();
    for symptom in SYMPTOMS {
        let explained = symptom.hazards.iter().any(|hazard| names.contains(hazard));
        if explained || mechanism == Mechanism::Uintr {
            let hazards =
                if symptom.hazards.is_empty() { "-".to_owned() } else { symptom.hazards.join(", ") };
            line(&mut text, &format!("{hazards:8} {} ({})", symptom.seen, certainty(symptom.certainty)));
            line(&mut text, &format!("           {}", symptom.explanation));
        }
    }
    text
}

const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Shown => "the log shows it",
        Certainty::Fits => "fits what was seen",
        Certainty::Unrelated => "not a wake-up",
    }
}

fn line(text: &mut String, words: &str) {
    writeln!(text, "{words}").expect("writing to a string");
}

/// 1234567 as `1 234 567`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_threes() {
        assert_eq!([1, 123, 1234, 1_234_567].map(grouped), ["1", "123", "1 234", "1 234 567"]);
    }

    #[test]
    fn every_hazard_named_by_a_symptom_exists() {
        let known: Vec<_> =
            Mechanism::ALL.into_iter().flat_map(Mechanism::hazards).map(|entry| entry.name).collect();
        for symptom in SYMPTOMS {
            for hazard in symptom.hazards {
                assert!(known.contains(hazard), "{hazard}: {}", symptom.seen);
            }
            assert_eq!(
                symptom.hazards.is_empty(),
                symptom.certainty == Certainty::Unrelated,
                "{}",
                symptom.seen
            );
        }
    }

    #[test]
    fn an_unknown_hazard_is_told_the_known_ones() {
        let error = hazard(Mechanism::Futex, "H4", Glyphs::Ascii).unwrap_err();
        assert!(error.to_string().contains("F1, F2"), "{error}");
    }
}
