// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::builder::TypedValueParser;

use super::common::{Exit, RunArgs, Terminal, named, once};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::out::aside;
use super::placements::allowed;
use super::sides::one_of;
use super::usage::{Usage, refuse};
use doorbell_harness::family::Family;
use doorbell_results::configuration::{Configuration, Direction, Pattern, Placement, Target, Until};
use doorbell_results::machine::Machine;
use doorbell_results::plan::{FEWEST_BLOCKS, Plan};
use doorbell_results::quantity::{bytes, refused, some_gap, span};
use doorbell_results::record::{Outcome, Record, ResultFile, fio};
use doorbell_subjects::transfer::scratch::SECTOR;
use doorbell_subjects::transfer::{self, CONTROL, target};
use doorbell_verdict::claims::polling::{self, PARTS};
use doorbell_verdict::plausibility::{Known, violations};

/// How long a trial of transfers lasts unless told otherwise: some thousand of them.
const WINDOW: Duration = Duration::from_millis(500);

mod net;
use net::Net;

/// Arguments of `doorbell io`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell io                                           every engine, 4 KiB reads and writes on a file made for it\n  \
    doorbell io --device /dev/nvme0n1                     reads of a device; nothing is written\n  \
    doorbell io sync uring-iopoll --device /dev/nvme1n1 --rw read,write --write-device nvme1n1\n  \
    doorbell io sync --file /srv/data --size 4K,16K       reads of a file that is there\n  \
    doorbell io --import fio.json                         a result of fio, in the same tables and pages\n  \
    doorbell io --devices                                 disk, network and GPU in one table: what polling saves, and takes\n  \
    doorbell io --net                                     waiting for a message: sockets, busy polling, HTTP, WebSocket\n  \
    doorbell vm run --accel tcg --nvme poll --cpus 2 -- io --device /dev/nvme0n1   polling without hardware: counts, no times\n\n\
    An engine that is called polled has figures only if the device's interrupts stood still meanwhile.")]
pub struct Args {
    /// Wait for messages over loopback instead of a disk: what is named are then ways to wait, udp,
    /// udp-busy-poll, tcp, tcp-busy-poll, tcp-epoll-busy-poll, and one layer up
    /// http-short-poll, http-long-poll, http-sse, websocket
    #[arg(long, conflicts_with_all = ["file", "device", "dir", "file_size", "precondition", "rw", "size", "buffered", "import"])]
    net: bool,
    /// Beside the disk measure waiting for a message over loopback (tcp) and for a kernel of a GPU,
    /// polled and by interrupt: three devices, one table
    #[arg(long, conflicts_with = "net")]
    devices: bool,
    /// With --net, time between messages, comma separated: usually many times what any of the ways
    /// takes, so that every message is waited for
    #[arg(long, value_delimiter = ',', value_parser = some_gap, value_name = "TIME", requires = "net", default_value = net::GAP)]
    gap: Vec<Duration>,
    /// I/O engines, or `all`: io-null (the control, always run), sync, sync-hipri, uring,
    /// uring-iopoll, uring-hybrid, uring-sqpoll, uring-sqpoll-iopoll
    #[arg(value_name = "ENGINE", value_parser = offered::engines(), hide_possible_values = true)]
    engines: Vec<String>,
    /// Read this file, which is there already
    #[arg(long, value_name = "FILE", value_parser = utf8, conflicts_with_all = ["device", "dir", "file_size", "precondition"])]
    file: Option<PathBuf>,
    /// Read this block device
    #[arg(long, value_name = "DEVICE", value_parser = utf8, conflicts_with_all = ["dir", "file_size"])]
    device: Option<PathBuf>,
    /// Allow that this device be overwritten, whole: the same as --device, by its name alone, such
    /// as nvme1n1; refused on a device that is mounted, partitioned, swapped to or held
    #[arg(long, value_name = "NAME", requires = "device")]
    write_device: Option<String>,
    /// Make the file in this folder [default: here]
    #[arg(long, value_name = "FOLDER", value_parser = utf8)]
    dir: Option<PathBuf>,
    /// Length of the file that is made, a whole number of MiB
    #[arg(long, value_name = "SIZE", value_parser = file_size, default_value = "256M")]
    file_size: u64,
    /// Times the file, or with --write-device the device, is filled and
    /// then checked before the first trial: once from front to end, then in
    /// random order [default: 1 for a file that is made, 0 for a device]
    #[arg(long, value_name = "PASSES", value_parser = clap::value_parser!(u32).range(0..=100))]
    precondition: Option<u32>,
    /// Which way blocks go, comma separated [default: read,write for
    /// a file that is made, else read]
    #[arg(long, value_parser = direction(), value_delimiter = ',', value_name = "HOW")]
    rw: Vec<Direction>,
    /// Bytes of a block, comma separated; multiples of 512
    #[arg(long, value_delimiter = ',', default_value = "4K", value_name = "SIZE", value_parser = block_size)]
    size: Vec<u32>,
    /// Read a result of fio (--output-format=json+; of json, which has percentiles alone, as far as
    /// they go) into the same table; may be repeated. Engines are then measured only if named
    #[arg(long, value_name = "FILE")]
    import: Vec<PathBuf>,
    /// Leave the page cache in: a demonstration of reads that no device sees
    #[arg(long)]
    buffered: bool,
    /// The waiter's CPU, and one for a thread of the kernel [default:
    /// the first two this process may use]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "A,B")]
    cpus: Vec<u32>,
    /// Transfers of a trial
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "time")]
    count: Option<u64>,
    /// Length of a trial [default: 500ms; with --net what the gap needs]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    run: RunArgs,
}

