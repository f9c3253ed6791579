// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to wait for a GPU: the fastest way, the fastest that leaves the core to others, and from
//! which kernel length on blocking costs little.

use super::clock_bound::bounds_ns;
use doorbell_results::record::{Quantity, ResultFile, Variant};

/// The parts that ways play in what is told: the one that spins, the one that blocks by the same
/// call, and those by which the CPU wakes the GPU.
pub const SPINS: &str = "spins";
pub const BLOCKS: &str = "blocks";
pub const WAKES_GPU: &str = "wakes the GPU";

/// At most this share of a core: what a way may burn that is called cheap.
pub const CHEAP: f64 = 0.1;
/// Blocking costs little where it makes a kernel's turn longer by no more than this share.
pub const LITTLE: f64 = 0.05;

/// One way after kernels of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub subject: String,
    /// The middle over the blocks of the median wake-up, nanoseconds.
    pub wake_ns: f64,
    /// The same of launch to return.
    pub round_trip_ns: f64,
    /// How well the two clocks' relation was known, nanoseconds: in more than half of the blocks as
    /// well as this, and so the middle is. Infinite where nothing says so.
    pub clock_bound_ns: f64,
    /// CPU time of the waiter and the driver's threads in the window, in cores.
    pub cores: f64,
    /// The same for one kernel, nanoseconds.
    pub cpu_ns: f64,
}

impl Cost {
    /// Whether its wake-up is longer than the clocks' relation leaves
    /// open: a shorter one may be anything up to that.
    pub fn is_known(&self) -> bool {
        self.wake_ns > self.clock_bound_ns
    }
}

/// All ways after kernels of one length that wake the CPU, the quickest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// How long they work at least and at most, nanoseconds.
    pub kernel_ns: [u64; 2],
    pub gap_ns: u64,
    pub streams: u32,
    pub ways: Vec<Cost>,
}

/// The quickest of some ways, and those that may be as quick: of two wake-ups that differ by no
/// more than the clocks' relation of both leaves open nobody knows which is shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct Fastest<'waits> {
    pub way: &'waits Cost,
    /// The quickest first.
    pub or: Vec<&'waits Cost>,
}

impl<'waits> Fastest<'waits> {
    /// Of `ways`, the quickest first; none where its wake-up is too short for the clocks' relation.
    fn of(mut ways: impl Iterator<Item = &'waits Cost>) -> Option<Self> {
        let way = ways.next().filter(|way| way.is_known())?;
        let tied = |other: &&Cost| other.wake_ns - way.wake_ns <= other.clock_bound_ns + way.clock_bound_ns;
        Some(Self { way, or: ways.filter(tied).collect() })
    }

    pub fn names(&self) -> String {
        let all = std::iter::once(&self.way).chain(&self.or).map(|way| way.subject.as_str());
        all.collect::<Vec<_>>().join(" or ")
    }
}

impl Kernel {
    /// The quickest; none where its wake-up is too short for the clocks' relation.
    pub fn fastest(&self) -> Option<Fastest<'_>> {
        Fastest::of(self.ways.iter())
    }

    /// The quickest that burns at most [`CHEAP`].
    pub fn cheap(&self) -> Option<Fastest<'_>> {
        Fastest::of(self.ways.iter().filter(|way| way.cores <= CHEAP && way.is_known()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// By the length of the kernel, the shortest first.
    pub kernels: Vec<Kernel>,
    /// Ways in which the CPU wakes the GPU, the quickest first.
    pub wakes_gpu: Vec<Cost>,
    /// What blocking adds to a wake-up, beside spinning by the same call, by the length of the
    /// kernel, the shortest first; nanoseconds.
    pub added: Vec<Added>,
}

/// What blocking adds after kernels of one length, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Added {
    pub kernel_ns: f64,
    pub added_ns: f64,
}

impl Waits {
    /// By what the CPU wakes the GPU soonest; none where that wake-up is too short for the clocks'
    /// relation.
    pub fn wakes_gpu_fastest(&self) -> Option<Fastest<'_>> {
        Fastest::of(self.wakes_gpu.iter())
    }

    /// From which length of a kernel on blocking adds at most [`LITTLE`]
    /// to its turn, nanoseconds: between the measured lengths it is taken
    /// to grow with the logarithm of the length, and beyond them to stay.
    pub fn break_even_ns(&self) -> Option<f64> {
        let little = |one: &&Added| one.added_ns <= LITTLE * one.kernel_ns;
        let longest = self.added.last()?;
        let enough = self.added.iter().rev().take_while(little).count();
        let Some(first) = self.added.len().checked_sub(enough).and_then(|at| self.added.get(at)) else {
            return Some(longest.added_ns / LITTLE).filter(|ns| *ns > 0.0);
        };
        let Some(before) = self.added.len().checked_sub(enough + 1).and_then(|at| self.added.get(at)) else {
            return Some(first.kernel_ns);
        };
        let [low, high] = [before, first].map(|one| one.kernel_ns.ln());
        // The share goes down from one to the other, so halving finds where it is LITTLE.
        let (mut too_short, mut long_enough) = (0.0, 1.0);
        for _ in 0..40 {
            let part = f64::midpoint(too_short, long_enough);
            let added = before.added_ns + (first.added_ns - before.added_ns) * part;
            if added <= LITTLE * (low + (high - low) * part).exp() {
                long_enough = part;
            } else {
                too_short = part;
            }
        }
        Some((low + (high - low) * long_enough).exp())
    }

    /// How long to spin before blocking: as long as blocking adds, in the middle over the lengths.
    /// Whoever spins as long as it adds never pays more than twice the better of the two.
    pub fn spin_ns(&self) -> Option<f64> {
        let added: Vec<f64> = self.added.iter().map(|one| one.added_ns).collect();
        super::statistics::median(&added).filter(|ns| *ns > 0.0)
    }
}

