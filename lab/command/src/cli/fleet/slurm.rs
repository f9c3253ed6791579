// SPDX-License-Identifier: MIT OR Apache-2.0
//! A batch file for Slurm.

use super::super::usage::Usage;
use super::order::{Order, quoted};

/// Arguments of `doorbell fleet plan slurm`.
#[derive(Debug, clap::Args)]
pub struct Args {
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
pub fn plan(args: &Args) -> Result<String, Usage> {
    let Args { nodes, partition, order } = args;
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
