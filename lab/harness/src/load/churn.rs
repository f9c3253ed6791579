// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two threads that pass a byte to and fro through pipes: sleeps,
//! wake-ups and switches, as many as the scheduler can do.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::pipe::{PipeFlags, pipe_with};

use super::{LoadKind, Work};

#[derive(Debug)]
pub(super) struct Churn;

/// Round trips in a slice; some 10 µs each.
const ROUNDS: u32 = 20;

struct Pair {
    there: File,
    back: File,
}

impl LoadKind for Churn {
    fn name(&self) -> &'static str {
        "churn"
    }
    fn about(&self) -> &'static str {
        "two threads a worker that pass a byte to and fro: wake-ups and switches"
    }
    fn begin(&self) -> io::Result<Box<dyn Work>> {
        let (there_read, there) = pipe_with(PipeFlags::CLOEXEC)?;
        let (back, back_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (mut from, mut to) = (File::from(there_read), File::from(back_write));
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let mut byte = [0];
            // Ends when the other end is dropped.
            while matches!(from.read(&mut byte), Ok(1)) && to.write_all(&byte).is_ok() {}
        })?;
        Ok(Box::new(Pair { there: File::from(there), back: File::from(back) }))
    }
}

impl Work for Pair {
    fn slice(&mut self) -> io::Result<()> {
        let mut byte = [1];
        for _ in 0..ROUNDS {
            self.there.write_all(&byte)?;
            self.back.read_exact(&mut byte)?;
        }
        Ok(())
    }
}
