// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else goes on while a trial runs: foreign load, stolen time, interrupts, throttling; and whether it was too much.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::cell::Cell;
use crate::machine::cgroup;
use crate::machine::cpu_list::CpuList;
use crate::machine::cpu_time::{CpuTimes, TICK_NS};
use crate::machine::interrupts::Interrupts;
use crate::machine::pressure;
use crate::machine::root::Root;
use crate::machine::topology::Topology;
use crate::record::{Surroundings, Warning};

/// The share of a pair of CPUs that anything else, or the hypervisor, may take before a trial counts as disturbed.
///
/// Whoever takes a share s of a CPU's time meets at most a share s of the wakes there, and lengthens those. At 5 % the
/// 90th percentile is still the trial's own with room to spare, and the median, which the comparisons rest on, has
/// moved by less than its distance to the 55th percentile.
pub const DISTURBED_SHARE: f64 = 0.05;

/// A trial under observation, from before its first process starts until after its last is waited for.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    cpus: CpuList,
    before: Reading,
}

/// The kernel's counts at one moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    unix_ns: u64,
    own_ns: u64,
    times: Option<CpuTimes>,
    interrupts: Option<Interrupts>,
    pressure_ns: Option<u64>,
    throttled_ns: Option<u64>,
}

impl Watch {
    /// Begins to watch the CPUs on which `cell` is measured.
    pub fn begin(cell: &Cell, topology: &Topology) -> Self {
        let cpus = match cell.placement.cpus {
            Some(cpus) => cpus.into_iter().collect(),
            None => topology.usable.clone(),
        };
        Self::of(Root::live(), cpus)
    }

    fn of(root: Root, cpus: CpuList) -> Self {
        let before = Reading::take(&root);
        Self { root, cpus, before }
    }

    /// What went on. The trial's processes must have been waited for: only then is their CPU time told from others'.
    pub fn end(self) -> Surroundings {
        let after = Reading::take(&self.root);
        let mut surroundings = Surroundings {
            load_average: pressure::load_average(&self.root),
            ..difference(&self.before, &after, self.cpus)
        };
        surroundings.started_at_unix_ns = self.before.unix_ns;
        surroundings
    }
}

impl Reading {
    fn take(root: &Root) -> Self {
        // The short reads next to the clock, the long ones after them: their own time is then outside of the window.
        Self {
            at: Instant::now(),
            times: CpuTimes::read(root),
            own_ns: own_cpu_ns(),
            unix_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            throttled_ns: cgroup::throttled(root).map(|(_, ns)| ns),
            pressure_ns: pressure::cpu_some_ns(root),
            interrupts: Interrupts::read(root),
        }
    }
}

/// What was counted between two readings.
///
/// Foreign is what `cpus` were busy with beyond this command and the processes it has waited for. All of their time is
/// taken as spent on `cpus`: the trial's sides are nine tenths of it and more; a host that set up elsewhere hides as
/// much foreign time as its set-up took, a few milliseconds.
fn difference(before: &Reading, after: &Reading, cpus: CpuList) -> Surroundings {
    let wall_ns = u64::try_from(after.at.saturating_duration_since(before.at).as_nanos()).unwrap_or(u64::MAX);
    let share = |ns: u64| ns as f64 / wall_ns.max(1) as f64;
    let times = before.times.as_ref().zip(after.times.as_ref());
    let own_ns = after.own_ns.saturating_sub(before.own_ns);
    let busy_ns = times.and_then(|(before, after)| after.busy_ns(before, &cpus, wall_ns));
    // Both readings of a CPU round down to a tick, so their difference is off by a triangle over -1 to 1 tick with a
    // standard deviation of 0.41; 2.4 deviations of the sum over n CPUs are √n ticks, exceeded upwards in 1 of 140 trials.
    let resolution_ns = TICK_NS as f64 * (cpus.len() as f64).sqrt();
    let interrupts = before.interrupts.as_ref().zip(after.interrupts.as_ref());
    Surroundings {
        started_at_unix_ns: before.unix_ns,
        wall_ns,
        foreign_share: busy_ns.map(|busy| share(busy.saturating_sub(own_ns))),
        steal_share: times.and_then(|(before, after)| after.stolen_ns(before, &cpus)).map(share),
        share_resolution: times.map(|_| resolution_ns / wall_ns.max(1) as f64),
        pressure_share: before
            .pressure_ns
            .zip(after.pressure_ns)
            .map(|(then, now)| share(now.saturating_sub(then))),
        load_average: None,
        throttled_ns: before.throttled_ns.zip(after.throttled_ns).map(|(then, now)| now.saturating_sub(then)),
        interrupts: interrupts.map(|(before, after)| after.since(before, &cpus)).unwrap_or_default(),
        cpus,
    }
}

