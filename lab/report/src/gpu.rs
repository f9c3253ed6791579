// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gpu`: what a wake-up between CPU and GPU costs by each way, and which to take.

use super::columns::Columns;
use super::figures::{Figures, Having, scale};
use super::section::Section;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::time_ns as ns;
use doorbell_results::figure::gpu::CLOCK_BOUND;
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::gpu::{CHEAP, Cost, Kernel, LITTLE, Waits, waits};

#[derive(Debug)]
pub struct Gpus;

impl Section for Gpus {
    fn name(&self) -> &'static str {
        "gpu"
    }
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let Some(waits) = waits(result) else { return Vec::new() };
        let answer = Subsection::of_lines("How to wait for this GPU", said(&waits, result));
        answer.into_iter().chain(kernels(&waits)).chain(table(figures)).collect()
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        self.subsections(result, figures).into_iter().take(2).collect()
    }
    fn tells(&self, name: &str) -> bool {
        name == CLOCK_BOUND
    }
}

fn cores(cost: &Cost) -> String {
    format!("{:.0} % of a core", cost.cores * 100.0)
}

/// How long kernels work.
fn length([least, most]: [u64; 2]) -> String {
    if least == most { ns(least as f64) } else { format!("{} to {}", ns(least as f64), ns(most as f64)) }
}

/// How many are waited for, where it is more than one.
fn at_once(kernel: &Kernel) -> String {
    if kernel.streams > 1 { format!(", {} at once", kernel.streams) } else { String::new() }
}

/// At which NUMA node it is, where there are several.
fn at_node(device: &BlockDevice, topology: &Topology) -> String {
    match (device.node, topology.nodes.len()) {
        (_, 0 | 1) => String::new(),
        (Some(node), of) => format!(", at NUMA node {node} of {of}"),
        (None, of) => format!(", at none of {of} NUMA nodes that the kernel tells"),
    }
}

fn said(waits: &Waits, result: &ResultFile) -> Vec<String> {
    let mut said = Vec::new();
    let device = result.records.iter().find_map(|record| {
        let device = record.io.as_ref()?.device.as_ref()?;
        Some(format!("Measured on: {}{}.", device.model.as_ref()?, at_node(device, &result.machine.topology)))
    });
    said.extend(device);
    for kernel in &waits.kernels {
        let Some(fastest) = kernel.fastest() else {
            let bound = kernel.ways.iter().map(|way| way.clock_bound_ns).fold(0.0, f64::max);
            let none = "the clocks of CPU and GPU stand to each other within";
            said.push(format!(
                "Kernels of {}{}: {none} {} only, longer than some wake-ups, so none is called the fastest.",
                length(kernel.kernel_ns),
                at_once(kernel),
                ns(bound)
            ));
            continue;
        };
        let cheap = match kernel.cheap() {
            Some(cheap) if cheap == fastest => "it takes little of a core too".to_owned(),
            Some(cheap) => format!(
                "at most {:.0} % of a core: {}, {}, {}",
                CHEAP * 100.0,
                cheap.names(),
                ns(cheap.way.wake_ns),
                cores(cheap.way)
            ),
            None => format!("nothing took at most {:.0} % of a core", CHEAP * 100.0),
        };
        said.push(format!(
            "Kernels of {}{}: fastest is {}, {} after the kernel's end, {}; {cheap}.",
            length(kernel.kernel_ns),
            at_once(kernel),
            fastest.names(),
            ns(fastest.way.wake_ns),
            cores(fastest.way)
        ));
    }
    if let (Some(even), Some(spin)) = (waits.break_even_ns(), waits.spin_ns()) {
        said.push(format!(
            "Blocking wakes {} later than spinning: from kernels of about {} on that is at most \
             {:.0} % of their time. To have both, spin for {} and then block.",
            ns(spin),
            ns(even),
            LITTLE * 100.0,
            ns(spin)
        ));
    }
    if let Some(fastest) = waits.wakes_gpu_fastest() {
        let (names, wake) = (fastest.names(), ns(fastest.way.wake_ns));
        said.push(format!("The CPU wakes the GPU fastest by {names}: {wake}."));
    }
    said
}

