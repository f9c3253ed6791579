// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the control group of this process allows it, in either version of the interface.

use doorbell_results::machine::cgroup::*;
use doorbell_results::machine::cpu_list::CpuList;

use super::root::{Root, field};

const MOUNT: &str = "sys/fs/cgroup";

/// Reads it from a machine's files.
pub fn read(root: &Root) -> Cgroup {
    let cpu = Group::of(root, "cpu", &["cpu.max", "cpu.cfs_quota_us", "cpu.stat"]);
    let memory = Group::of(root, "memory", &["memory.max", "memory.limit_in_bytes"]);
    let pids = Group::of(root, "pids", &["pids.max"]);
    let throttled = throttled(root);
    Cgroup {
        version: cpu.as_ref().map(|group| group.version),
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

/// Periods throttled and nanoseconds throttled, of this process's group.
pub fn throttled(root: &Root) -> Option<(u64, u64)> {
    throttled_of(root, "self")
}

/// As [`throttled`], of the group of the process with this number.
pub fn throttled_of(root: &Root, process: &str) -> Option<(u64, u64)> {
    let group = Group::of_process(root, process, "cpu", &["cpu.stat"])?;
    let stat = group.folders.iter().find_map(|folder| root.text(format!("{folder}/cpu.stat")))?;
    let number = |key: &str| field(&stat, key)?.parse::<u64>().ok();
    let ns =
        number("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| number("throttled_time"))?;
    Some((number("nr_throttled")?, ns))
}

/// The CPUs the process's group allows.
pub fn cpuset(root: &Root) -> Option<CpuList> {
    const FILES: [&str; 3] = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    let group = Group::of(root, "cpuset", &FILES)?;
    let list =
        |folder: &String| FILES.iter().find_map(|file| root.value::<CpuList>(format!("{folder}/{file}")));
    group.folders.iter().filter_map(list).find(|list| !list.is_empty())
}

/// The folders that rule this process for one controller: its own group first, the top last.
#[derive(Debug)]
struct Group {
    version: u32,
    folders: Vec<String>,
}

impl Group {
    /// The group of the hierarchy that has one of `files`; a container that is shown only its own part of the
    /// hierarchy finds them at the top.
    fn of(root: &Root, controller: &str, files: &[&str]) -> Option<Self> {
        Self::of_process(root, "self", controller, files)
    }

    /// As [`Group::of`], of another process.
    fn of_process(root: &Root, process: &str, controller: &str, files: &[&str]) -> Option<Self> {
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
                return Some(Self { version, folders });
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
    // A path that climbs out of the mount point is what a process outside its cgroup namespace is shown.
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
    let folders: Vec<String> = (0..=parts.len())
        .rev()
        .map(|depth| {
            std::iter::once(mount).chain(parts[..depth].iter().copied()).collect::<Vec<_>>().join("/")
        })
        .collect();
    folders.into_iter()
}
