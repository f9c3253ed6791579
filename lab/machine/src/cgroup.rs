// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the control group of this process allows it, in either version of the interface.

use super::root::{Root, field};
use doorbell_results::machine::cgroup::*;
use doorbell_results::machine::cpu_list::CpuList;

const MOUNT: &str = "sys/fs/cgroup";

pub fn read(root: &Root) -> Cgroup {
    let cpu = Group::of(root, "self", "cpu", &["cpu.max", "cpu.cfs_quota_us", "cpu.stat"]);
    let memory = Group::of(root, "self", "memory", &["memory.max", "memory.limit_in_bytes"]);
    let pids = Group::of(root, "self", "pids", &["pids.max"]);
    let throttled = throttled(root, "self");
    Cgroup {
        version: cpu.as_ref().map(|group| group.version),
        path: cpu.as_ref().map(|group| group.path.clone()),
        cpu_weight: cpu.as_ref().and_then(|group| {
            let folder = group.folders.first()?;
            ["cpu.weight", "cpu.shares"].iter().find_map(|file| root.value(format!("{folder}/{file}")))
        }),
        cpu_quota: cpu.and_then(|group| {
            group.tightest(|folder| {
                let (quota, period) = match root.text(format!("{folder}/cpu.max")) {
                    Some(text) => {
                        let (quota, period) = text.split_once(' ')?;
                        (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
                    }
                    None => (
                        root.value::<f64>(format!("{folder}/cpu.cfs_quota_us"))?,
                        root.value::<f64>(format!("{folder}/cpu.cfs_period_us"))?,
                    ),
                };
                (quota > 0.0 && period > 0.0).then(|| quota / period).filter(|quota| quota.is_finite())
            })
        }),
        memory_bytes: memory.and_then(|group| {
            group.tightest(|folder| {
                root.value::<u64>(format!("{folder}/memory.max"))
                    .or_else(|| root.value::<u64>(format!("{folder}/memory.limit_in_bytes")))
                    // Version 1 writes "no limit" as the greatest number of pages, in bytes.
                    .filter(|bytes| *bytes < i64::MAX as u64 / 4096 * 4096)
            })
        }),
        pids: pids
            .as_ref()
            .and_then(|group| group.tightest(|folder| root.value::<u64>(format!("{folder}/pids.max")))),
        pids_current: pids.and_then(|group| root.value(format!("{}/pids.current", group.folders.first()?))),
        throttled_periods: throttled.map(|throttled| throttled.0),
        throttled_ns: throttled.map(|throttled| throttled.1),
    }
}

/// Periods throttled and nanoseconds throttled, of the process's group and all above it together:
/// whichever of them has used up its quota, the process stands still, and only that one counts it.
pub fn throttled(root: &Root, process: &str) -> Option<(u64, u64)> {
    let group = Group::of(root, process, "cpu", &["cpu.stat"])?;
    let counted = |folder: &String| {
        let stat = root.text(format!("{folder}/cpu.stat"))?;
        let number = |key: &str| field(&stat, key)?.parse::<u64>().ok();
        let ns = number("throttled_usec")
            .map(|us| us.saturating_mul(1000))
            .or_else(|| number("throttled_time"))?;
        Some((number("nr_throttled")?, ns))
    };
    // One without the CPU controller, as the top of version 2 is, counts no periods; those above it
    // may.
    group
        .folders
        .iter()
        .filter_map(counted)
        .reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
}

/// The CPUs the process's group allows.
pub fn cpuset(root: &Root) -> Option<CpuList> {
    const FILES: [&str; 3] = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    let group = Group::of(root, "self", "cpuset", &FILES)?;
    let list =
        |folder: &String| FILES.iter().find_map(|file| root.value::<CpuList>(format!("{folder}/{file}")));
    group.folders.iter().filter_map(list).find(|list| !list.is_empty())
}

/// The folders that rule this process for one controller: its own group first, the top last.
#[derive(Debug)]
struct Group {
    version: u32,
    path: String,
    folders: Vec<String>,
}

impl Group {
    /// The group of a process in the hierarchy that has one of `files`; a container that is shown only its own
    /// part of the hierarchy finds them at the top.
    fn of(root: &Root, process: &str, controller: &str, files: &[&str]) -> Option<Self> {
        let membership = root.text(format!("proc/{process}/cgroup")).unwrap_or_default();
        let lines = || membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let path_v1 =
            lines().find(|(controllers, _)| controllers.split(',').any(|name| name == controller)).map(
                |(controllers, path)| (vec![controllers.to_owned(), controller.to_owned()], path.to_owned()),
            );
        let path_v2 =
            lines().find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| path.to_owned());
        let candidates = path_v1
            .into_iter()
            .flat_map(|(mounts, path)| {
                mounts.into_iter().map(move |mount| (1, format!("{MOUNT}/{mount}"), path.clone()))
            })
            .chain(path_v2.into_iter().flat_map(|path| {
                [MOUNT.to_owned(), format!("{MOUNT}/unified")].map(|mount| (2, mount, path.clone()))
            }));
        for (version, mount, path) in candidates {
            let folders: Vec<String> = upwards(&mount, &path)
                .filter(|folder| files.iter().any(|file| root.has(format!("{folder}/{file}"))))
                .collect();
            if !folders.is_empty() {
                return Some(Self { version, path, folders });
            }
        }
        None
    }

    fn tightest<T: PartialOrd>(&self, limit: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.folders
            .iter()
            .filter_map(|folder| limit(folder))
            .reduce(|tightest, limit| if limit < tightest { limit } else { tightest })
    }
}