/// Which way blocks go.
fn direction() -> impl TypedValueParser<Value = Direction> {
    one_of(&[("read", "From the device", Direction::Read), ("write", "To the device", Direction::Write)])
}

/// A path that stands in the result, which is JSON and has no bytes: another is refused by the
/// parser of the command line.
fn utf8(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(text.into())
}

fn block_size(text: &str) -> Result<u32, String> {
    match bytes(text, 512..=1 << 20)? {
        size if size.is_multiple_of(SECTOR) => Ok(size as u32),
        _ => Err(refused(format_args!("'{text}' is no multiple of {SECTOR}"), &["512", "4K", "1M"])),
    }
}

fn file_size(text: &str) -> Result<u64, String> {
    match bytes(text, 1 << 20..=1 << 40)? {
        size if size.is_multiple_of(1 << 20) => Ok(size),
        _ => Err(refused(format_args!("'{text}' is no whole number of MiB"), &["256M", "1G"])),
    }
}

impl Experiment for Args {
    fn about(&self) -> About {
        match self.net {
            true => About { name: "net", sections: &["messages"], parts: PARTS.to_vec(), claims: None },
            false => About {
                name: "io",
                sections: &["transfers"],
                parts: PARTS.to_vec(),
                claims: Some(polling::SOURCE.name),
            },
        }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        match (self.net, self.import.is_empty() || !self.engines.is_empty()) {
            (true, _) => {
                let net = Net {
                    ways: net::known(&self.engines)?,
                    gaps_ns: self.gap.iter().copied().map(ns).collect(),
                    placement: placement(&self.cpus, machine)?,
                    until: self.count.map(Until::count).or_else(|| self.time.map(Until::time)),
                    blocks: self.run.blocks.unwrap_or(FEWEST_BLOCKS),
                    seed: self.run.seed(),
                };
                Ok(net.plan())
            }
            (false, true) => {
                let mut plan = plan(self, machine)?;
                if self.devices {
                    plan.configurations.extend(other_devices(placement(&self.cpus, machine)?));
                }
                Ok(plan)
            }
            (false, false) => Ok(Plan::new("io", Vec::new(), 1, self.run.seed())),
        }
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        // A file that has no end is left at once.
        let imported = imported(&self.import)?;
        let machine = self.run.machine()?;
        let plan = self.planned(&machine)?;
        if self.run.only_planned(&plan)? {
            return Ok(Exit::Done);
        }
        if !self.net && !terminal.quiet {
            tell(&plan, &machine);
        }
        let mut result = self.run.measure(plan, machine, terminal)?;
        join(&mut result, imported);
        self.run.delivery.deliver(&result, terminal)
    }
}

/// The longest result of fio that is read, bytes: its histograms of a hundred jobs take some 10 MB.
const LONGEST_FIO: u64 = 256 << 20;

/// The records in results of fio; the same job of several files is a block of each.
fn imported(paths: &[PathBuf]) -> anyhow::Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    for (block, path) in paths.iter().enumerate() {
        let text = doorbell_files::text(path, LONGEST_FIO).with_context(|| path.display().to_string())?;
        let own = fio::records(&text, block as u32).with_context(|| path.display().to_string())?;
        records.extend(own);
    }
    Ok(records)
}

/// Puts `imported` after what was measured, held to the same rules.
fn join(result: &mut ResultFile, imported: Vec<Record>) {
    for mut record in imported {
        let violations = violations(&record, &Known::default());
        if !violations.is_empty() {
            record.outcome = Outcome::Implausible { violations };
        }
        if !result.plan.configurations.contains(&record.configuration) {
            result.plan.configurations.push(record.configuration.clone());
        }
        result.plan.blocks = result.plan.blocks.max(record.block + 1);
        result.records.push(record);
    }
}

/// Kernels of the GPU whose end is waited for beside a disk's transfers.
const KERNEL: Duration = Duration::from_micros(100);

