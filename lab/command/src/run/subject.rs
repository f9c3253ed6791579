// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a configuration measures, and what this machine lacks for it.

use std::collections::BTreeMap;

use doorbell_harness::family::{self, Family};
use doorbell_harness::latency_limit::DEVICE;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::Machine;
use doorbell_results::record::subject::Subject;
use doorbell_results::record::{Environment, Outcome, Record, Tally};
use doorbell_subjects::FAMILIES;

/// What this machine lacks for `configuration`.
pub(super) fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    latency_limit(configuration, machine).or_else(|| family(configuration)?.lacks(configuration, machine))
}

/// Why a limit of latency cannot be held here; none where none is asked for.
pub fn latency_limit(configuration: &Configuration, machine: &Machine) -> Option<String> {
    configuration.latency_limit_us?;
    match machine.permissions.dma_latency {
        Some(true) => None,
        Some(false) => {
            Some(format!("{DEVICE} may not be written by this user: run as root, or chmod the device"))
        }
        None => Some(format!("there is no {DEVICE} here; in a container: docker run --device {DEVICE}")),
    }
}

/// The family that knows what `configuration` names.
pub(super) fn family(configuration: &Configuration) -> Option<&'static dyn Family> {
    family::of(FAMILIES, configuration.pattern)
}

/// What `configuration` measures; unknown if this build has nothing
/// of the name, which its trial then says.
pub fn subject(configuration: &Configuration) -> Subject {
    family(configuration).and_then(|family| family.subject(configuration)).unwrap_or_default()
}

/// A record of which nothing is known but how it ended.
pub fn record(configuration: &Configuration, block: u32, outcome: Outcome) -> Record {
    Record {
        configuration: configuration.clone(),
        subject: subject(configuration),
        block,
        attempts: 1,
        outcome,
        series: BTreeMap::new(),
        figures: Vec::new(),
        slices: Vec::new(),
        fanout: None,
        io: None,
        tally: Tally::default(),
        sides: Vec::new(),
        load: None,
        anatomy: None,
        environment: Environment::default(),
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Direction, Pattern};
    use doorbell_results::record::sample;
    use doorbell_results::record::subject::Waits;
    use doorbell_subjects::{fan, mechanism, task, transfer};
    use doorbell_verdict::plausibility::{Known, violations};

    #[test]
    fn a_sane_record_of_every_mechanism_and_pattern_breaks_no_rule() {
        for entry in mechanism::all() {
            for pattern in [Pattern::PingPong { gap_ns: 0 }, Pattern::OneWay { gap_ns: 1000 }] {
                let mut record = sample::record(sample::configuration(entry.name()), 0, 16_000.0);
                record.configuration.pattern = pattern;
                record.subject = subject(&record.configuration);
                if entry.notification().waits == Waits::Spins {
                    record.sides.iter_mut().for_each(|side| side.voluntary_switches = 0);
                    record.environment.interrupts.clear();
                }
                let primitives = [sample::primitives(0, 1.0)];
                let known = Known { primitives: &primitives, clock_step_ns: 10.0, skew_ns: 0.0 };
                assert_eq!(violations(&record, &known), [], "{}", entry.name());
            }
        }
    }

    /// What tests of records take for granted of the subjects they name is what those are.
    #[test]
    fn the_subjects_of_made_up_records_are_as_the_real_ones() {
        let of = |pattern, names: Vec<&'static str>| names.into_iter().map(move |name| (pattern, name));
        let patterns = of(
            Pattern::PingPong { gap_ns: 0 },
            vec!["null", "spin", "futex", "udp", "pipe", "eventfd", "sem-posix"],
        )
        .chain(of(
            Pattern::FanOut { receivers: 2, interval_ns: 1 },
            fan::all().iter().map(|fan| fan.name).collect(),
        ))
        .chain(of(Pattern::Tasks { tasks: 2, yields: 1 }, task::all().iter().map(|kind| kind.name).collect()))
        .chain(of(
            Pattern::Io { direction: Direction::Read, direct: true },
            transfer::all().iter().map(|engine| engine.name).collect(),
        ));
        for (pattern, name) in patterns {
            let mut configuration = sample::configuration(name);
            configuration.pattern = pattern;
            let (made_up, real) = (sample::subject(&configuration), subject(&configuration));
            let essence = |subject: &Subject| match subject {
                Subject::Mechanism(own) | Subject::FanOut { notification: own, .. } => {
                    format!(
                        "{:?} {} {}",
                        own.waits,
                        own.drops,
                        matches!(subject, Subject::FanOut { shared: true, .. })
                    )
                }
                other => format!("{other:?}"),
            };
            assert_eq!(essence(&made_up), essence(&real), "{name}");
        }
    }

    #[test]
    fn what_this_build_does_not_have_is_unknown() {
        assert_eq!(subject(&sample::configuration("carrier-pigeon")), Subject::Unknown);
    }
}
