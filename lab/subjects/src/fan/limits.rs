// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a fan-out will meet of this machine's limits, told before it starts: a pure function of the
//! configuration and the machine.

use crate::mechanism::Contexts;
use crate::shortfall::{self, Demand, Shortfall};
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::Machine;
use doorbell_results::machine::pinning::Pinning;

/// Tasks beside the receivers: the command, the host, the notifier, and some of the shell's.
const OTHER_TASKS: u64 = 16;
/// Descriptors beside those of the links.
const OTHER_DESCRIPTORS: u64 = 64;
/// Mappings of a process beside those of the semaphores.
const OTHER_MAPPINGS: u64 = 256;
/// Sets, mappings and signals that others may hold while the fan-out runs.
const SPARE: u64 = 64;
/// Memory of a receiving process, kernel memory included: three times what was measured (some 150
/// KB; `doorbell fanout` prints what it is here).
const PROCESS_BYTES: u64 = 512 << 10;
/// Memory of a receiving thread: its kernel stack and the touched part of its own.
const THREAD_BYTES: u64 = 64 << 10;

/// Everything too low for `configuration`; empty if it can be run, or is no fan-out.
pub fn shortfalls(configuration: &Configuration, machine: &Machine) -> Vec<Shortfall> {
    let Pattern::FanOut { receivers, .. } = configuration.pattern else { return Vec::new() };
    let Ok(entry) = super::find(&configuration.subject) else { return Vec::new() };
    let receivers = u64::from(receivers);
    let needs = (entry.needs)(receivers);
    let limits = &machine.limits;
    let each = if configuration.contexts == Contexts::Processes { PROCESS_BYTES } else { THREAD_BYTES };
    let demand = Demand {
        tasks: receivers + OTHER_TASKS,
        descriptors: needs.descriptors + OTHER_DESCRIPTORS,
        mappings: if needs.mappings > 0 { needs.mappings + OTHER_MAPPINGS } else { 0 },
        bytes: receivers * each + (64 << 20),
    };
    let mut found =
        shortfall::shortfalls(&demand, machine, "use fewer receivers, or threads (--contexts threads)");
    let mut check = |limit: &'static str, have: Option<u64>, need: u64, cure: String| {
        if let Some(have) = have.filter(|have| *have < need) {
            found.push(Shortfall { limit, need, have, cure });
        }
    };
    if needs.semaphore_sets > 0 {
        let sets = needs.semaphore_sets + SPARE;
        let per_set = needs.semaphores_per_set.max(limits.semaphores_per_set.unwrap_or(250));
        let cure = format!(
            "sysctl kernel.sem='{per_set} {} 500 {}'",
            (per_set * sets).max(32_000),
            sets.max(32_000)
        );
        check("SEMMNI (System V semaphore sets)", limits.semaphore_sets, sets, cure.clone());
        check("SEMMSL (semaphores in a set)", limits.semaphores_per_set, needs.semaphores_per_set, cure);
    }
    if needs.shm_bytes > 0 {
        let bytes = needs.shm_bytes + (1 << 20);
        check(
            "the size of /dev/shm, bytes,",
            limits.shm_bytes,
            bytes,
            format!("mount -o remount,size={0}m /dev/shm, or docker run --shm-size {0}m", (bytes >> 20) * 2),
        );
    }
    if needs.queued_signals > 0 {
        let signals = needs.queued_signals + SPARE;
        check(
            "RLIMIT_SIGPENDING (signals queued for this user)",
            limits.pending_signals.map(|limit| limit.soft),
            signals,
            format!("ulimit -i {}", 2 * signals),
        );
    }
    found
}