/// What each way costs, by the kernel.
fn kernels(waits: &Waits) -> Option<Subsection> {
    let of_kernel = |kernel: &Kernel| format!("{}{}", length(kernel.kernel_ns), at_once(kernel));
    let waited = waits.kernels.iter().flat_map(|kernel| {
        let kernel_name = of_kernel(kernel);
        kernel.ways.iter().map(move |way| (kernel_name.clone(), way))
    });
    let woken = waits.wakes_gpu.iter().map(|way| ("(wakes the GPU)".to_owned(), way));
    let table = Columns::none()
        .with(word("kernel"), |(kernel, _): &(String, &Cost)| kernel.clone())
        .with(word("way"), |(_, way)| way.subject.clone())
        .with(number("wake"), |(_, way)| match way.is_known() {
            true => ns(way.wake_ns),
            false => format!("< {}", ns(way.wake_ns + way.clock_bound_ns)),
        })
        .with(number("launch to return"), |(_, way)| ns(way.round_trip_ns))
        .with(number("cores"), |(_, way)| format!("{:.2}", way.cores))
        .with(number("CPU a kernel"), |(_, way)| ns(way.cpu_ns))
        .table(&waited.chain(woken).collect::<Vec<_>>());
    let notes = vec![
        "Wake: from the kernel's end, by its own stamp, to the waiter's first instruction; of what \
         wakes the GPU, from just before the call to the kernel's begin."
            .to_owned(),
        "Cores, CPU a kernel: CPU time of the waiter and of the driver's threads in the process.".to_owned(),
    ];
    Subsection::of_table("What each way costs, medians", table, notes)
}

fn table(figures: &Figures) -> Option<Subsection> {
    let rows = figures.having(|_| Quantity::Wake);
    let scale = scale(&rows);
    let percentiles = [
        (number("p50"), 0.5),
        (number("p99"), 0.99),
        (number("p99.9").keep(4), 0.999),
        (number("max").keep(3), 1.0),
    ];
    let table = Columns::none()
        .with(word("way"), |(row, _): &Having| row.configuration().subject.clone())
        .with(word("kernel"), |(row, _)| {
            row.configuration().pattern.kernel_ns().map_or_else(String::new, length)
        })
        .at(percentiles, scale)
        .figure(number("clocks within").keep(2), CLOCK_BOUND, ns)
        .samples(number("kernels").keep(5))
        .table(&rows);
    Subsection::of_table(format!("Wake-ups, {}", scale.unit.sign()), table, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, figure, flat, with};
    use doorbell_results::configuration::Pattern;
    use doorbell_results::machine::topology::Node;
    use doorbell_results::record::io::Io;
    use doorbell_results::record::{Record, SideCounters};

    fn record(subject: &str, kernel_ns: u64, ps: u64, cores: f64) -> Record {
        let pattern = Pattern::Gpu { kernel_ns, up_to_ns: None, gap_ns: 0, streams: 1 };
        let mut record = sample::record(&with(subject, pattern), 0, &[ps; 50]);
        let times = record.series.values().next().unwrap().clone();
        record.series = [(Quantity::Wake, times.clone()), (Quantity::RoundTrip, times)].into();
        let user_ns = (cores * 1e6) as u64;
        record.sides = vec![SideCounters { user_ns, window_ns: 1_000_000, ..SideCounters::default() }];
        let model = Some("a device of a test".to_owned());
        let device = Some(BlockDevice { name: "GPU 0".into(), model, ..BlockDevice::default() });
        record.io = Some(Io { device, ..Io::default() });
        record.figures = vec![figure(CLOCK_BOUND, 0.6)];
        record
    }

    #[test]
    fn where_the_clocks_are_not_known_well_enough_no_way_is_called_the_fastest() {
        let short = record("gpu-flag", 1_000_000, 500, 1.0);
        let result =
            sample::result("gpu", vec![short, record("gpu-stream-spin", 1_000_000, 10_700_000, 1.0)]);
        let text = flat(&Gpus.subsections(&result, &Figures::of(&result)));
        assert!(text.contains("none is called the fastest") && text.contains("< 1.1 ns"), "{text}");
    }

    #[test]
    fn where_there_are_several_numa_nodes_the_gpus_own_is_told() {
        let mut result = sample::result("gpu", vec![record("gpu-flag", 1_000_000, 10_700_000, 1.0)]);
        let told = |result: &ResultFile| flat(&Gpus.subsections(result, &Figures::of(result)));
        result.machine.topology.nodes.clear();
        assert!(told(&result).contains("Measured on: a device of a test."));
        let node = |id| Node { id, cpus: [id].into_iter().collect(), distances: vec![10, 21] };
        result.machine.topology.nodes = vec![node(0), node(1)];
        assert!(told(&result).contains("none of 2 NUMA nodes that the kernel tells"));
        let device = result.records[0].io.as_mut().and_then(|io| io.device.as_mut()).unwrap();
        device.node = Some(1);
        assert!(told(&result).contains("at NUMA node 1 of 2."));
    }
}
