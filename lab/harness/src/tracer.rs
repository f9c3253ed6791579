// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's part in a traced trial: it sets the kernel's buffer up between the birth of the sides
//! and their first wake, and joins events with stamps when nothing is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use super::control::Control;
use super::journal::Journal;
use crate::anatomy::collect::Join;
use crate::anatomy::missing_events::{self, missing_events};
use crate::trace::event::EventKind;
use crate::trace::instance::Wanted;
use crate::trace::{Instance, TraceError, Tracefs};
use doorbell_machine::cgroup;
use doorbell_machine::cpu_time::CpuTimes;
use doorbell_machine::root::Root;
use doorbell_machine::system;
use doorbell_results::anatomy::{Anatomy, Counts, Hidden, Mark, Meanwhile, Rank, Wake};
use doorbell_results::configuration::{Configuration, Trace};
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;

/// Buffer of each CPU for the stages of every wake, KiB: 16384 wakes
/// with some ten events of 48 bytes on each CPU.
const STAGES_KIB: u32 = 8192;
/// For causes, where only the events of the last wake must still be there: some 10 000 events on
/// each CPU, or 100 ms of a core that switches 30 times a millisecond.
const CAUSES_KIB: u32 = 1024;

/// Of all CPUs together, where the sides may run on any: far below
/// what a machine of so many CPUs has.
const ALL_KIB: u32 = 65_536;
/// Of each CPU at least, however many there are.
const LEAST_KIB: u32 = 256;

/// How long the host waits for the sides to be there. What keeps them
/// is told by whoever watches them.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Tracer {
    instance: Instance,
    journal: Journal,
    join: Join,
    trace: Trace,
    cpus: CpuList,
    kept: Vec<Wake>,
    lost: u64,
    incomplete: u64,
    missing_events: BTreeSet<u32>,
    reading: Reading,
}

#[derive(Debug)]
struct Reading {
    at: Instant,
    times: Option<CpuTimes>,
    throttled: Option<(u64, u64)>,
}

impl Reading {
    fn take() -> Self {
        let root = Root::live();
        Self { at: Instant::now(), times: CpuTimes::read(&root), throttled: cgroup::throttled(&root, "self") }
    }

    /// What was counted from here to `now`.
    fn until(&self, now: &Self, cpus: &CpuList) -> Meanwhile {
        let steal = |cpu: u32| {
            let one: CpuList = std::iter::once(cpu).collect();
            now.times.as_ref()?.steal_ns(self.times.as_ref()?, &one)
        };
        let steal_ns: BTreeMap<u32, u64> =
            cpus.iter().filter_map(|cpu| Some((cpu, steal(cpu).filter(|ns| *ns > 0)?))).collect();
        let throttled = self.throttled.zip(now.throttled);
        Meanwhile {
            window_ns: u64::try_from((now.at - self.at).as_nanos()).unwrap_or(u64::MAX),
            steal_ns,
            throttled_periods: throttled.map(|(then, now)| now.0.saturating_sub(then.0)),
            throttled_ns: throttled.map(|(then, now)| now.1.saturating_sub(then.1)),
        }
    }
}

