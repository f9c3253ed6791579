// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a wake-up costs on Windows and macOS, where `doorbell` itself does not run: one sender and
//! 1 to N receivers, and round trips, each by that system's means. What is measured goes to a
//! result file, which `doorbell` shows, reports, exports and judges.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use doorbell_results::configuration::{Configuration, Load, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::plan::{Plan, semaphores};
use doorbell_results::record::result::SCHEMA_VERSION;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{Contexts, Subject};
use doorbell_results::record::{Environment, Outcome, Record, ResultFile, Warning, warning, write};

mod host;
mod load;
mod means;
mod measure;

/// What a wake-up costs on Windows and macOS.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The means of this system.
    List,
    /// One sender, many receivers, each with an object of its own.
    Fanout(Fanout),
    /// Round trips between two threads.
    Ping(Ping),
}

#[derive(Debug, Args)]
struct Run {
    /// What wakes; all that there are, if none is named.
    means: Vec<String>,
    /// The result file.
    #[arg(short, long, default_value = "doorbell.json")]
    output: PathBuf,
    /// Repetitions of everything, each in an order of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: u32,
}

#[derive(Debug, Args)]
struct Fanout {
    #[command(flatten)]
    run: Run,
    /// Numbers of receivers.
    #[arg(short = 'n', long, value_delimiter = ',', default_values_t = [20, 200, 2000], value_parser = clap::value_parser!(u32).range(1..=20_000))]
    receivers: Vec<u32>,
    /// Rounds of each trial.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rounds: u64,
    /// From one round to the next.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    interval_ms: u64,
    /// The whole table of the study of semaphores: without time-out and with one of 100 ms,
    /// unpinned and scattered over all CPUs, idle and under a load of 20 threads, or of one for
    /// each CPU if there are more.
    #[arg(long)]
    grid: bool,
}

#[derive(Debug, Args)]
struct Ping {
    #[command(flatten)]
    run: Run,
    /// Pauses before each round trip, in microseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [0], value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    gap_us: Vec<u64>,
    /// Round trips of each trial.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,
}

fn main() -> anyhow::Result<()> {
    let machine = host::machine();
    let cpus = machine.topology.usable.len() as u32;
    let (plan, run) = match &Cli::parse().verb {
        Verb::List => {
            for kind in means::all() {
                let here = (kind.open)().map_or_else(|error| format!("no: {error}"), |_| "yes".to_owned());
                println!("{:<22} {here:<4} {}", kind.name, kind.what);
            }
            return Ok(());
        }
        Verb::Fanout(fanout) => (fanout.plan(cpus)?, fanout.run.output.clone()),
        Verb::Ping(ping) => (ping.plan()?, ping.run.output.clone()),
    };
    let result = measured(plan, machine);
    write::write(&result, &run)?;
    println!("Written to {0}. On Linux: doorbell show {0}", run.display());
    let bad = result
        .records
        .iter()
        .filter(|record| !matches!(record.outcome, Outcome::Done | Outcome::Skipped { .. }))
        .count();
    if bad > 0 {
        bail!("{bad} of {} trials did not come to their end", result.records.len());
    }
    Ok(())
}

fn chosen(run: &Run) -> anyhow::Result<Vec<&'static str>> {
    if run.means.is_empty() {
        return Ok(means::all().map(|kind| kind.name).collect());
    }
    run.means.iter().map(|name| Ok(means::find(name)?.name)).collect()
}

fn threads(subject: &str, pattern: Pattern, count: u64) -> Configuration {
    Configuration {
        contexts: Contexts::Threads,
        timing: Timing::Stamp,
        ..Configuration::new(subject, pattern, Until::count(count))
    }
}

/// A workload of the study: so many threads, and no fewer than there are CPUs.
const WORKERS: u32 = 20;
const HUNDRED_MS: WaitPolicy = WaitPolicy::Timeout { timeout_ns: 100_000_000 };

