// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which records of a run cannot be true, and beside which of them the machine itself changed.

use std::collections::BTreeMap;

use doorbell_harness::primitives::{self, Moved};
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Relation;
use doorbell_results::record::result::Primitives;
use doorbell_results::record::{Outcome, Record, Warning, warning};
use doorbell_results::written::time_ns;
use doorbell_verdict::plausibility::{Known, below_primitive_cost, near_the_clock, violations};
use doorbell_verdict::populations;

/// Whether a figure of `record` lies below all readings: it cannot be true, or the machine has
/// changed since the last of them, as one whose host moved both CPUs to one core (a line took 10 ns
/// instead of 100 for some blocks). Then the caller reads primitive costs once more
/// at once, the record's *witness*: it tells a wrong figure from a changed machine, and counts for
/// this record alone.
pub(super) fn lies_below(record: &Record, primitives: &[Primitives]) -> bool {
    let known = Known { primitives, ..Known::default() };
    violations(record, &known).iter().any(|violation| violation.rule == below_primitive_cost::NAME)
}

/// Those of `primitives` that bound `record`: none in an emulator, whose times follow what
/// else its host does, and none for two threads of one core, between which a line takes a fraction
/// of what it takes between the cores that primitive costs are read on.
pub(super) fn bounds<'run>(
    record: &Record,
    primitives: &'run [Primitives],
    machine: &Machine,
) -> &'run [Primitives] {
    let relation = |[first, second]: [u32; 2]| machine.topology.relation(first, second);
    let siblings = record.configuration.placement.cpus.map(relation) == Some(Relation::SmtSibling);
    if machine.virtualisation.emulated || siblings { &[] } else { primitives }
}

/// Marks the records that cannot be true, and those beside which the machine itself changed.
pub(super) fn judge(
    records: &mut [Record],
    primitives: &[Primitives],
    witnesses: &BTreeMap<usize, Primitives>,
    machine: &Machine,
) {
    for (place, record) in records.iter_mut().enumerate() {
        let witness = witnesses.get(&place);
        let before = primitives.iter().rfind(|reading| reading.block <= record.block);
        let after = primitives.iter().find(|reading| reading.block > record.block);
        if let Some(before) = before.filter(|_| !machine.virtualisation.emulated) {
            for after in after.into_iter().chain(witness) {
                record.warnings.extend(primitives::moved(before, after).iter().map(primitives_drifted));
            }
        }
        populations::explain(record);
        let primitives: Vec<Primitives> =
            bounds(record, primitives, machine).iter().chain(witness).cloned().collect();
        let known = Known::of(machine.clock_quality.as_ref(), &primitives);
        for (_, series) in record.series.iter_mut().filter(|(quantity, _)| !quantity.is_shared_out()) {
            series.refine(known.clock_step_ns * 1000.0);
        }
        let violations = violations(record, &known);
        if matches!(record.outcome, Outcome::Done | Outcome::Partial) && !violations.is_empty() {
            record.outcome = Outcome::Implausible { violations };
        }
        record.warnings.extend(near_the_clock(record, &known));
    }
}

fn primitives_drifted(moved: &Moved) -> Warning {
    Warning {
        name: warning::PRIMITIVES_DRIFTED.name.to_owned(),
        cause: format!(
            "{} went from {} to {} around this block",
            moved.name,
            time_ns(moved.before_ns),
            time_ns(moved.after_ns)
        ),
        effect: "the machine itself changed while the block ran; comparisons with other runs will say so"
            .to_owned(),
        cure: "run again, with more blocks; on a virtual machine look for a host that is not shared"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    /// Round trips of 43 ns were called impossible on a machine whose host had moved its CPUs after
    /// the primitive costs were read.
    #[test]
    fn a_reading_beside_a_trial_below_the_primitives_clears_that_trial_alone_and_marks_it() {
        let mut records = [0, 1].map(|block| sample::record(sample::configuration("futex"), block, 40.0));
        let primitives = [0, 1, 2].map(|block| sample::primitives(block, 1.0));
        assert!(records.iter().all(|record| lies_below(record, &primitives)));
        judge(
            &mut records,
            &primitives,
            &BTreeMap::from([(1, sample::primitives(1, 0.5))]),
            &sample::result(&[], 1, |_, _| 0.0).machine,
        );
        let [first, second] = records;
        assert!(matches!(first.outcome, Outcome::Implausible { .. }) && first.warnings.is_empty());
        assert_eq!(second.outcome, Outcome::Done);
        assert!(second.warnings.iter().any(|warning| warning.name == warning::PRIMITIVES_DRIFTED.name));
    }
}
