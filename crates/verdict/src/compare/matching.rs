// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells of two runs are the same.

use std::collections::HashMap;

use super::Unmatched;
use doorbell_results::cell::{Cell, Until};
use doorbell_results::record::Outcome;
use doorbell_results::record::arm::Arm;

/// The arms of both runs that can be compared, in the order of `first`, and the cells that are not compared.
/// `cut_short` says that the second run was interrupted.
pub(super) fn matched<'arms, 'result>(
    first: &'arms [Arm<'result>],
    second: &'arms [Arm<'result>],
    cut_short: bool,
) -> (Vec<(&'arms Arm<'result>, &'arms Arm<'result>)>, Vec<Unmatched<'result>>) {
    let (ours, theirs) = (Index::of(first), Index::of(second));
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    for arm in first {
        let (reason, gone) = match ours.partner(arm.cell, &theirs) {
            Some(other) if other.cell.until != arm.cell.until => {
                (format!("planned differently: {} against {}", ends(arm.cell), ends(other.cell)), false)
            }
            Some(other) => match (unusable(arm), unusable(other)) {
                (Some(reason), _) => (format!("no figures in the baseline: {reason}"), false),
                (None, Some(reason)) => (format!("no figures in the candidate: {reason}"), true),
                (None, None) => {
                    pairs.push((arm, other));
                    continue;
                }
            },
            None => ("only in the baseline".to_owned(), cut_short),
        };
        unmatched.push(Unmatched { cell: arm.cell, reason, gone });
    }
    for arm in second.iter().filter(|arm| theirs.partner(arm.cell, &ours).is_none()) {
        unmatched.push(Unmatched { cell: arm.cell, reason: "only in the candidate".to_owned(), gone: false });
    }
    (pairs, unmatched)
}

/// The arms of a run by what they are.
struct Index<'arms, 'result> {
    /// By everything that makes a cell what it is.
    same: HashMap<Cell, &'arms Arm<'result>>,
    /// By that without the CPUs' numbers.
    alike: HashMap<Cell, Vec<&'arms Arm<'result>>>,
}

impl<'arms, 'result> Index<'arms, 'result> {
    fn of(arms: &'arms [Arm<'result>]) -> Self {
        let mut index = Self { same: HashMap::new(), alike: HashMap::new() };
        for arm in arms {
            index.same.entry(identity(arm.cell)).or_insert(arm);
            index.alike.entry(relation(arm.cell)).or_default().push(arm);
        }
        index
    }

    /// The arm of `theirs` that ran what our `cell` is, if exactly one did. The same relation on other CPUs is the same
    /// where neither run has it twice, so that two machines can be compared.
    fn partner(&self, cell: &Cell, theirs: &Self) -> Option<&'arms Arm<'result>> {
        if let Some(arm) = theirs.same.get(&identity(cell)) {
            return Some(arm);
        }
        if cell.placement.relation == "cpus" {
            return None;
        }
        let wanted = relation(cell);
        match (self.alike.get(&wanted)?.len(), &theirs.alike.get(&wanted)?[..]) {
            (1, [arm]) => Some(arm),
            _ => None,
        }
    }
}

/// The cell without what does not make it what it is: how long a trial lasts, and whether it was slowed on purpose.
fn identity(cell: &Cell) -> Cell {
    Cell { until: Until { count: None, time_ns: None }, injected_slowdown_ppm: None, ..cell.clone() }
}

/// The same without the CPUs' numbers.
fn relation(cell: &Cell) -> Cell {
    let mut relation = identity(cell);
    relation.placement.cpus = None;
    relation
}

fn ends(cell: &Cell) -> String {
    let time = cell.until.time_ns.map(|ns| format!("trials of {}", doorbell_results::quantity::short(ns)));
    let count = cell.until.count.map(|count| format!("trials of {count} rounds"));
    time.or(count).unwrap_or_else(|| "trials without end".to_owned())
}

/// Why an arm has no figures, if it has none.
fn unusable(arm: &Arm) -> Option<String> {
    if arm.usable().any(|record| record.series.contains_key(&arm.headline())) {
        return None;
    }
    Some(match arm.records.first().map(|record| &record.outcome) {
        Some(Outcome::Skipped { reason }) => format!("skipped, {reason}"),
        Some(Outcome::Implausible { violations }) => format!(
            "implausible ({})",
            violations.iter().map(|broken| broken.rule.as_str()).collect::<Vec<_>>().join(", ")
        ),
        Some(Outcome::Hung { .. }) => "hung".to_owned(),
        Some(Outcome::Failed { cause }) => format!("failed, {cause}"),
        Some(Outcome::Done | Outcome::Partial) | None => "nothing was timed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::plain;
    use super::super::{RELEVANT, compare};
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn cells_that_are_missing_or_planned_differently_are_listed_with_the_reason() {
        let cells = |names: &[&str]| names.iter().map(|name| sample::cell(name)).collect::<Vec<_>>();
        let first = sample::result(&cells(&["futex", "pipe", "spin", "eventfd"]), 5, |_, _| 16_000.0);
        let mut second = sample::result(&cells(&["futex", "pipe", "eventfd", "fifo"]), 5, |_, _| 16_000.0);
        let longer = doorbell_results::cell::Until::count(5000);
        second.plan.cells[1].until = longer;
        for record in &mut second.records {
            match record.cell.subject.as_str() {
                "pipe" => record.cell.until = longer,
                "eventfd" => record.outcome = Outcome::Skipped { reason: "no such thing".to_owned() },
                _ => {}
            }
        }
        let comparison = compare(&first, &second, RELEVANT);
        let names: Vec<&str> = comparison.rows.iter().map(|row| row.cell.subject.as_str()).collect();
        assert_eq!(names, ["futex"]);
        let reasons: Vec<(&str, &str)> = comparison
            .unmatched
            .iter()
            .map(|cell| (cell.cell.subject.as_str(), cell.reason.as_str()))
            .collect();
        assert_eq!(
            reasons,
            [
                ("pipe", "planned differently: trials of 1000 rounds against trials of 5000 rounds"),
                ("spin", "only in the baseline"),
                ("eventfd", "no figures in the candidate: skipped, no such thing"),
                ("fifo", "only in the candidate"),
            ]
        );
    }

    #[test]
    fn the_same_relation_on_other_cpus_is_compared_between_machines() {
        let first = plain(16_000.0);
        let mut second = plain(16_000.0);
        let there = Some([4, 6]);
        second.plan.cells[0].placement.cpus = there;
        second.records.iter_mut().for_each(|record| record.cell.placement.cpus = there);
        assert_eq!(compare(&first, &second, RELEVANT).rows.len(), 1);
        second.plan.cells[0].placement.relation = "cpus".to_owned();
        second.records.iter_mut().for_each(|record| record.cell.placement.relation = "cpus".to_owned());
        assert_eq!(compare(&first, &second, RELEVANT).rows.len(), 0, "chosen by number, compared by number");
    }
}
