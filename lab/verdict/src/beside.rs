// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands beside every verdict on a run: what made the machine unfit to be measured, as the
//! doctor found it before the run and as the trials met it.

use doorbell_results::machine::doctor::{BESIDE_VERDICTS, Finding, Severity};
use doorbell_results::record::ResultFile;

/// Something that a verdict must not be read without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside<'result> {
    /// The doctor found it.
    Found(&'result Finding),
    /// A CPU quota was used up while trials ran.
    Throttled { trials: usize, of: usize, ns: u64 },
}

/// What stands beside what `result` says, the gravest first.
pub fn beside(result: &ResultFile) -> Vec<Beside<'_>> {
    let mut found: Vec<&Finding> = result
        .machine
        .findings
        .iter()
        .filter(|finding| {
            let warned =
                finding.severity >= Severity::Warn && BESIDE_VERDICTS.contains(&finding.name.as_str());
            warned || finding.severity == Severity::Unfit
        })
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let ran = || result.records.iter().filter(|record| record.outcome.measured());
    let stopped = || ran().filter_map(|record| record.environment.throttled_ns.filter(|ns| *ns > 0));
    let throttled = Beside::Throttled {
        trials: stopped().count(),
        of: ran().count(),
        ns: stopped().fold(0, u64::saturating_add),
    };
    let throttled = Some(throttled).filter(|_| stopped().next().is_some());
    found.into_iter().map(Beside::Found).chain(throttled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn finding(name: &str, severity: Severity) -> Finding {
        Finding {
            name: name.to_owned(),
            severity,
            seen: String::new(),
            effect: String::new(),
            cure: String::new(),
            source: String::new(),
        }
    }

    #[test]
    fn what_took_time_from_the_sides_stands_beside_a_verdict_and_what_is_only_noted_does_not() {
        let mut result = sample::result(&[sample::configuration("futex")], 3, |_, _| 16_000.0);
        assert_eq!(beside(&result), []);
        let quota = finding("quota", Severity::Warn);
        let unfit = finding("cpus", Severity::Unfit);
        let others = [finding("governor", Severity::Warn), finding("load", Severity::Note)];
        result.machine.findings = [quota.clone(), unfit.clone()].into_iter().chain(others).collect();
        result.records[1].environment.throttled_ns = Some(7);
        assert_eq!(
            beside(&result),
            [Beside::Found(&unfit), Beside::Found(&quota), Beside::Throttled { trials: 1, of: 3, ns: 7 }]
        );
    }
}
