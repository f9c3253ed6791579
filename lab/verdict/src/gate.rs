// SPDX-License-Identifier: MIT OR Apache-2.0
//! Can this node run it: is a percentile of its wakes, or every one
//! of them, below a limit, and how sure is that?
//!
//! The bounds are those of [`super::quantile`]. With several configurations each is held against
//! its share of the error (Bonferroni), so that the whole verdict has the confidence asked for. A
//! notification that was lost, or seen only because a wait ran out, took longer than any limit, and
//! is among the wake-ups that are counted. Those that a closed loop had no time to send because it
//! stood still leave a verdict open that would pass. A hung trial fails whatever is asked.
//! Where others used the CPUs in most of the trials, nothing passes: it would say nothing of the
//! node as it is when they do not, or do more.

use super::clock_bound::{limit, within_ps};
use super::hung::hung;
use super::missed::{Missed, wakes};
use super::quantile::{Above, Bounds, bounds, fewest, share};
use super::verdict::{Lacking, Reason, Verdict};
use super::worst::{Worst, worst};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::question::{Gate, Which};
use doorbell_results::record::{Histogram, Quantity, ResultFile, Variant};

#[derive(Debug, Clone, PartialEq)]
pub struct Gated<'result> {
    pub question: Gate,
    /// The confidence with which each configuration was judged.
    pub each: f64,
    pub configurations: Vec<Judged<'result>>,
    pub verdict: Verdict,
    /// Two readings of the clock, which are part of every wake, nanoseconds.
    pub harness_ns: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'result> {
    pub configuration: &'result Configuration,
    pub quantity: Quantity,
    /// p50, p99, p99.9 and the longest, picoseconds;
    /// [`LONGEST_PS`](doorbell_results::record::histogram::LONGEST_PS) where it never came.
    pub figures_ps: [u64; 4],
    pub above: Above,
    /// The quantile asked for, and its bounds; none for the longest.
    pub bounds: Option<Bounds>,
    /// Those of the wake-ups that never came, or too late to be one.
    pub missed: Missed,
    /// Trials with figures, and those that met interference.
    pub trials: [usize; 2],
    /// The longest wake and what its trial's record tells.
    pub worst: Option<Worst>,
    pub verdict: Verdict,
}

/// What `result` says of `question`; none if it timed no wake one way.
pub fn gate<'result>(result: &'result ResultFile, question: Gate) -> Option<Gated<'result>> {
    let variants: Vec<Variant<'result>> = result
        .variants()
        .into_iter()
        .filter(|variant| {
            matches!(variant.headline(), Quantity::Wake | Quantity::Response) && !variant.is_harness()
        })
        .collect();
    if variants.is_empty() {
        return None;
    }
    let each = 1.0 - (1.0 - question.confidence) / variants.len() as f64;
    let judged: Vec<Judged> = variants.iter().map(|variant| judge(variant, question, each)).collect();
    let verdict = overall(&judged, result);
    let clock = result.primitives_called("clock").filter(|primitive| primitive.count > 0);
    let clock: Vec<f64> = clock.map(|primitive| primitive.p50_ns * 2.0).collect();
    Some(Gated {
        question,
        each,
        configurations: judged,
        verdict,
        harness_ns: super::statistics::median(&clock),
    })
}

fn judge<'result>(variant: &Variant<'result>, question: Gate, confidence: f64) -> Judged<'result> {
    let quantity = variant.headline();
    let blocks = || variant.usable().filter_map(move |record| wakes(record, quantity));
    let mut whole = Histogram::new();
    let mut trials = 0;
    for block in blocks() {
        whole.add(&block);
        trials += 1;
    }
    let mut judged = Judged {
        configuration: variant.configuration,
        quantity,
        figures_ps: [whole.quantile(0.5), whole.quantile(0.99), whole.quantile(0.999), whole.max()],
        above: share(blocks, limit(question.limit_ns, variant), confidence),
        bounds: match question.which {
            Which::Quantile(q) => {
                bounds(blocks, q, confidence).map(|bounds| bounds.within(within_ps(variant)))
            }
            Which::Longest => None,
        },
        missed: Missed::of(variant),
        trials: [trials, variant.usable().filter(|record| record.had_interference()).count()],
        worst: worst(variant, quantity),
        verdict: Verdict::Passed,
    };
    judged.verdict = verdict(&judged, variant, question, confidence);
    judged
}