impl Tracer {
    /// Sets the buffer up for the sides of `control`, which wait for it, and lets them begin.
    pub fn begin(
        configuration: &Configuration,
        trace: Trace,
        clock: Clock,
        control: &Control,
        journal: Journal,
    ) -> Result<Self, TraceError> {
        let start = Instant::now();
        let task = |side: usize| control.progress[side].task.load(Acquire);
        while (task(0) == 0 || task(1) == 0) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(100));
        }
        let tasks = [task(0), task(1)];
        let cpus = match configuration.placement.cpus {
            Some(cpus) => cpus.into_iter().collect(),
            None => system::affinity().unwrap_or_default(),
        };
        let stages = trace == Trace::Stages;
        let wanted = Wanted {
            of: if stages { |kind: &EventKind| kind.stages } else { |kind: &EventKind| Some(kind.causes) },
            tasks,
            cpus: &cpus,
            clock: clock.source,
            kib: (ALL_KIB / u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1))
                .clamp(LEAST_KIB, if stages { STAGES_KIB } else { CAUSES_KIB }),
        };
        let instance = Instance::create(&Tracefs::find()?, &wanted)?;
        if let Trace::Worst { above_ns, .. } = trace {
            journal.count_above(above_ns.saturating_mul(1000));
            journal.catch_above(above_ns.saturating_mul(1000));
        }
        instance.turn(true)?;
        journal.traced();
        Ok(Self {
            instance,
            journal,
            join: Join { clock, tasks: tasks.map(u32::cast_signed) },
            trace,
            cpus,
            kept: Vec::new(),
            lost: 0,
            incomplete: 0,
            missing_events: BTreeSet::new(),
            reading: Reading::take(),
        })
    }

    /// What becomes readable when a wake is to be looked at.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.journal.bell()
    }

    /// Reads what the machine counts, so that what it counted around
    /// a wake is known to belong to it.
    pub fn look(&mut self) {
        self.reading = Reading::take();
    }

    /// Takes the events of the wake for which the waiter waits, and lets it go on.
    pub fn catch(&mut self) -> Result<(), TraceError> {
        let Some(stamps) = self.journal.caught() else { return Ok(()) };
        let now = Reading::take();
        let meanwhile = self.reading.until(&now, &self.cpus);
        self.reading = now;
        self.instance.turn(false)?;
        let harvest = self.instance.harvest()?;
        self.lost += harvest.lost;
        self.missing_events.extend(missing_events(&harvest, self.join.tasks));
        if stamps.sent < harvest.whole_from {
            self.incomplete += 1;
        } else {
            self.kept.push(self.join.keep(Rank::Worst, &stamps, &harvest.events, Some(meanwhile)));
            self.kept.sort_by_key(|wake| std::cmp::Reverse(wake.whole_ps()));
        }
        if let Trace::Worst { keep, .. } = self.trace {
            self.kept.truncate(keep as usize);
            if let Some(least) = self.kept.last().filter(|_| self.kept.len() == keep as usize) {
                self.journal.catch_above(least.whole_ps());
            }
        }
        self.instance.turn(true)?;
        self.journal.release();
        Ok(())
    }

    pub fn end(mut self) -> Result<Anatomy, TraceError> {
        self.instance.turn(false)?;
        let mut hidden = hidden(&self.instance);
        let (wakes, merged) = self.journal.wakes();
        if self.trace == Trace::Stages {
            let harvest = self.instance.harvest()?;
            hidden.extend(missing_events::hidden(&missing_events(&harvest, self.join.tasks)));
            let mut anatomy = self.join.collect(&wakes, &harvest, hidden);
            anatomy.counts.merged = merged;
            return Ok(anatomy);
        }
        hidden.extend(missing_events::hidden(&self.missing_events));
        let counts = Counts {
            stamped: wakes.len() as u64,
            cut: self.kept.len() as u64,
            incomplete: self.incomplete,
            merged,
            lost_events: self.lost,
            above: Some(self.journal.above()),
        };
        Ok(Anatomy { hidden, counts, kept: self.kept, ..Anatomy::default() })
    }
}

/// Marks that cannot be seen for want of their events.
fn hidden(instance: &Instance) -> Vec<Hidden> {
    let marks: [(Mark, &[&str]); 6] = [
        (Mark::Enters, &["sys_enter"]),
        (Mark::Issued, &["sched_waking"]),
        (Mark::InterruptSent, &["ipi_send_cpu"]),
        (Mark::Taken, &["reschedule_entry", "call_function_single_entry", "cpu_idle"]),
        (Mark::ScheduledIn, &["sched_switch"]),
        (Mark::UserMode, &["sys_exit"]),
    ];
    let lacks = |event: &&str| instance.missing().iter().any(|kind| kind.name == *event);
    marks
        .into_iter()
        .filter(|(_, events)| events.iter().all(lacks))
        .map(|(mark, events)| Hidden {
            mark,
            why: format!("this kernel has no event {}", events.join(", nor ")),
        })
        .collect()
}
