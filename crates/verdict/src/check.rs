// SPDX-License-Identifier: MIT OR Apache-2.0
//! Did it get worse: a run held against its baseline under conditions such as `p99>+5%`.
//!
//! A limit on how much more something takes is judged by the comparison ([`super::compare`]): it is broken if the whole interval of
//! the ratio lies above the limit, kept if the whole interval lies below, and otherwise cannot be told. A limit on a time is
//! judged by the bounds of the share of wakes that take longer ([`super::quantile`]) in the same three ways, and a limit on a count by the count.
//! So what is broken was shown to be, and what is kept was shown to be.

use super::compare::{Comparison, Obstacle, Ratio, Row, Verdict};
use super::gate::without_figures;
use super::quantile::{Bounds, Count, above, bounds, share};
use doorbell_results::cell::Cell;
use doorbell_results::record::question::{Condition, Limited, Missed, Tail};
use doorbell_results::record::{Arm, Outcome, ResultFile};

/// The confidence of the bounds of a percentile that a time is held against; all those of a check hold together with it.
const CONFIDENCE: f64 = 0.95;

/// Every condition for every cell it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<'result> {
    /// What was found, condition by condition.
    pub findings: Vec<Finding<'result>>,
    /// Cells of the baseline that could not be compared, with the reason.
    pub missing: Vec<(&'result Cell, String)>,
}

/// One condition for one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding<'result> {
    /// The condition's place in the list.
    pub condition: usize,
    /// The cell, as the baseline has it.
    pub cell: &'result Cell,
    /// Blocks with figures, of the baseline and of the candidate.
    pub blocks: [usize; 2],
    pub seen: Seen,
    pub ruling: Ruling,
}

/// What was seen of what is limited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    /// The candidate's figure as a multiple of the baseline's.
    Ratio(Ratio),
    /// The percentile and its bounds.
    Bounds(Bounds),
    /// The longest, picoseconds.
    Longest(u64),
    Count(u64),
    Nothing,
}

/// What follows for a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// It was shown not to be broken.
    Kept,
    /// It was shown to be broken.
    Broken,
    CannotTell(Why),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The interval holds the limit; how many blocks would make it small enough, if that can be told.
    TooWide(Option<u32>),
    /// Something else explains the difference as well.
    Obstacle(Obstacle),
    NoFigures(String),
}

impl Checked<'_> {
    /// Whether some condition is broken.
    pub fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.ruling == Ruling::Broken)
    }

    /// Whether something could not be told.
    pub fn is_open(&self) -> bool {
        let open = |finding: &Finding| matches!(finding.ruling, Ruling::CannotTell(_));
        self.findings.is_empty() || !self.missing.is_empty() || self.findings.iter().any(open)
    }
}

/// Holds `candidate`, whose `comparison` with its baseline this is, against `conditions`.
pub fn check<'result>(
    comparison: &Comparison<'result>,
    candidate: &'result ResultFile,
    conditions: &[Condition],
) -> Checked<'result> {
    let arms = candidate.arms();
    let missing = comparison
        .unmatched
        .iter()
        .filter(|cell| cell.gone && conditions.iter().any(|condition| condition.concerns(cell.cell)))
        .map(|cell| (cell.cell, cell.reason.clone()))
        .collect();
    let concerned =
        |condition: &Condition| comparison.rows.iter().filter(|row| condition.concerns(row.cell)).count();
    let timed = conditions.iter().filter(|condition| matches!(condition.limited, Limited::Percentile(..)));
    let judged: usize = timed.map(concerned).sum();
    let each = 1.0 - (1.0 - CONFIDENCE) / judged.max(1) as f64;
    let mut findings = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        for row in comparison.rows.iter().filter(|row| condition.concerns(row.cell)) {
            let arm = arms.iter().find(|arm| arm.cell == row.candidate);
            let (seen, ruling) = judge(condition.limited, row, arm, each);
            findings.push(Finding { condition: index, cell: row.cell, blocks: row.blocks, seen, ruling });
        }
    }
    Checked { findings, missing }
}

