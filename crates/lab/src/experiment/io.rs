// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io` as a plan: ways to wait for a device x directions x sizes of block, on one target; what the target needs before
//! the first trial, and what follows from a trial's counts.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::plan::{Layout, Plan};
use crate::machine::Machine;
use crate::mechanism::{Contexts, Host};
use crate::record::io::Io;
use crate::record::{Figure, Record, SideCounters, Warning, warning};
use crate::transfer::scratch::{self, ScratchError};
use crate::transfer::{self, Noticed, target};
use crate::trial::cell::{Cell, Direction, Pattern, Placement, Scheduler, Target, Timing, Until, WaitPolicy};
use crate::trial::run_dir::RunDir;

/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub struct Transfers {
    /// Ways, by name.
    pub ways: Vec<String>,
    /// Which way blocks go.
    pub directions: Vec<Direction>,
    /// Bytes of a block.
    pub sizes: Vec<u32>,
    /// Whether past the page cache.
    pub direct: bool,
    /// What is transferred between.
    pub target: Target,
    /// The waiter's CPU, and one for a thread of the kernel.
    pub placement: Placement,
    /// When a trial ends.
    pub until: Until,
    /// Repetitions.
    pub blocks: u32,
    /// Seed of the orders.
    pub seed: u64,
}

