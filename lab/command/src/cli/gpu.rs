// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gpu`.

use std::time::Duration;

use super::common::{RunArgs, named};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::placements::allowed;
use super::usage::{Usage, refuse};
use distance::{Distance, cpu_at};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::{FEWEST_BLOCKS, Plan};
use doorbell_results::quantity::{duration, some_gap, span};
use doorbell_subjects::gpu::{self, Way};
use doorbell_verdict::gpu::{BLOCKS, SPINS, WAKES_GPU};

mod distance;

/// How long each way is measured after each kernel, in all blocks together, unless told otherwise;
/// and so many kernels a block at least.
const WINDOW: Duration = Duration::from_millis(250);
const FEWEST_KERNELS: u32 = 5;
/// What tells how to wait here: a way of each kind, after kernels that are short, as long as a
/// spin may be, and long.
const FIRST: [&str; 11] = [
    "gpu-stream-spin",
    "gpu-stream-block",
    "gpu-event-block",
    "gpu-host-eventfd",
    "gpu-flag",
    "gpu-hybrid",
    "gpu-adaptive",
    "gpu-events",
    "gpu-launch",
    "gpu-resident",
    "gpu-wait-value",
];
const FIRST_KERNELS: &str = "0,100us,1ms";
const ALL_KERNELS: &str = "0,10us,100us,1ms,10ms";
/// The longest kernel: a resident one is looked for no longer than some seconds.
const LONGEST: Duration = Duration::from_secs(1);

/// Arguments of `doorbell gpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell gpu                                          how to wait here\n  \
    doorbell gpu all                                      every way, behind kernels of 0 to 10 ms\n  \
    doorbell gpu --rate 2k/s --kernel 300us               2,000 kernels a second of 300 µs each: cores and latency of each way\n  \
    doorbell gpu gpu-stream-spin gpu-adaptive --kernel 1ms   two ways beside each other\n  \
    doorbell gpu gpu-event-spin gpu-adaptive --kernel 1ms --streams 1,8   eight threads that wait at once\n  \
    doorbell gpu gpu-events --kernel 300us --streams 8 --rate 1k/s   eight streams in one event loop\n  \
    doorbell gpu gpu-hybrid --spin 20us --kernel 10us-1ms how long to ask, where no kernel is as long as the last\n\n\
    It needs NVIDIA's driver (libcuda.so.1, opened when it runs) and a GPU; DOORBELL_CUDA_LIBRARY names another file.\n    \
    For a machine that is at hand for minutes, `ci/gpu pack` of the source makes a kit that measures everything.")]
pub struct Args {
    /// Ways to wait, or `all` [default: one of each kind]. GPU wakes CPU: gpu-stream-spin,
    /// gpu-stream-yield, gpu-stream-block, gpu-stream-auto, gpu-event-spin, gpu-event-yield,
    /// gpu-event-auto, gpu-event-block, gpu-query, gpu-query-pause, gpu-host-eventfd,
    /// gpu-host-futex, gpu-host-bell, gpu-flag, gpu-write-value, gpu-hybrid, gpu-adaptive,
    /// gpu-events. CPU wakes GPU: gpu-launch, gpu-graph, gpu-resident, gpu-wait-value
    #[arg(value_name = "WAY", value_parser = offered::gpu_ways(), hide_possible_values = true)]
    ways: Vec<String>,
    /// How long kernels work, comma separated, at most 1s; 10us-1ms
    /// draws each kernel's length anew, evenly by the logarithm
    /// [default: 0,100us,1ms; where ways are named also 10us and 10ms]
    #[arg(long, value_delimiter = ',', value_name = "TIME", value_parser = kernel)]
    kernel: Vec<Kernel>,
    /// Kernels a second, or the time between two [default: one follows the other]
    #[arg(long, value_parser = some_gap, value_name = "RATE")]
    rate: Option<Duration>,
    /// Streams with a kernel each and a thread that waits for it, comma separated
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: Vec<u32>,
    /// How long gpu-hybrid asks before it blocks, at most 1s [default: 50us]
    #[arg(long, value_parser = span, value_name = "TIME")]
    spin: Option<Duration>,
    /// The waiter's CPU: a number, or near or far for one of the NUMA node of the GPU or of the
    /// node farthest from it [default: wherever the scheduler puts it]
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    cpu: Option<Cpu>,
    /// How long each way is measured after each kernel, in all blocks together [default: 250ms,
    /// and at least 5 kernels a block]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    run: RunArgs,
}

/// How long kernels work, at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernel([Duration; 2]);

impl Kernel {
    pub(super) const fn always(time: Duration) -> Self {
        Self([time; 2])
    }
}

/// Where the waiter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cpu {
    Number(u32),
    At(Distance),
}

fn cpu(text: &str) -> Result<Cpu, String> {
    match (text, text.parse()) {
        ("near", _) => Ok(Cpu::At(Distance::Near)),
        ("far", _) => Ok(Cpu::At(Distance::Far)),
        (_, Ok(number)) => Ok(Cpu::Number(number)),
        _ => Err(doorbell_results::quantity::refused(
            format_args!("'{text}' is no CPU"),
            &["3", "near", "far"],
        )),
    }
}

