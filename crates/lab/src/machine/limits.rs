// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that mechanisms meet: how many descriptors, tasks, queues, semaphore sets there may be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::root::{Root, field};

/// Limits of this process and of the kernel. A limit without bound is the greatest number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Open descriptors (`ulimit -n`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub open_files: Option<Limit>,
    /// Tasks of this user (`ulimit -u`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tasks: Option<Limit>,
    /// Tasks this user has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tasks_current: Option<u64>,
    /// Memory locked against swapping, bytes (`ulimit -l`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub locked_bytes: Option<Limit>,
    /// Real-time priority without privilege (`ulimit -r`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub realtime_priority: Option<Limit>,
    /// Bytes in POSIX message queues of this user (`ulimit -q`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message_queue_bytes: Option<Limit>,
    /// Signals queued for this user (`ulimit -i`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pending_signals: Option<Limit>,
    /// POSIX message queues of the machine (`fs.mqueue.queues_max`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub posix_queues: Option<u64>,
    /// Messages in one POSIX queue (`fs.mqueue.msg_max`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub posix_queue_messages: Option<u64>,
    /// Semaphores in one System V set (SEMMSL, first number of `kernel.sem`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub semaphores_per_set: Option<u64>,
    /// System V semaphore sets of the machine (SEMMNI, fourth number of `kernel.sem`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub semaphore_sets: Option<u64>,
    /// System V message queues of the machine (`kernel.msgmni`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system_v_queues: Option<u64>,
    /// Bytes in one System V message queue (`kernel.msgmnb`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system_v_queue_bytes: Option<u64>,
    /// Tasks of the machine (`kernel.threads-max`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threads_max: Option<u64>,
    /// Task numbers of the machine (`kernel.pid_max`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid_max: Option<u64>,
    /// Mappings of one process (`vm.max_map_count`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mappings: Option<u64>,
    /// Size of `/dev/shm`, where named POSIX semaphores and shared memory live, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shm_bytes: Option<u64>,
}

/// A limit of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What holds now.
    pub soft: u64,
    /// What it may be raised to without privilege.
    pub hard: u64,
}

impl Limits {
    /// Reads them from a machine's files; `shm_bytes` is what the file system says when asked.
    pub fn read(root: &Root, shm_bytes: Option<u64>) -> Self {
        let text = root.text("proc/self/limits").unwrap_or_default();
        let limit = |name: &str| parse_limit(&text, name);
        let numbers = |path: &str| -> Vec<u64> {
            let text = root.text(path).unwrap_or_default();
            text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect()
        };
        let sem = numbers("proc/sys/kernel/sem");
        Self {
            open_files: limit("Max open files"),
            tasks: limit("Max processes"),
            tasks_current: tasks_of_own_user(root),
            locked_bytes: limit("Max locked memory"),
            realtime_priority: limit("Max realtime priority"),
            message_queue_bytes: limit("Max msgqueue size"),
            pending_signals: limit("Max pending signals"),
            posix_queues: root.value("proc/sys/fs/mqueue/queues_max"),
            posix_queue_messages: root.value("proc/sys/fs/mqueue/msg_max"),
            semaphores_per_set: sem.first().copied(),
            semaphore_sets: sem.get(3).copied(),
            system_v_queues: root.value("proc/sys/kernel/msgmni"),
            system_v_queue_bytes: root.value("proc/sys/kernel/msgmnb"),
            threads_max: root.value("proc/sys/kernel/threads-max"),
            pid_max: root.value("proc/sys/kernel/pid_max"),
            mappings: root.value("proc/sys/vm/max_map_count"),
            shm_bytes,
        }
    }
}

/// Threads of all processes that run under this process's real user, whom RLIMIT_NPROC counts together.
fn tasks_of_own_user(root: &Root) -> Option<u64> {
    let user = |status: &str| field(status, "Uid")?.split_ascii_whitespace().next().map(str::to_owned);
    let own = user(&root.text("proc/self/status")?)?;
    let processes =
        root.names("proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let tasks = processes.filter_map(|process| {
        let status = root.text(format!("proc/{process}/status"))?;
        let threads: u64 = field(&status, "Threads")?.parse().ok()?;
        (user(&status)? == own).then_some(threads)
    });
    Some(tasks.sum())
}

/// The soft and hard limit in the line of `/proc/self/limits` that begins with `name`.
fn parse_limit(text: &str, name: &str) -> Option<Limit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_ascii_whitespace();
    let mut number = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        digits => digits.parse().ok(),
    };
    Some(Limit { soft: number()?, hard: number()? })
}

/// Size of the file system at `/dev/shm`.
pub fn shm_bytes() -> Option<u64> {
    let stat = rustix::fs::statvfs("/dev/shm").ok()?;
    stat.f_blocks.checked_mul(stat.f_frsize).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max open files            1024                 524288               files     \n\
                          Max nice priority         0                    0                    \n\
                          Max pending signals       unlimited            unlimited            signals   \n";

    #[test]
    fn reads_soft_and_hard_limits_and_their_absence() {
        assert_eq!(parse_limit(LIMITS, "Max open files"), Some(Limit { soft: 1024, hard: 524_288 }));
        assert_eq!(parse_limit(LIMITS, "Max pending signals").unwrap().soft, u64::MAX);
        assert_eq!(parse_limit(LIMITS, "Max msgqueue size"), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "(Max open files[-0-9 a-z]{0,40}\n){0,3}") {
            let _ = parse_limit(&text, "Max open files");
        }
    }
}
