// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves from the kernel's task state that the other side sleeps.
//!
//! What is read is the state letter. `S` or `D` means that the task has marked itself asleep, on
//! its way into the scheduler or long gone from its CPU; a wake-up sent now must change that mark
//! and cannot be lost. It does not mean that its CPU has already turned to something else: between
//! the mark and the switch lie some hundred nanoseconds, and a wake that falls into them is cheaper
//! than that of a sleeper. A reading of the state takes longer than that, and so does the
//! way from it to the notifying call; the voluntary switches that the kernel counted, which
//! plausibility holds against the waits, show how many sleeps went all the way.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use super::side::{Side, SideError};

/// How long the notifier looks for proof before it goes ahead unproven. Longer than a scheduler
/// tick at 100 Hz, so that a waiter merely preempted on its way to sleep still gets there.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Sleeper {
    stat: File,
}

impl Sleeper {
    /// Observes side `index` of the trial.
    pub fn of(side: &Side, index: usize) -> Result<Self, SideError> {
        let task = side.control.progress[index].task.load(Acquire);
        let path = format!("/proc/{task}/stat");
        #[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
        let stat = File::open(&path).map_err(|error| SideError::Setup {
            call: "open",
            cause: format!("{path}: {error}"),
            cure: "the blocked timing needs /proc with the processes of this user in it",
        })?;
        Ok(Self { stat })
    }

    /// Whether the task is seen marked asleep before patience runs out.
    pub fn sleeps(&mut self) -> bool {
        let start = Instant::now();
        loop {
            if self.state().is_some_and(|state| state == b'S' || state == b'D') {
                return true;
            }
            if start.elapsed() > PATIENCE {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// The state letter of `/proc/TASK/stat` (proc(5)): the first
    /// field after the command name's closing parenthesis.
    fn state(&self) -> Option<u8> {
        let mut buffer = [0; 128];
        let length = self.stat.read_at(&mut buffer, 0).ok()?;
        let end = buffer[..length].iter().rposition(|byte| *byte == b')')?;
        buffer.get(end + 2).copied()
    }
}
