// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did it get worse: a run held against its baseline under conditions such as `p99>+5%`.
//!
//! A limit on how much more something takes is judged by the comparison ([`super::compare`]): it is
//! broken if the whole interval of the ratio lies above the limit, kept if the whole interval lies
//! below, and otherwise cannot be told. A limit on a time is judged by the bounds of the share of
//! wakes that take longer ([`super::quantile`]) in the same three ways, and a limit on a count by
//! the count. So what is broken was shown to be, and what is kept was shown to be.

use super::clock_bound::{limit, within_ps};
use super::compare::{ComparedConfiguration, Comparison};
use super::gate::too_few;
use super::hung::hung;
use super::missed::{Missed as Missing, limit_ps, wakes};
use super::quantile::{Bounds, Count, above, bounds, share};
use super::ratio::Ratio;
use super::verdict::{Lacking, Reason, Verdict};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::question::{Condition, Limited, Missed, Tail};
use doorbell_results::record::verdict::Status;
use doorbell_results::record::{Histogram, ResultFile, Variant};

/// The confidence of the bounds of a percentile that a time is held
/// against; all those of a check hold together with it.
const CONFIDENCE: f64 = 0.95;

/// Every condition for every configuration it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<'result> {
    /// What was found, condition by condition.
    pub findings: Vec<Finding<'result>>,
    /// Configurations of the baseline that could not be compared, with the reason.
    pub missing: Vec<(&'result Configuration, String)>,
    /// Conditions, by their places, that nothing was held against.
    pub untried: Vec<usize>,
    /// Configurations of whose wake-ups more never came than of the baseline's, with both: what is
    /// known of the others is not all.
    pub missed: Vec<(&'result Configuration, [Missing; 2])>,
    /// Configurations of the conditions of whose wake-ups more were lost, or late, though no
    /// condition says how many may.
    pub uncounted: Vec<(&'result Configuration, Missed)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finding<'result> {
    /// The condition's place in the list.
    pub condition: usize,
    /// The configuration, as the baseline has it.
    pub configuration: &'result Configuration,
    /// Blocks with figures, of the baseline and of the candidate.
    pub blocks: [usize; 2],
    pub seen: Seen,
    pub verdict: Verdict,
}

/// What was seen of what is limited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    Ratio(Ratio),
    Bounds(Bounds),
    /// The longest, picoseconds.
    Longest(u64),
    Count(u64),
    Nothing,
}

impl Checked<'_> {
    pub fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict.status() == Status::Failed)
    }

    /// How it stands; `doubted` where something else leaves open what nothing else would.
    pub fn status(&self, doubted: bool) -> Status {
        Status::of(self.is_broken(), self.is_open() || doubted)
    }

    pub fn is_open(&self) -> bool {
        let open = |finding: &Finding| finding.verdict.status() == Status::Inconclusive;
        self.findings.is_empty()
            || !self.missing.is_empty()
            || !self.untried.is_empty()
            || !self.uncounted.is_empty()
            || self.findings.iter().any(open)
    }
}

