// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of a result file beyond the types of its fields, so
//! that everything after the reader may rely on it.

use super::histogram::Counters;
use super::populations::Population;
use super::question::{Limited, Question, Which};
use super::{Environment, Record, ResultFile, Series, Tally};
use crate::anatomy::Path;
use crate::anatomy::program::{Cost, Edge, LONGEST_NS, MachineCosts, Program, Sequence};

/// CPU numbers end below this: the greatest `NR_CPUS` of any Linux
/// (x86 with `MAXSMP`). Matrices are sized by them.
const CPUS: u32 = 8192;
/// Blocks end below this: the greatest number a run can be asked for
/// is smaller. Tables are sized by them.
const BLOCKS: u32 = 1_000_000;

/// Counts and times end below this: more than a day in nanoseconds, more than any trial counts, and
/// small enough that the sum over every record a file can hold fits 64 bits.
const COUNTS: u64 = 1 << 47;

/// Shares of one CPU lie in these: a machine has no more CPUs, and a difference of two readings may
/// be a little less than nothing.
const SHARES: std::ops::RangeInclusive<f64> = -1.0..=CPUS as f64;

/// Occupied buckets that all histograms of a file may have together: these, and
/// [`BUCKETS_PER_BYTE`] for each byte of their text.
///
/// A reader that shows a whole file keeps every occupied bucket, at 16 bytes and up to as much
/// again for the growing of lists, so that a file costs it at most 128 MB and 64 times its own
/// length. Without this bound 150 letters, which is what a histogram with one sample in every
/// bucket shrinks to, would cost it a megabyte.
const BUCKETS: u64 = 1 << 22;
/// Deflate and base64 leave a bucket of a real distribution half a
/// byte at the least: where it lies and how often.
const BUCKETS_PER_BYTE: u64 = 2;

/// The first thing in a result file that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Nonsense {
    /// Of a record, by its place in the file, from 0.
    #[error("record {record}: {what}")]
    Record { record: usize, what: String },
    #[error("it ended before it began")]
    Backwards,
    /// A question that nobody can ask.
    #[error("its question asks for {what} of {number}")]
    Question { what: &'static str, number: f64 },
    /// Histograms that hold more than their text can tell.
    #[error("{bytes} bytes of histograms hold {buckets} occupied buckets, more than any measurement leaves")]
    TooDense {
        /// Of all histograms up to the first that is too much.
        buckets: u64,
        bytes: u64,
    },
}

/// Looks at every record.
pub(super) fn check(file: &ResultFile) -> Result<(), Nonsense> {
    if file.finished_at_unix_ns < file.started_at_unix_ns {
        return Err(Nonsense::Backwards);
    }
    check_question(file.plan.question.as_ref())?;
    let (mut buckets, mut bytes) = (0, 0);
    for (index, record) in file.records.iter().enumerate() {
        buckets += check_record(record).map_err(|what| Nonsense::Record { record: index, what })?;
        bytes += histograms(record).map(|series| series.histogram.len() as u64).sum::<u64>();
        if buckets > BUCKETS + BUCKETS_PER_BYTE * bytes {
            return Err(Nonsense::TooDense { buckets, bytes });
        }
    }
    Ok(())
}

