// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches a host for one trial and brings its report home.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpid;

use super::no_task;
use super::order::{Order, Report, Task};
use super::run_dir::RunDir;
use doorbell_results::machine::clock::Clock;

/// The hidden verb under which this program is a host.
pub const HOST_VERB: &str = "trial-host";

/// How long an interrupt may go unheard; a wake-up of some 10 µs a second is what it costs.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// This very program, even if its file was replaced while the run goes on (proc(5)).
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// A command of this very program, which lists of processes call by its name.
pub fn own_program() -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    std::os::unix::process::CommandExt::arg0(&mut command, "doorbell");
    command
}

/// Runs `task` in processes of its own; ends it early once
/// `interrupted` is set, which a signal must announce.
pub fn launch(task: Task, clock: Clock, run_dir: &RunDir, interrupted: &AtomicBool) -> io::Result<Report> {
    let traced = matches!(&task, Task::Trial(configuration) if configuration.trace.is_some());
    let order = Order {
        task,
        // Beside the kernel's events it must be a clock that they are stamped by too
        // (Documentation/trace/ftrace.rst, trace_clock).
        clock: if traced && !clock.source.stamps_events() { Clock::MONOTONIC } else { clock },
        run_dir: run_dir.path().to_owned(),
        lock: run_dir.lock().as_raw_fd(),
        parent: getpid().as_raw_nonzero().get(),
    };
    let mut child = own_program()
        .arg(HOST_VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let hint = if error.kind() == io::ErrorKind::NotFound { "; is /proc mounted?" } else { "" };
            let error = no_task::explained(&error);
            io::Error::new(error.kind(), format!("cannot start {OWN_PROGRAM}: {error}{hint}"))
        })?;
    let report = converse(&mut child, &order, interrupted);
    if report.is_err() {
        // An error means that it is gone already.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let (text, complaint) = report?;
    serde_json::from_slice(text.as_bytes()).or_else(|_| {
        let complaint = complained(&complaint);
        let cause = format!("the trial's host left without a report ({status}) {complaint}");
        Ok(Report::Failed { cause, at: None })
    })
}

/// Characters that are kept of what a process complains of.
const LONGEST_COMPLAINT: usize = 2000;

/// What a process said on its standard error before it left, for a record: without the backtrace
/// that a panic has where the user asks for one, nor the advice to do so, and not without end.
pub(crate) fn complained(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.trim() != "stack backtrace:");
    let said: Vec<&str> = lines.filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE")).collect();
    said.join("\n").trim().chars().take(LONGEST_COMPLAINT).collect()
}

/// Gives the order and reads until both outputs are closed; on an
/// interrupt, closes the host's input.
fn converse(child: &mut Child, order: &Order, interrupted: &AtomicBool) -> io::Result<(String, String)> {
    let mut stdin = child.stdin.take();
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    };
    if let Some(stdin) = &mut stdin {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        stdin.write_all(&line)?;
    }
    let (mut text, mut complaint) = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        if interrupted.load(Relaxed) {
            drop(stdin.take());
        }
        let mut watched = [PollFd::new(&stdout, PollFlags::IN), PollFd::new(&stderr, PollFlags::IN)];
        let range = if err_open { if out_open { 0..2 } else { 1..2 } } else { 0..1 };
        // A signal between the look above and this wait would
        // otherwise be heard only at the end of the trial.
        match poll(&mut watched[range], Some(&LOOK_EVERY)) {
            // The signal that interrupts a run also ends this wait.
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [out_ready, err_ready] = watched.map(|fd| !fd.revents().is_empty());
        let mut buffer = [0; 1 << 16];
        if out_open && out_ready {
            let length = stdout.read(&mut buffer)?;
            text.extend_from_slice(&buffer[..length]);
            out_open = length > 0;
        }
        if err_open && err_ready {
            let length = stderr.read(&mut buffer)?;
            // Read to its end, or who writes it would wait; what comes after its beginning is dropped.
            let room = (1_usize << 16).saturating_sub(complaint.len()).min(length);
            complaint.extend_from_slice(&buffer[..room]);
            err_open = length > 0;
        }
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), String::from_utf8_lossy(&complaint).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With RUST_BACKTRACE set, forty lines of addresses stood in the result file.
    #[test]
    fn a_complaint_keeps_what_happened_and_no_backtrace() {
        let panic =
            "\nthread 'main' panicked at src/x.rs:1:2:\nno thread\nstack backtrace:\n   0: 0x55aa - std\n";
        assert_eq!(complained(panic), "thread 'main' panicked at src/x.rs:1:2:\nno thread");
        let advice =
            "no thread\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(complained(advice), "no thread");
        assert_eq!(complained(&"µ".repeat(10_000)).chars().count(), LONGEST_COMPLAINT);
    }
}