/// Holds `candidate`, whose `comparison` with its baseline this is, against `conditions`.
pub fn check<'result>(
    comparison: &Comparison<'result>,
    candidate: &'result ResultFile,
    conditions: &[Condition],
) -> Checked<'result> {
    let variants = candidate.variants();
    // The harness itself is the same in both.
    let concerns = |condition: &Condition, configuration: &Configuration| {
        comparison
            .files
            .iter()
            .all(|file| condition.concerns(configuration, file.is_harness(&configuration.subject)))
    };
    let missing = comparison
        .unmatched
        .iter()
        .filter(|configuration| {
            configuration.had
                && conditions.iter().any(|condition| concerns(condition, configuration.configuration))
        })
        .map(|configuration| (configuration.configuration, configuration.reason.clone()))
        .collect();
    let concerned = |condition: &Condition| {
        comparison.rows.iter().filter(|row| concerns(condition, row.configuration)).count()
    };
    let timed = conditions.iter().filter(|condition| matches!(condition.limited, Limited::Percentile(..)));
    let judged: usize = timed.map(concerned).sum();
    let each = 1.0 - (1.0 - CONFIDENCE) / judged.max(1) as f64;
    let mut findings = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        for row in comparison.rows.iter().filter(|row| concerns(condition, row.configuration)) {
            let variant = variants.iter().find(|variant| variant.configuration == row.candidate);
            let (seen, verdict) = judge(condition.limited, row, variant, each);
            findings.push(Finding {
                condition: index,
                configuration: row.configuration,
                blocks: row.blocks,
                seen,
                verdict,
            });
        }
    }
    let judged = |condition: &usize| findings.iter().any(|finding| finding.condition == *condition);
    let untried = (0..conditions.len()).filter(|condition| !judged(condition)).collect();
    let more = |[before, after]: [u64; 2]| after > before;
    let kinds = |row: &ComparedConfiguration| {
        [(Missed::Lost, row.missed.map(|of| of.lost)), (Missed::Late, row.missed.map(|of| of.late))]
    };
    let missed = comparison.rows.iter().filter(|row| {
        kinds(row).into_iter().any(|(_, counts)| more(counts)) || more(row.missed.map(|of| of.unsent))
    });
    let missed = missed.map(|row| (row.configuration, row.missed)).collect();
    let counted = |kind: Missed, configuration: &Configuration| {
        conditions.iter().any(|condition| {
            matches!(condition.limited, Limited::Count(of, _) if of == kind)
                && concerns(condition, configuration)
        })
    };
    let concerned = comparison
        .rows
        .iter()
        .filter(|row| conditions.iter().any(|condition| concerns(condition, row.configuration)));
    let uncounted = concerned.flat_map(|row| {
        let kinds = kinds(row).into_iter();
        let kinds = kinds.filter(|(kind, counts)| more(*counts) && !counted(*kind, row.configuration));
        kinds.map(|(kind, _)| (row.configuration, kind))
    });
    let uncounted = uncounted.collect();
    Checked { findings, missing, untried, missed, uncounted }
}

fn judge(
    limited: Limited,
    row: &ComparedConfiguration,
    variant: Option<&Variant>,
    confidence: f64,
) -> (Seen, Verdict) {
    let (seen, verdict) = by_figures(limited, row, variant, confidence);
    // A comparison has looked at that itself. Trials without figures
    // are in no percentile, no maximum and no count.
    let (false, Some(variant)) = (matches!(limited, Limited::More(..)), variant) else {
        return (seen, verdict);
    };
    let verdict = match verdict {
        _ if hung(variant).is_some() => Verdict::Failed(Reason::BeyondTheLimit),
        Verdict::Passed => Lacking::of(variant)
            .map_or(Verdict::Passed, |lacking| Verdict::Inconclusive(Reason::Lacking(lacking))),
        other => other,
    };
    (seen, verdict)
}

