// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a baseline and what is held against it are of one machine, or one and the same run.

use doorbell_results::machine::Machine;
use doorbell_results::record::ResultFile;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    SameRun,
    Alike,
    /// Their machines differ: of each what is not the same, the baseline's first.
    Elsewhere([Vec<String>; 2]),
}

pub fn standing(baseline: &ResultFile, candidate: &ResultFile) -> Standing {
    let run = |file: &ResultFile| (file.started_at_unix_ns, file.plan.seed, file.machine.host.clone());
    if run(baseline) == run(candidate) {
        return Standing::SameRun;
    }
    let (before, after): (Vec<String>, Vec<String>) =
        differing(&baseline.machine, &candidate.machine).unzip();
    if before.is_empty() { Standing::Alike } else { Standing::Elsewhere([before, after]) }
}

pub fn alike(one: &Machine, other: &Machine) -> bool {
    differing(one, other).next().is_none()
}

/// What is known of both and not the same.
fn differing(one: &Machine, other: &Machine) -> impl Iterator<Item = (String, String)> {
    let pairs = facts(one).into_iter().zip(facts(other));
    pairs.filter_map(|(before, after)| Some((before?, after?))).filter(|(before, after)| before != after)
}

/// What tells machines apart, as far as it is known.
fn facts(machine: &Machine) -> [Option<String>; 5] {
    let processor = machine.processor.model_name.as_ref().or(machine.processor.vendor.as_ref());
    let online = machine.topology.online.len();
    [
        processor.cloned(),
        (online > 0).then(|| format!("{online} CPUs")),
        machine.kernel.title(),
        machine.virtualisation.hypervisor.as_ref().map(|name| format!("under {name}")),
        machine.host.as_ref().map(|host| format!("host {host}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    /// A baseline of another machine was compared in silence, and so was a run with itself.
    #[test]
    fn another_machine_is_told_by_what_differs_and_the_same_run_is_known() {
        let mut baseline = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        baseline.machine.processor.model_name = Some("one".to_owned());
        assert_eq!(standing(&baseline, &baseline), Standing::SameRun);
        let mut candidate = baseline.clone();
        candidate.started_at_unix_ns += 1;
        assert_eq!(standing(&baseline, &candidate), Standing::Alike);
        candidate.machine.processor.model_name = Some("another".to_owned());
        let differ = [["one"], ["another"]].map(|facts| facts.map(str::to_owned).to_vec());
        assert_eq!(standing(&baseline, &candidate), Standing::Elsewhere(differ));
    }
}
