// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`: groups of twenty senders and twenty receivers,
//! everybody sending to everybody of the group.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::alone::{Bench, alone, batch};
use super::figures::batch_time;
use super::{Contexts, Explanation, Fault, Form, Operation, PLAIN};
use doorbell_harness::fork::die_with_parent;

/// Senders, and receivers, of a group: the tool's default.
const FDS: usize = 20;
/// Bytes of a message: the tool's default.
const MESSAGE: usize = 100;

pub(super) const OPERATION: Operation = Operation {
    name: "hackbench",
    form: Form::alone("loop", 100),
    explanation: Explanation {
        summary: "the protocol of hackbench -g 1: 20 senders and 20 receivers, processes, Unix \
            sockets, 100 bytes",
        how: "Every sender writes --batch messages to every receiver of its group; timed from \
            the signal to start until all forty processes have ended.",
        kernel: "Mostly the scheduler: forty tasks on few cores, each woken for a handful of messages.",
        limits: "A throughput, given as time per loop; which task waits for which is left to \
            chance. Run it unpinned, as the tool.",
        sources: &["rt-tests, hackbench.c", "perf bench sched messaging"],
    },
    only: Some(Contexts::Processes),
    usual: false,
    open: |_, _| alone(|side| Ok(Group { loops: batch(side), processes: Vec::new(), go: None })),
    classic: |record| batch_time(record, "hackbench as printed", "loops", (1e9, "s")),
    ..PLAIN
};

/// Forty processes, ready to go.
struct Group {
    loops: u32,
    processes: Vec<Pid>,
    go: Option<OwnedFd>,
}

fn pair() -> Result<(OwnedFd, OwnedFd), Fault> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| Fault::new("socketpair", error))
}

/// Says that it is ready and waits until everybody is told to start.
fn ready(ready: &OwnedFd, go: &OwnedFd) -> Result<(), Errno> {
    rustix::io::write(ready, b"*")?;
    poll(&mut [PollFd::new(go, PollFlags::IN)], None)?;
    Ok(())
}

fn send(outs: &[OwnedFd], loops: u32) -> Result<(), Errno> {
    let message = [b'-'; MESSAGE];
    for _ in 0..loops {
        for out in outs {
            let mut rest: &[u8] = &message;
            while !rest.is_empty() {
                rest = &rest[rustix::io::write(out, rest)?..];
            }
        }
    }
    Ok(())
}

fn receive(from: &OwnedFd, packets: u64) -> Result<(), Errno> {
    let mut message = [0_u8; MESSAGE];
    for _ in 0..packets {
        let mut filled = 0;
        while filled < MESSAGE {
            let length = rustix::io::read(from, &mut message[filled..])?;
            if length == 0 {
                return Err(Errno::PIPE);
            }
            filled += length;
        }
    }
    Ok(())
}

impl Group {
    /// Forks a process that does `work` and ends with its verdict.
    fn fork(&mut self, work: impl FnOnce() -> Result<(), Errno>) -> Result<(), Fault> {
        let parent = rustix::process::getpid();
        // SAFETY: this process has a single thread (an operation of one side between processes), so the
        // child may do whatever the parent could; it ends without running anything of the parent's.
        match unsafe { libc::fork() } {
            -1 => Err(Fault::new("fork", std::io::Error::last_os_error())),
            0 => {
                let status = i32::from(!die_with_parent(parent) || work().is_err());
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(status) }
            }
            child => {
                self.processes.extend(Pid::from_raw(child));
                Ok(())
            }
        }
    }
}

impl Bench for Group {
    fn rewind(&mut self) -> Result<(), Fault> {
        let loops = self.loops;
        let (ready_in, ready_out) = pair()?;
        let (go_in, go_out) = pair()?;
        let mut outs = Vec::with_capacity(FDS);
        for _ in 0..FDS {
            let (from, to) = pair()?;
            self.fork(|| {
                ready(&ready_out, &go_in)?;
                receive(&from, u64::from(loops) * FDS as u64)
            })?;
            outs.push(to);
        }
        for _ in 0..FDS {
            self.fork(|| {
                ready(&ready_out, &go_in)?;
                send(&outs, loops)
            })?;
        }
        for _ in 0..2 * FDS {
            rustix::io::read(ready_in.as_fd(), &mut [0_u8; 1]).map_err(|error| Fault::new("read", error))?;
        }
        self.go = Some(go_out);
        Ok(())
    }

    fn run(&mut self, _: u32) -> Result<(), Fault> {
        if let Some(go) = self.go.take() {
            rustix::io::write(&go, b"*").map_err(|error| Fault::new("write", error))?;
            for process in self.processes.drain(..) {
                let status = waitpid(Some(process), WaitOptions::empty())
                    .map_err(|error| Fault::new("waitpid", error))?;
                if status.is_none_or(|(_, status)| status.exit_status() != Some(0)) {
                    return Err(Fault::new("hackbench", format!("process {process} did not end well")));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for process in self.processes.drain(..) {
            // An error means that it is gone already.
            let _ = rustix::process::kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
        }
    }
}
