// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change that is made from outside to the threads of an edge's two names, as they appear.

use std::collections::HashSet;
use std::io::{Error, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

use doorbell_harness::scheduler::set_policy;
use doorbell_harness::trace::program::processes_of;
use doorbell_results::record::change::{Change, Policy};

/// Why a run was not one with the change.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// The system did not let a thread be changed.
    #[error("{change} was refused for thread '{thread}' ({task}): {cause}; {}", cure(change))]
    Refused { change: Change, thread: String, task: i32, cause: Error },
    /// Nobody of a name was there to be changed.
    #[error(
        "no thread called '{name}' was changed in a run with {change}: none was seen, or each ended \
         first. Is it the command that was recorded, with the same flags (--children), and does it \
         run longer than 20 ms, which is how often threads are looked for?"
    )]
    NoThread { change: Change, name: String },
}

fn cure(change: &Change) -> &'static str {
    match change {
        Change::Pin(_) => {
            "choose CPUs that it may have (`taskset -p`, its cgroup's cpuset); threads of other users \
             need root or CAP_SYS_NICE"
        }
        Change::Nice(_) => "run as root, grant CAP_SYS_NICE, or raise `ulimit -e`",
        Change::Scheduler(_) => "run as root, grant CAP_SYS_NICE, or raise `ulimit -r`",
        _ => "run as root, or grant CAP_SYS_NICE",
    }
}

/// Threads that are to be changed, and those that are.
#[derive(Debug)]
pub struct Outside<'edge> {
    names: Vec<&'edge str>,
    /// None in the runs without the change, which look at all threads alike and change none.
    change: Option<&'edge Change>,
    done: HashSet<i32>,
    /// Names of which a thread was changed.
    changed: HashSet<String>,
}

impl<'edge> Outside<'edge> {
    /// `change` to threads of these names, if it is one that is made so.
    pub fn new(names: Vec<&'edge str>, change: Option<&'edge Change>) -> Self {
        let change = change.filter(|change| change.is_from_outside());
        Self { names, change, done: HashSet::new(), changed: HashSet::new() }
    }

    /// Changes the threads that `process` has started since the last look; with `children` also
    /// those of processes that it started.
    pub fn look(&mut self, process: i32, children: bool) -> Result<(), NotMade> {
        let processes = if children { processes_of(process) } else { vec![process] };
        for process in processes {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
            let tasks = tasks.into_iter().flatten().flatten();
            let tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
            for task in tasks.filter(|task| !self.done.contains(task)).collect::<Vec<_>>() {
                let path = format!("/proc/{process}/task/{task}/comm");
                let name = doorbell_files::kernel(Path::new(&path)).unwrap_or_default();
                let name = name.trim_end();
                if !self.names.contains(&name) {
                    continue;
                }
                self.done.insert(task);
                let Some(change) = self.change else { continue };
                match make(change, task) {
                    Ok(()) => self.changed.extend([name.to_owned()]),
                    // One that has ended meanwhile needs nothing.
                    Err(cause) if is_gone(&cause) => {}
                    Err(cause) => {
                        let (change, thread) = (change.clone(), name.to_owned());
                        return Err(NotMade::Refused { change, thread, task, cause });
                    }
                }
            }
        }
        Ok(())
    }

    /// That somebody of each name was changed.
    pub fn made(self) -> Result<(), NotMade> {
        let Some(change) = self.change else { return Ok(()) };
        match self.names.iter().find(|name| !self.changed.contains(**name)) {
            Some(name) => Err(NotMade::NoThread { change: change.clone(), name: (*name).to_owned() }),
            None => Ok(()),
        }
    }
}

fn is_gone(cause: &Error) -> bool {
    cause.kind() == ErrorKind::NotFound || cause.raw_os_error() == Some(libc::ESRCH)
}

/// Makes `change` to one thread.
fn make(change: &Change, task: i32) -> Result<(), Error> {
    let thread = Pid::from_raw(task);
    match change {
        Change::Pin(cpus) => {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            Ok(sched_setaffinity(thread, &set)?)
        }
        // Linux takes the number of a thread for it alone.
        Change::Nice(nice) => Ok(setpriority_process(thread, *nice)?),
        Change::Scheduler(policy) => match policy {
            Policy::Other => set_policy(task, libc::SCHED_OTHER, 0),
            Policy::Batch => set_policy(task, libc::SCHED_BATCH, 0),
            Policy::Fifo(priority) => set_policy(task, libc::SCHED_FIFO, *priority),
        },
        Change::TimerSlack(slack) => slacken(task, *slack),
        Change::Spin(_) | Change::Mechanism(_) | Change::Batch(_) => Ok(()),
    }
}

/// `/proc/PID/task/TID` has no `timerslack_ns`, but `/proc/TID` has one, and it sets the slack of
/// that thread only (fs/proc/base.c, `proc_pid_lookup`).
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn slacken(task: i32, slack: Duration) -> Result<(), Error> {
    let mut file = std::fs::File::options().write(true).open(format!("/proc/{task}/timerslack_ns"))?;
    file.write_all(slack.as_nanos().to_string().as_bytes())
}
