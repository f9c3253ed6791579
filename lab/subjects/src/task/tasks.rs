// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that the kernel knows, threads or processes, and how control goes round among them.
//!
//! A task sleeps until control is given to it, does its turn, takes the next one from the queue and
//! gives control to that. The driver gives control to the first and sleeps until the last has given
//! it back; it takes no part in between.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::TaskContext;
use super::generations::{Generations, Known};
use crate::mechanism::Fault;
use doorbell_harness::counters::Usage;
use doorbell_harness::fork::fork;
use doorbell_harness::side::SideError;

/// A way in which one task gives control to another.
pub(super) trait Pass: Send + Sync + 'static {
    /// Gives control to the task `to`; called by whoever has it.
    fn give(&self, to: u32) -> Result<(), Fault>;
    /// Sleeps until control is given to the task `own`.
    fn take(&self, own: u32) -> Result<(), Fault>;
}

/// The whole life of the task `own`, on its own CPU: it stands ready,
/// does `life`, and goes home with all others.
fn act(task_context: &TaskContext, own: u32, life: impl Fn(&TaskContext, u32) -> Result<(), Fault>) {
    let lived = place(task_context, own).and_then(|()| {
        task_context.map(own);
        let before = Usage::read();
        task_context.stand_ready();
        life(task_context, own).map(|()| before)
    });
    match lived {
        Ok(before) => task_context.go_home(&before),
        Err(fault) => task_context.complain(own, &fault),
    }
}

/// A task's turns, each taken when control comes and ended by giving it to the next.
fn walk(task_context: &TaskContext, pass: &impl Pass, own: u32) -> Result<(), Fault> {
    loop {
        pass.take(own)?;
        let more = task_context.turn(own);
        if more {
            task_context.queue.push(own);
        }
        match task_context.queue.pop() {
            Some(next) => pass.give(next)?,
            None => task_context.finish(),
        }
        if !more {
            return Ok(());
        }
    }
}

/// Pins the caller to the CPU that the task `own` is to run on.
fn place(task_context: &TaskContext, own: u32) -> Result<(), Fault> {
    let Some(cpus) = task_context.cpus else { return Ok(()) };
    let cpu = cpus[own as usize % 2];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| Fault::new("sched_setaffinity", format!("CPU {cpu}: {error}")))
}

/// Lets a generation of processes live that give control to one another by `pass`.
pub(super) fn processes(
    task_context: &TaskContext,
    generations: &mut Generations,
    pass: &impl Pass,
) -> Result<(), SideError> {
    forked(
        task_context,
        generations,
        task_context.tasks,
        |task_context, own| walk(task_context, pass, own),
        || hand_over(task_context, pass),
    )
}

/// Forks `number` processes, each of which does `life` once all stand
/// ready; `begin` sets them going.
pub(super) fn forked(
    task_context: &TaskContext,
    generations: &mut Generations,
    number: u32,
    life: impl Fn(&TaskContext, u32) -> Result<(), Fault>,
    begin: impl FnOnce() -> Result<(), SideError>,
) -> Result<(), SideError> {
    task_context.expect(number);
    let make = |own| fork(|| act(task_context, own, &life));
    let mut children = Children::made(task_context, generations, number, "a process", make)?;
    task_context.await_ready(number, || children.first_death())?;
    told(task_context)?;
    let pids: Vec<i32> = children.0.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    task_context.queue.fill();
    generations
        .made(task_context, Known::Processes(&pids))
        .map_err(|error| children.reason(task_context, error))?;
    begin()?;
    task_context.await_finished(|| children.first_death())?;
    told(task_context)?;
    generations
        .done(task_context, Known::Processes(&pids))
        .map_err(|error| children.reason(task_context, error))?;
    task_context.send_home();
    children.leave()
}

/// The stack of a thread. A thousand of the usual 2 MiB would only be
/// address space, but it counts against limits of it.
const STACK: usize = 64 << 10;

/// Lets a generation of threads live that give control to one another by `pass`.
pub(super) fn threads(
    task_context: &TaskContext,
    generations: &mut Generations,
    pass: impl Pass,
) -> Result<(), SideError> {
    let pass = Arc::new(pass);
    let shared = Arc::clone(&pass);
    crowd(
        task_context,
        generations,
        move |task_context, own| walk(task_context, &*shared, own),
        || hand_over(task_context, &*pass),
    )
}

/// Lets a generation of threads live that all run at once, each doing
/// `walk` from when `begin` is called.
pub(super) fn all_at_once(
    task_context: &TaskContext,
    generations: &mut Generations,
    walk: impl Fn(&TaskContext, u32) + Send + Sync + 'static,
    begin: impl FnOnce(),
) -> Result<(), SideError> {
    let life = move |task_context: &TaskContext, own| {
        task_context.await_gate();
        walk(task_context, own);
        Ok(())
    };
    crowd(task_context, generations, life, || {
        task_context.open_gate();
        begin();
        Ok(())
    })
}

