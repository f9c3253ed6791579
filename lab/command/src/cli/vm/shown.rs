// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest says, on the terminal of the command that runs it.

use super::super::out::{self, Out, aside};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use doorbell_vm::run::Observer;
use doorbell_vm::terminal::Raw;

pub(super) fn say(text: &str) {
    aside!("doorbell vm: {text}");
}

/// Shows what a guest says.
pub(super) struct Show {
    pub(super) quiet: bool,
    pub(super) console: bool,
    pub(super) told: bool,
    pub(super) interrupted: Arc<AtomicBool>,
}

impl Show {
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}

impl Observer for Show {
    fn up(&mut self, after: Duration) {
        self.note(&format!("the guest is up after {:.1} s", after.as_secs_f64()));
    }

    fn stdout(&mut self, bytes: &[u8]) {
        let mut out = Out::new();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        if (written.is_err() || out::gone()) && !self.told {
            // Nobody reads on, as behind `head`.
            self.told = true;
            self.interrupted.store(true, Relaxed);
        }
    }

    fn stderr(&mut self, bytes: &[u8]) {
        out::aside_bytes(bytes);
    }

    fn console(&mut self, bytes: &[u8]) {
        if self.console {
            out::aside_bytes(bytes);
        }
    }
}

/// The terminal of a guest that people talk with.
pub(super) struct GuestTerminal {
    pub(super) quiet: bool,
    pub(super) raw: Option<Raw>,
}

impl GuestTerminal {
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }
}

impl Observer for GuestTerminal {
    fn up(&mut self, _after: Duration) {
        // From now on every key is the guest's. Without it, keys still go there, line by line.
        self.raw = Raw::take().ok();
    }

    fn stdout(&mut self, _bytes: &[u8]) {}

    fn stderr(&mut self, _bytes: &[u8]) {}

    fn console(&mut self, bytes: &[u8]) {
        // What the kernel says while it boots is for the message of an error.
        if self.raw.is_some() {
            let mut out = Out::new();
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        }
    }
}