fn by_figures(
    limited: Limited,
    row: &ComparedConfiguration,
    variant: Option<&Variant>,
    confidence: f64,
) -> (Seen, Verdict) {
    let nothing = || (Seen::Nothing, Verdict::Inconclusive(Reason::NoFigures));
    match limited {
        Limited::More(tail, more) => {
            let ratio = match tail {
                Tail::P50 => Some(row.p50),
                Tail::P99 => row.p99,
            };
            let Some(ratio) = ratio else { return nothing() };
            (Seen::Ratio(ratio), relative(ratio, 1.0 + more, row))
        }
        Limited::Percentile(q, limit_ns) => {
            let Some(variant) = variant else { return nothing() };
            let blocks = || variant.usable().filter_map(|record| wakes(record, row.quantity));
            let Some(found) = bounds(blocks, q, confidence) else { return nothing() };
            // By how many lie above the limit, as a gate does: where blocks
            // differ by more than the percentile's own bounds can tell,
            // every one of them may still lie on the same side of the limit.
            let found = found.within(within_ps(variant));
            let above = share(blocks, limit(limit_ns, variant), confidence);
            let verdict = if above.lower > 1.0 - q {
                Verdict::Failed(Reason::BeyondTheLimit)
            } else if let Some(why) = held_up(variant) {
                Verdict::Inconclusive(why)
            } else if above.upper <= 1.0 - q {
                Verdict::Passed
            } else {
                Verdict::Inconclusive(too_few(above, q, confidence).unwrap_or(Reason::TooWide(None)))
            };
            (Seen::Bounds(found), verdict)
        }
        Limited::Longest(limit_ns) => {
            let trials = variant.iter().flat_map(|variant| variant.usable());
            let mut whole = Histogram::new();
            trials.filter_map(|record| wakes(record, row.quantity)).for_each(|trial| whole.add(&trial));
            if whole.count() == 0 {
                return nothing();
            }
            // Of a bin that holds the limit nobody can tell.
            let held = variant.map_or(limit_ps(limit_ns).into(), |variant| limit(limit_ns, variant));
            let verdict = match above(&whole, held) {
                Count { surely: 1.., .. } => Verdict::Failed(Reason::BeyondTheLimit),
                Count { above: 1.., .. } => Verdict::Inconclusive(Reason::TooWide(None)),
                Count { .. } => variant.and_then(held_up).map_or(Verdict::Passed, Verdict::Inconclusive),
            };
            (Seen::Longest(whole.max()), verdict)
        }
        Limited::Count(missed, most) => {
            let Some(tally) = variant.map(Variant::tally) else { return nothing() };
            let count = match missed {
                Missed::Lost => tally.lost,
                Missed::Late => tally.late,
            };
            (
                Seen::Count(count),
                if count > most { Verdict::Failed(Reason::BeyondTheLimit) } else { Verdict::Passed },
            )
        }
    }
}

/// Why a limit that nothing exceeded is open nevertheless: the notifier stood still meanwhile.
fn held_up(variant: &Variant) -> Option<Reason> {
    let missed = Missing::of(variant);
    (missed.unsent > 0).then_some(Reason::Unsent(missed.unsent))
}

fn relative(ratio: Ratio, limit: f64, row: &ComparedConfiguration) -> Verdict {
    if ratio.high <= limit {
        return Verdict::Passed;
    }
    if ratio.low > limit {
        return Verdict::Failed(Reason::BeyondTheLimit);
    }
    Verdict::Inconclusive(match &row.doubt {
        Some(obstacle) => Reason::Explained(obstacle.clone()),
        None => Reason::TooWide(blocks_for(ratio, limit, row.blocks[1])),
    })
}