/// Makes a thread for each task, which does `life` once all stand ready; `begin` sets them going.
///
/// They are never joined on an error: whoever could not go on has
/// left others asleep for good, and the process ends.
fn crowd(
    task_context: &TaskContext,
    generations: &mut Generations,
    life: impl Fn(&TaskContext, u32) -> Result<(), Fault> + Send + Sync + 'static,
    begin: impl FnOnce() -> Result<(), SideError>,
) -> Result<(), SideError> {
    let life = Arc::new(life);
    let ids: Arc<[AtomicI32]> = (0..task_context.tasks).map(|_| AtomicI32::new(0)).collect();
    let mut threads = Vec::with_capacity(task_context.tasks as usize);
    task_context.expect(task_context.tasks);
    generations.starts(task_context);
    for own in 0..task_context.tasks {
        let (task_context, life, ids) = (*task_context, Arc::clone(&life), Arc::clone(&ids));
        let act = move || {
            ids[own as usize].store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            act(&task_context, own, &*life);
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(act);
        threads.push(thread.map_err(|error| no_more("a thread", own, &task_context, &error))?);
        task_context.alive(own);
    }
    let look = || Ok::<(), SideError>(());
    task_context.await_ready(task_context.tasks, look)?;
    told(task_context)?;
    // Stored before each thread said that it stands ready.
    let ids: Vec<i32> = ids.iter().map(|id| id.load(Relaxed)).collect();
    task_context.queue.fill();
    generations.made(task_context, Known::Threads(&ids))?;
    begin()?;
    task_context.await_finished(look)?;
    told(task_context)?;
    generations.done(task_context, Known::Threads(&ids))?;
    task_context.send_home();
    for thread in threads {
        thread.join().map_err(|_| Fault::new("pthread_join", "a thread panicked"))?;
    }
    Ok(())
}

/// Why task `own` could not be made.
pub(super) fn no_more(what: &str, own: u32, task_context: &TaskContext, error: &io::Error) -> SideError {
    let cause = format!(
        "{what} could not be made, number {own} of {}: {error}; raise `ulimit -u` or pids.max of \
         the control group",
        task_context.tasks
    );
    Fault::new("clone", cause).into()
}

/// Gives control to the first task.
fn hand_over(task_context: &TaskContext, pass: &impl Pass) -> Result<(), SideError> {
    task_context.queue.pop().map_or(Ok(()), |first| pass.give(first)).map_err(Into::into)
}

/// The complaint of a task as an error.
fn told(task_context: &TaskContext) -> Result<(), SideError> {
    task_context.complaint().map_or(Ok(()), |text| Err(Fault::new("a task", text).into()))
}

/// Child processes; whoever drops them kills those that are left.
pub(super) struct Children(VecDeque<Pid>);

impl Children {
    /// A generation of `all`, each of which `make` begins to live; `what` says what one is.
    pub(super) fn made(
        task_context: &TaskContext,
        generations: &mut Generations,
        all: u32,
        what: &str,
        make: impl Fn(u32) -> io::Result<Pid>,
    ) -> Result<Self, SideError> {
        let mut children = Self(VecDeque::with_capacity(all as usize));
        generations.starts(task_context);
        for own in 0..all {
            children.0.push_back(make(own).map_err(|error| no_more(what, own, task_context, &error))?);
            task_context.alive(own);
        }
        Ok(children)
    }

    /// The death that nobody asked for, if there was one.
    fn first_death(&mut self) -> Result<(), SideError> {
        match waitpid(None, WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let number = self.0.iter().position(|child| *child == pid);
                self.0.retain(|child| *child != pid);
                let who = number.map_or_else(|| "a child".to_owned(), |number| format!("task {number}"));
                let how = match status.terminating_signal() {
                    Some(signal) => format!("was killed by signal {signal}"),
                    None => format!("left early, exit status {:?}", status.exit_status()),
                };
                Err(Fault::new("waitpid", format!("{who} {how}")).into())
            }
            _ => Ok(()),
        }
    }

    /// Why a task could not be read: it complained, it is dead, or else what `error` says.
    fn reason(&mut self, task_context: &TaskContext, error: SideError) -> SideError {
        told(task_context).and_then(|()| self.first_death()).err().unwrap_or(error)
    }

    /// Waits until all have left.
    pub(super) fn leave(self) -> Result<(), SideError> {
        self.leave_after(|number, status| match status.terminating_signal() {
            Some(signal) => {
                let cause = format!("task {number} was killed by signal {signal}");
                Err(Fault::new("waitpid", cause).into())
            }
            None => Ok(()),
        })
    }

    /// Waits until all have left, and lets `look` see how each did.
    pub(super) fn leave_after(
        mut self,
        look: impl Fn(u32, WaitStatus) -> Result<(), SideError>,
    ) -> Result<(), SideError> {
        for number in 0.. {
            // Taken out once it has been waited for: an error leaves
            // the rest to be killed when this is dropped.
            let Some(&child) = self.0.front() else { break };
            let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
            let ended = ended.map_err(Fault::of("waitpid"))?;
            self.0.pop_front();
            if let Some((_, status)) = ended {
                look(number, status)?;
            }
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &self.0 {
            // An error means that it is gone already.
            let _ = kill_process(*child, Signal::KILL);
        }
        for child in &self.0 {
            // Until it is gone: it may run on memory that is freed next.
            let _ = retry_on_intr(|| waitpid(Some(*child), WaitOptions::empty()));
        }
    }
}
