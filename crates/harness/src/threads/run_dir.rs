// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of one run, which threads of one process have no need of: no object of theirs has a name that outlives them.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What tells the objects of a run apart.
#[derive(Debug, Default)]
pub struct RunDir {
    next: AtomicU32,
}

impl RunDir {
    /// As elsewhere the folder; nothing is made.
    pub fn create() -> io::Result<Self> {
        Ok(Self::here())
    }

    /// That of this process.
    pub(crate) fn here() -> Self {
        Self::default()
    }

    /// A number no other object of this run has.
    pub fn fresh(&self, salt: u32) -> u32 {
        let own = self.next.fetch_add(1, Relaxed);
        (std::process::id() << 8) ^ (own << 4) ^ salt
    }
}
