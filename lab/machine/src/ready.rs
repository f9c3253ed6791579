// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the tasks of a process stood ready and had no CPU.

use super::root::Root;

/// Nanoseconds since each of its tasks began, of those that are there; none where the kernel does
/// not keep it (CONFIG_SCHED_INFO), or the process has ended.
pub fn ready_ns(root: &Root, process: u32) -> Option<u64> {
    let tasks = root.numbered(format!("proc/{process}/task"), "");
    // "187306 3647 2": ran for, waited for, time slices (Documentation/scheduler/sched-stats.rst).
    let waited = |task: u32| {
        let text = root.text(format!("proc/{process}/task/{task}/schedstat"))?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    tasks.into_iter().filter_map(waited).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    #[test]
    fn the_waiting_of_all_tasks_is_added_up_and_a_kernel_without_it_is_said_to_have_none() {
        assert_eq!(ready_ns(&Recorded::of(&[]).root(), 9), None);
        let machine = Recorded::of(&[
            ("proc/9/task/9/schedstat", "100 7 1\n"),
            ("proc/9/task/10/schedstat", "100 35 1\n"),
            ("proc/9/task/11/schedstat", "cut"),
        ]);
        assert_eq!(ready_ns(&machine.root(), 9), Some(42));
    }
}