/// Why a trial counts as disturbed and is to be repeated; empty if it does not.
///
/// A share is held against the trial only where it exceeds [`DISTURBED_SHARE`] of each pair of measured CPUs by more
/// than its own resolution.
pub fn disturbances(surroundings: &Surroundings) -> Vec<Warning> {
    let pairs = (surroundings.cpus.len() as f64 / 2.0).max(1.0);
    let bound = DISTURBED_SHARE * pairs + surroundings.share_resolution.unwrap_or(0.0);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut warnings = Vec::new();
    if let Some(share) = surroundings.foreign_share.filter(|share| *share > bound) {
        warnings.push(Warning {
            name: "disturbed".to_owned(),
            cause: format!(
                "other programs used {} of a CPU on CPUs {} (more than {} counts as disturbed)",
                percent(share),
                surroundings.cpus,
                percent(bound)
            ),
            effect:
                "wakes that met them are longer; percentiles above the median are not this mechanism's alone"
                    .to_owned(),
            cure: "stop the other work, or measure on CPUs it does not use (`--cpus`)".to_owned(),
        });
    }
    if let Some(share) = surroundings.steal_share.filter(|share| *share > bound) {
        warnings.push(Warning {
            name: "stolen-from".to_owned(),
            cause: format!(
                "the hypervisor took {} of a CPU from CPUs {} (more than {} counts as disturbed)",
                percent(share),
                surroundings.cpus,
                percent(bound)
            ),
            effect: "wakes that fell into the stolen time are longer by up to the host's time slice"
                .to_owned(),
            cure: "measure when the host is less busy, or on a machine type with dedicated CPUs".to_owned(),
        });
    }
    if let Some(ns) = surroundings.throttled_ns.filter(|ns| *ns > 0) {
        warnings.push(Warning {
            name: "throttled".to_owned(),
            cause: format!("the control group had used up its CPU quota for {:.1} ms", ns as f64 / 1e6),
            effect: "a throttled side stands still until the next period: the maximum is the quota's"
                .to_owned(),
            cure: "raise or lift the CPU limit of the container (cpu.max, `docker run --cpus`)".to_owned(),
        });
    }
    warnings
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
            unix_ns: 1,
            own_ns: own_ms * 1_000_000,
            times: stat.and_then(CpuTimes::parse),
            interrupts: Interrupts::parse("  CPU0 CPU1\nRES: 5 7 Rescheduling interrupts\n"),
            pressure_ns: Some(1_000_000),
            throttled_ns: Some(2_000_000),
        }
    }

    /// One second in which CPU 0 was idle for `idle[0]` ticks of 10 ms, CPU 1 for `idle[1]`, with `stolen` from CPU 1.
    fn second(own_ms: u64, idle: [u64; 2], stolen: u64) -> Surroundings {
        let start = Instant::now();
        let before = reading(start, 100, Some("cpu0 0 0 0 1000 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0\n"));
        let after =
            format!("cpu0 0 0 0 {} 0 0 0 0\ncpu1 0 0 0 {} 0 0 0 {stolen}\n", 1000 + idle[0], 1000 + idle[1]);
        let after = reading(start + Duration::from_secs(1), 100 + own_ms, Some(&after));
        difference(&before, &after, "0-1".parse().unwrap())
    }

    #[test]
    fn what_the_trial_itself_used_is_not_foreign() {
        let surroundings = second(900, [50, 60], 0);
        assert_eq!(surroundings.foreign_share, Some(0.0));
        assert_eq!(disturbances(&surroundings), []);
    }

    #[test]
    fn what_nobody_of_ours_used_is_foreign_and_disturbs() {
        let surroundings = second(300, [50, 60], 0);
        assert!((surroundings.foreign_share.unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(disturbances(&surroundings)[0].name, "disturbed");
    }

    #[test]
    fn a_share_within_the_ticks_resolution_is_not_held_against_the_trial() {
        let surroundings = second(900, [50, 54], 0);
        assert!(surroundings.foreign_share.unwrap() > DISTURBED_SHARE);
        assert_eq!(disturbances(&surroundings), []);
    }

    #[test]
    fn stolen_time_is_not_foreign_but_disturbs_too() {
        let surroundings = second(900, [50, 40], 20);
        assert_eq!(surroundings.foreign_share, Some(0.0));
        assert!((surroundings.steal_share.unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(disturbances(&surroundings)[0].name, "stolen-from");
    }

    #[test]
    fn throttling_of_any_length_disturbs() {
        let mut surroundings = second(900, [50, 60], 0);
        surroundings.throttled_ns = Some(1);
        assert_eq!(disturbances(&surroundings)[0].name, "throttled");
    }

    #[test]
    fn without_proc_every_share_is_unknown_and_nothing_is_claimed() {
        let empty = tempfile::tempdir().unwrap();
        let surroundings = Watch::of(Root::at(empty.path()), "0".parse().unwrap()).end();
        assert_eq!(surroundings.foreign_share, None);
        assert_eq!(surroundings.steal_share, None);
        assert_eq!(surroundings.share_resolution, None);
        assert_eq!(surroundings.throttled_ns, None);
        assert!(surroundings.interrupts.is_empty());
        assert_eq!(disturbances(&surroundings), []);
    }

    #[test]
    fn the_live_machine_is_read() {
        let surroundings = Watch::of(Root::live(), Topology::read(&Root::live(), None).usable).end();
        assert!(surroundings.started_at_unix_ns > 0);
        assert!(surroundings.wall_ns > 0);
    }
}