impl Fanout {
    fn plan(&self, cpus: u32) -> anyhow::Result<Plan> {
        let load = Load { kind: load::KIND.to_owned(), workers: WORKERS.max(cpus), pinned: false };
        let options = if self.grid { &[false, true][..] } else { &[false] };
        let scenes = options.iter().flat_map(|late| options.iter().map(move |pinned| (late, pinned)));
        let scenes =
            scenes.flat_map(|(late, pinned)| options.iter().map(move |loaded| (late, pinned, loaded)));
        let interval_ns = Duration::from_millis(self.interval_ms).as_nanos() as u64;
        let mut configurations = Vec::new();
        for subject in chosen(&self.run)? {
            for receivers in &self.receivers {
                for (late, pinned, loaded) in scenes.clone() {
                    let pinning = if *pinned { Pinning::Scatter } else { Pinning::Unpinned };
                    let pattern = Pattern::FanOut { receivers: *receivers, interval_ns };
                    configurations.push(Configuration {
                        wait: if *late { HUNDRED_MS } else { WaitPolicy::Block },
                        placement: Placement { relation: pinning.name().to_owned(), cpus: None },
                        load: loaded.then(|| load.clone()),
                        ..threads(subject, pattern, self.rounds)
                    });
                }
            }
        }
        Ok(Plan {
            sections: vec!["fan-outs".to_owned()],
            parts: semaphores::PARTS.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into(),
            claims: Some(semaphores::NAME.to_owned()),
            ..Plan::new("fanout", configurations, self.run.blocks, fastrand::u64(..))
        })
    }
}

impl Ping {
    fn plan(&self) -> anyhow::Result<Plan> {
        let mut configurations = Vec::new();
        for subject in chosen(&self.run)? {
            let pattern = |gap_us: &u64| Pattern::PingPong { gap_ns: gap_us * 1000 };
            configurations.extend(self.gap_us.iter().map(|gap| threads(subject, pattern(gap), self.count)));
        }
        Ok(Plan::new("ping", configurations, self.run.blocks, fastrand::u64(..)))
    }
}

/// Runs the plan. A trial that hangs ends the run: its threads are still there.
fn measured(plan: Plan, machine: doorbell_results::machine::Machine) -> ResultFile {
    if let Some(name) = &machine.kernel.stand_in {
        println!("Wine, not Windows ({name}): no time here says anything of Windows.");
    }
    println!("{} trials\n{HEAD}", plan.configurations.len() * plan.blocks as usize);
    let started_at_unix_ns = host::unix_ns();
    fastrand::seed(plan.seed);
    let (mut records, mut partial) = (Vec::new(), false);
    'run: for block in 0..plan.blocks {
        let mut order: Vec<&Configuration> = plan.configurations.iter().collect();
        fastrand::shuffle(&mut order);
        for configuration in order {
            let record = trial(configuration, block, &machine);
            println!("{}", line(&record));
            partial = matches!(record.outcome, Outcome::Hung { .. });
            records.push(record);
            if partial {
                break 'run;
            }
        }
    }
    ResultFile {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: std::env::args().collect(),
        name: None,
        started_at_unix_ns,
        finished_at_unix_ns: host::unix_ns().max(started_at_unix_ns),
        partial,
        warnings: machine.kernel.stand_in.as_deref().map(stand_in).into_iter().collect(),
        machine,
        plan,
        primitives: Vec::new(),
        verdict: None,
        records,
        beside: Vec::new(),
    }
}

fn stand_in(name: &str) -> Warning {
    Warning {
        name: warning::STAND_IN.name.to_owned(),
        cause: format!("Wine, not Windows: {name} answered the calls of Windows"),
        effect: "what works is shown, and no time here says anything of Windows".to_owned(),
        cure: "run the same command on Windows".to_owned(),
    }
}

