// SPDX-License-Identifier: MIT OR Apache-2.0
//! A prediction held against what came: runs of the program as it is and with the change, in turn.
//!
//! SUMMARY: each block has a run of either kind, and runs are compared within a block, so that
//! whatever drifts from block to block cancels out. The interval of what came is Student's
//! over the blocks; a prediction holds where the error cannot be greater than what is allowed, with
//! the prediction's own interval in it.

use std::collections::BTreeMap;

use super::costs::listed;
use super::{Change, WhatIf, Within};
use crate::statistics::{half_interval, mean};
use doorbell_results::anatomy::program::{By, Edge, File, Mechanism, Object, Program, Threads, Wait, Waker};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::question::Verify;
use doorbell_results::record::verdict::Status;
use doorbell_results::record::{Histogram, ResultFile, Series};

/// Errors that do not matter: of a median as a share of it, of CPU time as a share of what both
/// threads take, and of wake-ups as a share of those that there were. Chosen: what is off by less
/// leads to the same choice.
const ALLOWED: [(Figure, f64); 3] = [(Figure::P50, 0.25), (Figure::Cpu, 0.10), (Figure::Wakes, 0.10)];
/// How sure an interval is.
const SURE: f64 = 0.95;

/// An edge by what is the same in each run of its program: an object's address is not, nor is a
/// descriptor's number.
#[derive(Debug, Clone, PartialEq)]
pub struct Across {
    waker: Waker,
    waiter: String,
    wait: Wait,
    by: By,
    file: Option<File>,
}

/// What a run of the program showed of an edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// The median from waking to running; none where nobody was woken.
    pub p50_ns: Option<f64>,
    /// Wake-ups a second.
    pub wakes: f64,
    /// CPU time of waker and waiter together, as cores.
    pub cpu: f64,
    /// How long it took, if the program ended by itself.
    pub lasted_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The median from waking to running, nanoseconds.
    P50,
    /// CPU time of waker and waiter, cores.
    Cpu,
    /// Wake-ups a second.
    Wakes,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    pub figure: Figure,
    /// In the runs without the change.
    pub now: f64,
    pub predicted: Option<Within>,
    /// With the change.
    pub came: Within,
    /// (came - predicted) / predicted, above 0 where more came than was predicted; without a
    /// prediction, and of wake-ups, the divisor is what came without the change.
    pub error: Within,
    /// Whether the prediction held; answered where nothing was predicted.
    pub held: Status,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    pub blocks: usize,
    pub compared: Vec<Compared>,
    /// The median in the record, and now in the runs without the change, if these surely differ by
    /// what is allowed of a median (`ALLOWED`).
    pub stale: Option<[f64; 2]>,
    /// How long a run took without the change and with it, nanoseconds, and the second divided by
    /// the first; only where every run ended before its limit.
    pub lasted: Option<([f64; 2], Within)>,
}

/// Why nothing can be held against the prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unverified {
    /// No block came to its end.
    NoBlock,
    /// A name is that of so many threads: which of them is meant is not known in another run.
    Several { name: String, threads: u64 },
    /// Some runs without the change have no such edge.
    Gone,
    /// Some runs with the change have none.
    GoneWithChange,
}

impl Across {
    pub fn of(edge: &Edge) -> Self {
        Self::called(&edge.waker, &edge.waiter, &edge.mechanism)
    }

    fn called(waker: &Waker, waiter: &str, mechanism: &Mechanism) -> Self {
        let file = match &mechanism.object {
            Object::File { file: File::Socket { family, .. }, .. } => {
                Some(File::Socket { family: family.clone(), address: None })
            }
            Object::File { file, .. } => Some(file.clone()),
            Object::Futex { .. } | Object::None => None,
        };
        Self { waker: waker.clone(), waiter: waiter.to_owned(), wait: mechanism.wait, by: mechanism.by, file }
    }

    /// An error where more threads of `program` have one of its names than the edge has ends of that
    /// name.
    pub fn single(&self, program: &Program) -> Result<(), Unverified> {
        let names = self.threads();
        let allowed = match &names[..] {
            [one, other] if one == other => 2,
            _ => 1,
        };
        let several = program
            .threads
            .iter()
            .find(|threads| names.contains(&threads.name.as_str()) && threads.count > allowed);
        several.map_or(Ok(()), |Threads { name, count, .. }| {
            Err(Unverified::Several { name: name.clone(), threads: *count })
        })
    }

