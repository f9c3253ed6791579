// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell gpu`: what a wake-up between CPU and GPU costs by each way, and which to take.

use super::figures::{Figures, percentiles};
use super::section::Section;
use super::subsection::{Subsection, nothing};
use super::table::{Table, number, word};
use super::unit::{Scale, count, time};
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
        let Some(waits) = waits(result) else { return nothing() };
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

fn ns(ns: f64) -> String {
    time(ns * 1e3)
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

/// The answer in sentences.
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
    let mut table = Table::new(vec![
        word("kernel"),
        word("way"),
        number("wake"),
        number("launch to return"),
        number("cores"),
        number("CPU a kernel"),
    ]);
    let mut row = |kernel: String, way: &Cost| {
        table.row(vec![
            kernel,
            way.subject.clone(),
            if way.is_known() {
                ns(way.wake_ns)
            } else {
                format!("< {}", ns(way.wake_ns + way.clock_bound_ns))
            },
            ns(way.round_trip_ns),
            format!("{:.2}", way.cores),
            ns(way.cpu_ns),
        ]);
    };
    for kernel in &waits.kernels {
        kernel
            .ways
            .iter()
            .for_each(|way| row(format!("{}{}", length(kernel.kernel_ns), at_once(kernel)), way));
    }
    waits.wakes_gpu.iter().for_each(|way| row("(wakes the GPU)".to_owned(), way));
    let notes = vec![
        "Wake: from the kernel's end, by its own stamp, to the waiter's first instruction; of what \
         wakes the GPU, from just before the call to the kernel's begin."
            .to_owned(),
        "Cores, CPU a kernel: CPU time of the waiter and of the driver's threads in the process.".to_owned(),
    ];
    Subsection::of_table("What each way costs, medians", table, notes)
}

fn table(figures: &Figures) -> Option<Subsection> {
    let rows: Vec<_> =
        figures.rows.iter().filter_map(|row| Some((row, row.series.get(&Quantity::Wake)?))).collect();
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let mut table = Table::new(vec![
        word("way"),
        word("kernel"),
        number("p50"),
        number("p99"),
        number("p99.9").keep(4),
        number("max").keep(3),
        number("clocks within").keep(2),
        number("kernels").keep(5),
    ]);
    for (row, series) in rows {
        let configuration = row.configuration();
        let kernel = configuration.pattern.kernel_ns().map_or_else(String::new, length);
        let mut line = vec![configuration.subject.clone(), kernel];
        line.extend(percentiles(series, [0.5, 0.99, 0.999, 1.0], scale));
        line.push(row.figure(|name| name == CLOCK_BOUND).map_or_else(|| "-".to_owned(), ns));
        line.push(count(series.count));
        table.row(line);
    }
    Subsection::of_table(format!("Wake-ups, {}", scale.unit.sign()), table, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::machine::topology::Node;
    use doorbell_results::record::io::Io;
    use doorbell_results::record::{Figure, Record, SideCounters};
    use doorbell_verdict::gpu::{BLOCKS, SPINS, WAKES_GPU};
    use std::io::Read;

    fn record(subject: &str, kernel_ns: u64, ps: u64, cores: f64) -> Record {
        let pattern = Pattern::Gpu { kernel_ns, up_to_ns: None, gap_ns: 0, streams: 1 };
        let configuration = Configuration { pattern, ..sample::configuration(subject) };
        let mut record = sample::record(&configuration, 0, &[ps; 50]);
        let times = record.series.values().next().unwrap().clone();
        record.series = [(Quantity::Wake, times.clone()), (Quantity::RoundTrip, times)].into();
        let user_ns = (cores * 1e6) as u64;
        record.sides = vec![SideCounters { user_ns, window_ns: 1_000_000, ..SideCounters::default() }];
        let model = Some("a device of a test".to_owned());
        let device = Some(BlockDevice { name: "GPU 0".into(), model, ..BlockDevice::default() });
        record.io = Some(Io { device, ..Io::default() });
        let bound =
            Figure { name: CLOCK_BOUND.into(), value: 0.6, unit: "ns".into(), formula: String::new() };
        record.figures = vec![bound];
        record
    }

    /// Without its lines' ends.
    fn flat(told: &[Subsection]) -> String {
        subsection::text(told, &Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What an H200 brought back (book/gpu.md).
    fn stored(name: &str) -> ResultFile {
        let path = format!("{}/../../book/data/gpu-2026-11-27/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
        let mut text = String::new();
        let file = std::fs::File::open(&path).expect(&path);
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect(&path);
        serde_json::from_str(&text).expect(&path)
    }

    #[test]
    fn the_stored_results_of_a_real_gpu_say_how_to_wait_for_it() {
        for (name, all) in [
            (
                "whole",
                &[
                    "Measured on: NVIDIA H200.",
                    // 2.2 us by the second, where the clocks are known within 0.6.
                    "Kernels of 1 ms: fastest is gpu-flag or gpu-write-value, 1.53 us after the kernel's end",
                    "at most 10 % of a core: gpu-query-pause",
                    "Blocking wakes 59.7 us later than spinning: from kernels of about 3.",
                    "fastest by gpu-resident: 1.56 us",
                ][..],
            ),
            ("irregular", &["Kernels of 10 us to 10 ms: fastest is gpu-stream-spin"]),
            ("streams-by-timer", &["8 at once: fastest is gpu-events, 20.1 us", "14 % of a core"]),
        ] {
            let result = stored(name);
            let told = Gpus.subsections(&result, &Figures::of(&result));
            let text = flat(&told);
            for words in all {
                assert!(text.contains(words), "{words}:\n{text}");
            }
        }
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

    #[test]
    fn the_first_lines_say_what_to_take_and_on_what_it_was_measured() {
        let mut result = sample::result(
            "gpu",
            vec![
                record("gpu-stream-spin", 1_000_000, 10_700_000, 1.0),
                record("gpu-stream-block", 1_000_000, 78_100_000, 0.02),
                record("gpu-resident", 0, 900_000, 1.0),
            ],
        );
        result.plan.sections = vec!["gpu".to_owned()];
        let parts = [("gpu-stream-spin", SPINS), ("gpu-stream-block", BLOCKS), ("gpu-resident", WAKES_GPU)];
        result.plan.parts = parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into();
        let told = Gpus.subsections(&result, &Figures::of(&result));
        let text = flat(&told);
        for words in [
            "Measured on: a device of a test.",
            "Kernels of 1 ms: fastest is gpu-stream-spin",
            "at most 10 % of a core: gpu-stream-block",
            "2 % of a core",
            "spin for",
            "fastest by gpu-resident",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
    }
}
