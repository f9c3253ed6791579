// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else uses the CPUs: the share of them that went to anything but this command and its children.

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu_list::CpuList;
use super::cpu_time::{CpuTimes, TICK_NS};
use super::pressure;
use super::root::Root;

/// Load over a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Length of the stretch, nanoseconds.
    pub window_ns: u64,
    /// The CPUs looked at.
    pub cpus: CpuList,
    /// CPU time used on them by anything else, as a share of one CPU.
    pub foreign_share: Option<f64>,
    /// Time the hypervisor took from them, as a share of one CPU.
    pub steal_share: Option<f64>,
    /// How far the two shares may be off, because the kernel counts in ticks of 10 ms.
    pub share_resolution: Option<f64>,
    /// Time in which some runnable task of the machine waited for a CPU, as a share of the stretch.
    pub pressure_share: Option<f64>,
    /// Tasks of the machine that ran or wanted to, averaged over the last minute.
    pub load_average: Option<f64>,
}

/// The kernel's counts at one moment.
#[derive(Debug)]
pub struct Reading {
    at: Instant,
    own_ns: u64,
    times: Option<CpuTimes>,
    pressure_ns: Option<u64>,
}

impl Reading {
    /// Reads them.
    pub fn take(root: &Root) -> Self {
        Self {
            at: Instant::now(),
            times: CpuTimes::read(root),
            own_ns: own_cpu_ns(),
            pressure_ns: pressure::cpu_some_ns(root),
        }
    }

    /// The load of `cpus` between this reading and a `later` one.
    ///
    /// Foreign is what `cpus` were busy with beyond this command and the children it has waited for. All of their time
    /// is taken as spent on `cpus`; what they spent elsewhere hides as much foreign time.
    pub fn until(&self, later: &Self, cpus: CpuList) -> Load {
        let window = later.at.saturating_duration_since(self.at).as_nanos();
        let window_ns = u64::try_from(window).unwrap_or(u64::MAX);
        let share = |ns: u64| ns as f64 / window_ns.max(1) as f64;
        let times = self.times.as_ref().zip(later.times.as_ref());
        let own_ns = later.own_ns.saturating_sub(self.own_ns);
        let busy_ns = times.and_then(|(before, after)| after.busy_ns(before, &cpus, window_ns));
        let pressure = self.pressure_ns.zip(later.pressure_ns);
        // Both readings of a CPU round down to a tick, so their difference is off by a triangle over -1 to 1 tick with
        // a standard deviation of 0.41; 2.4 deviations of the sum over n CPUs are √n ticks, exceeded upwards in 1 of
        // 140 stretches.
        let resolution_ns = TICK_NS as f64 * (cpus.len() as f64).sqrt();
        Load {
            window_ns,
            foreign_share: busy_ns.map(|busy| share(busy.saturating_sub(own_ns))),
            steal_share: times.and_then(|(before, after)| after.stolen_ns(before, &cpus)).map(share),
            share_resolution: times.map(|_| resolution_ns / window_ns.max(1) as f64),
            pressure_share: pressure.map(|(then, now)| share(now.saturating_sub(then))),
            load_average: None,
            cpus,
        }
    }
}

/// CPU time of this process and of all it has waited for, nanoseconds.
fn own_cpu_ns() -> u64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            // SAFETY: rusage is plain data, valid when zero.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: `usage` is ours and of the right type; neither `who` can fail with a valid pointer.
            // JUSTIFICATION: rustix has no getrusage.
            unsafe { libc::getrusage(who, &raw mut usage) };
            let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
            ns(usage.ru_utime) + ns(usage.ru_stime)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reading(at: Instant, own_ms: u64, stat: Option<&str>) -> Reading {
        Reading {
            at,
            own_ns: own_ms * 1_000_000,
            times: stat.and_then(CpuTimes::parse),
            pressure_ns: Some(at.elapsed().as_nanos() as u64),
        }
    }

    /// One second in which CPU 0 was idle for `idle[0]` ticks of 10 ms, CPU 1 for `idle[1]`, with `stolen` from CPU 1.
    fn second(own_ms: u64, idle: [u64; 2], stolen: u64) -> Load {
        let start = Instant::now();
        let before = reading(start, 100, Some("cpu0 0 0 0 1000 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0\n"));
        let after =
            format!("cpu0 0 0 0 {} 0 0 0 0\ncpu1 0 0 0 {} 0 0 0 {stolen}\n", 1000 + idle[0], 1000 + idle[1]);
        let after = reading(start + Duration::from_secs(1), 100 + own_ms, Some(&after));
        before.until(&after, "0-1".parse().unwrap())
    }

    #[test]
    fn what_this_command_itself_used_is_not_foreign() {
        assert_eq!(second(900, [50, 60], 0).foreign_share, Some(0.0));
    }

    #[test]
    fn what_nobody_of_ours_used_is_foreign() {
        assert!((second(300, [50, 60], 0).foreign_share.unwrap() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn stolen_time_is_not_foreign() {
        let load = second(900, [50, 40], 20);
        assert_eq!(load.foreign_share, Some(0.0));
        assert!((load.steal_share.unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn the_resolution_is_a_tick_times_the_root_of_the_cpus() {
        assert!((second(0, [0, 0], 0).share_resolution.unwrap() - 0.01 * 2_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn without_proc_every_share_is_unknown() {
        let empty = tempfile::tempdir().unwrap();
        let root = Root::at(empty.path());
        let load = Reading::take(&root).until(&Reading::take(&root), "0".parse().unwrap());
        let shares = (load.foreign_share, load.steal_share, load.share_resolution, load.pressure_share);
        assert_eq!(shares, (None, None, None, None));
    }
}
