// SPDX-License-Identifier: MIT OR Apache-2.0
//! What surrounds two processes: users and namespaces, closed
//! descriptors, clocks, memory cgroups, kinds of memory.
//!
//! The other process is this test program again, started with a role; see `child`. What this
//! machine does not let a test have, the test says.

mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod containers;
mod descriptors;
#[path = "../common/meet.rs"]
mod meet;
mod memory;
mod rights;

use common::{FOREVER, Other, ROLE, me_as};
use doorbell::channel::broadcast::{Publisher, WhenSlow};
use doorbell::channel::{Lanes, Receiver, RecvError, Sender, pair_waiting_by};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{
    Connection, MemoryOptions, Offer, RendezvousError, Segment, Users, inherited, socket,
};
use doorbell::wait::{Adaptive, Eventfd, Futex, Spin, Wait, Yield};
use doorbell::{Bell, Deadline, WaitError, wait_any};
use meet::meet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit, test_kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(5);

fn succeeds(mut command: Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "it says above why: {status}");
}

/// A path that no other test uses, below a directory that every user can enter.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("doorbell-environment-{}-{name}", std::process::id()))
}

/// Not a test: what the other process does.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (verb, path) = role.split_once(' ').unwrap_or((&role, ""));
    match verb {
        "visit" => containers::visit(Path::new(path)),
        "close-in-a-child" => descriptors::close_in_a_child(),
        "close-everything" => descriptors::close_everything(),
        "run-without-standard-files" => descriptors::run_without_standard_files(Path::new(path)),
        "wait-in-time" => clocks::wait_in_time(),
        "wait-by-the-wall-clock" => clocks::wait_by_the_wall_clock(),
        "make-a-large-segment" => memory::make_a_large_segment(path == "true"),
        "send-until-killed" => memory::send_until_killed(),
        "read-a-signal-from-a-file" => rights::read_a_signal_from_a_file(Path::new(path)),
        "make-more-than-a-file-may-have" => rights::make_more_than_a_file_may_have(Path::new(path)),
        "say-whose-folder" => rights::say_whose_folder(Path::new(path)),
        "count-descriptors" => descriptors::count_descriptors(),
        verb => panic!("no role {verb}"),
    }
}

fn segment(lanes: u32) -> Arc<Segment> {
    let lanes = Lanes::new(lanes, lanes, 4096).unwrap();
    Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap())
}

/// Moves what `command` starts into namespaces of its own; `flags` are those of unshare(2). Where
/// this process is not root, into a user namespace too, in which it is.
fn unshare(command: &mut Command, flags: libc::c_int) {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let maps = [format!("0 {user} 1"), format!("0 {group} 1")];
    let as_root = user == 0;
    // SAFETY: system calls only, which are async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            if !as_root {
                of_libc(libc::unshare(libc::CLONE_NEWUSER))?;
                for (file, text) in [("setgroups", "deny"), ("uid_map", &maps[0]), ("gid_map", &maps[1])] {
                    let directory = rustix::fs::open("/proc/self", OFlags::PATH, Mode::empty())?;
                    let file = rustix::fs::openat(directory, file, OFlags::WRONLY, Mode::empty())?;
                    rustix::io::write(file, text.as_bytes())?;
                }
            }
            of_libc(libc::unshare(flags))
        });
    }
}

fn of_libc(result: libc::c_int) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Does `error` say that this process may not, or has as many as it
/// may have? Anything else is a fault of the test's.
fn is_not_allowed(error: &std::io::Error) -> bool {
    use libc::{EACCES, ENOSPC, EPERM, EROFS};
    matches!(error.raw_os_error(), Some(EPERM | EACCES | ENOSPC | EROFS))
}

/// Starts it, or says why this machine does not let it have its environment.
fn start_if_allowed(command: &mut Command) -> Option<Other> {
    match command.spawn() {
        Ok(child) => Some(Other(child)),
        Err(error) if is_not_allowed(&error) => {
            doorbell_skipped::skip(format_args!("this process may not have namespaces of its own: {error}"));
            None
        }
        Err(error) => panic!("not started: {error}"),
    }
}

/// How it ended. A hang is found.
fn end_of(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < FOREVER, "hung");
        thread::sleep(Duration::from_millis(1));
    }
}
