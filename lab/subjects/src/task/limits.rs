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

/// Tasks beside those of the trial: the command, the host, the driver, and some of the shell's.
const OTHER_TASKS: u64 = 16;

/// Descriptors beside those of the tasks.
const OTHER_DESCRIPTORS: u64 = 64;

/// Mappings of a process beside those of its tasks.
const OTHER_MAPPINGS: u64 = 256;

/// Memory left to everybody else, bytes.
const OTHER_BYTES: u64 = 64 << 20;

/// What `tasks` of `kind` need, each of which has a working set of
/// `size` bytes and `shared` bytes of the trial's words.
fn demand(needs: Needs, tasks: u64, shared: u64) -> Demand {
    Demand {
        tasks: if needs.tasks > 0 { needs.tasks * tasks + OTHER_TASKS } else { 0 },
        descriptors: if needs.descriptors > 0 { needs.descriptors * tasks + OTHER_DESCRIPTORS } else { 0 },
        mappings: if needs.mappings > 0 { needs.mappings * tasks + OTHER_MAPPINGS } else { 0 },
        bytes: needs.bytes * tasks + shared + OTHER_BYTES,
    }
}

/// Everything too low for `configuration`; empty if it can be run, or has no tasks.
pub fn shortfalls(configuration: &Configuration, machine: &Machine) -> Vec<Shortfall> {
    let Pattern::Tasks { tasks, .. } = configuration.pattern else { return Vec::new() };
    let Ok(kind) = task::find(&configuration.subject) else { return Vec::new() };
    let demand = demand(kind.needs(), tasks.into(), task_context::bytes(configuration) as u64);
    shortfall::shortfalls(&demand, machine, "use fewer tasks (-n), or a smaller working set")
}

/// Why `configuration` cannot be run on `machine`, in one line; none if it can.
pub fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    let found: Vec<String> = shortfalls(configuration, machine).iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// The most tasks of `kind` that `machine` has room for, with `bytes`
/// of memory each; none where no limit is known.
pub fn ceiling(kind: &dyn TaskKind, machine: &Machine, bytes: u64) -> Option<Ceiling> {
    let needs = kind.needs();
    let mut lowest: Option<Ceiling> = None;
    let mut consider = |room: Room, others: u64, each: u64| {
        let Some(tasks) = room.have.saturating_sub(others).checked_div(each) else { return };
        if lowest.as_ref().is_none_or(|lowest| tasks < lowest.tasks) {
            let limit = format!("{} {}", room.limit.trim_end_matches(','), room.have);
            lowest = Some(Ceiling { tasks, limit });
        }
    };
    for room in shortfall::room_for_tasks(machine) {
        consider(room, OTHER_TASKS, needs.tasks);
    }
    if let Some(room) = shortfall::room_for_descriptors(machine) {
        consider(room, OTHER_DESCRIPTORS, needs.descriptors);
    }
    if let Some(room) = shortfall::room_for_mappings(machine) {
        consider(room, OTHER_MAPPINGS, needs.mappings);
    }
    if let Some(room) = shortfall::room_for_bytes(machine) {
        consider(room, OTHER_BYTES, bytes);
    }
    lowest
}

/// Adds the ceiling to a record of tasks, by the memory that was
/// measured in it or else by what is known of the kind.
pub fn derive(record: &mut Record, machine: &Machine) {
    if !matches!(record.configuration.pattern, Pattern::Tasks { .. }) {
        return;
    }
    let Ok(kind) = task::find(&record.configuration.subject) else { return };
    let measured = record.figures.iter().find(|figure| figure.name == TASK_BYTES).map(|figure| figure.value);
    let bytes = measured.map_or(kind.needs().bytes, |bytes| bytes as u64).max(1);
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
            ceiling(kind, &machine, kind.needs().bytes).unwrap().tasks
        };
        assert!(ceiling("process-futex") < 2000 && ceiling("stackless") > 100_000);
        let wide = Configuration { size: 1 << 20, ..configuration("stackless", 1000) };
        let text = lacks(&wide, &machine).unwrap();
        assert!(text.contains("memory available") && text.contains("smaller working set"), "{text}");
    }
}
