// SPDX-License-Identifier: MIT OR Apache-2.0
//! One generation's generations: when it was made, began, was done and was reaped, and what the
//! kernel counted in between.

use super::task_context::TaskContext;
use doorbell_harness::control::Step;
use doorbell_harness::fanout::memory;
use doorbell_harness::side::SideError;
use doorbell_machine::clock::Now;
use doorbell_machine::root::{Root, field};
use doorbell_results::figure::task::{SWITCHES_COUNTED, SWITCHES_PER_HANDOFF, TASK_BYTES};
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::Figure;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
/// Tasks that a difference in memory is divided by, at the least:
/// fewer are lost among pages that come and go.
const ENOUGH_FOR_MEMORY: u32 = 100;

/// How long the driver waits to see a task asleep: longer than any time slice on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Those among whom the kernel switches: the tasks that it knows.
#[derive(Clone, Copy)]
pub(super) enum Known<'tasks> {
    /// None: all is code of one thread.
    None,
    Threads(&'tasks [i32]),
    Processes(&'tasks [i32]),
}

/// The generations of one generation after another.
#[derive(Default)]
pub(crate) struct Generations {
    /// Whether memory is to be measured in this generation.
    pub(super) probing: bool,
    started: Ticks,
    made: Ticks,
    counted: Ticks,
    memory_before: Option<u64>,
    switches_before: u64,
    /// Switches of all generations since [`Generations::forget`].
    switches: u64,
    /// Whether the kernel had tasks of which it counted any.
    known: bool,
    figures: Vec<Figure>,
}

/// The lengths of a generation's phases, ticks.
#[derive(Clone, Copy)]
pub(super) struct Phases {
    pub(super) made: Ticks,
    pub(super) reaped: Ticks,
    /// From the first made to the last reaped.
    pub(super) life: Ticks,
}

impl Generations {
    /// Forgets what was counted in a generation that only warmed up;
    /// what was measured of memory stays.
    pub(super) fn forget(&mut self) {
        self.switches = 0;
        self.known = false;
    }

    /// The first task is about to be made; what the kind needs beside its tasks is there.
    pub(super) fn starts(&mut self, task_context: &TaskContext) {
        if self.probing {
            self.memory_before = Some(memory_of(&Known::None, 0));
        }
        task_context.control.progress[0]
            .step
            .store(Step::Starting as u32, std::sync::atomic::Ordering::Relaxed);
        self.started = task_context.clock.now();
    }

    /// All tasks are made and stand ready; returns when the kernel's
    /// counts have been read, and takes the first stamp.
    pub(super) fn made(&mut self, task_context: &TaskContext, known: Known) -> Result<(), SideError> {
        self.made = task_context.clock.now_awake();
        if let Some(before) = self.memory_before.take() {
            self.measure(task_context, &known, before);
        }
        self.switches_before = switches(&known)?;
        task_context.begin();
        Ok(())
    }

    /// All tasks are made, and run by themselves: what is left is to reap them.
    pub(super) fn run(&mut self, task_context: &TaskContext) {
        self.made = task_context.clock.now_awake();
        self.counted = self.made;
    }

    /// The last turn is done.
    pub(super) fn done(&mut self, task_context: &TaskContext, known: Known) -> Result<(), SideError> {
        self.switches += switches(&known)?.saturating_sub(self.switches_before);
        self.known |= !matches!(known, Known::None);
        self.counted = task_context.clock.now_awake();
        Ok(())
    }

    /// The last task is reaped.
    pub(super) fn reaped(&self, task_context: &TaskContext) -> Phases {
        let now = task_context.clock.now_awake();
        Phases {
            made: self.made.saturating_sub(self.started),
            reaped: now.saturating_sub(self.counted),
            life: now.saturating_sub(self.started),
        }
    }

    /// Adds a figure to the record.
    pub(super) fn figure(&mut self, name: &str, value: f64, unit: &str, formula: String) {
        self.figures.push(Figure { name: name.to_owned(), value, unit: unit.to_owned(), formula });
    }

    /// Switches counted, and the figures of the record.
    pub(super) fn result(mut self, handoffs: u64) -> (Option<u64>, Vec<Figure>) {
        let counted = self.known.then_some(self.switches);
        if let Some(switches) = counted {
            let how = "voluntary and involuntary switches in /proc/PID/task/TID/status of every \
                task, from when all stood ready and asleep to when all slept again after the last \
                hand-off";
            self.figure(SWITCHES_COUNTED, switches as f64, "count", how.to_owned());
            if handoffs > 0 {
                let formula = format!("{switches} switches counted / {handoffs} hand-offs");
                self.figure(SWITCHES_PER_HANDOFF, switches as f64 / handoffs as f64, "count", formula);
            }
        }
        (counted, self.figures)
    }

    fn measure(&mut self, task_context: &TaskContext, known: &Known, before: u64) {
        if task_context.tasks < ENOUGH_FOR_MEMORY {
            return;
        }
        let after = memory_of(known, task_context.tasks);
        let each = after.saturating_sub(before) as f64 / f64::from(task_context.tasks);
        let formula = format!(
            "({after} - {before} bytes of PSS and of the kernel's stacks, page tables and slab) / \
             {} tasks that stand ready",
            task_context.tasks
        );
        self.figure(TASK_BYTES, each, "B", formula);
    }
}

/// Memory of this process and of the processes among `known`, and the
/// kernel's for its tasks, bytes.
fn memory_of(known: &Known, tasks: u32) -> u64 {
    let root = Root::live();
    let mut pids = BTreeSet::from([rustix::process::getpid().as_raw_nonzero().get()]);
    if let Known::Processes(processes) = known {
        pids.extend(processes.iter().take(tasks as usize));
    }
    let memory = memory::of(&root, &pids, 0);
    memory.pss_bytes + memory.kernel_bytes
}

/// Context switches of all tasks the kernel knows, each seen asleep: a count
/// read before a task has gone to sleep lacks the switch that takes it
/// there. A dead one is an error at once; whoever made it knows how it died.
fn switches(known: &Known) -> Result<u64, SideError> {
    let (ids, of_process) = match known {
        Known::None => return Ok(0),
        Known::Threads(ids) => (ids, false),
        Known::Processes(ids) => (ids, true),
    };
    ids.iter().map(|id| asleep(*id, of_process)).sum()
}

fn asleep(id: i32, of_process: bool) -> Result<u64, SideError> {
    let path = if of_process { format!("/proc/{id}/status") } else { format!("/proc/self/task/{id}/status") };
    let started = Instant::now();
    loop {
        // Before the look: this machine may stand still after it.
        let is_late = started.elapsed() > PATIENCE;
        let text = doorbell_files::kernel(&path).map_err(|error| unread(&path, error.to_string()))?;
        let number = |key: &str| field(&text, key)?.trim().parse::<u64>().ok();
        let counts = number("voluntary_ctxt_switches").zip(number("nonvoluntary_ctxt_switches"));
        let (voluntary, involuntary) =
            counts.ok_or_else(|| unread(&path, "it has no counts of context switches".to_owned()))?;
        // proc_pid_status(5): Z and X are dead, S and D asleep; any other may yet sleep.
        match field(&text, "State").and_then(|state| state.trim_start().chars().next()) {
            Some('S' | 'D') => return Ok(voluntary + involuntary),
            Some('Z' | 'X') => return Err(unread(&path, "the task is dead".to_owned())),
            _ => {}
        }
        if is_late {
            return Err(unread(&path, "the task never slept".to_owned()));
        }
        // The task may need this very CPU to get to its sleep.
        std::thread::sleep(Duration::from_micros(20));
    }
}

fn unread(path: &str, cause: String) -> SideError {
    SideError::Setup {
        call: "read",
        cause: format!("{path}: {cause}"),
        cure: "counting switches needs /proc with the processes of this user in it",
    }
}