    /// The names of its waiter and, if it is the program's, of its waker.
    pub fn threads(&self) -> Vec<&str> {
        let waker = match &self.waker {
            Waker::Thread { name } => Some(name.as_str()),
            Waker::Outside { .. } | Waker::Kernel | Waker::Unseen => None,
        };
        std::iter::once(self.waiter.as_str()).chain(waker).collect()
    }

    /// Whether an edge of another run is this one; with `instead` by another mechanism.
    fn is(&self, edge: &Edge, instead: Option<&str>) -> bool {
        match instead {
            Some(mechanism) => {
                let same = (&self.waker, &self.waiter) == (&edge.waker, &edge.waiter);
                same && listed(&edge.mechanism) == Some(mechanism)
            }
            None => *self == Self::of(edge),
        }
    }
}

impl Run {
    /// What `program` showed of the edge, with `change` made if there is one.
    pub fn of(program: &Program, edge: &Across, change: Option<&Change>, ended: bool) -> Self {
        let instead = match change {
            Some(Change::Mechanism(name)) => Some(name.as_str()),
            _ => None,
        };
        let mut took = Histogram::untouched();
        let mut wakes = 0;
        for one in program.edges.iter().filter(|one| edge.is(one, instead)) {
            wakes += one.wakes;
            if let Ok(counters) = one.took.counters() {
                took.add_counters(&counters);
            }
        }
        let lasted = (program.recorded_ns as f64).max(1.0);
        let names = edge.threads();
        let both = program.threads.iter().filter(|threads| names.contains(&threads.name.as_str()));
        Self {
            p50_ns: (wakes > 0).then(|| Series::from(&took).p50_ns),
            wakes: wakes as f64 * 1e9 / lasted,
            cpu: both.map(|threads| threads.ran_ns as f64).sum::<f64>() / lasted,
            lasted_ns: ended.then_some(lasted),
        }
    }
}

/// What the runs in `result` say of what was asked of them.
pub fn asked(question: &Verify, result: &ResultFile) -> Result<Verified, Unverified> {
    let [as_it_is, changed] = &result.plan.configurations[..] else { return Err(Unverified::NoBlock) };
    let edge = Across::called(&question.waker, &question.waiter, &question.mechanism);
    let mut blocks: BTreeMap<u32, [Option<Run>; 2]> = BTreeMap::new();
    for record in &result.records {
        let Configuration { until, .. } = &record.configuration;
        let change = match &record.configuration {
            configuration if configuration == as_it_is => None,
            configuration if configuration == changed => Some(&question.change),
            _ => continue,
        };
        let Some(program) = record.anatomy.as_ref().and_then(|anatomy| anatomy.program.as_ref()) else {
            continue;
        };
        // A program that was recorded for less than the limit ended by itself.
        let ended = program.cut_short.is_none()
            && until.time_ns.is_some_and(|limit_ns| program.recorded_ns < limit_ns);
        let run = Run::of(program, &edge, change, ended);
        blocks.entry(record.block).or_default()[usize::from(change.is_some())] = Some(run);
    }
    let blocks = blocks.into_values().filter_map(|[before, after]| Some([before?, after?]));
    verify(question.predicted.as_ref(), &question.change, &blocks.collect::<Vec<_>>())
}