/// `mount/a/b`, `mount/a`, `mount`.
fn upwards(mount: &str, path: &str) -> impl Iterator<Item = String> {
    // A path that climbs out of the mount point is what a process
    // outside its cgroup namespace is shown.
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
    let folders: Vec<String> = (0..=parts.len())
        .rev()
        .map(|depth| {
            std::iter::once(mount).chain(parts[..depth].iter().copied()).collect::<Vec<_>>().join("/")
        })
        .collect();
    folders.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    /// The group's own count stayed at 0 while that of its parent, which had the quota, grew by 4.3
    /// s.
    #[test]
    fn a_group_above_that_used_up_its_quota_counts() {
        let machine = Recorded::of(&[
            ("proc/self/cgroup", "0::/slice/service\n"),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 99\n"),
            ("sys/fs/cgroup/slice/cpu.stat", "usage_usec 9\nnr_throttled 43\nthrottled_usec 4300000\n"),
            ("sys/fs/cgroup/slice/cpu.max", "10000 100000\n"),
            ("sys/fs/cgroup/slice/service/cpu.stat", "usage_usec 9\nnr_throttled 0\nthrottled_usec 0\n"),
            ("sys/fs/cgroup/slice/service/cpu.max", "max 100000\n"),
        ]);
        let read = read(&machine.root());
        assert_eq!((read.throttled_periods, read.throttled_ns), (Some(43), Some(4_300_000_000)));
        assert_eq!((read.version, read.cpu_quota), (Some(2), Some(0.1)));
        assert_eq!(read.path.as_deref(), Some("/slice/service"));
    }

    /// Where systemd gives a service no CPU controller of its own.
    #[test]
    fn a_group_that_counts_no_periods_hides_none_of_those_above_it() {
        let machine = Recorded::of(&[
            ("proc/self/cgroup", "0::/slice/service\n"),
            ("sys/fs/cgroup/slice/cpu.stat", "nr_throttled 2\nthrottled_usec 7\n"),
            ("sys/fs/cgroup/slice/service/cpu.stat", "usage_usec 9\n"),
        ]);
        assert_eq!(throttled(&machine.root(), "self"), Some((2, 7000)));
    }

    #[test]
    fn in_version_1_every_group_up_to_the_mount_counts() {
        let machine = Recorded::of(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/docker/one\n0::/elsewhere\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/docker/cpu.stat",
                "nr_periods 9\nnr_throttled 5\nthrottled_time 50\n",
            ),
            (
                "sys/fs/cgroup/cpu,cpuacct/docker/one/cpu.stat",
                "nr_periods 9\nnr_throttled 1\nthrottled_time 3\n",
            ),
        ]);
        assert_eq!(throttled(&machine.root(), "self"), Some((6, 53)));
    }
}