/// What `result` says; none without a kernel that was waited for.
pub fn waits(result: &ResultFile) -> Option<Waits> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut wakes_gpu = Vec::new();
    for variant in result.variants() {
        let pattern = variant.configuration.pattern;
        let (Some(kernel_ns), Some(cost)) = (pattern.kernel_ns(), cost(&variant)) else { continue };
        if result.plan.plays(&cost.subject, WAKES_GPU) {
            wakes_gpu.push(cost);
            continue;
        }
        let (gap_ns, streams) = (pattern.gap_ns(), pattern.streams().unwrap_or(1));
        let key = |one: &Kernel| (one.kernel_ns, one.gap_ns, one.streams);
        match kernels.iter_mut().find(|one| key(one) == (kernel_ns, gap_ns, streams)) {
            Some(kernel) => kernel.ways.push(cost),
            None => kernels.push(Kernel { kernel_ns, gap_ns, streams, ways: vec![cost] }),
        }
    }
    kernels.sort_by_key(|kernel| (kernel.streams, kernel.kernel_ns));
    let quickest = |ways: &mut Vec<Cost>| ways.sort_by(|one, other| one.wake_ns.total_cmp(&other.wake_ns));
    kernels.iter_mut().for_each(|kernel| quickest(&mut kernel.ways));
    quickest(&mut wakes_gpu);
    let added = kernels.iter().filter(|kernel| kernel.kernel_ns[0] > 0 && kernel.streams == 1);
    let added = added.filter_map(|kernel| {
        let of = |part| kernel.ways.iter().find(|way| result.plan.plays(&way.subject, part));
        let [least, most] = kernel.kernel_ns;
        let (blocks, spins) = (of(BLOCKS)?, of(SPINS)?);
        let added_ns = blocks.wake_ns - spins.wake_ns;
        (least == most && added_ns.abs() > blocks.clock_bound_ns.max(spins.clock_bound_ns))
            .then_some(Added { kernel_ns: least as f64, added_ns })
    });
    let added = added.collect();
    (!kernels.is_empty() || !wakes_gpu.is_empty()).then_some(Waits { kernels, wakes_gpu, added })
}

