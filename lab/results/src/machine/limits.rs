// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that mechanisms meet: how many descriptors, tasks, queues, semaphore sets there may be.

use serde::{Deserialize, Serialize};

/// Limits of this process and of the kernel. A limit without bound is the greatest number.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// Open descriptors (`ulimit -n`).
    pub open_files: Option<Limit>,
    /// Tasks of this user (`ulimit -u`).
    pub tasks: Option<Limit>,
    /// Tasks this user has.
    pub tasks_current: Option<u64>,
    /// Memory locked against swapping, bytes (`ulimit -l`).
    pub locked_bytes: Option<Limit>,
    /// Real-time priority without privilege (`ulimit -r`).
    pub realtime_priority: Option<Limit>,
    /// Bytes in POSIX message queues of this user (`ulimit -q`).
    pub message_queue_bytes: Option<Limit>,
    /// Signals queued for this user (`ulimit -i`).
    pub pending_signals: Option<Limit>,
    /// POSIX message queues of the machine (`fs.mqueue.queues_max`).
    pub posix_queues: Option<u64>,
    /// Messages in one POSIX queue (`fs.mqueue.msg_max`).
    pub posix_queue_messages: Option<u64>,
    /// Semaphores in one System V set (SEMMSL, first number of `kernel.sem`).
    pub semaphores_per_set: Option<u64>,
    /// System V semaphore sets of the machine (SEMMNI, fourth number of `kernel.sem`).
    pub semaphore_sets: Option<u64>,
    /// System V message queues of the machine (`kernel.msgmni`).
    pub system_v_queues: Option<u64>,
    /// Bytes in one System V message queue (`kernel.msgmnb`).
    pub system_v_queue_bytes: Option<u64>,
    /// Tasks of the machine (`kernel.threads-max`).
    pub threads_max: Option<u64>,
    /// Task numbers of the machine (`kernel.pid_max`).
    pub pid_max: Option<u64>,
    /// Mappings of one process (`vm.max_map_count`).
    pub mappings: Option<u64>,
    /// Size of `/dev/shm`, where named POSIX semaphores and shared memory live, bytes.
    pub shm_bytes: Option<u64>,
}

/// A limit of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limit {
    /// What holds now.
    pub soft: u64,
    /// What it may be raised to without privilege.
    pub hard: u64,
}
