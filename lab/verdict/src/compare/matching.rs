// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which configurations of two runs are the same.

use std::collections::HashMap;

use super::Unmatched;
use crate::hung::without_figures;
use doorbell_results::configuration::{Configuration, Until};
use doorbell_results::record::variant::Variant;

/// The variants of both runs that can be compared, in the order of `first`, and the configurations
/// that are not compared. `cut_short` says that the second run was interrupted.
pub(super) fn matched<'variants, 'result>(
    first: &'variants [Variant<'result>],
    second: &'variants [Variant<'result>],
    cut_short: bool,
) -> (Vec<(&'variants Variant<'result>, &'variants Variant<'result>)>, Vec<Unmatched<'result>>) {
    let (ours, theirs) = (Index::of(first), Index::of(second));
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    for variant in first {
        let (reason, gone) = match ours.partner(variant.configuration, &theirs) {
            Some(other) if other.configuration.until != variant.configuration.until => {
                let [own, others] = [variant, other].map(|variant| ends(variant.configuration));
                (format!("planned differently: {own} against {others}"), false)
            }
            Some(other) => {
                match (without_figures(variant, variant.headline()), without_figures(other, other.headline()))
                {
                    (Some(reason), _) => (format!("no figures in the baseline: {reason}"), false),
                    (None, Some(reason)) => (format!("no figures in the candidate: {reason}"), true),
                    (None, None) => {
                        pairs.push((variant, other));
                        continue;
                    }
                }
            }
            None => ("only in the baseline".to_owned(), cut_short),
        };
        let had = without_figures(variant, variant.headline()).is_none();
        unmatched.push(Unmatched { configuration: variant.configuration, reason, gone, had });
    }
    for variant in second.iter().filter(|variant| theirs.partner(variant.configuration, &ours).is_none()) {
        unmatched.push(Unmatched {
            configuration: variant.configuration,
            reason: "only in the candidate".to_owned(),
            gone: false,
            had: false,
        });
    }
    (pairs, unmatched)
}

struct Index<'variants, 'result> {
    /// By everything that makes a configuration what it is.
    same: HashMap<Configuration, &'variants Variant<'result>>,
    /// By that without the CPUs' numbers.
    alike: HashMap<Configuration, Vec<&'variants Variant<'result>>>,
}

impl<'variants, 'result> Index<'variants, 'result> {
    fn of(variants: &'variants [Variant<'result>]) -> Self {
        let mut index = Self { same: HashMap::new(), alike: HashMap::new() };
        for variant in variants {
            index.same.entry(identity(variant.configuration)).or_insert(variant);
            index.alike.entry(relation(variant.configuration)).or_default().push(variant);
        }
        index
    }

    /// The variant of `theirs` that ran what our `configuration` is, if
    /// exactly one did. The same relation on other CPUs is the same where
    /// neither run has it twice, so that two machines can be compared.
    fn partner(&self, configuration: &Configuration, theirs: &Self) -> Option<&'variants Variant<'result>> {
        if let Some(variant) = theirs.same.get(&identity(configuration)) {
            return Some(variant);
        }
        if configuration.placement.relation == "cpus" {
            return None;
        }
        let wanted = relation(configuration);
        match (self.alike.get(&wanted)?.len(), &theirs.alike.get(&wanted)?[..]) {
            (1, [variant]) => Some(variant),
            _ => None,
        }
    }
}

/// The configuration without what does not make it what it is: how long a trial lasts, and whether
/// it was slowed on purpose.
fn identity(configuration: &Configuration) -> Configuration {
    Configuration { until: Until::default(), injected_slowdown_ppm: None, ..configuration.clone() }
}

/// The same without the CPUs' numbers.
fn relation(configuration: &Configuration) -> Configuration {
    let mut relation = identity(configuration);
    relation.placement.cpus = None;
    relation
}

fn ends(configuration: &Configuration) -> String {
    let time =
        configuration.until.time_ns.map(|ns| format!("trials of {}", doorbell_results::quantity::short(ns)));
    let count = configuration.until.count.map(|count| format!("trials of {count} rounds"));
    time.or(count).unwrap_or_else(|| "trials without end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::plain;
    use super::super::{RELEVANT, compare};
    use doorbell_results::record::{Outcome, sample};

    #[test]
    fn configurations_that_are_missing_or_planned_differently_are_listed_with_the_reason() {
        let run = |names: [&str; 4]| sample::result(&names.map(sample::configuration), 5, |_, _| 16_000.0);
        let first = run(["futex", "pipe", "spin", "eventfd"]);
        let mut second = run(["futex", "pipe", "eventfd", "fifo"]);
        let longer = doorbell_results::configuration::Until::count(5000);
        sample::configurations(&mut second)
            .filter(|one| one.subject == "pipe")
            .for_each(|one| one.until = longer);
        for record in sample::of(&mut second, "eventfd") {
            record.outcome = Outcome::Skipped { reason: "no such thing".to_owned() };
        }
        let comparison = compare(&first, &second, RELEVANT);
        let names: Vec<&str> = comparison.rows.iter().map(|row| row.configuration.subject.as_str()).collect();
        assert_eq!(names, ["futex"]);
        let reasons: Vec<(&str, &str)> = comparison
            .unmatched
            .iter()
            .map(|one| (one.configuration.subject.as_str(), one.reason.as_str()))
            .collect();
        assert_eq!(
            reasons,
            [
                ("pipe", "planned differently: trials of 1000 rounds against trials of 5000 rounds"),
                ("spin", "only in the baseline"),
                ("eventfd", "no figures in the candidate: no such thing"),
                ("fifo", "only in the candidate"),
            ]
        );
    }

    #[test]
    fn the_same_relation_on_other_cpus_is_compared_between_machines() {
        let first = plain(16_000.0);
        let mut second = plain(16_000.0);
        let there = Some([4, 6]);
        sample::configurations(&mut second).for_each(|one| one.placement.cpus = there);
        assert_eq!(compare(&first, &second, RELEVANT).rows.len(), 1);
        sample::configurations(&mut second).for_each(|one| one.placement.relation = "cpus".to_owned());
        assert_eq!(compare(&first, &second, RELEVANT).rows.len(), 0, "chosen by number, compared by number");
    }
}