/// Why `configuration` cannot be run on `machine`, in one line; none if it can.
pub fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    if let Pattern::FanOut { receivers, .. } = configuration.pattern
        && let Some(pinning) = Pinning::named(&configuration.placement.relation)
        && let Err(lack) = pinning.spread(receivers, &machine.topology)
    {
        return Some(lack);
    }
    let found: Vec<String> = shortfalls(configuration, machine).iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Contexts;
    use doorbell_machine::Asked;
    use doorbell_machine::root::Root;
    use doorbell_results::configuration::Placement;
    use doorbell_results::machine::Machine;
    use doorbell_results::machine::clock::Clock;
    use doorbell_results::machine::limits::Limit;
    use doorbell_results::record::sample;

    fn configuration(subject: &str, receivers: u32) -> Configuration {
        Configuration {
            pattern: Pattern::FanOut { receivers, interval_ns: 1_000_000_000 },
            placement: Placement { relation: "unpinned".to_owned(), cpus: None },
            ..sample::configuration(subject)
        }
    }

    /// A machine of which no limit is known.
    fn unknown() -> Machine {
        let empty = tempfile::tempdir().unwrap();
        doorbell_machine::read(&Root::at(empty.path()), Clock::MONOTONIC, Asked::default())
    }

    fn short(subject: &str, receivers: u32, machine: &Machine) -> Vec<&'static str> {
        shortfalls(&configuration(subject, receivers), machine).into_iter().map(|short| short.limit).collect()
    }

    #[test]
    fn an_old_systems_128_sets_are_too_few_for_one_set_each_and_enough_for_many_in_a_set() {
        let mut machine = unknown();
        machine.limits.semaphore_sets = Some(128);
        machine.limits.semaphores_per_set = Some(250);
        assert_eq!(short("sem-sysv", 20, &machine), [""; 0]);
        assert_eq!(short("sem-sysv", 2000, &machine), ["SEMMNI (System V semaphore sets)"]);
        let text = lacks(&configuration("sem-sysv", 2000), &machine).unwrap();
        assert!(text.contains("is 128, and 2064 are needed: sysctl kernel.sem="), "{text}");
        assert_eq!(short("futex", 2000, &machine), [""; 0], "whoever needs no sets meets no limit of them");
    }

    #[test]
    fn each_limit_is_met_by_those_who_need_it_and_named_with_the_command_that_raises_it() {
        let mut machine = unknown();
        let limit = |value| Some(Limit { soft: value, hard: value });
        machine.limits.open_files = limit(1024);
        machine.limits.tasks = limit(1000);
        machine.limits.pending_signals = limit(1000);
        machine.limits.shm_bytes = Some(4 << 20);
        machine.limits.mappings = Some(1000);
        machine.cgroup.pids = Some(2100);
        machine.cgroup.pids_current = Some(100);
        machine.memory.available_bytes = Some(512 << 20);
        machine.permissions.tasks = Some(false);
        let all = |subject: &str, machine: &Machine| {
            let found = shortfalls(&configuration(subject, 2000), machine);
            found
                .iter()
                .map(|short| short.cure.split(' ').take(2).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        let everybody = ["ulimit -u", "docker run", "use fewer"];
        for cure in everybody {
            assert!(all("futex", &machine).contains(&cure.to_owned()), "{:?}", all("futex", &machine));
        }
        assert!(all("eventfd", &machine).contains(&"ulimit -Hn".to_owned()));
        assert!(all("signal-sigwaitinfo", &machine).contains(&"ulimit -i".to_owned()));
        assert!(all("sem-posix-named", &machine).contains(&"mount -o".to_owned()));
        assert!(
            all("sem-posix-named", &machine).iter().any(|cure| cure.starts_with("sysctl vm.max_map_count"))
        );
        assert_eq!(short("futex", 20, &machine), [""; 0], "twenty fit everywhere");
        machine.permissions.tasks = Some(true);
        assert!(
            !all("futex", &machine).contains(&"ulimit -u".to_owned()),
            "who has the capability is not held to it"
        );
    }

    #[test]
    fn threads_need_less_memory_than_processes() {
        let mut machine = unknown();
        machine.memory.available_bytes = Some(512 << 20);
        let threads = Configuration { contexts: Contexts::Threads, ..configuration("futex", 2000) };
        assert!(shortfalls(&threads, &machine).is_empty());
        assert_eq!(short("futex", 2000, &machine), ["the memory available, bytes,"]);
    }
}
