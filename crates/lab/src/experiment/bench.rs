// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which configurations of a plan take turns on the bench, in what turns, and what their records are made of.

use doorbell_harness::order::Cut;
use doorbell_harness::side::SideReport;
use doorbell_results::configuration::{Configuration, Placement, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::{Bench, Class, Turn};
use doorbell_results::record::Slice;
use doorbell_results::record::subject::{Subject, Waits};

/// How time is cut unless the plan says otherwise.
const CUT: Cut = Cut { slice_ns: 1_000_000, head_ns: 150_000, washout_ns: 10_000_000 };

/// What a plan says that asks for slices; what takes turns is found when it runs.
pub(crate) fn asked() -> Bench {
    let Cut { slice_ns, head_ns, washout_ns } = CUT;
    Bench { time_ns: 0, pairs: 0, slice_ns, head_ns, washout_ns, turns: Vec::new() }
}

/// How the time of `plan` is cut.
pub(super) fn cut(plan: &Plan) -> Cut {
    plan.bench.as_ref().map_or(CUT, |bench| Cut {
        slice_ns: bench.slice_ns,
        head_ns: bench.head_ns,
        washout_ns: bench.washout_ns,
    })
}

/// What the result says of it: the turns of those that `fit`; none where nobody does.
pub(super) fn bench(
    plan: &Plan,
    fits: impl Fn(&Configuration) -> bool,
    subject: impl Fn(&Configuration) -> Subject,
) -> Option<Bench> {
    let cut = cut(plan);
    let fitting: Vec<&Configuration> = plan.configurations.iter().filter(|one| fits(one)).collect();
    let place = |one: &Configuration| plan.configurations.iter().position(|other| other == one);
    let turns = turns(&fitting, &subject);
    let turns: Vec<Turn> = turns
        .into_iter()
        .map(|(class, members)| Turn {
            class,
            configurations: members
                .iter()
                .filter_map(|one| place(fitting[*one as usize]))
                .map(|at| at as u32)
                .collect(),
        })
        .collect();
    let each_ns: u64 = fitting.iter().filter_map(|one| one.until.time_ns).sum();
    (!turns.is_empty()).then(|| Bench {
        time_ns: each_ns.saturating_mul(plan.most_blocks().into()),
        pairs: plan.most_blocks(),
        slice_ns: cut.slice_ns,
        head_ns: cut.head_ns,
        washout_ns: cut.washout_ns,
        turns,
    })
}

/// Those of `configurations` that follow one another, by place: of one class, one kind of sides and one placement.
pub(super) fn turns(
    configurations: &[&Configuration],
    subject: impl Fn(&Configuration) -> Subject,
) -> Vec<(Class, Vec<u32>)> {
    type Key = (Class, doorbell_results::record::subject::Contexts, Placement);
    let mut turns: Vec<(Key, Vec<u32>)> = Vec::new();
    for (place, configuration) in (0..).zip(configurations) {
        let class = class(configuration, &subject(configuration));
        let key = (class, configuration.contexts, configuration.placement.clone());
        match turns.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(place),
            None => turns.push((key, vec![place])),
        }
    }
    turns.into_iter().map(|((class, ..), members)| (class, members)).collect()
}

/// What `configuration` does to its CPUs. The bare harness waits for nobody, and keeps its own.
fn class(configuration: &Configuration, subject: &Subject) -> Class {
    let blocks = subject.notification().is_none_or(|own| own.waits == Waits::Blocks);
    let keeps = matches!(configuration.wait, WaitPolicy::Spin | WaitPolicy::SpinThenBlock { .. });
    match (blocks && !keeps, configuration.pattern.gap_ns()) {
        (false, _) => Class::Spinning,
        (true, 0) => Class::Blocking,
        (true, _) => Class::LongGaps,
    }
}

/// The slices that both sides saw, with how many of the rounds slept: each of the two waits of a round is a switch where it does.
pub(super) fn slices(sides: &[SideReport]) -> Vec<Slice> {
    let [first, second] = sides else { return Vec::new() };
    let counted = !first.counters.uncounted && !second.counters.uncounted;
    let pairs = first.slices.iter().zip(second.slices.iter().map(Some).chain(std::iter::repeat(None)));
    pairs
        .filter(|(own, _)| own.mean_ns > 0.0)
        .map(|(own, answered)| {
            let answered = answered.filter(|_| counted);
            let slept = answered.map(|other| {
                let waits = 2.0 * f64::from(other.rounds.max(1));
                (own.switches + other.switches) as f64 / waits
            });
            Slice { turn: own.turn, place: own.place, rounds: own.rounds, mean_ns: own.mean_ns, slept }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::run::subject;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::sample;

    #[test]
    fn what_would_change_the_figure_of_another_has_a_turn_of_its_own() {
        let at = |subject: &str, cpus| {
            let mut configuration = sample::configuration(subject);
            configuration.placement.cpus = Some(cpus);
            configuration
        };
        let configurations = [
            at("futex", [0, 1]),
            at("spin", [0, 1]),
            at("eventfd", [0, 1]),
            at("futex", [0, 0]),
            at("null", [0, 1]),
        ];
        let spins = Configuration { wait: WaitPolicy::Spin, ..at("pipe", [0, 1]) };
        let sleeps = Configuration { pattern: Pattern::OneWay { gap_ns: 1000 }, ..at("pipe", [0, 1]) };
        let all: Vec<&Configuration> = configurations.iter().chain([&spins, &sleeps]).collect();
        let expected = [
            (Class::Blocking, vec![0, 2]),
            (Class::Spinning, vec![1, 4, 5]),
            (Class::Blocking, vec![3]),
            (Class::LongGaps, vec![6]),
        ];
        assert_eq!(turns(&all, subject), expected);
    }
}