fn cost(variant: &Variant<'_>) -> Option<Cost> {
    let middle = |quantity| super::statistics::median(&variant.medians_ns(quantity));
    let (mut spent, mut window, mut kernels) = (0.0, 0.0, 0.0);
    for record in variant.usable() {
        spent += record.sides.iter().map(|side| (side.user_ns + side.system_ns) as f64).sum::<f64>();
        window += record.sides.first().map_or(0.0, |side| side.window_ns as f64);
        kernels += record.tally.seen as f64;
    }
    (window > 0.0 && kernels > 0.0).then_some(())?;
    let bounds = bounds_ns(variant);
    Some(Cost {
        subject: variant.configuration.subject.clone(),
        wake_ns: middle(Quantity::Wake)?,
        round_trip_ns: middle(Quantity::RoundTrip)?,
        clock_bound_ns: bounds.get(bounds.len() / 2).copied().unwrap_or(f64::INFINITY),
        cores: spent / window,
        cpu_ns: spent / kernels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::figure::gpu::CLOCK_BOUND;
    use doorbell_results::record::{Figure, sample};

    fn sample_bound(ns: f64) -> Figure {
        sample::figure(CLOCK_BOUND, ns)
    }

    /// On a busy machine a way was called the fastest by 0.001 ns
    /// where the clocks were known within 362 µs.
    #[test]
    fn a_wake_up_that_is_shorter_than_the_clocks_relation_is_known_makes_no_way_the_fastest() {
        let pattern = Pattern::Gpu { kernel_ns: 100_000, up_to_ns: None, gap_ns: 0, streams: 1 };
        let all = ["gpu-flag", "gpu-stream-spin"]
            .map(|way| Configuration { pattern, ..sample::configuration(way) });
        let mut result = sample::result(&all, 3, |_, _| 21_000.0);
        let known = |result: &ResultFile| waits(result).unwrap().kernels[0].fastest().is_some();
        assert!(!known(&result), "no bound is no knowledge");
        result.records.iter_mut().for_each(|record| record.figures = vec![sample_bound(700.0)]);
        assert!(known(&result));
        result.records.iter_mut().for_each(|record| record.figures = vec![sample_bound(1e6)]);
        assert!(!known(&result));
    }

    /// On an H200 one of two ways that differed by 0.7 µs was called the fastest, where each was
    /// known within 0.6 (book/gpu.md).
    #[test]
    fn ways_that_differ_by_less_than_the_clocks_tell_apart_are_both_the_fastest() {
        let cost = |subject: &str, wake_ns, clock_bound_ns| Cost {
            subject: subject.to_owned(),
            wake_ns,
            round_trip_ns: 0.0,
            clock_bound_ns,
            cores: 1.0,
            cpu_ns: 0.0,
        };
        let ways = vec![
            cost("gpu-flag", 1500.0, 600.0),
            cost("gpu-write-value", 1700.0, 700.0),
            cost("gpu-query", 2900.0, 700.0),
            cost("gpu-stream-block", 17_000.0, 20_000.0),
        ];
        let kernel = Kernel { kernel_ns: [0; 2], gap_ns: 0, streams: 1, ways };
        let names = kernel.fastest().unwrap().names();
        assert_eq!(names, "gpu-flag or gpu-write-value or gpu-stream-block");
    }

    /// The figures of the first, throw-away measurement on a real one.
    #[test]
    fn the_fastest_the_cheap_one_and_the_break_even_follow_from_the_figures() {
        let configuration = |subject: &str, kernel_ns| Configuration {
            pattern: Pattern::Gpu { kernel_ns, up_to_ns: None, gap_ns: 0, streams: 1 },
            ..sample::configuration(subject)
        };
        let all = [
            configuration("gpu-stream-spin", 1_000_000),
            configuration("gpu-stream-block", 1_000_000),
            configuration("gpu-stream-spin", 0),
            configuration("gpu-graph", 0),
        ];
        let mut result =
            sample::result(&all, 3, |one, _| match (one.subject.as_str(), one.pattern.kernel_ns()) {
                ("gpu-stream-block", _) => 156_000.0,
                ("gpu-graph", _) => 9_000.0,
                _ => 21_000.0,
            });
        let parts = [("gpu-stream-spin", SPINS), ("gpu-stream-block", BLOCKS), ("gpu-graph", WAKES_GPU)];
        result.plan.parts = parts.map(|(subject, part)| (subject.to_owned(), part.to_owned())).into();
        for record in &mut result.records {
            let cores = if record.configuration.subject == "gpu-stream-block" { 0.02 } else { 1.0 };
            record.figures = vec![sample_bound(700.0)];
            record.sides.truncate(1);
            let side = &mut record.sides[0];
            (side.user_ns, side.system_ns) = ((side.window_ns as f64 * cores) as u64, 0);
        }
        let waits = waits(&result).unwrap();
        assert_eq!(waits.kernels.len(), 2);
        let long = &waits.kernels[1];
        assert_eq!(long.ways[0].subject, "gpu-stream-spin");
        assert_eq!(long.cheap().unwrap().way.subject, "gpu-stream-block");
        assert_eq!(waits.kernels[0].cheap(), None);
        assert_eq!(waits.wakes_gpu[0].subject, "gpu-graph");
        let spin = waits.spin_ns().unwrap();
        assert!((60_000.0..90_000.0).contains(&spin), "{spin}");
        assert_eq!(waits.break_even_ns(), Some(spin / LITTLE));
    }

    /// What an H200 took (book/gpu.md): one figure for all lengths said that 1.19 ms is long
    /// enough, where it was 8.6 %.
    #[test]
    fn where_a_longer_kernel_makes_a_sleep_dearer_the_break_even_lies_between_the_lengths() {
        let added = [(10e3, 33.1e3), (100e3, 31.9e3), (1e6, 86.4e3), (10e6, 231e3)];
        let added = added.map(|(kernel_ns, added_ns)| Added { kernel_ns, added_ns }).to_vec();
        let waits = |added| Waits { kernels: Vec::new(), wakes_gpu: Vec::new(), added };
        let even = waits(added.clone()).break_even_ns().unwrap();
        assert!((3.0e6..3.3e6).contains(&even), "{even}");
        assert_eq!(waits(added[..3].to_vec()).break_even_ns(), Some(86.4e3 / LITTLE), "beyond the longest");
        assert_eq!(waits(added[3..].to_vec()).break_even_ns(), Some(10e6), "no shorter one was measured");
        assert_eq!(waits(Vec::new()).break_even_ns(), None);
    }
}
