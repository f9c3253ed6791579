// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that the kernel knows, threads or processes, and how control goes round among them.
//!
//! A task sleeps until control is given to it, does its turn, takes the next one from the queue and gives control to that.
//! The driver gives control to the first and sleeps until the last has given it back; it takes no part in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::Scene;
use super::course::{Course, Known};
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

/// The whole life of the task `own`, on its own CPU: it stands ready, does `life`, and goes home with all others.
fn act(scene: &Scene, own: u32, life: impl Fn(&Scene, u32) -> Result<(), Fault>) {
    let lived = place(scene, own).and_then(|()| {
        scene.map(own);
        let before = Usage::read();
        scene.stand_ready();
        life(scene, own).map(|()| before)
    });
    match lived {
        Ok(before) => scene.go_home(&before),
        Err(fault) => scene.complain(own, &fault),
    }
}

/// A task's turns, each taken when control comes and ended by giving it to the next.
fn walk(scene: &Scene, pass: &impl Pass, own: u32) -> Result<(), Fault> {
    loop {
        pass.take(own)?;
        let more = scene.turn(own);
        if more {
            scene.queue.push(own);
        }
        match scene.queue.pop() {
            Some(next) => pass.give(next)?,
            None => scene.finish(),
        }
        if !more {
            return Ok(());
        }
    }
}

/// Pins the caller to the CPU that the task `own` is to run on.
fn place(scene: &Scene, own: u32) -> Result<(), Fault> {
    let Some(cpus) = scene.cpus else { return Ok(()) };
    let cpu = cpus[own as usize % 2];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| Fault::new("sched_setaffinity", format!("CPU {cpu}: {error}")))
}

/// Lets a generation of processes live that give control to one another by `pass`.
pub(super) fn processes(scene: &Scene, course: &mut Course, pass: &impl Pass) -> Result<(), SideError> {
    forked(scene, course, scene.tasks, |scene, own| walk(scene, pass, own), || hand_over(scene, pass))
}

/// Forks `number` processes, each of which does `life` once all stand ready; `begin` sets them going.
pub(super) fn forked(
    scene: &Scene,
    course: &mut Course,
    number: u32,
    life: impl Fn(&Scene, u32) -> Result<(), Fault>,
    begin: impl FnOnce() -> Result<(), SideError>,
) -> Result<(), SideError> {
    let mut children = Children::none(number);
    scene.expect(number);
    course.starts(scene);
    for own in 0..number {
        let child = fork(|| act(scene, own, &life));
        children.add(child.map_err(|error| no_more("a process", own, scene, &error))?);
        scene.alive(own);
    }
    scene.await_ready(number, || children.obituary())?;
    told(scene)?;
    let pids: Vec<i32> = children.0.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    scene.queue.fill();
    course.made(scene, Known::Processes(&pids)).map_err(|error| children.reason(scene, error))?;
    begin()?;
    scene.await_finished(|| children.obituary())?;
    told(scene)?;
    course.done(scene, Known::Processes(&pids)).map_err(|error| children.reason(scene, error))?;
    scene.send_home();
    children.leave()
}

/// The stack of a thread. A thousand of the usual 2 MiB would only be address space, but it counts against limits of it.
const STACK: usize = 64 << 10;

/// Lets a generation of threads live that give control to one another by `pass`.
pub(super) fn threads(scene: &Scene, course: &mut Course, pass: impl Pass) -> Result<(), SideError> {
    let pass = Arc::new(pass);
    let shared = Arc::clone(&pass);
    crowd(scene, course, move |scene, own| walk(scene, &*shared, own), || hand_over(scene, &*pass))
}

/// Lets a generation of threads live that all run at once, each doing `walk` from when `begin` is called.
pub(super) fn all_at_once(
    scene: &Scene,
    course: &mut Course,
    walk: impl Fn(&Scene, u32) + Send + Sync + 'static,
    begin: impl FnOnce(),
) -> Result<(), SideError> {
    let life = move |scene: &Scene, own| {
        scene.await_gate();
        walk(scene, own);
        Ok(())
    };
    crowd(scene, course, life, || {
        scene.open_gate();
        begin();
        Ok(())
    })
}

/// Makes a thread for each task, which does `life` once all stand ready; `begin` sets them going.
///
/// They are never joined on an error: whoever could not go on has left others asleep for good, and the process ends.
fn crowd(
    scene: &Scene,
    course: &mut Course,
    life: impl Fn(&Scene, u32) -> Result<(), Fault> + Send + Sync + 'static,
    begin: impl FnOnce() -> Result<(), SideError>,
) -> Result<(), SideError> {
    let life = Arc::new(life);
    let ids: Arc<[AtomicI32]> = (0..scene.tasks).map(|_| AtomicI32::new(0)).collect();
    let mut threads = Vec::with_capacity(scene.tasks as usize);
    scene.expect(scene.tasks);
    course.starts(scene);
    for own in 0..scene.tasks {
        let (scene, life, ids) = (*scene, Arc::clone(&life), Arc::clone(&ids));
        let act = move || {
            ids[own as usize].store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            act(&scene, own, &*life);
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(act);
        threads.push(thread.map_err(|error| no_more("a thread", own, &scene, &error))?);
        scene.alive(own);
    }
    let look = || Ok::<(), SideError>(());
    scene.await_ready(scene.tasks, look)?;
    told(scene)?;
    // Stored before each thread said that it stands ready.
    let ids: Vec<i32> = ids.iter().map(|id| id.load(Relaxed)).collect();
    scene.queue.fill();
    course.made(scene, Known::Threads(&ids))?;
    begin()?;
    scene.await_finished(look)?;
    told(scene)?;
    course.done(scene, Known::Threads(&ids))?;
    scene.send_home();
    for thread in threads {
        thread.join().map_err(|_| Fault::new("pthread_join", "a thread panicked"))?;
    }
    Ok(())
}

/// Why task `own` could not be made.
pub(super) fn no_more(what: &str, own: u32, scene: &Scene, error: &std::io::Error) -> SideError {
    let cause = format!(
        "{what} could not be made, number {own} of {}: {error}; raise `ulimit -u` or pids.max of the control group",
        scene.tasks
    );
    Fault::new("clone", cause).into()
}

/// Gives control to the first task.
fn hand_over(scene: &Scene, pass: &impl Pass) -> Result<(), SideError> {
    scene.queue.pop().map_or(Ok(()), |first| pass.give(first)).map_err(Into::into)
}

/// The complaint of a task as an error.
fn told(scene: &Scene) -> Result<(), SideError> {
    scene.complaint().map_or(Ok(()), |text| Err(Fault::new("a task", text).into()))
}

/// Child processes; whoever drops them kills those that are left.
pub(super) struct Children(VecDeque<Pid>);

impl Children {
    /// None yet of `all`.
    pub(super) fn none(all: u32) -> Self {
        Self(VecDeque::with_capacity(all as usize))
    }

    pub(super) fn add(&mut self, child: Pid) {
        self.0.push_back(child);
    }

    /// The death that nobody asked for, if there was one.
    fn obituary(&mut self) -> Result<(), SideError> {
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
    fn reason(&mut self, scene: &Scene, error: SideError) -> SideError {
        told(scene).and_then(|()| self.obituary()).err().unwrap_or(error)
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
            // Taken out once it has been waited for: an error leaves the rest to be killed when this is dropped.
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