fn judge(limited: Limited, row: &Row, arm: Option<&Arm>, confidence: f64) -> (Seen, Ruling) {
    let (seen, ruling) = by_figures(limited, row, arm, confidence);
    // A comparison has looked at that itself. Trials without figures are in no percentile, no maximum and no count.
    let (false, Some(arm)) = (matches!(limited, Limited::More(..)), arm) else { return (seen, ruling) };
    let hung = arm.records.iter().any(|record| matches!(record.outcome, Outcome::Hung { .. }));
    let ruling = match ruling {
        _ if hung => Ruling::Broken,
        Ruling::Kept => {
            without_figures(arm).map_or(Ruling::Kept, |why| Ruling::CannotTell(Why::NoFigures(why)))
        }
        other => other,
    };
    (seen, ruling)
}

fn by_figures(limited: Limited, row: &Row, arm: Option<&Arm>, confidence: f64) -> (Seen, Ruling) {
    let nothing =
        || (Seen::Nothing, Ruling::CannotTell(Why::NoFigures("the cell has no figures".to_owned())));
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
            let Some(arm) = arm else { return nothing() };
            let blocks = || {
                let series = arm.usable().filter_map(|record| record.series.get(&row.quantity));
                series.filter_map(|series| series.decode().ok())
            };
            let Some(found) = bounds(blocks, q, confidence) else { return nothing() };
            // By how many lie above the limit, as a gate does: where blocks differ by more than the percentile's own bounds can
            // tell, every one of them may still lie on the same side of the limit.
            let above = share(blocks, limit_ns.saturating_mul(1000), confidence);
            let ruling = if above.lower > 1.0 - q {
                Ruling::Broken
            } else if above.upper <= 1.0 - q {
                Ruling::Kept
            } else {
                Ruling::CannotTell(Why::TooWide(None))
            };
            (Seen::Bounds(found), ruling)
        }
        Limited::Longest(limit_ns) => {
            let Some(whole) = arm.and_then(|arm| arm.histogram(row.quantity)) else { return nothing() };
            // Of a bin that holds the limit nobody can tell.
            let ruling = match above(&whole, limit_ns.saturating_mul(1000)) {
                Count { surely: 1.., .. } => Ruling::Broken,
                Count { above: 1.., .. } => Ruling::CannotTell(Why::TooWide(None)),
                Count { .. } => Ruling::Kept,
            };
            (Seen::Longest(whole.max()), ruling)
        }
        Limited::Count(missed, most) => {
            let Some(tally) = arm.map(Arm::tally) else { return nothing() };
            let count = match missed {
                Missed::Lost => tally.lost,
                Missed::Late => tally.late,
            };
            (Seen::Count(count), if count > most { Ruling::Broken } else { Ruling::Kept })
        }
    }
}

fn relative(ratio: Ratio, limit: f64, row: &Row) -> Ruling {
    if let Verdict::CannotTell(obstacle) = &row.verdict {
        return Ruling::CannotTell(Why::Obstacle(obstacle.clone()));
    }
    if ratio.high <= limit {
        return Ruling::Kept;
    }
    if ratio.low <= limit {
        return Ruling::CannotTell(Why::TooWide(blocks_for(ratio, limit, row.blocks[1])));
    }
    // What the median does not show, something else may still have done to the tail.
    row.doubt.clone().map_or(Ruling::Broken, |obstacle| Ruling::CannotTell(Why::Obstacle(obstacle)))
}

