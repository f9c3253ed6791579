// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two threads that pass a byte to and fro through pipes: sleeps,
//! wake-ups and switches, as many as the scheduler can do.

use std::fs::File;
use std::io::{Read, Write};

use rustix::pipe::{PipeFlags, pipe_with};

use super::LoadKind;

/// Round trips in a slice; some 10 µs each.
const ROUNDS: u32 = 20;

pub(super) const CHURN: LoadKind = LoadKind {
    name: "churn",
    about: "two threads a worker that pass a byte to and fro: wake-ups and switches",
    begin: || {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map(|(from, to)| (File::from(from), File::from(to)));
        let ((mut from, mut there), (mut back, mut to)) = (pipe()?, pipe()?);
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let mut byte = [0];
            // Ends when the other end is dropped.
            while matches!(from.read(&mut byte), Ok(1)) && to.write_all(&byte).is_ok() {}
        })?;
        Ok(Box::new(move || {
            let mut byte = [1];
            for _ in 0..ROUNDS {
                there.write_all(&byte)?;
                back.read_exact(&mut byte)?;
            }
            Ok(())
        }))
    },
};