/// The bounds are those of the flags that ask.
fn check_question(question: Option<&Question>) -> Result<(), Nonsense> {
    let mut numbers: Vec<(&'static str, std::ops::Range<f64>, f64)> = Vec::new();
    match question {
        Some(Question::Spin(spin)) => numbers.push(("a worth", 0.0..1e6 + 1.0, spin.worth)),
        Some(Question::Gate(gate)) => {
            numbers.push(("a confidence", 0.5..1.0, gate.confidence));
            if let Which::Quantile(q) = gate.which {
                numbers.push(("a quantile", 0.0..1.0, q));
            }
        }
        Some(Question::Check(check)) => {
            numbers.extend(check.conditions.iter().filter_map(|condition| match condition.limited {
                Limited::More(_, more) => Some(("a limit", 0.0..1e6, more)),
                Limited::Percentile(q, _) => Some(("a quantile", 0.0..1.0, q)),
                Limited::Longest(_) | Limited::Count(..) => None,
            }));
        }
        Some(Question::Verify(verify)) => {
            numbers.extend(verify.predicted.map(|found| ("a share", 0.0..1.0 + f64::EPSILON, found.spared)));
        }
        Some(Question::Pick(_) | Question::Unknown(_)) | None => {}
    }
    match numbers.into_iter().find(|(_, bounds, number)| !bounds.contains(number)) {
        Some((what, _, number)) => Err(Nonsense::Question { what, number }),
        None => Ok(()),
    }
}

/// Every series of a record that has a histogram.
fn histograms(record: &Record) -> impl Iterator<Item = &Series> {
    record.series.values().chain(traced(record))
}

/// Those that the kernel's events made.
fn traced(record: &Record) -> impl Iterator<Item = &Series> {
    let paths = record.anatomy.iter().flat_map(|anatomy| &anatomy.paths);
    let edges = record.anatomy.iter().filter_map(|anatomy| anatomy.program.as_ref());
    let edges = edges.flat_map(|program| &program.edges).flat_map(|edge| [&edge.slept, &edge.took]);
    paths.flat_map(Path::series).chain(edges)
}

/// What is wrong with a program's wake graph.
fn misdrawn(program: &Program) -> Option<&'static str> {
    let edges = program.edges.len();
    let known = |edge: &Edge| edge.sequence.is_none_or(|place| (place as usize) < program.sequences.len());
    let in_step =
        |sequence: &Sequence| sequence.is_whole() && sequence.edge.iter().all(|edge| *edge as usize <= edges);
    let times = |sequence: &Sequence| {
        let all = [&sequence.slept_ns, &sequence.took_ns, &sequence.awake_ns];
        let all = all.into_iter().flatten().chain(sequence.waker_ran_ns.iter().flatten());
        all.into_iter().chain([&sequence.begins_ns]).all(|ns| *ns < LONGEST_NS)
    };
    let Cost { recorder_ns, call_ns, wake_ns, calls, events } = program.cost;
    let further = [program.wakes, program.ended_by_action, program.incomplete, program.further_wakes];
    let threads = program.threads.iter().flat_map(|one| [one.count, one.wakes, one.asked_in_vain]);
    let convoys = program.convoys.iter().flat_map(|convoy| [convoy.threads, convoy.wakes]);
    // Many threads of one name run longer together than they were recorded.
    let mut ran = program.threads.iter().map(|one| one.ran_ns / one.count.max(1));
    let of_edges = program.edges.iter().flat_map(|edge| [edge.wakes, edge.ran_out, edge.rescued]);
    let herds = program.herds.iter().flat_map(|herd| [herd.calls, herd.woken]);
    let sampled = program.edges.iter().flat_map(|edge| edge.stacks.iter().map(|one| one.wakes));
    let sampled = sampled.chain(program.edges.iter().map(|edge| edge.sampled));
    let functions = program.stacks.as_ref().map_or(0, |stacks| stacks.functions.len());
    let mut on_stacks = program.edges.iter().flat_map(|edge| &edge.stacks);
    let mut counts =
        further.into_iter().chain(threads).chain(of_edges).chain(herds).chain(convoys).chain(sampled);
    if !program.edges.iter().all(known) {
        Some("an edge of its wake graph belongs to a thread that is not there")
    } else if on_stacks
        .any(|one| one.waiter.iter().chain(&one.waker).any(|place| *place as usize >= functions))
    {
        Some("a stack of its wake graph has a function that is not there")
    } else if !program.sequences.iter().all(in_step) {
        Some("the wake-ups of a thread do not fit each other")
    } else if !program.sequences.iter().all(times) {
        Some("a wake-up of a thread takes longer than any recording")
    } else if counts.any(|count| count >= COUNTS)
        || [calls, events].iter().any(|count| *count >= COUNTS)
        || ran.any(|ns| ns >= LONGEST_NS)
        || [recorder_ns, program.recorded_ns, program.wall_ns()].iter().any(|ns| *ns >= LONGEST_NS)
        || ![call_ns, wake_ns].iter().all(|ns| (0.0..1e9).contains(ns))
        || !program.machine_costs.as_ref().is_none_or(affordable)
    {
        Some("its wake graph counts more than any recording can")
    } else {
        None
    }
}

/// Whether costs are of this world: none is less than nothing, or takes a minute.
fn affordable(costs: &MachineCosts) -> bool {
    let wakes = costs.wakes.iter().flat_map(|wake| [wake.wake_ns, wake.cpu_ns]);
    let mut all = wakes.chain([costs.hand_over_ns, costs.sleep_ns]);
    all.all(|ns| (0.0..6e10).contains(&ns)) && costs.wakes.iter().all(|wake| wake.gap_ns < COUNTS)
}