fn trial(configuration: &Configuration, block: u32, machine: &doorbell_results::machine::Machine) -> Record {
    let (started_at_unix_ns, began) = (host::unix_ns(), host::now_ns());
    let kind = means::find(&configuration.subject).ok();
    let notification = kind.map(means::Kind::notification);
    let outcome = kind.context("no such means").and_then(|kind| {
        let load = configuration.load.as_ref().map(|load| load::Load::start(load.workers)).transpose()?;
        let measured = measure::measure(kind, configuration, &machine.topology);
        Ok((measured, load.map(load::Load::end).transpose()?))
    });
    let (outcome, measured, load) = match outcome {
        Ok((Ok(measured), load)) => (Outcome::Done, measured, load),
        Ok((Err(outcome), load)) => (outcome, measure::Measured::default(), load),
        Err(error) => (Outcome::Failed { cause: error.to_string() }, measure::Measured::default(), None),
    };
    Record {
        configuration: configuration.clone(),
        subject: match (notification, configuration.pattern) {
            (Some(notification), Pattern::FanOut { .. }) => Subject::FanOut { shared: false, notification },
            (Some(notification), _) => Subject::Mechanism(notification),
            (None, _) => Subject::Unknown,
        },
        block,
        attempts: 1,
        outcome,
        series: measured.series,
        figures: Vec::new(),
        slices: Vec::new(),
        fanout: measured.fanout,
        io: None,
        tally: measured.tally,
        sides: measured.sides,
        load,
        anatomy: None,
        environment: Environment {
            started_at_unix_ns,
            wall_ns: host::now_ns() - began,
            cpus: machine.topology.usable.clone(),
            ..Environment::default()
        },
        warnings: Vec::new(),
    }
}

const HEAD: &str = "means                  receivers pinning   load       wake p50      longest  outcome";

/// What came of a trial, in a line.
fn line(record: &Record) -> String {
    let Configuration { subject, pattern, placement, load, .. } = &record.configuration;
    let wake = record.series.get(&Quantity::Wake);
    let [p50, longest] = [wake.map(|wake| wake.p50_ns), wake.map(|wake| wake.max_ns)]
        .map(|ns| ns.map_or("–".to_owned(), |ns| format!("{:.1} µs", ns / 1000.0)));
    let outcome = match &record.outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Skipped { reason } => format!("skipped: {reason}"),
        Outcome::Failed { cause } => format!("failed: {cause}"),
        other => format!("{other:?}"),
    };
    let load = if load.is_some() { "loaded" } else { "idle" };
    let (receivers, relation) = (pattern.receivers().unwrap_or(1), &placement.relation);
    format!("{subject:<22} {receivers:>9} {relation:<9} {load:<6} {p50:>12} {longest:>12}  {outcome}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> Plan {
        match Cli::parse_from(["doorbell-other-systems"].into_iter().chain(words.split(' '))).verb {
            Verb::Fanout(fanout) => fanout.plan(2).unwrap(),
            Verb::Ping(ping) => ping.plan().unwrap(),
            Verb::List => panic!("no plan"),
        }
    }

    #[test]
    fn the_grid_has_both_waits_both_pinnings_and_both_loads() {
        let grid = plan("fanout pipe -n 20,2000 --grid");
        assert_eq!(grid.configurations.len(), 2 * 8);
        assert_eq!(grid.configurations.iter().filter(|one| one.load.is_some()).count(), 8);
        assert_eq!(plan("fanout pipe -n 20").configurations.len(), 1);
    }

    /// What reads it checks it as a file of unknown origin.
    #[test]
    fn what_was_measured_is_a_result_that_the_reader_of_results_accepts() {
        for words in
            ["fanout pipe -n 3 --rounds 2 --interval-ms 1", "ping pipe --count 20 --gap-us 0,100 --blocks 2"]
        {
            let result = measured(plan(words), host::machine());
            assert!(
                result.records.iter().all(|record| record.outcome == Outcome::Done),
                "{:?}",
                result.records
            );
            let read = doorbell_results::record::read::read_bytes(write::to_json(&result).into_bytes(), "it")
                .unwrap();
            assert_eq!(read.records.len(), result.records.len());
        }
    }
}
