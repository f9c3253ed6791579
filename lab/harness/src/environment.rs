// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else goes on while a trial runs: foreign load, steal time, interrupts, throttling; and
//! whether it was too much.

use std::time::{SystemTime, UNIX_EPOCH};

use doorbell_machine::cgroup;
use doorbell_machine::idle_time::IdleTimes;
use doorbell_machine::interrupts::Interrupts;
use doorbell_machine::load;
use doorbell_machine::pressure;
use doorbell_machine::root::Root;
use doorbell_results::about::About;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::{Environment, Warning, warning};

/// The share of a pair of CPUs that anything else, or the hypervisor,
/// may take before a trial counts as interference.
///
/// Whoever takes a share s of a CPU's time meets at most a share s of the
/// wakes there, and lengthens those. At 5 % the 90th percentile is still the
/// trial's own with room to spare, and the median, which the comparisons
/// rest on, has moved by less than its distance to the 55th percentile.
pub const INTERFERENCE_SHARE: f64 = 0.05;

/// A trial under observation, from before its first process starts
/// until after its last is waited for.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    cpus: CpuList,
    before: Reading,
}

#[derive(Debug)]
struct Reading {
    load: load::Reading,
    unix_ns: u64,
    interrupts: Option<Interrupts>,
    throttled_ns: Option<u64>,
    idle: IdleTimes,
}

impl Watch {
    /// Begins to watch the CPUs on which one of `configurations` is
    /// measured, of none all that may be used.
    pub fn begin(configurations: &[&Configuration], topology: &Topology) -> Self {
        let pinned: Option<Vec<[u32; 2]>> = configurations.iter().map(|one| one.placement.cpus).collect();
        let cpus = match pinned {
            Some(cpus) if !cpus.is_empty() => cpus.into_iter().flatten().collect(),
            _ => topology.usable.clone(),
        };
        Self::of(Root::live(), cpus)
    }

    fn of(root: Root, cpus: CpuList) -> Self {
        let before = Reading::take(&root, &cpus);
        Self { root, cpus, before }
    }

    /// What went on. The trial's processes must have been waited for:
    /// only then is their CPU time told from others'.
    pub fn end(self) -> Environment {
        let after = Reading::take(&self.root, &self.cpus);
        let load = self.before.load.until(&after.load, self.cpus);
        let interrupts = self.before.interrupts.as_ref().zip(after.interrupts.as_ref());
        let throttled = self.before.throttled_ns.zip(after.throttled_ns);
        Environment {
            started_at_unix_ns: self.before.unix_ns,
            wall_ns: load.window_ns,
            foreign_share: load.foreign_share,
            foreign_resolution: load.foreign_resolution,
            busiest: load.busiest,
            steal_share: load.steal_share,
            share_resolution: load.share_resolution,
            pressure_share: load.pressure_share,
            load_average: pressure::load_average(&self.root),
            throttled_ns: throttled.map(|(then, now)| now.saturating_sub(then)),
            interrupts: interrupts.map(|(before, after)| after.since(before, &load.cpus)).unwrap_or_default(),
            idle_entries: after.idle.entries_since(&self.before.idle),
            idle_states: after.idle.shares(&self.before.idle, load.window_ns),
            cpus: load.cpus,
        }
    }
}

impl Reading {
    fn take(root: &Root, cpus: &CpuList) -> Self {
        // The load first, next to its clock: the long reads after it are outside of the window at its end.
        Self {
            load: load::Reading::take(root),
            unix_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            throttled_ns: cgroup::throttled(root, "self").map(|(_, ns)| ns),
            interrupts: Interrupts::read(root),
            idle: IdleTimes::read(root, cpus),
        }
    }
}

