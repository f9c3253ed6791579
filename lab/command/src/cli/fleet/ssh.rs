// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop over ssh.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::usage::Usage;
use super::order::{Order, quoted};
use doorbell_results::quantity::{duration, refused};

/// Arguments of `doorbell fleet plan ssh`.
#[derive(Debug, clap::Args)]
pub struct Args {
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
pub fn plan(args: &Args) -> Result<String, Usage> {
    let Args { nodes, at_once, at_most, order } = args;
    let mut seen = BTreeSet::new();
    if let Some(twice) = nodes.iter().find(|node| !seen.insert(*node)) {
        return Err(Usage(format!(
            "{twice} is named twice, and would be measured twice at once: name each node once"
        )));
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