pub(super) fn kernel(text: &str) -> Result<Kernel, String> {
    let refused = |why: std::fmt::Arguments<'_>| {
        Err(doorbell_results::quantity::refused(why, &["100us", "10us-1ms", "1s"]))
    };
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (duration(least), duration(most)) {
        (Ok(_), Ok(most)) if most > LONGEST => {
            refused(format_args!("'{text}' is longer than a kernel is waited for"))
        }
        (Ok(least), Ok(most)) if least > most => refused(format_args!("'{text}' ends before it begins")),
        (Ok(least), Ok(most)) => Ok(Kernel([least, most])),
        _ => refused(format_args!("'{text}' is no time that a kernel takes")),
    }
}

impl Experiment for Args {
    fn about(&self) -> About {
        let wakes = gpu::all().iter().filter(|way| way.wakes_gpu()).map(|way| (way.name, WAKES_GPU));
        let parts = wakes.chain([("gpu-stream-spin", SPINS), ("gpu-stream-block", BLOCKS)]).collect();
        About { name: "gpu", sections: &["gpu"], parts, claims: None }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        plan(self, machine)
    }
}

fn plan(args: &Args, machine: &Machine) -> anyhow::Result<Plan> {
    let names = if args.ways.is_empty() {
        FIRST.map(str::to_owned).to_vec()
    } else {
        named(&args.ways, gpu::all().iter().map(|way| way.name), gpu::find)?
    };
    let usual = if args.ways.is_empty() { FIRST_KERNELS } else { ALL_KERNELS };
    let kernels = if args.kernel.is_empty() {
        usual.split(',').map(kernel).collect::<Result<_, _>>().map_err(Usage)?
    } else {
        args.kernel.clone()
    };
    let blocks = args.run.blocks.unwrap_or(FEWEST_BLOCKS);
    sensible(args, &names)?;
    let placement = placement(args, machine)?;
    let gap = args.rate.unwrap_or_default();
    let mut configurations: Vec<Configuration> = Vec::new();
    for way in names.iter().filter_map(|name| gpu::find(name).ok()) {
        for (&kernel, &streams) in
            kernels.iter().flat_map(|kernel| args.streams.iter().map(move |n| (kernel, n)))
        {
            let one = configuration(way, kernel, streams, gap);
            let [_, longest] = one.pattern.kernel_ns().unwrap_or_default();
            let fewest = Duration::from_nanos(longest).max(gap) * FEWEST_KERNELS;
            let each = args.time.map_or((WINDOW / blocks).max(fewest), |time| time / blocks);
            let spin = args.spin.filter(|_| way.name == HYBRID);
            let wait = spin.map_or(one.wait, |spin| WaitPolicy::SpinThenBlock { spin_ns: ns(spin) });
            let (until, placement) = (Until::time(each), placement.clone());
            let configuration = Configuration { until, wait, placement, ..one };
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        }
    }
    let plan = Plan::new("gpu", configurations, blocks, args.run.seed());
    names.iter().filter_map(|name| gpu::find(name).ok()).try_for_each(|way| fits(way, &plan))?;
    Ok(plan)
}

/// The way that asks for so long as it is told.
const HYBRID: &str = "gpu-hybrid";

/// `way` after kernels that are set off `gap` apart, wherever the scheduler puts the waiter.
pub(super) fn configuration(
    way: &Way,
    Kernel([least, most]): Kernel,
    streams: u32,
    gap: Duration,
) -> Configuration {
    // How long it then works is no matter to who wakes it.
    let [least, most] = if way.wakes_gpu() { [Duration::ZERO; 2] } else { [least, most] };
    let up_to_ns = (most > least).then(|| ns(most));
    let pattern = Pattern::Gpu { kernel_ns: ns(least), up_to_ns, gap_ns: ns(gap), streams };
    Configuration::new(way.name, pattern, Until::time(WINDOW))
}

/// Whether `way` can be measured for as long at a time as `plan` has it.
pub(super) fn fits(way: &Way, plan: &Plan) -> Result<(), Usage> {
    let own = plan.configurations.iter().filter(|one| one.subject == way.name);
    let each = Duration::from_nanos(own.filter_map(|one| one.until.time_ns).max().unwrap_or(0));
    match way.longest() {
        Some(longest) if each > longest => refuse(format!(
            "{}: its kernel is there for {longest:?} at most, and {} blocks of {each:?} were asked \
             for; give it less --time, or more --blocks",
            way.name, plan.blocks
        )),
        _ => Ok(()),
    }
}

/// Refuses what would be asked for in vain.
fn sensible(args: &Args, names: &[String]) -> Result<(), Usage> {
    if args.spin.is_some() && !names.iter().any(|name| name == HYBRID) {
        return refuse("--spin says how long gpu-hybrid asks, which is not among the ways: name it too");
    }
    if args.spin.is_some_and(|spin| spin > LONGEST) {
        return refuse(
            "--spin is longer than any kernel, 1s: gpu-hybrid would never block; gpu-query is what \
             then comes of it",
        );
    }
    let all_wake = names.iter().filter_map(|name| gpu::find(name).ok()).all(Way::wakes_gpu);
    if all_wake && !args.kernel.is_empty() {
        return refuse(
            "these ways tell when a kernel begins: --kernel, how long it then works, is no matter",
        );
    }
    Ok(())
}

fn placement(args: &Args, machine: &Machine) -> Result<Placement, Usage> {
    let number = match args.cpu {
        None => return Ok(Placement::default()),
        Some(Cpu::Number(number)) => number,
        Some(Cpu::At(distance)) => match gpu::node() {
            Ok(node) => cpu_at(distance, node, &machine.topology).map_err(Usage::of)?,
            // No GPU: each trial says so.
            Err(_) => return Ok(Placement::default()),
        },
    };
    allowed([number; 2], &machine.topology)
}