impl Transfers {
    /// The plan.
    pub fn plan(&self) -> Plan {
        let mut cells: Vec<Cell> = Vec::new();
        for name in &self.ways {
            let Ok(way) = transfer::find(name) else { continue };
            for &direction in &self.directions {
                for &size in &self.sizes {
                    let placement =
                        if way.kernel_thread() { self.placement.clone() } else { alone_on(&self.placement) };
                    let cell = Cell {
                        subject: name.clone(),
                        contexts: Contexts::Processes,
                        pattern: Pattern::Io { direction, direct: self.direct },
                        timing: Timing::Around,
                        wait: WaitPolicy::Block,
                        placement,
                        size,
                        until: self.until,
                        scheduler: Scheduler::Other,
                        injected_slowdown_ppm: None,
                        without_yardstick: false,
                        trace: None,
                        load: None,
                        target: Some(self.target.clone()),
                        latency_limit_us: None,
                    };
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
        Plan::new("io", Layout::Io, cells, self.blocks, self.seed)
    }
}

/// The placement of what needs one CPU: the first.
fn alone_on(placement: &Placement) -> Placement {
    match placement.cpus {
        Some([first, _]) => Placement { relation: "same-core".to_owned(), cpus: Some([first, first]) },
        None => placement.clone(),
    }
}

/// Makes and fills what `plan` transfers between, before the first trial; nothing for plans of other experiments. Where the user
/// has `interrupted`, it stops: what is there goes with the run's folder.
pub fn prepare(plan: &Plan, run_dir: &RunDir, interrupted: &AtomicBool) -> io::Result<()> {
    let mut targets: Vec<(&Target, u32)> = Vec::new();
    for cell in &plan.cells {
        if let Some(target) = &cell.target
            && !targets.iter().any(|(known, _)| *known == target)
        {
            targets.push((target, cell.size));
        }
    }
    for (target, block) in targets {
        let made = match target {
            Target::Created { bytes, folder, passes } => {
                // As fio does: where the user stands.
                let folder = folder.clone().unwrap_or_else(|| PathBuf::from("."));
                scratch::make(run_dir, &folder, *bytes, *passes, interrupted)
            }
            Target::Device { path, passes, .. } if *passes > 0 => {
                let opened = target::open(target, Direction::Write, true, block, run_dir.path());
                let opened = opened.map_err(io::Error::other)?;
                let bytes = opened.bytes;
                scratch::fill_device(run_dir, path, opened.file, bytes, *passes, interrupted)
            }
            Target::File { .. } | Target::Device { .. } => Ok(()),
        };
        match made {
            // Who carries the plan out sees it too, before the first trial.
            Err(ScratchError::Interrupted(_)) => return Ok(()),
            made => made.map_err(io::Error::other)?,
        }
    }
    Ok(())
}

/// What this machine lacks for `cell`.
pub fn lacks(cell: &Cell, machine: &Machine) -> Option<String> {
    let way = match transfer::find(&cell.subject) {
        Ok(way) => way,
        Err(unknown) => return Some(unknown.to_string()),
    };
    if let Err(lack) = way.available(&Host::default()) {
        return Some(lack.reason);
    }
    let one_cpu = match cell.placement.cpus {
        Some([first, second]) => first == second,
        None => machine.topology.usable.len() < 2,
    };
    (way.kernel_thread() && one_cpu)
        .then(|| format!("{} needs two CPUs: one for the waiter, one for the kernel's thread", way.name()))
}

/// Interrupts of the device by transfer, those that others' operations explain left out.
pub const INTERRUPTS: &str = "interrupts per transfer";
/// CPU time of all threads by transfer.
pub const CPU: &str = "CPU per transfer";
/// CPU time of the kernel's own threads by transfer.
pub const THREAD_CPU: &str = "CPU of the kernel's thread";
/// The rate from which on a CPU that only polls costs less than the interrupts do.
pub const BREAK_EVEN: &str = "break-even rate";

/// Adds to a record of transfers what follows from its counts; leaves every other record as it is.
pub fn derive(record: &mut Record) {
    let (Pattern::Io { .. }, Some(counted)) = (record.cell.pattern, record.io.clone()) else { return };
    // The side that leaves at once has counted nothing.
    record.sides.retain(|side| side.window_ns > 0);
    let window_ns = record.sides.first().map_or(0, |side| side.window_ns);
    if counted.kernel_thread_ns > 0 {
        record.sides.push(SideCounters {
            side: "kernel thread".to_owned(),
            system_ns: counted.kernel_thread_ns,
            window_ns,
            ..SideCounters::default()
        });
    }
    let transfers = record.tally.seen as f64;
    if transfers == 0.0 {
        return;
    }
    let spent = record.sides.iter().map(|side| side.user_ns + side.system_ns).sum::<u64>() as f64;
    let mut figure = |name: &str, value: f64, unit: &str, formula: String| {
        let [name, unit] = [name, unit].map(str::to_owned);
        record.figures.push(Figure { name, value, unit, formula });
    };
    figure(CPU, spent / transfers, "ns", format!("{spent} ns of all threads / {transfers} transfers"));
    if counted.kernel_thread_ns > 0 {
        let ns = counted.kernel_thread_ns;
        figure(THREAD_CPU, ns as f64 / transfers, "ns", format!("{ns} ns / {transfers} transfers"));
    }
    if let Some(own) = counted.own_interrupts(record.tally.seen) {
        let all = counted.interrupts.unwrap_or(0);
        let formula = format!("{own} / {transfers} transfers ({all} counted, the rest may be others')");
        figure(INTERRUPTS, own as f64 / transfers, "count", formula);
    }
    let by_interrupt = record.subject.noticed() == Some(Noticed::ByInterrupt);
    if by_interrupt && counted.kernel_thread_ns == 0 && spent > 0.0 {
        let rate = 1e9 * transfers / spent;
        let formula = "a second of CPU / CPU per transfer: at this rate waiting for interrupts takes a whole CPU, as polling \
                       always does";
        figure(BREAK_EVEN, rate, "1/s", formula.to_owned());
    }
    record.warnings.extend(masked(record, &counted));
}

/// What stands between the transfers and a medium.
fn masked(record: &Record, counted: &Io) -> Option<Warning> {
    let device = counted.device.as_ref().filter(|_| !record.subject.is_harness())?;
    (!device.behind.is_empty()).then(|| Warning {
        name: warning::BEHIND_THE_DEVICE.name.to_owned(),
        cause: format!("behind {} is {}", device.name, device.behind.join("; ")),
        effect: "times are those of everything behind it; the cost of an interrupt beside polling is this machine's".to_owned(),
        cure: "for a medium's own time measure where the device is the hardware's (PCI pass-through, or the host)".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::block::BlockDevice;
    use crate::record::sample;

    pub(super) fn transfers() -> Transfers {
        Transfers {
            ways: transfer::all().iter().map(|way| way.name().to_owned()).collect(),
            directions: vec![Direction::Read, Direction::Write],
            sizes: vec![4096],
            direct: true,
            target: Target::Created { bytes: 1 << 20, folder: None, passes: 1 },
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            until: Until::count(10),
            blocks: 1,
            seed: 1,
        }
    }

    #[test]
    fn only_what_has_a_thread_in_the_kernel_takes_a_second_cpu() {
        let plan = transfers().plan();
        assert_eq!(plan.cells.len(), 2 * transfer::all().len());
        for cell in &plan.cells {
            let two = cell.placement.cpus == Some([0, 1]);
            assert_eq!(two, cell.subject.contains("sqpoll"), "{}", cell.subject);
        }
    }

    #[test]
    fn counts_become_figures_and_a_kernels_thread_is_a_side_of_its_own() {
        let mut record = sample::record(sample::cell("sync"), 0, 40_000.0);
        record.cell.pattern = Pattern::Io { direction: Direction::Read, direct: true };
        record.figures.clear();
        record.sides.truncate(1);
        (record.sides[0].user_ns, record.sides[0].system_ns) = (0, 5_000_000);
        let device = BlockDevice {
            name: "vda".into(),
            interrupts: Some([12].into()),
            behind: vec!["a virtual disk".into()],
            ..BlockDevice::default()
        };
        record.io = Some(Io {
            device: Some(device),
            interrupts: Some(1010),
            device_operations: Some(1000),
            other_operations: Some(10),
            ..Io::default()
        });
        let figure = |record: &Record, name: &str| {
            record.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
        };
        let mut polled = record.clone();
        derive(&mut record);
        assert_eq!(figure(&record, CPU), Some(5000.0));
        assert_eq!(figure(&record, INTERRUPTS), Some(1.0));
        assert_eq!(figure(&record, BREAK_EVEN), Some(200_000.0));
        assert_eq!(record.warnings[0].name, "behind-the-device");

        polled.cell.subject = "uring-sqpoll".into();
        polled.io.as_mut().unwrap().kernel_thread_ns = 90_000_000;
        derive(&mut polled);
        assert_eq!(figure(&polled, CPU), Some(95_000.0));
        assert_eq!(polled.sides[1].system_ns, 90_000_000);
        assert_eq!(figure(&polled, BREAK_EVEN), None, "its thread polls already");
    }
}
