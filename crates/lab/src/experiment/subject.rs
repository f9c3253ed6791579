// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this build knows of what a cell names, for its record.

use crate::mechanism::{self, fan};
use crate::record::subject::Subject;
use crate::trial::cell::{Cell, Pattern};
use crate::{operation, task, transfer};

/// What `cell` measures; unknown if this build has nothing of the name, which its trial then says.
pub fn subject(cell: &Cell) -> Subject {
    known(cell).unwrap_or_default()
}

fn known(cell: &Cell) -> Option<Subject> {
    let name = &cell.subject;
    Some(match cell.pattern {
        Pattern::FanOut { .. } => fan::find(name).ok()?.subject(),
        Pattern::Operation { .. } => operation::find(name).ok()?.subject(),
        Pattern::Tasks { .. } => task::find(name).ok()?.subject(),
        Pattern::Io { .. } => transfer::find(name).ok()?.subject(),
        Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. } => {
            Subject::Mechanism(mechanism::find(name).ok()?.notification())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::record::subject::Waits;
    use crate::trial::cell::Direction;
    use crate::verdict::plausibility::{Known, violations};

    #[test]
    fn a_sane_record_of_every_mechanism_and_pattern_breaks_no_rule() {
        for entry in mechanism::all() {
            for pattern in [Pattern::PingPong { gap_ns: 0 }, Pattern::OneWay { gap_ns: 1000 }] {
                let mut record = sample::record(sample::cell(entry.name()), 0, 16_000.0);
                record.cell.pattern = pattern;
                record.subject = subject(&record.cell);
                if entry.notification().waits == Waits::Spins {
                    record.sides.iter_mut().for_each(|side| side.voluntary_switches = 0);
                    record.surroundings.interrupts.clear();
                }
                let known = Known { floors: &[sample::floors(0, 1.0)], clock_step_ns: 10.0 };
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
            fan::all().iter().map(|fan| fan.name()).collect(),
        ))
        .chain(of(
            Pattern::Tasks { tasks: 2, yields: 1 },
            task::all().iter().map(|kind| kind.name()).collect(),
        ))
        .chain(of(
            Pattern::Io { direction: Direction::Read, direct: true },
            transfer::all().iter().map(|way| way.name()).collect(),
        ));
        for (pattern, name) in patterns {
            let mut cell = sample::cell(name);
            cell.pattern = pattern;
            let (made_up, real) = (sample::subject(&cell), subject(&cell));
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
        assert_eq!(subject(&sample::cell("carrier-pigeon")), Subject::Unknown);
    }
}
