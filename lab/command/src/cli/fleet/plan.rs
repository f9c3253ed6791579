// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fleet plan`: what runs a verb on every node, as a file for Slurm or a loop over ssh.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::usage::{Usage, refuse};
use doorbell_report::command_line::command;
use doorbell_results::quantity::{duration, refused};

/// Arguments of `doorbell fleet plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    means: Means,
}

// Every means of running it. The one list to extend.
#[derive(Debug, clap::Subcommand)]
enum Means {
    /// A batch file for Slurm: whole nodes, a task each
    Slurm(Slurm),
    /// A loop over ssh for a shell
    Ssh(Ssh),
}

/// The text that runs it.
pub fn plan(args: &Args) -> Result<String, Usage> {
    match &args.means {
        Means::Slurm(args) => slurm(args),
        Means::Ssh(args) => ssh(args),
    }
}

/// The verb that each node runs, and where the results go.
#[derive(Debug, clap::Args)]
struct Order {
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: String,
    /// What each node measures, after `--`
    #[arg(last = true, required = true, value_name = "VERB AND ARGUMENTS")]
    measured: Vec<String>,
}

impl Order {
    /// The verb.
    fn verb(&self) -> &str {
        self.measured.first().map_or("survey", |word| if word.starts_with('-') { "survey" } else { word })
    }

    /// The command line, as a shell takes it, of a run whose name and
    /// file are the shell's words `name` and `file`.
    /// What is wrong with it is said now, and not by a thousand nodes.
    fn on_a_node(&self, name: &str, file: &str) -> Result<String, Usage> {
        let words = std::iter::once("doorbell").chain(self.measured.iter().map(String::as_str));
        let own = |word: &&String| {
            let flag = word.split('=').next().unwrap_or_default();
            ["-o", "--output", "--name"].contains(&flag)
        };
        if let Some(word) = self.measured.iter().find(own) {
            return refuse(format!("{word}: each node's result is named after it; leave that out"));
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
fn quoted(word: &str) -> String {
    command(&[word.to_owned()])
}

/// Arguments of `doorbell fleet plan slurm`.
#[derive(Debug, clap::Args)]
pub struct Slurm {
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// Of which partition
    #[arg(long, value_name = "NAME", value_parser = partition)]
    partition: Option<String>,
    #[command(flatten)]
    order: Order,
}

/// A line of a batch file ends where a name would break it.
fn partition(text: &str) -> Result<String, String> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "._,-".contains(letter);
    if text.is_empty() || !text.chars().all(letter) {
        return Err(format!("'{text}' is no name of a partition"));
    }
    Ok(text.to_owned())
}

/// Whole nodes, and no binding: Slurm would bind a task that asks for no more to one CPU, where
/// every wake-up is one on the same core.
fn slurm(args: &Slurm) -> Result<String, Usage> {
    let Slurm { nodes, partition, order } = args;
    let line = order.on_a_node("\"$SLURMD_NODENAME\"", "\"$0/$SLURMD_NODENAME.json\"")?;
    let partition =
        partition.as_ref().map_or_else(String::new, |name| format!("#SBATCH --partition={name}\n"));
    Ok(format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=doorbell-{verb}\n\
         #SBATCH --nodes={nodes}\n\
         #SBATCH --ntasks-per-node=1\n\
         #SBATCH --exclusive\n\
         {partition}\
         # A node that fails its verdict ends with 3: the others go on.\n\
         results={results}\n\
         mkdir -p \"$results\"\n\
         nodes=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\") || exit\n\
         # What a node measured another day says nothing of it today.\n\
         for node in $nodes; do rm -f \"$results/$node.json\"; done\n\
         srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=0 sh -c {line} \"$results\"\n\
         # A node without a result is none that passed.\n\
         echo \"$nodes\" | doorbell fleet verdict \"$results\" --nodes -\n",
        verb = order.verb(),
        results = quoted(&order.results),
        line = quoted(&format!("exec {line}")),
    ))
}

/// Arguments of `doorbell fleet plan ssh`.
#[derive(Debug, clap::Args)]
pub struct Ssh {
    /// The nodes, as ssh takes them
    #[arg(required = true, value_name = "NODE", value_parser = node)]
    nodes: Vec<String>,
    /// How many at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// How long a node may take, after which it has no result; one
    /// that no longer answers is given up after a minute
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    at_most: Duration,
    #[command(flatten)]
    order: Order,
}

/// It becomes the name of a file, and no option of ssh.
fn node(text: &str) -> Result<String, String> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "._@:-".contains(letter);
    if text.is_empty() || text.starts_with(['-', '.']) || !text.chars().all(letter) {
        return Err(refused(
            format_args!("'{text}' is no node"),
            &["host", "user@host", "10.0.0.1", "fe80::1"],
        ));
    }
    Ok(text.to_owned())
}

/// Stands for a node's name until the line is quoted: no word of a command line has this letter.
const NAME: &str = "\u{0}";

/// A file is there when it is whole; who could not be reached has none and is named, an older one's
/// file is gone before the node is asked. The verdicts' own statuses, 3 and 4, are results.
fn ssh(args: &Ssh) -> Result<String, Usage> {
    let Ssh { nodes, at_once, at_most, order } = args;
    let mut seen = BTreeSet::new();
    if let Some(twice) = nodes.iter().find(|node| !seen.insert(*node)) {
        return refuse(format!(
            "{twice} is named twice, and would be measured twice at once: name each node once"
        ));
    }
    // Every word is the node's shell's to read, none this one's; a node's name needs no quotes there.
    let line = order.on_a_node(NAME, "-")?;
    let far = quoted(&line).replace(NAME, "'\"$1\"'");
    let seconds = at_most.as_secs().max(1);
    let one = format!(
        "rm -f \"$0/$1.json\"\n\
         limit='timeout --foreground {seconds}'; $limit true 2>/dev/null || limit=\n\
         $limit ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4 \"$1\" {far} >\"$0/$1.part\" </dev/null\n\
         case $? in 0 | 3 | 4) [ ! -s \"$0/$1.part\" ] || exec mv \"$0/$1.part\" \"$0/$1.json\" ;; esac\n\
         rm -f \"$0/$1.part\"; echo \"$1: no result\" >&2; exit 1"
    );
    Ok(format!(
        "#!/bin/sh\n\
         results={results}\n\
         nodes='{nodes}'\n\
         mkdir -p \"$results\"\n\
         echo $nodes | xargs -n 1 -P {at_once} sh -c {one} \"$results\"\n\
         echo $nodes | doorbell fleet verdict \"$results\" --nodes -\n",
        results = quoted(&order.results),
        nodes = nodes.join(" "),
        one = quoted(&one),
    ))
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
