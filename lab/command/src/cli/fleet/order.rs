// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every node is to run.

use super::super::usage::Usage;
use doorbell_report::command_line::command;

/// The verb that each node runs, and where the results go.
#[derive(Debug, clap::Args)]
pub struct Order {
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub results: String,
    /// What each node measures, behind `--`
    #[arg(last = true, required = true, value_name = "VERB AND ARGUMENTS")]
    measured: Vec<String>,
}

impl Order {
    /// The verb.
    pub fn verb(&self) -> &str {
        self.measured.first().map_or("survey", |word| if word.starts_with('-') { "survey" } else { word })
    }

    /// The command line, as a shell takes it, of a run whose name and
    /// file are the shell's words `name` and `file`.
    /// What is wrong with it is said now, and not by a thousand nodes.
    pub fn on_a_node(&self, name: &str, file: &str) -> Result<String, Usage> {
        let words = std::iter::once("doorbell").chain(self.measured.iter().map(String::as_str));
        let own = |word: &&String| {
            let flag = word.split('=').next().unwrap_or_default();
            ["-o", "--output", "--name"].contains(&flag)
        };
        if let Some(word) = self.measured.iter().find(own) {
            return Err(Usage(format!("{word}: each node's result is named after it; leave that out")));
        }
        let whole = words.clone().chain(["--quiet", "--name", "node", "--output", "node.json"]);
        super::super::command().try_get_matches_from(whole).map_err(|error| {
            let said = error.render().to_string();
            Usage(format!("what the nodes are to run: {}", said.trim_start_matches("error: ").trim()))
        })?;
        let words: Vec<String> = words.map(str::to_owned).collect();
        Ok(format!("{} --quiet --name {name} --output {file}", command(&words)))
    }
}

/// `word` for a shell.
pub fn quoted(word: &str) -> String {
    command(&[word.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(words: &[&str]) -> Order {
        Order {
            results: "results".to_owned(),
            measured: words.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[test]
    fn the_line_is_a_shells_and_the_node_names_the_run() {
        let line = order(&["gate", "--max", "50us", "--load", "full"]).on_a_node("\"$node\"", "-").unwrap();
        assert_eq!(line, "doorbell gate --max 50us --load full --quiet --name \"$node\" --output -");
    }

    #[test]
    fn what_no_node_could_run_is_refused_at_once() {
        for (words, said) in [
            (&["gate", "--max", "50us", "--output", "x"][..], "--output: each node's result"),
            (&["gate", "--maximum", "50us"], "unexpected argument '--maximum'"),
            (&["gaet"], "unrecognized subcommand"),
            (&["schema"], "unexpected argument"),
        ] {
            let error = order(words).on_a_node("n", "-").unwrap_err().to_string();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
