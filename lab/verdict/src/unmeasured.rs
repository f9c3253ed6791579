// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run was to measure and did not, for every verb alike:
//! trials that hung or died, and a run of which nothing came.

use std::fmt;

use doorbell_results::record::{Outcome, ResultFile};

/// How many trials of a run gave no figure and why, and whether one of what was asked for gave any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmeasured {
    pub hung: usize,
    /// Whose sides or host failed or were killed.
    pub died: usize,
    /// Whose figures cannot be true.
    pub implausible: usize,
    /// For which this machine lacks something.
    pub skipped: usize,
    pub of: usize,
    /// Whether none has figures of what was asked for: what the harness itself costs was not.
    pub nothing: bool,
    /// What was lacking or went wrong, each once and what most trials ended by first. Of what hung,
    /// or has figures that cannot be true, the records say more than a line could.
    pub causes: Vec<String>,
}

/// What `result` did not measure: none where all that this machine has for it was measured, though
/// some trial may have been skipped or found implausible beside others.
pub fn unmeasured(result: &ResultFile) -> Option<Unmeasured> {
    let count =
        |wanted: fn(&Outcome) -> bool| result.records.iter().filter(|record| wanted(&record.outcome)).count();
    let variants = result.variants();
    let only_harness = variants.iter().all(|variant| variant.subject().is_harness());
    let found = Unmeasured {
        hung: count(|outcome| matches!(outcome, Outcome::Hung { .. })),
        died: count(|outcome| matches!(outcome, Outcome::Failed { .. })),
        implausible: count(|outcome| matches!(outcome, Outcome::Implausible { .. })),
        skipped: count(|outcome| matches!(outcome, Outcome::Skipped { .. })),
        of: result.records.len(),
        nothing: !variants
            .iter()
            .filter(|variant| only_harness || !variant.subject().is_harness())
            .any(|variant| variant.usable().next().is_some()),
        causes: causes(result),
    };
    (found.nothing || found.hung + found.died > 0).then_some(found)
}

fn causes(result: &ResultFile) -> Vec<String> {
    let mut causes: Vec<(&str, usize)> = Vec::new();
    for record in &result.records {
        let (Outcome::Skipped { reason: cause } | Outcome::Failed { cause }) = &record.outcome else {
            continue;
        };
        match causes.iter_mut().find(|(known, _)| known == cause) {
            Some((_, times)) => *times += 1,
            None => causes.push((cause, 1)),
        }
    }
    // Stable: of those that are as frequent, the first to be met.
    causes.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    causes.into_iter().map(|(cause, _)| cause.to_owned()).collect()
}

impl Unmeasured {
    /// Whether the records say why.
    pub fn has_causes(&self) -> bool {
        self.hung + self.died + self.implausible + self.skipped > 0
    }
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nothing {
            f.write_str("nothing that was asked for was measured: ")?;
        }
        let counts = [
            (self.hung, "hung"),
            (self.died, "failed or died"),
            (self.implausible, "gave figures that cannot be true"),
            (self.skipped, "lack something here"),
        ];
        let told: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match self.of {
            0 => f.write_str("not one trial was run"),
            of if told.is_empty() => write!(f, "{of} trials are only of the harness itself"),
            of => {
                write!(f, "of {of} trials {}", told.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn run(outcomes: [Outcome; 2]) -> Option<Unmeasured> {
        let configurations = ["null", "futex", "pipe"].map(sample::configuration);
        let mut result = sample::result(&configurations, 1, |_, _| 16_000.0);
        for (record, outcome) in result.records.iter_mut().skip(1).zip(outcomes) {
            record.outcome = outcome;
        }
        unmeasured(&result)
    }

    fn died() -> Outcome {
        Outcome::Failed { cause: "the waiter was killed by signal 9".to_owned() }
    }

    fn lacks() -> Outcome {
        Outcome::Skipped { reason: "no descriptor is left".to_owned() }
    }

    #[test]
    fn what_this_machine_lacks_leaves_a_run_whole_as_long_as_something_was_measured() {
        assert_eq!(run([Outcome::Done, Outcome::Done]), None);
        assert_eq!(run([Outcome::Done, lacks()]), None);
    }

    /// With nine descriptors only the harness itself could be measured, and the exit status was 0.
    #[test]
    fn the_harness_alone_is_nothing_measured() {
        let found = run([lacks(), lacks()]).unwrap();
        assert!(found.nothing && found.skipped == 2);
        assert!(found.to_string().starts_with("nothing that was asked for"), "{found}");
        let alone = sample::result(&[sample::configuration("null")], 2, |_, _| 50.0);
        assert_eq!(unmeasured(&alone), None, "it was asked for");
    }

    /// Without a GPU one was told that 27 trials lack something, and had to ask what.
    #[test]
    fn each_cause_is_told_once_and_the_most_frequent_first() {
        let found = run([lacks(), died()]).unwrap();
        assert_eq!(found.causes, ["no descriptor is left", "the waiter was killed by signal 9"]);
        let found = run([died(), died()]).unwrap();
        assert_eq!(found.causes, ["the waiter was killed by signal 9"]);
    }

    /// A run in which a side had been killed ended as if all were well.
    #[test]
    fn a_trial_that_hung_or_died_is_told_beside_any_number_that_did_not() {
        let found = run([Outcome::Done, died()]).unwrap();
        assert!(!found.nothing && found.died == 1);
        assert_eq!(found.to_string(), "of 3 trials 1 failed or died");
        let hung = run([Outcome::Done, Outcome::Hung { last_seen: Vec::new() }]).unwrap();
        assert_eq!((hung.hung, hung.nothing), (1, false));
    }

    #[test]
    fn a_run_without_a_trial_measured_nothing() {
        let empty = sample::result(&[sample::configuration("futex")], 0, |_, _| 16_000.0);
        assert!(unmeasured(&empty).is_some_and(|found| found.nothing && found.of == 0));
    }
}
