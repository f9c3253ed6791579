// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else uses the CPUs: the share of them that went to anything
//! but this command and its children.

use doorbell_results::machine::load::*;
use std::time::Instant;

use super::cpu_time::{CpuTimes, TICK_NS};
use super::pressure;
use super::root::Root;
use super::run_time::RunTimes;
use super::task_time::{Others, TaskTimes};
use doorbell_results::machine::cpu_list::CpuList;

/// The kernel's counts at one moment.
#[derive(Debug)]
pub struct Reading {
    root: Root,
    at: Instant,
    own_ns: u64,
    times: Option<CpuTimes>,
    runs: Option<RunTimes>,
    tasks: Option<TaskTimes>,
    pressure_ns: Option<u64>,
}

/// Allowance for what this process ran since it was last put on its CPU: the scheduler has not yet
/// added that to the CPU's time, while the process's own accounts already hold it.
const UNSETTLED_NS: u64 = 500_000;

impl Reading {
    pub fn take(root: &Root) -> Self {
        let times = CpuTimes::read(root);
        let at = Instant::now();
        let runs = RunTimes::read(root);
        Self {
            root: root.clone(),
            at,
            times,
            // What each task ran is asked for only where the kernel does not tell what each CPU did.
            tasks: if runs.is_none() { TaskTimes::read(root) } else { None },
            runs,
            own_ns: own_cpu_ns(),
            pressure_ns: pressure::cpu_some_ns(root),
        }
    }

    /// The load of `cpus` between this reading and a `later` one, which must be the latest: it is
    /// asked where tasks are now.
    ///
    /// Foreign is what `cpus` were busy with beyond this command and the
    /// children it has waited for. All of their time is taken as spent
    /// on `cpus`; what they spent elsewhere hides as much foreign time.
    pub fn until(&self, later: &Self, cpus: CpuList) -> Load {
        let window = later.at.saturating_duration_since(self.at).as_nanos();
        let window_ns = u64::try_from(window).unwrap_or(u64::MAX);
        let share = |ns: u64| ns as f64 / window_ns.max(1) as f64;
        let times = self.times.as_ref().zip(later.times.as_ref());
        let steal_ns = times.and_then(|(before, after)| after.steal_ns(before, &cpus));
        let pressure = self.pressure_ns.zip(later.pressure_ns);
        // Both readings of a CPU round down to a tick, so their difference is off by a triangle over -1 to
        // 1 tick with a standard deviation of 0.41; 2.4 deviations of the sum over n CPUs are √n
        // ticks, exceeded upwards in 1 of 140 stretches.
        let ticks_ns = (TICK_NS as f64 * (cpus.len() as f64).sqrt()) as u64;
        let by_ticks = self.foreign_by_ticks(later, &cpus, window_ns);
        let others = self.others(later, &cpus);
        let by_scheduler = self
            .foreign_by_runs(later, &cpus, ticks_ns)
            .or_else(|| others.as_ref().map(|others| (others.ns, UNSETTLED_NS)));
        // The scheduler adds a task's time to its CPU's when the task leaves it, and what ends between two
        // readings is in neither: what the ticks are sure of counts as well.
        let (foreign_ns, resolution_ns) = match (by_scheduler, by_ticks) {
            (Some((exact, off)), Some(coarse)) => {
                (Some(exact.max(coarse.saturating_sub(ticks_ns))), Some(off))
            }
            (Some((exact, off)), None) => (Some(exact), Some(off)),
            (None, coarse) => (coarse, coarse.map(|_| ticks_ns)),
        };
        Load {
            window_ns,
            foreign_share: foreign_ns.map(share),
            foreign_resolution: resolution_ns.map(share),
            busiest: others.and_then(|others| others.busiest).map(|(name, _)| name),
            steal_share: steal_ns.map(share),
            share_resolution: times.map(|_| share(ticks_ns)),
            pressure_share: pressure.map(|(then, now)| share(now.saturating_sub(then))),
            load_average: None,
            cpus,
        }
    }

