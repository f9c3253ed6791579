// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pick`.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::common::{Exit, RunArgs, Terminal};
use super::experiment::Experiment;
pub use super::experiment::run;
use super::offered;
use super::placements::{PlacementArgs, present};
use super::usage::Usage;
use super::verdict::{Figures, Source};
use crate::experiment::pick::Pick;
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Topology;
use doorbell_results::plan::Plan;

use doorbell_results::configuration::Placement;
use doorbell_results::quantity::{duration, gap, rate, share};
use doorbell_results::record::question::{self, By, Question, Shape, Traffic};
use doorbell_results::schedule::{MOST_GAPS, Schedule};

/// Arguments of `doorbell pick`.
#[derive(Debug, clap::Args)]
#[command(after_help = "NEEDS\n  \
    process   it joins two processes\n  \
    thread    it joins two threads of one process\n  \
    sleep     the waiter leaves its CPU to others, at once or after a while\n  \
    idle      both sides sleep, at once, whenever they wait\n  \
    epoll     the waiting end is a descriptor that poll and epoll take together with others\n  \
    timeout   a wait can give up after some time by itself\n  \
    payload   a notification carries a message of bytes\n  \
    count     two notifications before a wait are two\n  \
    lossless  no notification is dropped on its way\n  \
    several   any number of notifiers wake one waiter\n\n\
    EXIT STATUS\n  \
    0  there is a verdict, be it that several may be the fastest\n  4  inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell pick --need sleep                         the fastest that does not keep a core busy\n  \
    doorbell pick --need epoll,payload --by p99        in an event loop, by its tail\n  \
    doorbell pick --pattern 1toN --receivers 100       until the last of a hundred is awake\n  \
    doorbell pick --need sleep --gap 1ms               for a waiter that has slept for a millisecond\n  \
    doorbell pick --need epoll --rate 20k/s --arrivals 10us..1ms --cpu-at-most 50% --beside 2\n  \
    \x20                                                  means, spinning and placement together, for such wake-ups\n  \
    doorbell pick --need epoll --from survey.json      what a survey has already measured")]
