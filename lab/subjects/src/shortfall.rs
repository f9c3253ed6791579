// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a machine that many tasks at once meet, whatever the tasks do: pure functions of what
//! is needed and of the machine.

use doorbell_results::machine::Machine;

/// A limit that is too low, and what raises it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// The limit, as the manual names it.
    pub limit: &'static str,
    pub need: u64,
    pub have: u64,
    /// The command that raises it.
    pub cure: String,
}

impl std::fmt::Display for Shortfall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, and {} are needed: {}", self.limit, self.have, self.need, self.cure)
    }
}

/// What a trial needs of a machine, all told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    pub tasks: u64,
    pub descriptors: u64,
    /// Mappings of one process; 0 where a usual number of them is enough.
    pub mappings: u64,
    /// Memory, bytes.
    pub bytes: u64,
}

/// What a machine has left of one thing that tasks need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The limit, as the manual names it.
    pub limit: &'static str,
    pub have: u64,
}

/// Task numbers that the kernel hands out to others meanwhile.
const OTHER_NUMBERS: u64 = 1024;
/// Tasks of others that the kernel must have room for.
const OTHER_TASKS: u64 = 512;

/// Room for tasks, under each limit that is known.
pub fn room_for_tasks(machine: &Machine) -> Vec<Room> {
    let limits = &machine.limits;
    let free =
        |limit: Option<u64>, used: Option<u64>| limit.map(|limit| limit.saturating_sub(used.unwrap_or(0)));
    let of_user = match machine.permissions.tasks {
        Some(true) => None,
        _ => free(limits.tasks.map(|limit| limit.soft), limits.tasks_current),
    };
    [
        (USER_TASKS, of_user),
        (GROUP_TASKS, free(machine.cgroup.pids, machine.cgroup.pids_current)),
        (NUMBERS, limits.pid_max.map(|max| max.saturating_sub(OTHER_NUMBERS))),
        (KERNEL_TASKS, limits.threads_max.map(|max| max.saturating_sub(OTHER_TASKS))),
    ]
    .into_iter()
    .filter_map(|(limit, have)| Some(Room { limit, have: have? }))
    .collect()
}

/// Room for descriptors of one process, which raises its soft limit to the hard one by itself.
pub fn room_for_descriptors(machine: &Machine) -> Option<Room> {
    machine.limits.open_files.map(|limit| Room { limit: DESCRIPTORS, have: limit.hard })
}

/// Room for mappings of one process.
pub fn room_for_mappings(machine: &Machine) -> Option<Room> {
    machine.limits.mappings.map(|have| Room { limit: MAPPINGS, have })
}

/// Memory that can still be had without swapping.
pub fn room_for_bytes(machine: &Machine) -> Option<Room> {
    let available = machine.memory.available_bytes?;
    Some(Room { limit: MEMORY, have: available.min(machine.cgroup.memory_bytes.unwrap_or(u64::MAX)) })
}

const USER_TASKS: &str = "RLIMIT_NPROC (tasks of this user), less those there are,";
const GROUP_TASKS: &str = "pids.max of the control group, less the tasks in it,";
const NUMBERS: &str = "kernel.pid_max, less what others may take,";
const KERNEL_TASKS: &str = "kernel.threads-max, less what others may take,";
const DESCRIPTORS: &str = "RLIMIT_NOFILE (open files, hard limit)";
const MAPPINGS: &str = "vm.max_map_count";
const MEMORY: &str = "the memory available, bytes,";

/// Everything of `demand` that `machine` has too little of; `fewer` says how to need less memory.
pub fn shortfalls(demand: &Demand, machine: &Machine, fewer: &str) -> Vec<Shortfall> {
    let mut found = Vec::new();
    let mut check = |room: Option<Room>, need: u64, cure: &dyn Fn() -> String| {
        if let Some(Room { limit, have }) = room.filter(|room| room.have < need) {
            found.push(Shortfall { limit, need, have, cure: cure() });
        }
    };
    let tasks = demand.tasks;
    for room in room_for_tasks(machine) {
        let used = match room.limit {
            USER_TASKS => machine.limits.tasks_current,
            GROUP_TASKS => machine.cgroup.pids_current,
            _ => None,
        };
        let used = used.unwrap_or(0);
        check(Some(room), tasks, &|| match room.limit {
            USER_TASKS => format!("ulimit -u {}", used + 2 * tasks),
            GROUP_TASKS => format!(
                "docker run --pids-limit {0}, or systemctl set-property UNIT TasksMax={0}",
                2 * tasks + used
            ),
            NUMBERS => format!("sysctl kernel.pid_max={}", 4 * tasks + 32_768),
            _ => format!("sysctl kernel.threads-max={}", 4 * tasks + 4096),
        });
    }
    let descriptors = demand.descriptors;
    check(room_for_descriptors(machine), descriptors, &|| {
        format!("ulimit -Hn {descriptors} as root, or LimitNOFILE={descriptors} in the unit")
    });
    check(room_for_mappings(machine), demand.mappings, &|| {
        format!("sysctl vm.max_map_count={}", 65_530.max(4 * demand.mappings))
    });
    check(room_for_bytes(machine), demand.bytes, &|| fewer.to_owned());
    found
}