/// A message over loopback and the end of a kernel, each noticed by looking and by an interrupt;
/// two sides on one CPU only sleep.
fn other_devices(placement: Placement) -> Vec<Configuration> {
    let ways = vec!["tcp".to_owned()];
    let gaps_ns = vec![5_000_000];
    let net = Net { ways, gaps_ns, placement, until: None, blocks: 1, seed: 1 }.plan().configurations;
    let pattern = Pattern::Gpu { kernel_ns: ns(KERNEL), up_to_ns: None, gap_ns: 0, streams: 1 };
    let gpu = ["gpu-stream-spin", "gpu-stream-block"]
        .map(|way| Configuration::new(way, pattern, Until::time(WINDOW)));
    net.into_iter().filter(|one| one.subject == "tcp").chain(gpu).collect()
}

/// What will not be run, and why, before anything is.
fn tell(plan: &Plan, machine: &Machine) {
    let mut told = BTreeSet::new();
    for configuration in &plan.configurations {
        if configuration.pattern.transfers().is_some()
            && let Some(reason) = doorbell_subjects::transfer::Transfers.lacks(configuration, machine)
            && told.insert(reason.clone())
        {
            aside!("doorbell: {}: {reason}", configuration.subject);
        }
    }
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let target = target(args);
    let made = matches!(target, Target::Created { .. });
    let directions: Vec<Direction> = match &args.rw[..] {
        [] if made => vec![Direction::Read, Direction::Write],
        [] => vec![Direction::Read],
        asked => asked.to_vec(),
    };
    if args.buffered && directions.contains(&Direction::Write) {
        return refuse("--buffered shows reads that no device sees: give it --rw read");
    }
    if made && args.precondition == Some(0) {
        return refuse("a file that is made is filled at least once: --precondition 1");
    }
    let overwrites = args.device.is_some() && args.precondition.is_some_and(|passes| passes > 0);
    if overwrites && args.write_device.is_none() {
        return refuse("--precondition overwrites the device: say so with --write-device NAME");
    }
    // A user error is told before the file is made, and again, by the
    // same rules, when each trial opens it.
    for direction in &directions {
        for &size in &args.size {
            if !made {
                let nowhere = std::env::temp_dir();
                target::open(&target, *direction, !args.buffered, size, &nowhere).map_err(Usage::of)?;
            }
        }
    }
    let placement = placement(&args.cpus, machine)?;
    let until = args.count.map_or_else(|| Until::time(args.time.unwrap_or(WINDOW)), Until::count);
    let mut configurations: Vec<Configuration> = Vec::new();
    for name in engines(&args.engines)? {
        let Ok(engine) = transfer::find(&name) else { continue };
        for &direction in &directions {
            for &size in &args.size {
                // Only what has a thread in the kernel takes a second CPU.
                let placement = if engine.kernel_thread { placement.clone() } else { placement.alone() };
                let pattern = Pattern::Io { direction, direct: !args.buffered };
                let target = Some(target.clone());
                let configuration =
                    Configuration { placement, size, target, ..Configuration::new(&*name, pattern, until) };
                if !configurations.contains(&configuration) {
                    configurations.push(configuration);
                }
            }
        }
    }
    Ok(Plan::new("io", configurations, args.run.blocks.unwrap_or(FEWEST_BLOCKS), args.run.seed()))
}

fn target(args: &Args) -> Target {
    match (&args.file, &args.device) {
        (Some(path), _) => Target::File { path: path.clone() },
        (_, Some(path)) => Target::Device {
            path: path.clone(),
            consent: args.write_device.clone(),
            passes: args.precondition.unwrap_or(0),
        },
        _ => Target::Created {
            bytes: args.file_size,
            folder: args.dir.clone(),
            passes: args.precondition.unwrap_or(1),
        },
    }
}

fn placement(cpus: &[u32], machine: &Machine) -> anyhow::Result<Placement> {
    let topology = &machine.topology;
    let [first, second] = match *cpus {
        [] => topology.two_cores().unwrap_or([topology.usable.iter().next().unwrap_or(0); 2]),
        [one] => [one; 2],
        [one, other] => [one, other],
        _ => return refuse("--cpus takes one CPU or two: --cpus 0,1"),
    };
    Ok(allowed([first, second], topology)?)
}

fn engines(names: &[String]) -> Result<Vec<String>, Usage> {
    let all = || transfer::all().iter().map(|engine| engine.name);
    let mut chosen = if names.is_empty() {
        all().map(str::to_owned).collect()
    } else {
        named(names, all(), transfer::find)?
    };
    chosen.insert(0, CONTROL.to_owned());
    once(&mut chosen);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{two_cpus, typed};

    #[test]
    fn only_what_has_a_thread_in_the_kernel_takes_a_second_cpu() {
        let plan = plan(&typed("all --cpus 0,1"), &two_cpus()).unwrap();
        assert_eq!(plan.configurations.len(), 2 * transfer::all().len());
        for configuration in &plan.configurations {
            let two = configuration.placement.cpus == Some([0, 1]);
            assert_eq!(two, configuration.subject.contains("sqpoll"), "{}", configuration.subject);
        }
    }
}
