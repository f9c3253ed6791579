// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that the kernel knows, threads or processes, and how control goes round among them.
//!
//! A task sleeps until control is given to it, does its turn, takes the next one from the queue and gives control to that.
//! The driver gives control to the first and sleeps until the last has given it back; it takes no part in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::Scene;
use super::course::{Course, Known};
use crate::mechanism::Fault;
use crate::trial::counters::Usage;
use crate::trial::host::fork;
use crate::trial::side::SideError;

/// A way in which one task gives control to another.
pub(super) trait Pass: Send + Sync + 'static {
    /// Gives control to the task `to`; called by whoever has it.
    fn give(&self, to: u32) -> Result<(), Fault>;
    /// Sleeps until control is given to the task `own`.
    fn take(&self, own: u32) -> Result<(), Fault>;
}

/// The whole life of the task `own`.
fn act(scene: &Scene, pass: &impl Pass, own: u32) {
    scene.map(own);
    let before = Usage::read();
    scene.stand_ready();
    match walk(scene, pass, own) {
        Ok(()) => scene.go_home(&before),
        Err(fault) => scene.complain(own, &fault),
    }
}

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
    let mut children = Children(Vec::new());
    course.starts(scene);
    for own in 0..scene.tasks {
        let child = fork(|| match place(scene, own) {
            Ok(()) => act(scene, pass, own),
            Err(fault) => scene.complain(own, &fault),
        });
        let child = child.map_err(|error| no_more("a process", own, scene, &error))?;
        children.0.push(child);
        scene.alive(own);
    }
    scene.await_ready(|| children.obituary())?;
    told(scene)?;
    let pids: Vec<i32> = children.0.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    scene.queue.fill();
    course.made(scene, Known::Processes(&pids))?;
    hand_over(scene, pass)?;
    scene.await_finished(|| children.obituary())?;
    told(scene)?;
    course.done(scene, Known::Processes(&pids))?;
    scene.send_home();
    children.leave()
}

/// The stack of a thread. A thousand of the usual 2 MiB would only be address space, but it counts against limits of it.
const STACK: usize = 64 << 10;

/// Lets a generation of threads live that give control to one another by `pass`.
///
/// They are never joined on an error: whoever could not go on has left others asleep for good, and the process ends.
pub(super) fn threads(scene: &Scene, course: &mut Course, pass: impl Pass) -> Result<(), SideError> {
    let pass = Arc::new(pass);
    let ids: Arc<[AtomicI32]> = (0..scene.tasks).map(|_| AtomicI32::new(0)).collect();
    let mut threads = Vec::with_capacity(scene.tasks as usize);
    course.starts(scene);
    for own in 0..scene.tasks {
        let (scene, pass, ids) = (*scene, Arc::clone(&pass), Arc::clone(&ids));
        let life = move || {
            ids[own as usize].store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            match place(&scene, own) {
                Ok(()) => act(&scene, &*pass, own),
                Err(fault) => scene.complain(own, &fault),
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(life);
        threads.push(thread.map_err(|error| no_more("a thread", own, &scene, &error))?);
        scene.alive(own);
    }
    scene.await_ready(|| Ok::<(), SideError>(()))?;
    told(scene)?;
    // Stored before each thread said that it stands ready.
    let ids: Vec<i32> = ids.iter().map(|id| id.load(Relaxed)).collect();
    scene.queue.fill();
    course.made(scene, Known::Threads(&ids))?;
    hand_over(scene, &*pass)?;
    scene.await_finished(|| Ok::<(), SideError>(()))?;
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
pub(super) struct Children(Vec<Pid>);

impl Children {
    /// The death that nobody asked for, if there was one.
    fn obituary(&mut self) -> Result<(), SideError> {
        match waitpid(None, WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let number = self.0.iter().position(|child| *child == pid);
                self.0.retain(|child| *child != pid);
                let who = number.map_or_else(|| "a child".to_owned(), |number| format!("task {number}"));
                Err(Fault::new(
                    "waitpid",
                    match status.terminating_signal() {
                        Some(signal) => format!("{who} was killed by signal {signal}"),
                        None => format!("{who} left early, exit status {:?}", status.exit_status()),
                    },
                )
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Waits until all have left.
    fn leave(mut self) -> Result<(), SideError> {
        for child in std::mem::take(&mut self.0) {
            waitpid(Some(child), WaitOptions::empty()).map_err(Fault::of("waitpid"))?;
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
            let _ = waitpid(Some(*child), WaitOptions::empty());
        }
    }
}
