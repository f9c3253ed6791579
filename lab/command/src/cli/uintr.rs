// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell uintr`.

use std::time::Duration;

use super::common::{RunArgs, once};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::numbers::message;
use super::offered;
use super::sides::contexts;
use super::usage::Usage;
use crate::experiment::uintr::{GAPS, SIZES, TIMEOUTS, Uintr, VARIANTS};
use doorbell_results::configuration::Placement;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::quantity::{duration, gap};
use doorbell_subjects::mechanism::Contexts;

/// Arguments of `doorbell uintr`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell vm run --accel uintr -- uintr            in a guest whose emulated CPU has them\n  \
    doorbell vm run --accel uintr --deterministic -- uintr --count 200   in exact instructions\n  \
    doorbell uintr --count 100000 --gap 0             on a CPU that has them, with the driver loaded\n  \
    doorbell uintr eventfd uintr-by-signals-epoll     without the CPU: what libuintr makes of signals\n\n\
    The eight lines of other tools: doorbell export classic RESULT")]
pub struct Args {
    /// Means of notification (`doorbell list`) [default: null, spin, eventfd, eventfd-epoll, futex,
    /// uintr, uintr-wait, uintr-epoll]
    #[arg(value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanisms: Vec<String>,
    /// Time between notifications, comma separated [default: 0,10ms,100ms,1s]
    #[arg(long, value_delimiter = ',', value_parser = gap, value_name = "TIME")]
    gap: Vec<Duration>,
    /// Bytes of message, comma separated [default: 1,4096]
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = message)]
    size: Vec<u32>,
    /// Time-outs of waits, comma separated [default: 100us,2500us,5ms,10ms]
    #[arg(long, value_delimiter = ',', value_parser = duration, value_name = "TIME")]
    wait: Vec<Duration>,
    /// Notifications of a trial [default: what 200 ms or five gaps have time for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    #[command(flatten)]
    run: RunArgs,
}

/// Blocks of a run that names no number: a gap of a second makes them long.
const BLOCKS: u32 = 2;

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "uintr"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let topology = &machine.topology;
        let [first, second] = topology.two_cores().ok_or_else(|| {
            Usage(format!(
                "what spins, and a receiver that runs, need a CPU each, and this process may use {}",
                topology.usable
            ))
        })?;
        let relation = topology.relation(first, second).name().to_owned();
        let mut mechanisms = self.mechanisms.clone();
        once(&mut mechanisms);
        if mechanisms.is_empty() {
            mechanisms = VARIANTS.map(str::to_owned).to_vec();
        }
        let ns = |asked: &[Duration], usual: &[Duration]| {
            let times = if asked.is_empty() { usual } else { asked };
            times.iter().map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).collect()
        };
        Ok(Uintr {
            mechanisms,
            placement: Placement { relation, cpus: Some([first, second]) },
            contexts: self.contexts,
            gaps_ns: ns(&self.gap, &GAPS),
            sizes: if self.size.is_empty() { SIZES.to_vec() } else { self.size.clone() },
            timeouts_ns: ns(&self.wait, &TIMEOUTS),
            count: self.count,
            blocks: self.run.blocks.unwrap_or(BLOCKS),
            seed: self.run.seed(),
        }
        .plan())
    }
}
