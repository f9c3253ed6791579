// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal of the user, while it belongs to a guest.

use std::io;

use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal whose keys all go to the guest, Ctrl-C with them; as it
/// was before once this value goes.
#[derive(Debug)]
pub struct Raw {
    before: Termios,
}

impl Raw {
    /// Takes the terminal that is standard input.
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