pub struct Args {
    /// Who notifies whom: one to one, one to many, many to one
    #[arg(long, value_enum, default_value = "1to1")]
    pattern: Who,
    /// What is needed, comma separated; see below
    #[arg(long, value_delimiter = ',', value_parser = offered::needs(), hide_possible_values = true, value_name = "NEED")]
    need: Vec<String>,
    /// Time between notifications; 0 is there and back without a pause
    #[arg(long, value_parser = gap, value_name = "TIME", default_value = "0")]
    gap: Duration,
    /// Receivers, of one to many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=20_000))]
    receivers: u32,
    /// How often the waiter is woken, such as 20k/s; what wakes it, how long it spins and where it
    /// runs are then chosen together
    #[arg(long, value_parser = rate, value_name = "RATE", conflicts_with = "gap")]
    rate: Option<Duration>,
    /// How the wake-ups come: `exponential` (of many sources), SHORTEST..LONGEST between two, or a
    /// FILE of gaps such as 12us, one a line
    #[arg(long, value_name = "LAW", conflicts_with = "gap")]
    arrivals: Option<String>,
    /// The most CPU time that the wake-ups may take, in percent of one CPU
    #[arg(long, value_parser = share, value_name = "PERCENT")]
    cpu_at_most: Option<f64>,
    /// How many other descriptors stand in the waiter's epoll set [default with --need epoll: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    beside: Option<u32>,
    /// What the choice goes by
    #[arg(long, value_enum, default_value = "p50")]
    by: Goes,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Who {
    /// One notifier, one waiter
    #[value(name = "1to1")]
    OneToOne,
    /// One notifier, many waiters, each of whom is to wake
    #[value(name = "1toN")]
    OneToMany,
    /// Many notifiers, one waiter
    #[value(name = "Nto1")]
    ManyToOne,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Goes {
    /// The median
    P50,
    /// The 99th percentile
    P99,
}

impl From<Who> for Shape {
    fn from(who: Who) -> Self {
        match who {
            Who::OneToOne => Self::OneToOne,
            Who::OneToMany => Self::OneToMany,
            Who::ManyToOne => Self::ManyToOne,
        }
    }
}

impl Experiment for Args {
    fn name(&self) -> &'static str {
        "pick"
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let args = self;
        if args.pattern == Who::OneToMany && (args.placements.is_given() || !args.gap.is_zero()) {
            let message = "one to many is a fan-out, whose receivers the scheduler places, a round \
                every 20 ms: leave --placement, --cpus and --gap out, or see `doorbell fanout`";
            return Err(Usage(message.to_owned()).into());
        }
        let mut result = match args.source.figures(&args, terminal)? {
            Figures::Of(result) => result,
            Figures::None(exit) => return Ok(exit),
        };
        let flags = || Ok(Question::Pick(question(&args, &result.machine.topology)?));
        let question = args.source.question(&result, flags)?;
        args.source.deliver(&args.run, terminal, &mut result, &question, &[])
    }
}

/// The wake-ups asked for and the gap between them on average; none where they are of one kind.
fn traffic(args: &Args) -> Result<Option<(Traffic, Duration)>, Usage> {
    if args.rate.is_none() && args.arrivals.is_none() {
        return match (args.cpu_at_most, args.beside) {
            (None, None) => Ok(None),
            _ => Err(Usage(
                "how much CPU time it is, and what a loop does, goes by how often the waiter is \
                 woken: say --rate, such as 20k/s"
                    .to_owned(),
            )),
        };
    }
    if args.pattern != Who::OneToOne {
        return Err(Usage("--rate and --arrivals are for one notifier and one waiter".to_owned()));
    }
    let in_a_set = args.need.iter().any(|need| need == "epoll");
    if args.beside.is_some() && !in_a_set {
        return Err(Usage("other descriptors stand beside one that does: say --need epoll too".to_owned()));
    }
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let law = args.arrivals.as_deref().unwrap_or("exponential");
    let (schedule, own) = match law.split_once("..") {
        _ if law == "exponential" => (Schedule::Exponential, None),
        Some((shortest, longest)) if !std::path::Path::new(law).exists() => {
            let [shortest_ns, longest_ns] = [duration(shortest), duration(longest)].map(|time| time.map(ns));
            let (shortest_ns, longest_ns) = (shortest_ns.map_err(Usage)?, longest_ns.map_err(Usage)?);
            let middle = Duration::from_nanos(shortest_ns / 2 + longest_ns / 2);
            (Schedule::Between { shortest_ns, longest_ns }, Some(middle))
        }
        _ => {
            let gaps_ns = recorded(law)?;
            let mean = Duration::from_nanos(Schedule::recorded_mean_ns(&gaps_ns));
            (Schedule::Recorded { gaps_ns }, Some(mean))
        }
    };
    let Some(gap) = args.rate.or(own) else {
        return Err(Usage("how often? Say --rate, such as 20k/s".to_owned()));
    };
    if let Some(fault) = schedule.fault(ns(gap)) {
        return Err(Usage(format!("--arrivals {law}: {fault}")));
    }
    let beside = in_a_set.then(|| args.beside.unwrap_or(0));
    Ok(Some((Traffic { schedule, beside, cpu_at_most: args.cpu_at_most }, gap)))
}

/// The gaps in the file at `path`, one a line, nanoseconds.
fn recorded(path: &str) -> Result<Vec<u64>, Usage> {
    let refused = |why: String| Usage(format!("--arrivals {path}: {why}"));
    // A gap a line, and room for units and comments.
    let text = doorbell_files::text(Path::new(path), 64 * MOST_GAPS as u64).map_err(|error| {
        refused(format!("{error}; write exponential, 10us..1ms, or a file of gaps such as 12us, one a line"))
    })?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let gaps = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    gaps.map(|(number, line)| {
        let gap = duration(line).map_err(|why| refused(format!("line {number}: {why}")))?;
        Ok(u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX))
    })
    .collect()
}

/// What the arguments ask of a result of a machine with `topology`.
fn question(args: &Args, topology: &Topology) -> Result<question::Pick, Usage> {
    let placement = args.placements.is_given().then(|| placement(args, topology)).transpose()?;
    let (traffic, gap) = traffic(args)?.map_or((None, args.gap), |(traffic, gap)| (Some(traffic), gap));
    Ok(question::Pick {
        shape: Shape::from(args.pattern),
        needs: args.need.clone(),
        by: match args.by {
            Goes::P50 => By::P50,
            Goes::P99 => By::P99,
        },
        gap_ns: u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX),
        relation: placement.map(|placement| placement.relation),
        traffic,
    })
}

/// The one placement asked for, or the usual one.
fn placement(args: &Args, topology: &Topology) -> Result<Placement, Usage> {
    match &args.placements.resolve_one(topology)?[..] {
        [placement] => Ok(placement.clone()),
        _ => Err(Usage("one verdict is for one placement: name one with --placement".to_owned())),
    }
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let topology = &machine.topology;
    let question = question(args, topology)?;
    let all = question.traffic.is_some() && !args.placements.is_given();
    let pick = Pick {
        question,
        receivers: args.receivers,
        placements: if all { present(topology) } else { vec![placement(args, topology)?] },
        blocks: args.run.blocks,
        seed: args.run.seed(),
    };
    Ok(pick.plan().map_err(|unknown| Usage(unknown.to_string()))?)
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use doorbell_results::record::need::NEEDS;

    #[test]
    fn the_help_says_what_every_need_means() {
        let command = super::Args::augment_args(clap::Command::new("pick"));
        let help = command.get_after_help().unwrap().to_string();
        for need in &NEEDS {
            assert!(help.contains(&format!("{:8}  {}\n", need.name, need.meaning)), "{}", need.name);
        }
    }
}