/// Checks a record and returns the occupied buckets of its histograms, or what is wrong.
fn check_record(record: &Record) -> Result<u64, String> {
    let below = |what, limit: u64, mut numbers: &mut dyn Iterator<Item = u64>| {
        let beyond = Iterator::find(&mut numbers, |number| *number >= limit);
        beyond.map_or(Ok(()), |number| Err(format!("{what} {number} is beyond {limit}")))
    };
    let placed = record.configuration.placement.cpus.iter().flatten();
    let seen = record.sides.iter().flat_map(|side| &side.cpus);
    below("CPU", CPUS.into(), &mut placed.chain(seen).map(|cpu| u64::from(*cpu)))?;
    below("block", BLOCKS.into(), &mut std::iter::once(record.block.into()))?;
    let Tally { sent, seen, lost, late, duplicate, spurious, merged, timeouts, warmup, proven_asleep } =
        record.tally;
    let tally = [sent, seen, lost, late, duplicate, spurious, merged, timeouts, warmup, proven_asleep];
    below("notification count", COUNTS, &mut tally.into_iter())?;
    below(
        "counter",
        COUNTS,
        &mut record.sides.iter().flat_map(|side| {
            let migrations = side.migrations.unwrap_or(0);
            let switches = [side.voluntary_switches, side.involuntary_switches, migrations];
            let call_ns = side.call_ns.map_or(0, |ns| if ns < 0.0 { u64::MAX } else { ns as u64 });
            let held_up_ns = side.held_up_ns.unwrap_or(0);
            let times = [side.user_ns, side.system_ns, side.window_ns, call_ns, held_up_ns];
            let rest = [side.minor_faults, side.major_faults].into_iter().chain(times);
            switches.into_iter().chain(rest)
        }),
    )?;
    let Environment {
        foreign_share, foreign_resolution, steal_share, share_resolution, pressure_share, ..
    } = &record.environment;
    for (what, share) in [
        ("the share of other programs", foreign_share),
        ("its resolution", foreign_resolution),
        ("the share of the hypervisor", steal_share),
        ("the resolution of shares", share_resolution),
        ("the pressure", pressure_share),
    ] {
        if let Some(share) = share.filter(|share| !SHARES.contains(share)) {
            return Err(format!("{what} is {share}"));
        }
    }
    let interrupts = record.environment.interrupts.values().copied();
    below("counter", COUNTS, &mut interrupts.into_iter())?;
    below("time", LONGEST_NS, &mut std::iter::once(record.environment.wall_ns))?;
    let program = record.anatomy.as_ref().and_then(|anatomy| anatomy.program.as_ref());
    if let Some(what) = program.and_then(misdrawn) {
        return Err(what.to_owned());
    }
    let mut buckets = 0;
    let named = record.series.iter().map(|(quantity, series)| (format!("{quantity:?}"), series));
    for (quantity, series) in named.chain(traced(record).map(|series| ("anatomy".to_owned(), series))) {
        let of = |what: String| format!("{quantity}: {what}");
        let counters = series.counters().map_err(|cause| of(cause.to_string()))?;
        buckets += counters.iter().count() as u64;
        if let Some(what) = misfit(series, &counters) {
            return Err(of(what));
        }
    }
    Ok(buckets)
}

/// How far the ends and the mean may be from those of the histogram,
/// whose counters are a thousandth wide.
const NEAR: f64 = 0.01;

/// Whether `ns` is the time at quantile `q` of what is counted. A percentile may lie beside it by
/// half of a coarse clock's step, and be that of the next sample.
fn is_at(counters: &Counters, q: f64, ns: f64) -> bool {
    let (count, ps) = (counters.count(), ns * 1000.0);
    let (least, most) = match q {
        0.0 | 1.0 => (ps * (1.0 - NEAR) - 2.0, ps * (1.0 + NEAR) + 2.0),
        _ => (ps / 2.0 - 1e5, ps * 2.0 + 1e5),
    };
    let to = |end: f64| {
        let up_to = counters.iter().take_while(|(time, _)| *time as f64 <= end);
        up_to.map(|(_, samples)| samples).sum::<u64>() as f64
    };
    let rank = q * count as f64;
    to(least) < (rank + 2.0).min(count as f64) && to(most) >= (rank - 1.0).max(1.0)
}

fn misfit(series: &Series, counters: &Counters) -> Option<String> {
    let count = counters.count();
    if series.count != count {
        return Some(format!("the summary counts {} samples, the histogram {count}", series.count));
    }
    let rising =
        [0.0, series.min_ns, series.p50_ns, series.p90_ns, series.p99_ns, series.p999_ns, series.max_ns];
    if let Some(pair) = rising.windows(2).find(|pair| pair[0] > pair[1]) {
        return Some(format!("the percentiles fall from {} to {} ns", pair[0], pair[1]));
    }
    let share = |group: &Population| (0.0..=1.0).contains(&group.share) && group.p50_ns <= group.p99_ns;
    if !series.populations.iter().all(share) {
        return Some("a mode holds less than nothing or more than everything".to_owned());
    }
    let figures = [
        (0.0, "shortest", series.min_ns),
        (0.5, "p50", series.p50_ns),
        (0.9, "p90", series.p90_ns),
        (0.99, "p99", series.p99_ns),
        (0.999, "p99.9", series.p999_ns),
        (1.0, "longest", series.max_ns),
    ];
    if let Some((_, name, ns)) = figures.into_iter().find(|(q, _, ns)| count > 0 && !is_at(counters, *q, *ns))
    {
        return Some(format!("the summary's {name} is {ns} ns, its histogram's is not"));
    }
    let possible = series.min_ns * (1.0 - NEAR)..=series.max_ns * (1.0 + NEAR);
    (!possible.contains(&series.mean_ns) || series.stdev_ns < 0.0)
        .then(|| format!("mean {} ns and standard deviation {} ns", series.mean_ns, series.stdev_ns))
}
