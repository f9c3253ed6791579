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

    #[test]
    fn the_waiting_of_all_tasks_is_added_up_and_a_kernel_without_it_is_said_to_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let write = |task: u32, text: &str| {
            let path = folder.path().join(format!("proc/9/task/{task}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("schedstat"), text).unwrap();
        };
        let root = Root::at(folder.path());
        assert_eq!(ready_ns(&root, 9), None);
        write(9, "100 7 1\n");
        write(10, "100 35 1\n");
        write(11, "cut");
        assert_eq!(ready_ns(&root, 9), Some(42));
    }
}