    /// What is left of the window after idle and steal time and this command's own.
    fn foreign_by_ticks(&self, later: &Self, cpus: &CpuList, window_ns: u64) -> Option<u64> {
        let (before, after) = self.times.as_ref().zip(later.times.as_ref())?;
        Some(after.busy_ns(before, cpus, window_ns)?.saturating_sub(self.own_until(later)))
    }

    /// What tasks other than this command ran on the CPUs, and how far that may be off.
    ///
    /// Interrupts and steal time, in which a task is on its CPU without running, are subtracted.
    /// They are known only to a tick: one that met a short interrupt counts as much as ten
    /// milliseconds of interrupts. So what is subtracted may be foreign, up to the error of ticks.
    fn foreign_by_runs(&self, later: &Self, cpus: &CpuList, ticks_ns: u64) -> Option<(u64, u64)> {
        let (before, after) = self.runs.as_ref().zip(later.runs.as_ref())?;
        let held_up = self.times.as_ref().zip(later.times.as_ref()).and_then(|(before, after)| {
            Some(after.steal_ns(before, cpus)?.saturating_add(after.interrupts_ns(before, cpus)?))
        });
        let held_up = held_up.unwrap_or(0);
        let beyond_own = after.since(before, cpus)?.saturating_sub(self.own_until(later));
        let off = UNSETTLED_NS + held_up.min(ticks_ns).min(beyond_own);
        Some((beyond_own.saturating_sub(held_up), off))
    }

    fn others(&self, later: &Self, cpus: &CpuList) -> Option<Others> {
        let (before, after) = self.tasks.as_ref().zip(later.tasks.as_ref())?;
        Some(after.others(before, &later.root, cpus))
    }

