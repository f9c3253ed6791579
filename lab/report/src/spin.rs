// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long to spin before sleeping, in words, and the table behind it.

use super::axis::relation;
use super::columns::Columns;
use super::figures::percentile;
use super::style::Role;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, count, plain, time_ns as ns};
use crate::wording::{counted, multiple};
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::verdict::{Finding, Status};
use doorbell_verdict::ratio::Standing;
use doorbell_verdict::spin::{Gap, Spun, WaitCost};
use doorbell_verdict::verdict::Reason;

/// The verdict, and the table of every gap.
pub fn subsections(spun: &Spun) -> Vec<Subsection> {
    let mut untold = spun.gaps.iter().filter_map(|gap| match &gap.choice {
        Err(why) => Some(format!("Gaps of {}: {why}.", ns(gap.gap_ns as f64))),
        _ => None,
    });
    // A screen has room for one of them.
    let first = untold.next();
    let others = Subsection::of_lines("Inconclusive too", untold.collect());
    let left_out = spun.left_out.iter().map(|(conditions, configurations)| {
        format!("Left out: {}, {conditions}.", counted(*configurations as u64, "configuration"))
    });
    let lead = first.into_iter().chain(left_out).collect();
    let told = Subsection::verdict(verdict(spun), Role::Heading, lead);
    std::iter::once(told).chain(table(spun)).chain(others.map(Subsection::aside)).collect()
}

/// The verdict in one sentence; neighbouring gaps of the same choice are one part of it. Of gaps
/// longer than the longest it says nothing: after them deeper idle states may make sleeping dearer.
pub fn verdict(spun: &Spun) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut gaps = spun.gaps.iter().peekable();
    while let Some(first) = gaps.next() {
        let mut last = first;
        let mut at_most = first.at_most();
        while let Some(next) = gaps.next_if(|next| alike(&next.choice, &first.choice)) {
            last = next;
            at_most = [at_most, next.at_most()].into_iter().flatten().reduce(f64::max);
        }
        let range = match (first.gap_ns, last.gap_ns) {
            (from, to) if from == to => format!("for gaps of {}", ns(from as f64)),
            (from, to) => format!("for gaps of {} to {}", ns(from as f64), ns(to as f64)),
        };
        let sure =
            at_most.map_or_else(String::new, |most| format!(" (at most {} times the least)", plain(most)));
        parts.push(match &first.choice {
            Ok(WaitPolicy::Block | WaitPolicy::Timeout { .. }) => format!("{range} sleep at once{sure}"),
            Ok(WaitPolicy::SpinThenBlock { spin_ns }) => {
                format!("{range} spin {}{sure}", ns(*spin_ns as f64))
            }
            Ok(WaitPolicy::Spin) => format!("{range} spin until it comes"),
            Err(_) => format!("{range}: inconclusive"),
        });
    }
    let mut sentence = parts.join("; ");
    if let Some(first) = sentence.get(..1) {
        let upper = first.to_uppercase();
        sentence.replace_range(..1, &upper);
    }
    format!("{sentence}.")
}

/// Whether two gaps are one part of the sentence: for whatever reason
/// nothing can be told of them, it is the same to say.
fn alike(a: &Result<WaitPolicy, Reason>, b: &Result<WaitPolicy, Reason>) -> bool {
    a == b || (a.is_err() && b.is_err())
}

/// Each way to wait at each gap, for programs.
pub fn findings(spun: &Spun) -> Vec<Finding> {
    let of_gap = |gap: &Gap| {
        let unsure = gap.choice.as_ref().err().map(ToString::to_string);
        let told = gap.ways.iter().map(move |way| {
            let chosen = gap.chosen().is_some_and(|chosen| chosen.wait == way.wait);
            let (status, why) = match (&unsure, chosen) {
                (Some(why), _) => (Status::Inconclusive, why.clone()),
                (None, true) => (Status::Answered, "chosen".to_owned()),
                (None, false) => (Status::Answered, String::new()),
            };
            let name = format!("gap {}, {}", ns(gap.gap_ns as f64), waits(way.wait));
            let finding = Finding::new(name, "cost", status, "ns").because(why);
            match way.behind {
                Some(ratio) => Finding {
                    unit: "ratio".to_owned(),
                    ..finding.valued(ratio.estimate, Some([ratio.low, ratio.high]))
                },
                None => finding.valued(way.cost_ns, None),
            }
        });
        told.collect::<Vec<_>>()
    };
    spun.gaps.iter().flat_map(of_gap).collect()
}

fn waits(wait: WaitPolicy) -> String {
    match wait {
        WaitPolicy::Block => "sleep at once".to_owned(),
        WaitPolicy::Spin => "spin".to_owned(),
        WaitPolicy::SpinThenBlock { spin_ns } => format!("spin {}, then sleep", ns(spin_ns as f64)),
        WaitPolicy::Timeout { timeout_ns } => format!("time-out of {}", ns(timeout_ns as f64)),
    }
}

/// A way to wait at a gap.
type Way<'a> = (&'a Gap, &'a WaitCost);