/// Why a trial counts as interference and is to be repeated; empty if it does not.
///
/// A share is held against the trial only where it exceeds [`INTERFERENCE_SHARE`] of each pair of
/// measured CPUs by more than its own resolution.
pub fn interference(environment: &Environment) -> Vec<Warning> {
    let pairs = (environment.cpus.len() as f64 / 2.0).max(1.0);
    let bound = |resolution: Option<f64>| INTERFERENCE_SHARE * pairs + resolution.unwrap_or(0.0);
    let foreign_bound = bound(environment.foreign_resolution.or(environment.share_resolution));
    let steal_bound = bound(environment.share_resolution);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let cpus = environment.cpus.named();
    let foreign = environment.foreign_share.filter(|share| *share > foreign_bound).map(|share| {
        let busiest = environment.busiest.as_ref().map(|name| format!(", most of it '{name}'"));
        let (used, busiest, bound) = (percent(share), busiest.unwrap_or_default(), percent(foreign_bound));
        format!("other programs used {used} of a CPU on {cpus}{busiest} (more than {bound} counts as interference)")
    });
    let stolen = environment.steal_share.filter(|share| *share > steal_bound).map(|share| {
        let (took, bound) = (percent(share), percent(steal_bound));
        format!("the hypervisor took {took} of a CPU from {cpus} (more than {bound} counts as interference)")
    });
    let throttled = environment
        .throttled_ns
        .filter(|ns| *ns > 0)
        .map(|ns| format!("the control group had used up its CPU quota for {:.1} ms", ns as f64 / 1e6));
    let found = [
        (
            warning::INTERFERENCE,
            foreign,
            "wake-ups that met them are longer; percentiles above the median are not this \
             mechanism's alone",
            "stop the other work, or measure on CPUs it does not use (`--cpus`)",
        ),
        (
            warning::CPU_STEAL,
            stolen,
            "wake-ups that fell into the steal time are longer by up to the host's time slice",
            "measure when the host is less busy, or on a machine type with dedicated CPUs",
        ),
        (
            warning::THROTTLED,
            throttled,
            "a throttled side stands still until the next period: the maximum is the quota's",
            "raise or lift the CPU limit of the container (cpu.max, `docker run --cpus`)",
        ),
    ];
    let warning = |(about, cause, effect, cure): (About, Option<String>, &str, &str)| {
        let (name, effect, cure) = (about.name.to_owned(), effect.to_owned(), cure.to_owned());
        Some(Warning { name, cause: cause?, effect, cure })
    };
    found.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(foreign: f64, steal: f64) -> Environment {
        Environment {
            cpus: "0-1".parse().unwrap(),
            foreign_share: Some(foreign),
            steal_share: Some(steal),
            share_resolution: Some(0.014),
            throttled_ns: Some(0),
            ..Environment::default()
        }
    }

    fn names(environment: &Environment) -> Vec<String> {
        interference(environment).into_iter().map(|warning| warning.name).collect()
    }

    #[test]
    fn what_goes_beyond_bound_and_resolution_interferes_by_name() {
        let (within, beyond) = (INTERFERENCE_SHARE + 0.013, INTERFERENCE_SHARE + 0.015);
        for (foreign, steal, throttled, expected) in [
            (within, within, 0, &[][..]),
            (beyond, 0.0, 0, &["interference"]),
            (0.0, beyond, 0, &["cpu-steal"]),
            (0.0, 0.0, 1, &["throttled"]),
        ] {
            let environment = Environment { throttled_ns: Some(throttled), ..shares(foreign, steal) };
            assert_eq!(names(&environment), expected, "{foreign} {steal} {throttled}");
        }
    }

    /// Where the scheduler's own clock told the share, the ticks do not widen the bound.
    #[test]
    fn a_share_that_is_known_better_than_by_ticks_is_held_to_its_own_resolution() {
        let sharp = |foreign| Environment {
            share_resolution: Some(0.2),
            foreign_resolution: Some(0.01),
            busiest: Some("cc1plus".to_owned()),
            ..shares(foreign, 0.0)
        };
        assert!(names(&sharp(INTERFERENCE_SHARE + 0.009)).is_empty());
        let warnings = interference(&sharp(INTERFERENCE_SHARE + 0.011));
        assert!(warnings[0].cause.contains("'cc1plus'"), "{warnings:?}");
        assert!(names(&shares(0.0, INTERFERENCE_SHARE + 0.013)).is_empty(), "steal time is counted in ticks");
    }

    #[test]
    fn many_measured_cpus_bear_more_than_a_pair() {
        let mut environment = shares(0.15, 0.0);
        assert_eq!(names(&environment), ["interference"]);
        environment.cpus = "0-63".parse().unwrap();
        assert!(names(&environment).is_empty());
    }

    #[test]
    fn without_proc_nothing_is_known_and_nothing_is_claimed() {
        let machine = doorbell_machine::recorded::Recorded::of(&[]);
        let environment = Watch::of(machine.root(), "0".parse().unwrap()).end();
        assert_eq!((environment.foreign_share, environment.steal_share), (None, None));
        assert!(environment.throttled_ns.is_none() && environment.interrupts.is_empty());
        assert!(names(&environment).is_empty());
    }

    #[test]
    fn the_live_machine_is_watched() {
        let environment =
            Watch::of(Root::live(), doorbell_machine::topology::read(&Root::live(), None).usable).end();
        assert!(environment.started_at_unix_ns > 0);
        assert!(environment.wall_ns > 0);
    }
}