    fn own_until(&self, later: &Self) -> u64 {
        later.own_ns.saturating_sub(self.own_ns)
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
    use crate::recorded::Recorded;

    fn reading(at: Instant, own_ms: u64, stat: Option<&str>) -> Reading {
        Reading {
            root: Root::at("nowhere"),
            at,
            own_ns: own_ms * 1_000_000,
            times: stat.and_then(CpuTimes::parse),
            runs: None,
            tasks: None,
            pressure_ns: Some(at.elapsed().as_nanos() as u64),
        }
    }

    /// One second in which CPU 0 was idle for `idle[0]` ticks of 10
    /// ms, CPU 1 for `idle[1]`, and `steal` ticks were stolen from CPU 1.
    fn second(own_ms: u64, idle: [u64; 2], steal: u64) -> Load {
        let start = Instant::now();
        let before = reading(start, 100, Some("cpu0 0 0 0 1000 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0\n"));
        let after =
            format!("cpu0 0 0 0 {} 0 0 0 0\ncpu1 0 0 0 {} 0 0 0 {steal}\n", 1000 + idle[0], 1000 + idle[1]);
        let after = reading(start + Duration::from_secs(1), 100 + own_ms, Some(&after));
        before.until(&after, "0-1".parse().unwrap())
    }

    #[test]
    fn what_this_command_did_not_use_is_foreign_but_for_stolen_time() {
        assert_eq!(second(900, [50, 60], 0).foreign_share, Some(0.0));
        assert!((second(300, [50, 60], 0).foreign_share.unwrap() - 0.6).abs() < 1e-9);
        let load = second(900, [50, 40], 20);
        assert_eq!(load.foreign_share, Some(0.0));
        assert!((load.steal_share.unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn the_resolution_is_a_tick_times_the_root_of_the_cpus() {
        assert!((second(0, [0, 0], 0).share_resolution.unwrap() - 0.01 * 2_f64.sqrt()).abs() < 1e-9);
    }

    /// A machine whose schedulers say how long tasks ran on CPU 0;
    /// its ticks saw nothing but `interrupts` of them.
    fn short_trial(ran_us: u64, own_us: u64, interrupts: u64, window: Duration) -> Load {
        let machine = Recorded::of(&[]);
        let root = machine.root();
        let write = |ran_ns: u64, interrupts: u64| {
            machine.write("proc/stat", &format!("cpu0 0 0 0 1000 0 {interrupts} 0 0\n"));
            let schedstat = format!("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 {ran_ns} 0 0\n");
            machine.write("proc/schedstat", &schedstat);
        };
        write(5_000_000, 0);
        let before = Reading { own_ns: 0, ..Reading::take(&root) };
        write(5_000_000 + ran_us * 1000, interrupts);
        let after = Reading { own_ns: own_us * 1000, at: before.at + window, ..Reading::take(&root) };
        // Idle all the time but for what is asked about, as far as ticks tell.
        let idle = Reading { times: CpuTimes::parse("cpu0 0 0 0 900 0 0 0 0\n"), ..before };
        idle.until(&after, "0".parse().unwrap())
    }

    /// Ticks of 10 ms once left a quarter of a CPU unseen in a trial of 50 ms.
    #[test]
    fn the_schedulers_own_clock_tells_a_twentieth_of_a_short_trial() {
        let load = short_trial(12_500, 10_000, 0, Duration::from_millis(50));
        assert!((load.foreign_share.unwrap() - 0.05).abs() < 1e-9, "{load:?}");
        assert!(
            load.foreign_resolution.unwrap() <= 0.01 && load.share_resolution.unwrap() >= 0.2,
            "{load:?}"
        );
        assert_eq!(short_trial(10_000, 10_000, 0, Duration::from_millis(50)).foreign_share, Some(0.0));
    }

    #[test]
    fn interrupts_in_which_a_task_of_ours_stood_still_are_not_foreign() {
        assert_eq!(short_trial(30_000, 10_000, 2, Duration::from_millis(50)).foreign_share, Some(0.0));
    }

    /// A tick that met an interrupt of microseconds once hid ten milliseconds of another program,
    /// and the figure was called exact.
    #[test]
    fn what_one_tick_in_an_interrupt_may_hide_is_in_the_resolution() {
        let load = short_trial(22_000, 10_000, 1, Duration::from_millis(50));
        assert!((load.foreign_share.unwrap() - 0.04).abs() < 1e-9, "{load:?}");
        assert!((load.foreign_resolution.unwrap() - 0.21).abs() < 1e-9, "{load:?}");
        let quiet = short_trial(10_000, 10_000, 1, Duration::from_millis(50));
        assert!((quiet.foreign_resolution.unwrap() - 0.01).abs() < 1e-9, "{quiet:?}");
    }

    /// A program that computes all the time never leaves its CPU, and
    /// the scheduler adds its time when it leaves.
    #[test]
    fn what_the_ticks_are_sure_of_counts_although_the_scheduler_has_not_added_it_yet() {
        let load = second(300, [50, 60], 0);
        let schedstat = "version 15\ncpu0 0 0 0 0 0 0 7 0 0\ncpu1 0 0 0 0 0 0 7 0 0\n";
        let machine = Recorded::of(&[("proc/schedstat", schedstat)]);
        let runs = || RunTimes::read(&machine.root());
        let start = Instant::now();
        let stat =
            |idle: [u64; 2]| format!("cpu0 0 0 0 {} 0 0 0 0\ncpu1 0 0 0 {} 0 0 0 0\n", idle[0], idle[1]);
        let before = Reading { runs: runs(), ..reading(start, 100, Some(&stat([1000, 1000]))) };
        let after = reading(start + Duration::from_secs(1), 400, Some(&stat([1050, 1060])));
        let sure = before.until(&Reading { runs: runs(), ..after }, "0-1".parse().unwrap());
        let expected = load.foreign_share.unwrap() - load.share_resolution.unwrap();
        assert!((sure.foreign_share.unwrap() - expected).abs() < 1e-6, "{sure:?}");
    }

    #[test]
    fn without_proc_every_share_is_unknown() {
        let machine = Recorded::of(&[]);
        let root = machine.root();
        let load = Reading::take(&root).until(&Reading::take(&root), "0".parse().unwrap());
        let shares = (load.foreign_share, load.steal_share, load.share_resolution, load.pressure_share);
        assert_eq!(shares, (None, None, None, None));
    }
}