fn verdict(judged: &Judged, variant: &Variant, question: Gate, confidence: f64) -> Verdict {
    if let Some(hung) = hung(variant) {
        return Verdict::Failed(hung);
    }
    let Above { all, above, surely, lower, upper, .. } = judged.above;
    let failed = match question.which {
        Which::Longest => surely > 0,
        Which::Quantile(q) => lower > 1.0 - q,
    };
    if failed {
        return Verdict::Failed(Reason::Longer { wakes: surely, of: all, missed: judged.missed });
    }
    let clocks = || {
        let (wakes, within_ps) = (above.saturating_sub(surely), within_ps(variant));
        Reason::TwoClocks { wakes, of: all, within_ps }
    };
    let [trials, interfered] = judged.trials;
    if let Some(why) = gaps(variant) {
        return Verdict::Inconclusive(why);
    }
    let open = match question.which {
        _ if interfered * 2 > trials => Reason::Interference { trials: interfered, of: trials },
        _ if judged.missed.unsent > 0 => Reason::Unsent(judged.missed.unsent),
        _ if all == 0 => Reason::NotTimed,
        Which::Longest if above > 0 && within_ps(variant) > 0 => clocks(),
        Which::Longest if above > 0 => Reason::AtTheLimit { wakes: above, of: all },
        Which::Longest => return Verdict::Passed,
        Which::Quantile(q) if upper <= 1.0 - q => return Verdict::Passed,
        Which::Quantile(_) if trials < 2 => Reason::OneTrial,
        // Were all as they seem, it would be decided.
        Which::Quantile(_) if above > surely && within_ps(variant) > 0 => clocks(),
        Which::Quantile(q) => {
            too_few(judged.above, q, confidence).unwrap_or(Reason::NearTheLimit { wakes: above, of: all })
        }
    };
    Verdict::Inconclusive(open)
}

/// Why the wake-ups are too few for the quantile `q`, if they are, whatever the limit is.
pub(super) fn too_few(above: Above, q: f64, confidence: f64) -> Option<Reason> {
    let Above { all, alike, .. } = above;
    let takes = (fewest(q, confidence) as f64 * alike).ceil();
    ((all as f64) < takes).then_some(Reason::FewWakes { wakes: all, takes })
}

/// Why a configuration's figures are not all of its wakes, if they are not.
fn gaps(variant: &Variant) -> Option<Reason> {
    let again = || {
        let trials = variant.records.iter().filter(|record| record.attempts > 1).count();
        (trials > 0).then_some(Reason::Repeated { trials })
    };
    Lacking::of(variant).map(Reason::Lacking).or_else(again)
}

