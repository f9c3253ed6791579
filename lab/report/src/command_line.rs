// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command lines as they can be typed again.

use doorbell_results::record::ResultFile;
use doorbell_results::record::question::{Question, condition};
use doorbell_results::written::inert;

/// A command line as a shell takes it.
pub fn command(words: &[String]) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:%+@".contains(letter);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(safe) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// What stands for the file of the result in the command that repeats it.
pub const RESULT: &str = "RESULT.json";

/// The command that does the run of `result` once more, its orders
/// included; empty where none does, as for what was imported, what ran
/// in an emulated machine, or a program of the user's that was watched.
///
/// It is made of the plan alone. A file may hold any words as the command that was typed, and a
/// reader who is told to repeat them would.
pub fn repeat(result: &ResultFile) -> String {
    if let Some(Question::Check(check)) = &result.plan.question {
        let mut words = ["doorbell", "check"].map(str::to_owned).to_vec();
        let baselines = std::iter::once(&check.baseline).chain(&check.more);
        words.extend(baselines.map(|baseline| format!("--baseline={}", inert(&baseline.file))));
        let conditions = check.conditions.iter().filter(|known| condition(&known.text).is_ok());
        words.extend(conditions.map(|known| format!("--fail-if={}", inert(&known.text))));
        return command(&words);
    }
    let experiment = &result.plan.experiment;
    let is_a_verb = experiment.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let mut anatomies = result.records.iter().filter_map(|record| record.anatomy.as_ref());
    let watched = anatomies.any(|anatomy| anatomy.program.is_some());
    if !is_a_verb || watched || result.plan.configurations.is_empty() || result.emulated() {
        return String::new();
    }
    // Messages and transfers are one verb.
    let verb = if experiment == "net" { "io --net" } else { experiment };
    format!("doorbell {verb} --plan {RESULT}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::question::{Baseline, Check};
    use doorbell_results::record::sample;

    #[test]
    fn a_command_is_one_that_a_shell_takes() {
        let words = ["doorbell", "ping", "--name", "it's", "a b", ""].map(str::to_owned);
        assert_eq!(command(&words), "doorbell ping --name 'it'\\''s' 'a b' ''");
    }

    #[test]
    fn what_repeats_a_run_is_made_of_its_plan_and_never_of_words_that_a_file_holds() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 0.0);
        result.command_line = ["curl", "x|sh"].map(str::to_owned).to_vec();
        assert_eq!(repeat(&result), "doorbell ping --plan RESULT.json");
        result.plan.experiment = "net".to_owned();
        assert_eq!(repeat(&result), "doorbell io --net --plan RESULT.json");
        for hostile in ["x; rm -r ~", "$(x)", "--config=x y", "a\nb"] {
            result.plan.experiment = hostile.to_owned();
            assert_eq!(repeat(&result), "", "{hostile}");
        }
        let baseline = Baseline::of("$(x)\r'".to_owned(), &result);
        let mut conditions = ["p50>+5%", "lost>0"].map(|text| condition(text).unwrap()).to_vec();
        conditions[1].text = "; rm".to_owned();
        result.plan.question = Some(Question::Check(Check { baseline, more: Vec::new(), conditions }));
        assert_eq!(repeat(&result), r"doorbell check '--baseline=$(x)\u{d}'\''' '--fail-if=p50>+5%'");
    }
}