/// With how many blocks the interval would no longer hold the limit: its half grows smaller with the root of their number. None
/// where the estimate lies on the limit.
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
    use doorbell_results::record::sample;
    use doorbell_results::record::series::Quantity;

    /// A run of futex and pipe whose blocks spread by `noise`, futex taking `futex` times as long as it should.
    fn run(futex: f64, noise: f64, seed: u64) -> ResultFile {
        let cells = [sample::cell("futex"), sample::cell("pipe")];
        let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
        sample::result(&cells, 12, |cell, _| {
            let level = if cell.subject == "futex" { 16_000.0 * futex } else { 20_000.0 };
            level * (1.0 + noise * (random.borrow_mut().f64() - 0.5))
        })
    }

    fn rulings(candidate: &ResultFile, conditions: &[&str]) -> Vec<Ruling> {
        let baseline = run(1.0, 0.004, 1);
        let conditions: Vec<Condition> = conditions.iter().map(|text| condition(text).unwrap()).collect();
        let comparison = compare(&baseline, candidate, RELEVANT);
        let checked = check(&comparison, candidate, &conditions);
        checked.findings.into_iter().map(|finding| finding.ruling).collect()
    }

    use Ruling::{Broken, Kept};

    #[test]
    fn a_limit_is_broken_kept_or_left_open_by_the_interval() {
        let slower = run(1.08, 0.004, 2);
        assert_eq!(rulings(&slower, &["p50>+5%"]), [Broken, Kept]);
        assert_eq!(rulings(&slower, &["p99>+5%", "pipe:p99>+5%"]), [Broken, Kept, Kept]);
        assert_eq!(rulings(&slower, &["futex:p50>+15%"]), [Kept]);
        let on_the_limit = rulings(&run(1.05, 0.02, 2), &["futex:p50>+5%"]);
        assert!(matches!(on_the_limit[..], [Ruling::CannotTell(Why::TooWide(_))]), "{on_the_limit:?}");
    }

    #[test]
    fn a_time_is_held_against_the_bounds_of_the_percentile() {
        // Round trips of futex lie between 16 and 48 µs, half of them below 18.
        let same = run(1.0, 0.004, 2);
        assert_eq!(rulings(&same, &["futex:p50>30us", "futex:p50>10us"]), [Kept, Broken]);
        assert_eq!(rulings(&same, &["futex:max>49us", "futex:max>40us"]), [Kept, Broken]);
        // The bin of the longest reaches from below this to above it.
        let longest_ns = same.arms()[0].histogram(Quantity::RoundTrip).unwrap().max() / 1000;
        let open = rulings(&same, &[&format!("futex:max>{}ns", longest_ns - 1)]);
        assert!(matches!(open[..], [Ruling::CannotTell(Why::TooWide(None))]), "{open:?}");
        let open = rulings(&same, &["futex:p99.99>60us"]);
        assert!(matches!(open[..], [Ruling::CannotTell(Why::TooWide(None))]), "{open:?}");
    }

    #[test]
    fn lost_notifications_are_counted() {
        let mut lossy = run(1.0, 0.004, 2);
        lossy.records[0].tally.lost = 2;
        assert_eq!(rulings(&lossy, &["futex:lost>0", "futex:lost>2", "pipe:lost>0"]), [Broken, Kept, Kept]);
    }

    #[test]
    fn what_a_busy_machine_explains_as_well_breaks_nothing() {
        let mut disturbed = run(1.3, 0.004, 2);
        for record in &mut disturbed.records {
            record.warnings.push(doorbell_results::record::Warning {
                name: doorbell_results::record::warning::DISTURBED.name.to_owned(),
                cause: String::new(),
                effect: String::new(),
                cure: String::new(),
            });
        }
        for text in ["futex:p50>+5%", "futex:p99>+5%"] {
            let rulings = rulings(&disturbed, &[text]);
            assert!(matches!(rulings[..], [Ruling::CannotTell(Why::Obstacle(_))]), "{text}: {rulings:?}");
        }
    }

    #[test]
    fn a_cell_that_no_longer_has_figures_leaves_the_check_open() {
        let mut gone = run(1.0, 0.004, 2);
        for record in gone.records.iter_mut().filter(|record| record.cell.subject == "futex") {
            record.series.remove(&Quantity::RoundTrip);
        }
        let baseline = run(1.0, 0.004, 1);
        let comparison = compare(&baseline, &gone, RELEVANT);
        let checked = check(&comparison, &gone, &[condition("p50>+5%").unwrap()]);
        assert_eq!(checked.missing.len(), 1);
        assert!(checked.is_open() && !checked.is_broken());
        let other = check(&comparison, &gone, &[condition("pipe:p50>+5%").unwrap()]);
        assert!(other.missing.is_empty() && !other.is_open(), "nobody asked for futex");
    }
}
