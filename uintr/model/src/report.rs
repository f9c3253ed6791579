// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command prints: the models' answers as text. Nothing here prints by itself.

use crate::model::{
    Chart, Configuration, Entry, Mistake, Outcome, Verdict, check, polled,
    threads::{bell, eventfd, futex, mach_semaphore},
    uintr,
};
use crate::symptoms::{Certainty, SYMPTOMS};
use crate::view::{Glyphs, terminal};
use std::fmt;

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

    fn model(self) -> Model {
        match self {
            Self::Uintr => Model::of::<uintr::Config>(),
            Self::Polled => Model::of::<polled::Config>(),
            Self::Futex => Model::of::<futex::Config>(),
            Self::Eventfd => Model::of::<eventfd::Config>(),
            Self::Bell => Model::of::<bell::Config>(),
            Self::MachSemaphore => Model::of::<mach_semaphore::Config>(),
        }
    }

    /// The hazards that have a switch, in order.
    #[must_use]
    pub fn hazards(self) -> Vec<Entry> {
        (self.model().hazards)()
    }

    fn entry(self, name: &str) -> Result<Entry, UnknownHazard> {
        let hazards = self.hazards();
        let found = hazards.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)).copied();
        found.ok_or_else(|| UnknownHazard {
            asked: name.to_owned(),
            known: hazards.iter().map(|entry| entry.name).collect(),
        })
    }
}

/// What is asked of each model.
struct Model {
    hazards: fn() -> Vec<Entry>,
    /// Searches the protocol as it should be, one configuration after the other; all, or all that take seconds.
    prove: fn(full: bool) -> Vec<(&'static str, Outcome)>,
    explain: fn(Entry) -> Option<Outcome>,
}

impl Model {
    fn of<C: Configuration>() -> Self {
        Self {
            hazards: || C::Hazard::ALL.iter().map(|hazard| hazard.entry()).collect(),
            prove: |full| {
                let configs = C::ALL.iter().copied().chain(C::LARGEST.filter(|_| full));
                configs.map(|config| (config.name(), check(config, None))).collect()
            },
            explain: |entry| {
                let hazard = *C::Hazard::ALL.iter().find(|hazard| hazard.entry() == entry)?;
                Some(check(hazard.config(), Some(hazard)))
            },
        }
    }
}

/// Searches the mechanism without a mistake in it. `full` adds the
/// largest configuration, which takes minutes.
#[must_use]
pub fn correct(mechanism: Mechanism, full: bool) -> Answer {
    let outcomes = (mechanism.model().prove)(full);
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
        let (states, depth) = (grouped(outcome.states), outcome.depth);
        text += &format!("  {name:24} {states:>12} states, depth {depth:>3}: {verdict}\n");
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
    let outcome = (mechanism.model().explain)(entry).expect("the entry is one of its own");
    let states = grouped(outcome.states);
    let Verdict::Fault(fault) = outcome.verdict else {
        let text = format!("{title}\n\nNot found in {states} states, although the mistake is in.\n");
        return Ok(Answer { text, chart: None, expected: false });
    };
    let mut text = terminal(&fault.chart, glyphs);
    text += "\n";
    text += &format!("    Mechanism: {}.\n", entry.mechanism);
    text += &format!("    Instead:   {}.\n", entry.fix);
    for symptom in SYMPTOMS.iter().filter(|symptom| symptom.hazards.contains(&entry.name)) {
        text += &format!("    Seen:      {} ({}).\n", symptom.seen, certainty(symptom.certainty));
    }
    let length = fault.chart.steps.len();
    text += &format!("    The shortest such run has {length} steps; found after {states} states.\n");
    Ok(Answer { text, chart: Some(fault.chart), expected: true })
}

/// The mistakes that can be put in, those that cannot and why, and the field notes they explain.
#[must_use]
pub fn list(mechanism: Mechanism) -> String {
    let mut text = String::new();
    for entry in mechanism.hazards() {
        text += &format!("{:4} {}\n", entry.name, entry.title);
        text += &format!("       {}\n", entry.mechanism);
    }
    if mechanism == Mechanism::Uintr {
        text += "\nNot switches here:\n";
        for (name, title, reason) in uintr::ELSEWHERE {
            text += &format!("{name:4} {title}: {reason}\n");
        }
    }
    text += "\nSeen in the field, and what explains it:\n";
    let names: Vec<_> = mechanism.hazards().iter().map(|entry| entry.name).collect();
    for symptom in SYMPTOMS {
        let explained = symptom.hazards.iter().any(|hazard| names.contains(hazard));
        if explained || mechanism == Mechanism::Uintr {
            let hazards =
                if symptom.hazards.is_empty() { "-".to_owned() } else { symptom.hazards.join(", ") };
            text += &format!("{hazards:8} {} ({})\n", symptom.seen, certainty(symptom.certainty));
            text += &format!("           {}\n", symptom.explanation);
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
