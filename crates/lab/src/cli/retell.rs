// SPDX-License-Identifier: MIT OR Apache-2.0
//! The question that a result was measured for, answered once more: for a page, which is made long after the run.
//!
//! The question stands in the command line that the result holds, so it is read by the same definition as any other.

use std::path::Path;

use clap::Parser as _;

use super::{Cli, Verb, check, gate, pick, spin};
use crate::record::ResultFile;
use crate::view::passage::Passage;

/// What was asked of `result` and what follows; nothing where its command asked nothing. `files` are the results in which the
/// baseline of a check is looked for, by the names of their files.
pub fn retell(result: &ResultFile, files: &[(&Path, &ResultFile)]) -> Vec<Passage> {
    answer(result, files).unwrap_or_else(|error| {
        let line = format!("What was asked of this run cannot be answered again: {error:#}.");
        Passage::of_lines("No verdict", vec![line]).into_iter().collect()
    })
}

fn answer(result: &ResultFile, files: &[(&Path, &ResultFile)]) -> anyhow::Result<Vec<Passage>> {
    let words = &result.command_line;
    let asks = words.iter().skip(1).any(|word| ["pick", "spin", "gate", "check"].contains(&word.as_str()));
    if !asks {
        return Ok(Vec::new());
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        // `ping --name gate` asks nothing either, nor does what no verb of this version is.
        Err(_) if !["pick", "spin", "gate"].contains(&result.plan.experiment.as_str()) => {
            return Ok(Vec::new());
        }
        Err(_) => anyhow::bail!("this version cannot read its command line"),
    };
    if words.iter().any(|word| word == "--plan" || word.starts_with("--plan=")) {
        anyhow::bail!("the question stands in a plan file, which is no part of the result");
    }
    Ok(match cli.verb {
        Some(Verb::Pick(args)) => pick::judge(&args, result)?.0,
        Some(Verb::Spin(args)) => spin::judge(&args, result)?.0,
        Some(Verb::Gate(args)) => gate::judge(&args, result)?.0,
        Some(Verb::Check(args)) => {
            let same = |path: &Path| {
                let real = |path: &Path| path.canonicalize().ok();
                path == args.baseline || (real(path).is_some() && real(path) == real(&args.baseline))
            };
            let (_, baseline) = files.iter().find(|(path, _)| same(path)).ok_or_else(|| {
                anyhow::anyhow!("it was held against {}: name that file as well", args.baseline.display())
            })?;
            check::judge(&args, baseline, result)?.0
        }
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::trial::cell::{Cell, Pattern};

    fn result(words: &[&str]) -> ResultFile {
        let cell = Cell { pattern: Pattern::OneWay { gap_ns: 1_000_000 }, ..sample::cell("futex") };
        let mut result = sample::result(&[cell], 10, |_, _| 16_000.0);
        result.plan.experiment = words[1].to_owned();
        result.command_line = words.iter().map(|word| (*word).to_owned()).collect();
        result
    }

    fn title(told: &[Passage]) -> &str {
        told.first().map_or("", |passage| &passage.title)
    }

    #[test]
    fn a_gate_is_answered_by_the_limit_it_was_run_with() {
        let told = retell(&result(&["doorbell", "gate", "--max", "1us"]), &[]);
        assert!(title(&told).contains("at most 1 µs"), "{told:?}");
    }

    #[test]
    fn what_asked_nothing_is_answered_nothing() {
        assert!(retell(&result(&["doorbell", "ping", "--name", "gate"]), &[]).is_empty());
        assert!(retell(&result(&["gate"].repeat(2)), &[]).len() == 1, "a gate without its limit is no gate");
    }

    #[test]
    fn a_check_is_held_against_its_baseline_if_that_is_there() {
        let checked = result(&["doorbell", "check", "--baseline", "main.json"]);
        let alone = retell(&checked, &[]);
        assert!(alone[0].lead[0].contains("held against main.json"), "{alone:?}");
        let both = retell(&checked, &[(Path::new("main.json"), &checked)]);
        assert!(title(&both).starts_with("Not worse") || title(&both).starts_with("Cannot tell"), "{both:?}");
    }

    #[test]
    fn a_question_in_a_plan_file_is_not_guessed() {
        let told = retell(&result(&["doorbell", "gate", "--max=1ms", "--plan", "nightly.toml"]), &[]);
        assert!(told[0].lead[0].contains("plan file"), "{told:?}");
    }
}