/// Holds `predicted` of `change` against blocks of a run without it and a run with it.
fn verify(predicted: Option<&WhatIf>, change: &Change, blocks: &[[Run; 2]]) -> Result<Verified, Unverified> {
    if blocks.is_empty() {
        return Err(Unverified::NoBlock);
    }
    let before = || blocks.iter().map(|[before, _]| before);
    let medians: Option<Vec<f64>> = before().map(|run| run.p50_ns).collect();
    let medians = medians.ok_or(Unverified::Gone)?;
    let stale = predicted.map(|predicted| predicted.p50_now_ns).filter(|then| {
        let drift = mean_within(&shares(&medians, |_| *then));
        judged(drift, allowed(Figure::P50)) == Status::Failed
    });
    let mut compared = Vec::new();
    // A spinning waiter is not woken by the kernel, so that there is no event; a batch has one, at
    // its end. So wake-ups are counted there, and no latency is compared.
    let is_seen = !matches!(change, Change::Spin(_) | Change::Batch(_));
    if is_seen {
        let came: Option<Vec<f64>> = blocks.iter().map(|[_, after]| after.p50_ns).collect();
        let came = came.ok_or(Unverified::GoneWithChange)?;
        let errors = |median: f64| match predicted {
            Some(_) => shares(&came, |_| median),
            None => shares(&came, |block| medians[block]),
        };
        compared.push(figure(Figure::P50, &medians, predicted.map(|found| found.p50_ns), &came, errors));
    } else {
        let came: Vec<f64> = blocks.iter().map(|[_, after]| after.wakes).collect();
        let now: Vec<f64> = before().map(|run| run.wakes).collect();
        let left = 1.0 - predicted.map_or(0.0, |predicted| predicted.spared);
        let per_s = mean(&now) * left;
        let errors = |_: f64| came.iter().zip(&now).map(|(came, now)| came / now.max(1.0) - left).collect();
        let per_s = predicted.map(|_| Within { value: per_s, low: per_s, high: per_s });
        compared.push(figure(Figure::Wakes, &now, per_s, &came, errors));
    }
    let now: Vec<f64> = before().map(|run| run.cpu).collect();
    let came: Vec<f64> = blocks.iter().map(|[_, after]| after.cpu).collect();
    let plus = |more: f64| (mean(&now) + more).max(0.0);
    let expected = predicted.map(|WhatIf { cpu: Within { value, low, high }, .. }| Within {
        value: plus(*value),
        low: plus(*low),
        high: plus(*high),
    });
    let errors = |cores: f64| {
        // Within a block, so that a load common to both its runs cancels out.
        let more = cores - mean(&now);
        shares(&came, |block| (now[block] + more).max(LEAST_CORES))
    };
    compared.push(figure(Figure::Cpu, &now, expected, &came, errors));
    let all_ended: Option<Vec<[f64; 2]>> =
        blocks.iter().map(|[before, after]| Some([before.lasted_ns?, after.lasted_ns?])).collect();
    let lasted = all_ended.filter(|all| !all.is_empty()).map(|all| {
        let ratios: Vec<f64> = all.iter().map(|[before, after]| after / before).collect();
        let side = |side: usize| mean(&all.iter().map(|both| both[side]).collect::<Vec<_>>());
        ([side(0), side(1)], mean_within(&ratios))
    });
    let stale = stale.map(|then| [then, mean(&medians)]);
    Ok(Verified { blocks: blocks.len(), compared, stale, lasted })
}

impl Verified {
    pub fn held(&self) -> Status {
        let any = |held| self.compared.iter().any(|compared| compared.held == held);
        match self.stale {
            _ if any(Status::Answered) => Status::Answered,
            Some(_) => Status::Inconclusive,
            None => Status::of(any(Status::Failed), any(Status::Inconclusive)),
        }
    }
}

/// CPU time below which no share of it is told: a millionth of a core.
const LEAST_CORES: f64 = 1e-6;

/// By what share of what was expected of its block each value is greater.
fn shares(values: &[f64], expected: impl Fn(usize) -> f64) -> Vec<f64> {
    let share = |(block, value): (usize, &f64)| value / expected(block).max(f64::MIN_POSITIVE) - 1.0;
    values.iter().enumerate().map(share).collect()
}

/// One figure; `errors` says by how much each block differs from a predicted value.
fn figure(
    figure: Figure,
    now: &[f64],
    predicted: Option<Within>,
    came: &[f64],
    errors: impl Fn(f64) -> Vec<f64>,
) -> Compared {
    let Within { value, low, high } = predicted.unwrap_or_else(|| {
        let value = mean(now);
        Within { value, low: value, high: value }
    });
    let [value, least, most] = [value, high, low].map(|of| mean_within(&errors(of)));
    let error = Within { value: value.value, low: value.low.min(least.low), high: value.high.max(most.high) };
    let held = if predicted.is_some() { judged(error, allowed(figure)) } else { Status::Answered };
    Compared { figure, now: mean(now), predicted, came: mean_within(came), error, held }
}

fn allowed(figure: Figure) -> f64 {
    ALLOWED.iter().find(|(of, _)| *of == figure).map_or(0.0, |(_, allowed)| *allowed)
}

