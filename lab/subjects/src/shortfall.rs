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
pub(crate) struct Room {
    /// The limit, as the manual names it.
    pub(crate) limit: &'static str,
    pub(crate) have: u64,
    /// What others take of it.
    used: u64,
    /// How much of it is demanded.
    pub(crate) of: fn(&Demand) -> u64,
    /// What raises it, given the need and the use, or how to need less memory.
    cure: fn(u64, u64, &str) -> String,
}

/// Task numbers that the kernel hands out to others meanwhile.
const OTHER_NUMBERS: u64 = 1024;
/// Tasks of others that the kernel must have room for.
const OTHER_TASKS: u64 = 512;

/// Room under each limit that is known.
pub(crate) fn rooms(machine: &Machine) -> Vec<Room> {
    let (limits, cgroup) = (&machine.limits, &machine.cgroup);
    let room = |limit, most: Option<u64>, used: u64, of, cure| {
        Some(Room { limit, have: most?.saturating_sub(used), used, of, cure })
    };
    let of_user = limits.tasks.filter(|_| machine.permissions.tasks != Some(true));
    let own = limits.tasks_current.unwrap_or(0);
    // What can still be had without swapping.
    let memory = machine.memory.available_bytes.map(|own| own.min(cgroup.memory_bytes.unwrap_or(u64::MAX)));
    [
        room(
            "RLIMIT_NPROC (tasks of this user), less those there are,",
            of_user.map(|limit| limit.soft),
            own,
            |demand| demand.tasks,
            |need, used, _| format!("ulimit -u {}", used + 2 * need),
        ),
        room(
            "pids.max of the control group, less the tasks in it,",
            cgroup.pids,
            cgroup.pids_current.unwrap_or(0),
            |demand| demand.tasks,
            |need, used, _| {
                let most = 2 * need + used;
                format!("docker run --pids-limit {most}, or systemctl set-property UNIT TasksMax={most}")
            },
        ),
        room(
            "kernel.pid_max, less what others may take,",
            limits.pid_max,
            OTHER_NUMBERS,
            |demand| demand.tasks,
            |need, _, _| format!("sysctl kernel.pid_max={}", 4 * need + 32_768),
        ),
        room(
            "kernel.threads-max, less what others may take,",
            limits.threads_max,
            OTHER_TASKS,
            |demand| demand.tasks,
            |need, _, _| format!("sysctl kernel.threads-max={}", 4 * need + 4096),
        ),
        room(
            "RLIMIT_NOFILE (open files, hard limit)",
            // A process raises its soft limit to it by itself.
            limits.open_files.map(|limit| limit.hard),
            0,
            |demand| demand.descriptors,
            |need, _, _| format!("ulimit -Hn {need} as root, or LimitNOFILE={need} in the unit"),
        ),
        room(
            "vm.max_map_count",
            limits.mappings,
            0,
            |demand| demand.mappings,
            |need, _, _| format!("sysctl vm.max_map_count={}", 65_530.max(4 * need)),
        ),
        room(
            "the memory available, bytes,",
            memory,
            0,
            |demand| demand.bytes,
            |_, _, fewer| fewer.to_owned(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Everything of `demand` that `machine` has too little of; `fewer` says how to need less memory.
pub fn shortfalls(demand: &Demand, machine: &Machine, fewer: &str) -> Vec<Shortfall> {
    let short = |Room { limit, have, used, of, cure }: Room| {
        let need = of(demand);
        (have < need).then(|| Shortfall { limit, need, have, cure: cure(need, used, fewer) })
    };
    rooms(machine).into_iter().filter_map(short).collect()
}
