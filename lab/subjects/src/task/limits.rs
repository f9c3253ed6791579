// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many tasks of each kind this machine has room for, told before any is made: a pure function
//! of the kind and the machine.

use super::{self as task, Needs, TaskKind, task_context};
use crate::shortfall::{self, Demand, Room, Shortfall};
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::figure::task::{CEILING, TASK_BYTES};
use doorbell_results::machine::Machine;
use doorbell_results::record::{Figure, Record};
/// The most tasks of a kind that there can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    pub tasks: u64,
    /// The limit that stops the next one, with its value.
    pub limit: String,
}

/// What others take beside the tasks of the trial: the command, the host, the driver, and some of
/// the shell's; 64 MiB are left to everybody else.
const OTHERS: Demand = Demand { tasks: 16, descriptors: 64, mappings: 256, bytes: 64 << 20 };

/// What `tasks` of them need, and `shared` bytes of the trial's words.
fn demand(needs: Needs, tasks: u64, shared: u64) -> Demand {
    let all = |each: u64, others: u64| if each > 0 { each * tasks + others } else { 0 };
    Demand {
        tasks: all(needs.tasks, OTHERS.tasks),
        descriptors: all(needs.descriptors, OTHERS.descriptors),
        mappings: all(needs.mappings, OTHERS.mappings),
        bytes: needs.bytes * tasks + shared + OTHERS.bytes,
    }
}

/// Everything too low for `configuration`; empty if it can be run, or has no tasks.
pub fn shortfalls(configuration: &Configuration, machine: &Machine) -> Vec<Shortfall> {
    let Pattern::Tasks { tasks, .. } = configuration.pattern else { return Vec::new() };
    let Ok(kind) = task::find(&configuration.subject) else { return Vec::new() };
    let demand = demand(kind.needs, tasks.into(), task_context::bytes(configuration) as u64);
    shortfall::shortfalls(&demand, machine, "use fewer tasks (-n), or a smaller working set")
}

/// Why `configuration` cannot be run on `machine`, in one line; none if it can.
pub fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    let found: Vec<String> = shortfalls(configuration, machine).iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// The most tasks of `kind` that `machine` has room for, with `bytes`
/// of memory each; none where no limit is known.
pub fn ceiling(kind: &TaskKind, machine: &Machine, bytes: u64) -> Option<Ceiling> {
    let Needs { tasks, descriptors, mappings, .. } = kind.needs;
    let each = Demand { tasks, descriptors, mappings, bytes };
    let most = |room: Room| {
        let tasks = room.have.saturating_sub((room.of)(&OTHERS)).checked_div((room.of)(&each))?;
        let limit = format!("{} {}", room.limit.trim_end_matches(','), room.have);
        Some(Ceiling { tasks, limit })
    };
    shortfall::rooms(machine).into_iter().filter_map(most).min_by_key(|ceiling| ceiling.tasks)
}

/// Adds the ceiling to a record of tasks, by the memory that was
/// measured in it or else by what is known of the kind.
pub fn derive(record: &mut Record, machine: &Machine) {
    if !matches!(record.configuration.pattern, Pattern::Tasks { .. }) {
        return;
    }
    let Ok(kind) = task::find(&record.configuration.subject) else { return };
    let measured = record.figures.iter().find(|figure| figure.name == TASK_BYTES).map(|figure| figure.value);
    let bytes = measured.map_or(kind.needs.bytes, |bytes| bytes as u64).max(1);
    if let Some(Ceiling { tasks, limit }) = ceiling(kind, machine, bytes) {
        let how = if measured.is_some() { "as measured" } else { "as known of the kind" };
        record.figures.push(Figure {
            name: CEILING.to_owned(),
            value: tasks as f64,
            unit: "tasks".to_owned(),
            formula: format!("{limit}; {bytes} bytes a task {how}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_machine::Asked;
    use doorbell_machine::root::Root;
    use doorbell_results::machine::clock::Clock;
    use doorbell_results::machine::limits::Limit;
    use doorbell_results::record::sample;

    fn configuration(subject: &str, tasks: u32) -> Configuration {
        Configuration { pattern: Pattern::Tasks { tasks, yields: 10 }, ..sample::configuration(subject) }
    }

    /// A machine of which no limit is known.
    fn unknown() -> Machine {
        let empty = tempfile::tempdir().unwrap();
        doorbell_machine::read(&Root::at(empty.path()), Clock::MONOTONIC, Asked::default())
    }

    #[test]
    fn each_kind_meets_the_limit_of_what_it_is_made_of() {
        let mut machine = unknown();
        assert!(
            lacks(&configuration("process-futex", 10_000), &machine).is_none(),
            "what is not known stops nobody"
        );
        machine.permissions.tasks = Some(false);
        machine.limits.tasks = Some(Limit { soft: 1000, hard: 1000 });
        machine.limits.tasks_current = Some(100);
        let text = lacks(&configuration("process-futex", 1000), &machine).unwrap();
        assert!(text.contains("is 900, and 1016 are needed: ulimit -u 2132"), "{text}");
        assert!(
            lacks(&configuration("stackless", 1000), &machine).is_none(),
            "code needs no tasks of the kernel"
        );
        let ceiling = ceiling(task::find("process-futex").unwrap(), &machine, 1).unwrap();
        assert_eq!((ceiling.tasks, ceiling.limit.contains("RLIMIT_NPROC")), (884, true));
    }

    #[test]
    fn memory_stops_every_kind_in_the_end() {
        let mut machine = unknown();
        machine.memory.available_bytes = Some(256 << 20);
        let ceiling = |name: &str| {
            let kind = task::find(name).unwrap();
            ceiling(kind, &machine, kind.needs.bytes).unwrap().tasks
        };
        assert!(ceiling("process-futex") < 2000 && ceiling("stackless") > 100_000);
        let wide = Configuration { size: 1 << 20, ..configuration("stackless", 1000) };
        let text = lacks(&wide, &machine).unwrap();
        assert!(text.contains("memory available") && text.contains("smaller working set"), "{text}");
    }
}