/// Passed where the whole interval is within what is allowed; failed where it leaves out 0 and the
/// value itself is beyond.
fn judged(error: Within, allowed: f64) -> Status {
    let Within { value, low, high } = error;
    let within = low >= -allowed && high <= allowed;
    let beyond = (low > 0.0 && value >= allowed) || (high < 0.0 && value <= -allowed);
    Status::of(beyond && !within, !within)
}

/// The mean with its interval, which is infinite for one value and for none.
fn mean_within(values: &[f64]) -> Within {
    let (value, half) = (mean(values), half_interval(values, SURE));
    Within { value, low: value - half, high: value + half }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn run(p50_us: f64, wakes: f64, cpu: f64) -> Run {
        Run { p50_ns: Some(p50_us * 1e3), wakes, cpu, lasted_ns: None }
    }

    /// 30 µs now, 2 ± 0.1 if pinned, for a tenth of a core less.
    fn pinned() -> WhatIf {
        WhatIf {
            wakes: 1000,
            spared: 0.0,
            p50_now_ns: 30_000.0,
            p50_ns: Within { value: 2000.0, low: 1900.0, high: 2100.0 },
            cpu: Within { value: -0.1, low: -0.1, high: -0.1 },
            busy: 0.1,
        }
    }

    /// Four blocks of runs with this median and CPU time, which differ by a hundredth.
    fn blocks(before: [f64; 2], after: [f64; 2]) -> Vec<[Run; 2]> {
        let of = |[p50, cpu]: [f64; 2], by: f64| run(p50 * by, 1000.0, cpu * by);
        [0.99, 1.0, 1.0, 1.01].map(|by| [of(before, by), of(after, by)]).to_vec()
    }

    const PIN: Change = Change::Pin([0, 0]);

    fn found(after: [f64; 2]) -> Verified {
        verify(Some(&pinned()), &PIN, &blocks([30.0, 0.5], after)).unwrap()
    }

    #[test]
    fn a_prediction_holds_where_what_came_is_within_what_is_allowed() {
        let verified = found([2.1, 0.41]);
        assert_eq!(verified.held(), Status::Passed, "{verified:?}");
        let [p50, cpu] = &verified.compared[..] else { panic!("{verified:?}") };
        assert_eq!(
            (p50.figure, p50.held, cpu.figure, cpu.held),
            (Figure::P50, Status::Passed, Figure::Cpu, Status::Passed)
        );
        assert!((p50.error.value - 0.05).abs() < 0.01 && p50.error.high < 0.15, "{p50:?}");
        assert!((cpu.predicted.unwrap().value - 0.4).abs() < 1e-9 && (cpu.came.value - 0.41).abs() < 1e-9);
        assert_eq!((verified.stale, verified.lasted), (None, None));
    }

    #[test]
    fn it_fails_where_what_came_is_surely_beyond_and_is_open_where_runs_differ_too_much() {
        assert_eq!(found([3.0, 0.41]).held(), Status::Failed);
        assert_eq!(found([2.0, 0.5]).held(), Status::Failed, "a tenth of a core was to be saved");
        let mut wide = blocks([30.0, 0.5], [2.0, 0.4]);
        wide[0][1] = run(5.0, 1000.0, 0.4);
        assert_eq!(verify(Some(&pinned()), &PIN, &wide).unwrap().held(), Status::Inconclusive);
        let one = &blocks([30.0, 0.5], [2.0, 0.4])[..1];
        assert_eq!(
            verify(Some(&pinned()), &PIN, one).unwrap().held(),
            Status::Inconclusive,
            "one block says nothing"
        );
    }

    #[test]
    fn what_was_not_predicted_is_told_by_how_much_it_changed_within_its_block() {
        let mut drifting = blocks([30.0, 0.5], [27.0, 0.5]);
        for (place, run) in drifting.iter_mut().flatten().enumerate() {
            run.p50_ns = run.p50_ns.map(|p50| p50 * (1.0 + (place / 2) as f64));
        }
        let verified = verify(None, &Change::Nice(-10), &drifting).unwrap();
        let [p50, cpu] = &verified.compared[..] else { panic!("{verified:?}") };
        assert_eq!((verified.held(), p50.predicted, verified.stale), (Status::Answered, None, None));
        assert!((p50.error.value + 0.1).abs() < 1e-9 && p50.error.high < -0.09, "{p50:?}");
        assert!(cpu.error.value.abs() < 1e-9, "{cpu:?}");
        assert_eq!(verify(None, &Change::Nice(-10), &[]), Err(Unverified::NoBlock));
    }

    #[test]
    fn a_record_of_another_state_of_the_program_is_not_held_against_it() {
        let verified = verify(Some(&pinned()), &PIN, &blocks([10.0, 0.5], [6.0, 0.4])).unwrap();
        assert!(verified.stale.is_some_and(|[then, now]| then == 30_000.0 && now < 10_100.0));
        assert_eq!(verified.held(), Status::Inconclusive, "{verified:?}");
    }

    #[test]
    fn of_a_spin_the_wake_ups_that_are_left_are_compared_for_a_hand_over_leaves_no_event() {
        let predicted = WhatIf { spared: 0.9, ..pinned() };
        let spun = |wakes: f64| {
            let mut blocks = blocks([30.0, 0.5], [30.0, 0.4]);
            blocks.iter_mut().for_each(|[_, after]| *after = Run { wakes, p50_ns: None, ..*after });
            verify(Some(&predicted), &Change::Spin(std::time::Duration::from_micros(18)), &blocks).unwrap()
        };
        let verified = spun(120.0);
        assert_eq!(verified.compared[0].figure, Figure::Wakes);
        assert!((verified.compared[0].predicted.unwrap().value - 100.0).abs() < 1e-6, "{verified:?}");
        assert_eq!(verified.held(), Status::Passed);
        assert_eq!(spun(500.0).held(), Status::Failed);
    }

    #[test]
    fn how_long_programs_took_that_ended_is_told() {
        let mut ended = blocks([30.0, 0.5], [2.0, 0.4]);
        for [before, after] in &mut ended {
            (before.lasted_ns, after.lasted_ns) = (Some(2e9), Some(1e9));
        }
        let (both, ratio) = verify(Some(&pinned()), &PIN, &ended).unwrap().lasted.unwrap();
        assert_eq!((both, ratio.value, ratio.high), ([2e9, 1e9], 0.5, 0.5));
        ended[1][0].p50_ns = None;
        assert_eq!(verify(Some(&pinned()), &PIN, &ended), Err(Unverified::Gone));
    }

    fn edge(waiter: &str, wait: Wait, object: Object) -> Edge {
        let series = Series::from(&sample::histogram(2000.0, 100));
        Edge {
            waker: Waker::Thread { name: "waker".to_owned() },
            waiter: waiter.to_owned(),
            mechanism: Mechanism { wait, object, by: By::Call },
            wakes: 100,
            ran_out: 0,
            rescued: 0,
            slept: series.clone(),
            took: series,
            sequence: None,
            slowest: Vec::new(),
            sampled: 0,
            stacks: Vec::new(),
        }
    }

    #[test]
    fn an_edge_is_found_in_another_run_whatever_the_address_and_the_descriptor() {
        let futex = |address| edge("waiter", Wait::Futex, Object::Futex { address });
        let eventfd = |fd| Object::File { file: File::Eventfd, fd: Some(fd) };
        let threads = |name: &str, count| Threads {
            name: name.to_owned(),
            count,
            ran_ns: 250_000_000,
            wakes: 100,
            ..Threads::default()
        };
        let program = Program {
            recorded_ns: 1_000_000_000,
            threads: vec![threads("waker", 1), threads("waiter", 1), threads("other", 3)],
            edges: vec![
                futex(0x10),
                futex(0x20),
                edge("other", Wait::Futex, Object::None),
                edge("waiter", Wait::Read, eventfd(7)),
            ],
            ..Program::default()
        };
        let across = Across::of(&futex(0x7000));
        let run = Run::of(&program, &across, None, true);
        assert_eq!((run.wakes, run.cpu, run.lasted_ns), (200.0, 0.5, Some(1e9)));
        assert!(run.p50_ns.is_some_and(|p50| p50 > 1000.0), "{run:?}");
        let changed = Change::Mechanism("eventfd".to_owned());
        assert_eq!(Run::of(&program, &across, Some(&changed), false).wakes, 100.0);
        assert_eq!(across.single(&program), Ok(()));
        let several = Unverified::Several { name: "other".to_owned(), threads: 3 };
        assert_eq!(Across::of(&program.edges[2]).single(&program), Err(several));
        let gone = Across::of(&edge("waiter", Wait::Epoll, eventfd(7)));
        assert_eq!(Run::of(&program, &gone, None, false).p50_ns, None);
    }
}