/// With how many blocks the interval would no longer hold the limit: its half grows smaller with
/// the root of their number. None where the estimate lies on the limit.
fn blocks_for(ratio: Ratio, limit: f64, blocks: usize) -> Option<u32> {
    let room = (ratio.estimate / limit).ln().abs();
    let reach = (ratio.high / ratio.estimate).ln();
    let wanted = blocks as f64 * (reach / room).powi(2) * 1.2;
    (wanted.is_finite() && wanted <= 10_000.0).then(|| wanted.ceil() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{RELEVANT, compare};
    use doorbell_results::record::question::condition;
    use doorbell_results::record::{Outcome, Quantity, sample};

    /// A run of futex and pipe whose blocks spread by `noise`, futex
    /// taking `futex` times as long as it should.
    fn run(futex: f64, noise: f64, seed: u64) -> ResultFile {
        let configurations = [sample::configuration("futex"), sample::configuration("pipe")];
        let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
        sample::result(&configurations, 12, |configuration, _| {
            let level = if configuration.subject == "futex" { 16_000.0 * futex } else { 20_000.0 };
            level * (1.0 + noise * (random.borrow_mut().f64() - 0.5))
        })
    }

    fn base() -> ResultFile {
        run(1.0, 0.004, 1)
    }

    /// What is seen of `candidate` held against `baseline`.
    fn seen<T>(
        baseline: &ResultFile,
        candidate: &ResultFile,
        conditions: &[&str],
        look: impl FnOnce(&Checked) -> T,
    ) -> T {
        let conditions: Vec<Condition> = conditions.iter().map(|text| condition(text).unwrap()).collect();
        look(&check(&compare(baseline, candidate, RELEVANT), candidate, &conditions))
    }

    fn verdicts(candidate: &ResultFile, conditions: &[&str]) -> Vec<Verdict> {
        let verdicts =
            |checked: &Checked| checked.findings.iter().map(|found| found.verdict.clone()).collect();
        seen(&base(), candidate, conditions, verdicts)
    }

    fn decisions(candidate: &ResultFile, conditions: &[&str]) -> Vec<Status> {
        verdicts(candidate, conditions).iter().map(Verdict::status).collect()
    }

    /// Whether something could not be told, and whether something is broken.
    fn stands(checked: &Checked) -> (bool, bool) {
        (checked.is_open(), checked.is_broken())
    }

    use Status::{Failed as Broken, Passed as Kept};

    #[test]
    fn a_limit_is_broken_kept_or_left_open_by_the_interval() {
        let slower = run(1.08, 0.004, 2);
        assert_eq!(decisions(&slower, &["p50>+5%"]), [Broken, Kept]);
        assert_eq!(decisions(&slower, &["p99>+5%", "pipe:p99>+5%"]), [Broken, Kept, Kept]);
        assert_eq!(decisions(&slower, &["futex:p50>+15%"]), [Kept]);
        let on_the_limit = decisions(&run(1.05, 0.02, 2), &["futex:p50>+5%"]);
        assert!(on_the_limit == [Status::Inconclusive], "{on_the_limit:?}");
    }

    #[test]
    fn a_time_is_held_against_the_bounds_of_the_percentile() {
        // Round trips of futex lie between 16 and 48 µs, half of them below 18.
        let same = run(1.0, 0.004, 2);
        assert_eq!(decisions(&same, &["futex:p50>30us", "futex:p50>10us"]), [Kept, Broken]);
        assert_eq!(decisions(&same, &["futex:max>49us", "futex:max>40us"]), [Kept, Broken]);
        // The bin of the longest reaches from below this to above it.
        let longest_ns = same.variants()[0].histogram(Quantity::RoundTrip).unwrap().max() / 1000;
        let open = decisions(&same, &[&format!("futex:max>{}ns", longest_ns - 1)]);
        assert!(open == [Status::Inconclusive], "{open:?}");
        // "Too near", of 25 µs beside a limit of a second.
        let open = verdicts(&same, &["futex:p99.99>1s"]);
        assert!(matches!(open[..], [Verdict::Inconclusive(Reason::FewWakes { .. })]), "{open:?}");
    }

    /// A gate failed, and a check of the same file with the same limit found that all was kept:
    /// half of the wake-ups had been lost.
    #[test]
    fn a_wake_up_that_never_came_is_longer_than_any_limit() {
        let mut lossy = run(1.0, 0.004, 2);
        for record in sample::of(&mut lossy, "futex") {
            record.tally.lost = record.series[&Quantity::RoundTrip].count / 2;
        }
        assert_eq!(
            decisions(&lossy, &["futex:p90>1s", "futex:max>1s", "futex:p50>1s", "pipe:p90>1s"]),
            [Broken, Broken, Kept, Kept]
        );
        seen(&base(), &lossy, &["p50>+5%"], |checked| {
            let [(configuration, [before, after])] = &checked.missed[..] else { panic!("{checked:?}") };
            assert_eq!((configuration.subject.as_str(), before.all()), ("futex", 0));
            assert!(after.lost > 1000, "{after:?}");
            // Half of them lost, and the others as fast as ever: nothing
            // that was asked is broken, and all is not well.
            assert_eq!(stands(checked), (true, false));
        });
        let open = |conditions: &[&str]| seen(&base(), &lossy, conditions, |checked| checked.is_open());
        assert!(!open(&["p50>+5%", "lost>1000000"]));
        assert!(open(&["p50>+5%", "late>1000000"]), "another count is no answer");
        assert!(!open(&["pipe:p50>+5%"]), "futex is not what it is about");
    }

    #[test]
    fn lost_notifications_are_counted() {
        let mut lossy = run(1.0, 0.004, 2);
        lossy.records[0].tally.lost = 2;
        assert_eq!(decisions(&lossy, &["futex:lost>0", "futex:lost>2", "pipe:lost>0"]), [Broken, Kept, Kept]);
    }

    #[test]
    fn what_a_slower_machine_explains_as_well_breaks_nothing() {
        let mut slower = run(1.3, 0.004, 2);
        slower.primitives.iter_mut().for_each(|reading| *reading = sample::primitives(reading.block, 1.5));
        let decisions = verdicts(&slower, &["futex:p50>+5%", "futex:p99>+5%"]);
        let explained = |verdict: &Verdict| matches!(verdict, Verdict::Inconclusive(Reason::Explained(_)));
        assert!(decisions.len() == 2 && decisions.iter().all(explained), "{decisions:?}");
    }

    #[test]
    fn a_configuration_that_no_longer_has_figures_leaves_the_check_open() {
        let mut gone = run(1.0, 0.004, 2);
        for record in sample::of(&mut gone, "futex") {
            record.series.remove(&Quantity::RoundTrip);
        }
        let held = |conditions: &[&str]| {
            seen(&base(), &gone, conditions, |checked| (checked.missing.len(), stands(checked)))
        };
        assert_eq!(held(&["p50>+5%"]), (1, (true, false)));
        assert_eq!(held(&["pipe:p50>+5%"]), (0, (false, false)), "nobody asked for futex");
    }

    /// "Not worse: all 4 conditions and configurations are kept", of a candidate without the
    /// mechanism that a condition names, and of one whose trials were planned longer. One that
    /// had skipped it left the check open.
    #[test]
    fn a_configuration_that_the_candidate_lacks_or_planned_otherwise_leaves_the_check_open() {
        let mut lacks = run(1.0, 0.004, 2);
        lacks.plan.configurations.retain(|configuration| configuration.subject != "futex");
        lacks.records.retain(|record| record.configuration.subject != "futex");
        let mut longer = run(1.0, 0.004, 2);
        let until = doorbell_results::configuration::Until::count(5000);
        let futex = sample::configurations(&mut longer).filter(|one| one.subject == "futex");
        futex.for_each(|one| one.until = until);
        for candidate in [&lacks, &longer] {
            let told = |checked: &Checked| (checked.missing.len(), checked.untried.clone(), stands(checked));
            let told = seen(&base(), candidate, &["p50>+5%", "futex:p50>+5%"], told);
            assert_eq!(told, (1, vec![1], (true, false)));
        }
    }

    /// A baseline that skipped a mechanism has nothing to hold against a condition that names it.
    #[test]
    fn a_condition_that_nothing_is_held_against_leaves_the_check_open() {
        let mut baseline = base();
        for record in sample::of(&mut baseline, "futex") {
            record.outcome = Outcome::Skipped { reason: "lacks it".to_owned() };
        }
        let candidate = run(1.0, 0.004, 2);
        let held =
            |text| seen(&baseline, &candidate, &[text], |checked| (checked.is_open(), checked.missing.len()));
        assert_eq!(held("futex:p50>+5%"), (true, 0));
        assert_eq!(held("p50>+5%"), (false, 0));
    }
}