fn table(spun: &Spun) -> Option<Subsection> {
    let ways: Vec<Way> =
        spun.gaps.iter().flat_map(|gap| gap.ways.iter().map(move |way| (gap, way))).collect();
    let scale = Scale::for_ps(ways.iter().flat_map(|(_, way)| [way.wake_ns * 1e3, way.cpu_ns * 1e3]));
    let table = Columns::none()
        .with(number("gap"), |(gap, _): &Way| ns(gap.gap_ns as f64))
        .with(word("wait"), |(_, way)| waits(way.wait))
        .with(number("wake").keep(3), |(_, way)| scale.show_ns(way.wake_ns))
        .with(number("p50"), |(_, way)| scale.show_ns(way.percentiles_ns[0]))
        .with(number("p99"), |(_, way)| percentile(way.percentiles_ns[1] * 1e3, 0.99, way.seen, scale))
        .with(number("CPU"), |(_, way)| scale.show_ns(way.cpu_ns))
        .with(number("cost").keep(4), |(_, way)| scale.show_ns(way.cost_ns))
        .with(number("behind").keep(5), |(gap, way)| match way.behind {
            Some(ratio) => multiple(ratio, ""),
            None if gap.ways.first().is_some_and(|best| best.wait == way.wait) => "least".to_owned(),
            None => "inconclusive".to_owned(),
        })
        .with(word("verdict"), mark)
        .with(number("trials").keep(1), |(_, way)| count(way.trials as u64))
        .with(number("count").keep(2), |(_, way)| count(way.seen))
        .table(&ways);
    let harness = spun.harness_ns.map_or_else(String::new, |harness| {
        format!(" The harness itself is {} of a round trip (null).", ns(harness))
    });
    let note = format!(
        "{}, {}. Cost: wake x {} + CPU of each block, and of the blocks the trimmed mean of the \
         logarithms. CPU: the waiter's time and the notifier's call, a notification; wake and CPU \
         are means of all. Behind: the cost as a multiple of the least at this gap, with an \
         interval; all of them hold together in 95 of 100 runs. Those marked = cost the same, and \
         of those the one with the least CPU time is chosen.{harness}",
        spun.subject,
        relation(&spun.placement.relation),
        spun.worth,
    );
    let title = format!("Each gap and way to wait, {}", scale.unit.sign());
    Subsection::of_table(title, table, vec![note])
}

fn mark((gap, way): &Way) -> String {
    let chosen = gap.chosen().is_some_and(|chosen| chosen.wait == way.wait);
    match (chosen, way.standing) {
        (true, _) => "<- this",
        (false, Standing::Same { .. }) => "=",
        (false, Standing::Inconclusive) => "inconclusive",
        (false, Standing::Slower | Standing::Faster) => "",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Placement;

    fn spun(choices: &[(u64, Result<WaitPolicy, Reason>)]) -> Spun {
        Spun {
            subject: "futex".to_owned(),
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            worth: 1.0,
            left_out: [("measured under other conditions: timing".to_owned(), 5)].into(),
            gaps: choices
                .iter()
                .map(|(gap_ns, choice)| Gap { gap_ns: *gap_ns, ways: Vec::new(), choice: choice.clone() })
                .collect(),
            harness_ns: None,
        }
    }

    #[test]
    fn the_verdict_is_one_sentence_in_which_neighbours_that_agree_are_one_part() {
        let choices = [
            (5_000, Ok(WaitPolicy::SpinThenBlock { spin_ns: 6_000 })),
            (10_000, Ok(WaitPolicy::SpinThenBlock { spin_ns: 12_000 })),
            (100_000, Ok(WaitPolicy::Block)),
            (1_000_000, Ok(WaitPolicy::Block)),
        ];
        assert_eq!(
            verdict(&spun(&choices)),
            "For gaps of 5 µs spin 6 µs; for gaps of 10 µs spin 12 µs; for gaps of 100 µs to 1 ms \
             sleep at once."
        );
        let open = [
            (5_000, Ok(WaitPolicy::Spin)),
            (9_000, Ok(WaitPolicy::Spin)),
            (20_000, Err(Reason::NoFigures)),
            (50_000, Err(Reason::OneWait)),
        ];
        assert_eq!(
            verdict(&spun(&open)),
            "For gaps of 5 µs to 9 µs spin until it comes; for gaps of 20 µs to 50 µs: inconclusive."
        );
        assert_eq!(verdict(&spun(&[(5_000, Ok(WaitPolicy::Block))])), "For gaps of 5 µs sleep at once.");
        let told = &subsections(&spun(&[(5_000, Ok(WaitPolicy::Block))]))[0];
        assert_eq!(told.lead, ["Left out: 5 configurations, measured under other conditions: timing."]);
    }

    /// Five gaps of which nothing could be told made a first screen of 29 lines.
    #[test]
    fn of_several_open_gaps_a_first_screen_tells_the_reason_of_one_and_the_details_that_of_each() {
        let open = [5_000, 10_000, 20_000].map(|gap_ns| (gap_ns, Err(Reason::NoFigures)));
        let told = subsections(&spun(&open));
        let brief: Vec<&Subsection> = told.iter().filter(|told| !told.aside).collect();
        let of = |told: &[&Subsection]| {
            told.iter().flat_map(|told| &told.lead).filter(|line| line.starts_with("Gaps")).count()
        };
        assert_eq!((of(&brief), of(&told.iter().collect::<Vec<_>>())), (1, 3));
    }
}
