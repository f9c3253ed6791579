// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which configurations of a plan take turns on the bench, in what
//! turns, and what their records are made of.

use doorbell_harness::bench::Seen;
use doorbell_harness::order::Cut;
use doorbell_harness::side::SideReport;
use doorbell_results::configuration::{Configuration, Placement, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::{Bench, Class, Turn};
use doorbell_results::record::Slice;
use doorbell_results::record::subject::{Subject, Waits};

/// How time is cut unless the plan says otherwise.
const CUT: Cut = Cut { slice_ns: 1_000_000, head_ns: 150_000, washout_ns: 10_000_000 };

/// Pairs of sides of a run, which are what its statistics count, and at most.
pub const PAIRS: std::ops::RangeInclusive<u32> = 20..=60;

/// What a plan says that asks for slices; what takes turns is found when it runs.
pub fn asked() -> Bench {
    let Cut { slice_ns, head_ns, washout_ns } = CUT;
    Bench { pair_ns: None, pairs: 0, slice_ns, head_ns, washout_ns, beside: Vec::new(), turns: Vec::new() }
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
    (!turns.is_empty()).then(|| Bench {
        pair_ns: plan.bench.as_ref().and_then(|bench| bench.pair_ns),
        pairs: plan.most_blocks(),
        slice_ns: cut.slice_ns,
        head_ns: cut.head_ns,
        washout_ns: cut.washout_ns,
        beside: beside(&fitting, &subject),
        turns,
    })
}

/// So many things that share turns tell the machine's own change from that of one of them.
const ENOUGH: usize = 3;

/// By which those are accompanied that would take turns with too few others, in the order in which
/// they are chosen: of each other kind of wait one.
const COMPANIONS: [&str; 3] = ["futex", "pipe", "eventfd"];

/// What takes turns with those of `configurations` that have too few others to do so.
fn beside(
    configurations: &[&Configuration],
    subject: impl Fn(&Configuration) -> Subject,
) -> Vec<Configuration> {
    let alone = |(class, members): (Class, Vec<u32>)| {
        let members: Vec<&Configuration> = members.iter().map(|at| configurations[*at as usize]).collect();
        let first = members.first().copied().filter(|_| class != Class::Spinning)?;
        let other = |name: &&str| members.iter().all(|member| member.subject != *name);
        let lacking = ENOUGH.saturating_sub(members.len());
        Some(COMPANIONS.into_iter().filter(other).take(lacking).map(|name| companion(name, first)).collect())
    };
    let all: Vec<Vec<Configuration>> = turns(configurations, subject).into_iter().filter_map(alone).collect();
    all.concat()
}

/// `name` in place of what `beside` names, there as here and without what was put in on purpose.
fn companion(name: &str, beside: &Configuration) -> Configuration {
    let (contexts, placement) = (beside.contexts, beside.placement.clone());
    let configuration = Configuration::new(name, beside.pattern, beside.until);
    Configuration { contexts, placement, timing: beside.timing, ..configuration }
}

/// Those of `configurations` that follow one another, by place: of
/// one class, one kind of sides and one placement.
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

/// The slices that both sides saw, with how many of the waits slept:
/// each is a switch where it does.
pub(super) fn slices(sides: &[SideReport]) -> Vec<Slice> {
    let [first, second] = sides else { return Vec::new() };
    let counted = !first.counters.uncounted && !second.counters.uncounted;
    // There and back both wait, and the side that notifies first
    // times the rounds; one way the waiter does both.
    let one_way = second.slices.iter().any(|slice| slice.middle_ns > 0.0);
    let places = first.slices.iter().zip(second.slices.iter().map(Some).chain(std::iter::repeat(None)));
    let slice = |(first, second): (&Seen, Option<&Seen>)| {
        let timed = if one_way { second? } else { first };
        let waits = |second: &Seen| match one_way {
            true => (second.switches, second.rounds),
            false => (first.switches + second.switches, 2 * second.rounds),
        };
        let slept = second.filter(|_| counted).map(waits);
        let slept = slept.map(|(switches, waits)| switches as f64 / f64::from(waits.max(1)));
        // What is timed is the notifier's turn and place too.
        let Seen { turn, place, .. } = *first;
        let slice = Slice { turn, place, rounds: timed.rounds, middle_ns: timed.middle_ns, slept };
        (slice.middle_ns > 0.0).then_some(slice)
    };
    places.filter_map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::subject::subject;
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