fn overall(judged: &[Judged], result: &ResultFile) -> Verdict {
    if result.emulated() {
        return Verdict::Inconclusive(Reason::Emulated);
    }
    let all = judged.iter().map(|configuration| &configuration.verdict);
    match Verdict::of_all(all).unwrap_or(Verdict::Passed) {
        Verdict::Passed if result.partial => Verdict::Inconclusive(Reason::Interrupted),
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::{Outcome, Series, sample};

    /// Twenty trials of `each` wakes of 4 to 5 µs, some of which take 50.
    fn result(each: u64, long: &[u64]) -> ResultFile {
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns: 1_000_000 },
            ..sample::configuration("futex")
        };
        let mut result = sample::result(&[configuration], 20, |_, _| 16_000.0);
        for (index, record) in result.records.iter_mut().enumerate() {
            let long = long.get(index).copied().unwrap_or(0);
            let mut wakes = Histogram::new();
            (long..each).for_each(|wake| wakes.record(4_000_000 + wake * 1_000_000 / each));
            wakes.record_many(50_000_000, long);
            record.series.insert(Quantity::Wake, Series::from(&wakes));
        }
        result
    }

    fn asked(result: &ResultFile, which: Which) -> Verdict {
        gate(result, Gate { limit_ns: 20_000, which, confidence: 0.95 }).unwrap().verdict
    }

    const P999: Which = Which::Quantile(0.999);

    #[test]
    fn a_percentile_passes_fails_or_is_left_open_by_its_bounds() {
        assert_eq!(asked(&result(1000, &[]), P999), Verdict::Passed);
        assert_eq!(
            asked(&result(1000, &[1, 1, 1]), P999),
            Verdict::Passed,
            "3 of 20,000 where 20 are allowed"
        );
        let near = Reason::NearTheLimit { wakes: 17, of: 20_000 };
        assert_eq!(asked(&result(1000, &[1; 17]), P999), Verdict::Inconclusive(near));
        assert!(matches!(
            asked(&result(1000, &[3; 20]), P999),
            Verdict::Failed(Reason::Longer { wakes: 60, of: 20_000, .. })
        ));
        let few = asked(&result(100, &[]), P999);
        assert!(matches!(few, Verdict::Inconclusive(Reason::FewWakes { wakes: 2000, .. })), "{few:?}");
    }

    /// Ten long wakes in one trial are one event, not ten.
    #[test]
    fn long_wakes_in_a_heap_leave_open_what_the_same_number_spread_out_would_pass() {
        let spread: Vec<u64> = (0..20).map(|trial| trial % 2).collect();
        assert_eq!(asked(&result(1000, &spread), P999), Verdict::Passed);
        assert!(matches!(asked(&result(1000, &[10]), P999), Verdict::Inconclusive(_)));
    }

    #[test]
    fn one_wake_too_long_fails_where_the_longest_is_asked_for() {
        assert_eq!(asked(&result(1000, &[]), Which::Longest), Verdict::Passed);
        assert!(matches!(asked(&result(1000, &[0, 0, 1]), Which::Longest), Verdict::Failed(_)));
        let result = result(1000, &[]);
        let gated =
            gate(&result, Gate { limit_ns: 20_000, which: Which::Longest, confidence: 0.95 }).unwrap();
        let upper = gated.configurations[0].above.upper;
        // Student's quantiles for twenty trials and for any number are 1.729 and 1.645.
        let three = 3.0 * (1.729_f64 / 1.645).powi(2);
        assert!((upper * 20_000.0 / three - 1.0).abs() < 0.01, "the rule of three: {upper}");
    }

    /// A bin that held the limit failed a node whose wakes may all have kept to it.
    #[test]
    fn a_wake_that_took_as_long_as_the_limit_neither_passes_nor_fails() {
        let at_the_limit = |count| {
            let mut result = result(1000, &[]);
            for record in &mut result.records {
                let mut wakes = record.series[&Quantity::Wake].decode().unwrap();
                wakes.record_many(20_000_000, count);
                record.series.insert(Quantity::Wake, Series::from(&wakes));
            }
            result
        };
        let open = |count, which| matches!(asked(&at_the_limit(count), which), Verdict::Inconclusive(_));
        assert!(open(1, Which::Longest));
        assert!(open(10, P999), "1 % of them may have been longer, and none need have been");
        assert!(open(900, Which::Quantile(0.6)));
        assert_eq!(asked(&at_the_limit(1), Which::Quantile(0.9)), Verdict::Passed);
    }

    /// One trial's wakes may all be alike, and passed as if each stood for itself.
    #[test]
    fn one_trial_leaves_a_percentile_open_however_many_wakes_it_has() {
        let mut one = result(100_000, &[]);
        one.records.truncate(1);
        assert_eq!(asked(&one, P999), Verdict::Inconclusive(Reason::OneTrial));
    }

    /// What a GPU's clock says is right within a bound that its
    /// trials state: neither a pass nor a failure rests on less.
    #[test]
    fn times_of_two_clocks_pass_and_fail_only_beyond_the_bound_of_the_clocks() {
        let with = |bound_ns: f64| {
            let mut result = result(1000, &[]);
            let figure = sample::figure(doorbell_results::figure::gpu::CLOCK_BOUND, bound_ns);
            result.records.iter_mut().for_each(|record| record.figures = vec![figure.clone()]);
            result
        };
        // Wakes of 4 to 5 µs.
        let verdict = |bound_ns, limit_ns, which| {
            gate(&with(bound_ns), Gate { limit_ns, which, confidence: 0.95 }).unwrap().verdict
        };
        for which in [P999, Which::Longest] {
            assert_eq!(verdict(1000.0, 6_100, which), Verdict::Passed);
            let open = verdict(1000.0, 5_500, which);
            assert!(matches!(open, Verdict::Inconclusive(Reason::TwoClocks { .. })), "{open:?}");
            assert!(open.reason().unwrap().to_string().contains("within 1"), "{open:?}");
            assert!(matches!(verdict(1000.0, 2_500, which), Verdict::Failed(_)));
            assert!(matches!(verdict(3000.0, 2_500, which), Verdict::Inconclusive(_)));
        }
    }

    #[test]
    fn a_wake_that_never_came_is_longer_than_any_limit() {
        let lost = |lost| {
            let mut result = result(1000, &[]);
            result.records.iter_mut().for_each(|record| record.tally.lost = lost);
            result
        };
        let failed = |lost, of| {
            let missed = Missed { lost, ..Missed::default() };
            Verdict::Failed(Reason::Longer { wakes: lost, of, missed })
        };
        assert_eq!(asked(&lost(1), Which::Longest), failed(20, 20_020));
        assert_eq!(asked(&lost(3), P999), failed(60, 20_060));
        // "FAIL p50 8.88 µs, limit 1 s", of one lost wake-up among 301.
        assert_eq!(asked(&lost(3), Which::Quantile(0.5)), Verdict::Passed);
        let mut hung = result(1000, &[]);
        hung.records[3].outcome = Outcome::Hung { last_seen: Vec::new() };
        assert_eq!(asked(&hung, P999), Verdict::Failed(Reason::Hung { trials: 1, of: 20 }));
    }

    /// Each late one counted twice: of trials in which all were late 40 % passed.
    #[test]
    fn a_wake_up_that_came_late_counts_once() {
        let mut late = result(1000, &[]);
        late.records.iter_mut().for_each(|record| record.tally.late = 1000);
        let verdict = asked(&late, Which::Quantile(0.4));
        let all = matches!(verdict, Verdict::Failed(Reason::Longer { wakes: 20_000, of: 20_000, .. }));
        assert!(all, "{verdict:?}");
    }

    /// "PASS max never came <= 7,200 s".
    #[test]
    fn what_never_came_took_longer_than_any_limit() {
        let mut lost = result(1000, &[]);
        lost.records[0].tally.lost = 1;
        let question = Gate { limit_ns: 7_200_000_000_000, which: Which::Longest, confidence: 0.95 };
        assert!(matches!(gate(&lost, question).unwrap().verdict, Verdict::Failed(_)));
    }

    /// A check failed a file against itself by an estimate of what
    /// its notifier had had no time to send.
    #[test]
    fn what_was_not_sent_opens_a_gate_that_would_pass_and_breaks_none() {
        let mut held_up = result(1000, &[]);
        for record in &mut held_up.records {
            (record.tally.sent, record.tally.seen) = (1000, 1000);
            (record.sides[0].window_ns, record.sides[0].held_up_ns) = (2_000_000_000, Some(900_000_000));
        }
        let verdict = asked(&held_up, Which::Longest);
        assert!(matches!(verdict, Verdict::Inconclusive(Reason::Unsent(_))), "{verdict:?}");
    }

    #[test]
    fn trials_without_figures_or_done_over_leave_it_open() {
        let mut failed = result(1000, &[]);
        let cause = "no right to real-time priority".to_owned();
        failed.records[3].outcome = Outcome::Failed { cause: cause.clone() };
        let lacking = Reason::Lacking(Lacking::Failed(cause));
        assert_eq!(asked(&failed, P999), Verdict::Inconclusive(lacking));
        let mut again = result(1000, &[]);
        again.records[3].attempts = 2;
        assert_eq!(asked(&again, P999), Verdict::Inconclusive(Reason::Repeated { trials: 1 }));
        let mut cut = result(1000, &[]);
        cut.partial = true;
        assert_eq!(asked(&cut, P999), Verdict::Inconclusive(Reason::Interrupted));
    }

    #[test]
    fn each_of_many_configurations_is_held_against_its_share_of_the_error() {
        let one = result(1000, &[]);
        let mut many = one.clone();
        for cpu in 2..20 {
            let mut copy = one.clone();
            sample::configurations(&mut copy).for_each(|one| one.placement.cpus = Some([0, cpu]));
            many.plan.configurations.extend(copy.plan.configurations);
            many.records.extend(copy.records);
        }
        let question = Gate { limit_ns: 20_000, which: P999, confidence: 0.95 };
        let upper = |result: &ResultFile| gate(result, question).unwrap().configurations[0].above.upper;
        assert!(upper(&many) > upper(&one) * 1.5);
        assert_eq!(
            gate(&sample::result(&[sample::configuration("futex")], 4, |_, _| 16_000.0), question),
            None
        );
    }
}
