// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that mechanisms meet: how many descriptors, tasks, queues, semaphore sets there may be.

use super::root::{Root, field};
use doorbell_results::machine::limits::*;

/// Reads them from a machine's files; `shm_bytes` is what the file system says when asked.
pub fn read(root: &Root, shm_bytes: Option<u64>) -> Limits {
    let text = root.text("proc/self/limits").unwrap_or_default();
    let limit = |name: &str| parse_limit(&text, name);
    let numbers = |path: &str| -> Vec<u64> {
        let text = root.text(path).unwrap_or_default();
        text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let sem = numbers("proc/sys/kernel/sem");
    Limits {
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

/// Threads of all processes that run under this process's real user,
/// whom RLIMIT_NPROC counts together.
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
