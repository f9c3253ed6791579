// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pipe without a name, which every system has: one byte a notification.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use doorbell_results::record::subject::Carries;

use super::{Kind, Means, USUAL};

pub(super) static PIPE: Kind = Kind {
    name: "pipe",
    what: "a pipe without a name: one byte a notification",
    timed: false,
    carries: Carries::Message,
    open: || {
        let (read, write) = io::pipe()?;
        Ok(Arc::new(Pipe { read, write }))
    },
    ..USUAL
};

struct Pipe {
    read: PipeReader,
    write: PipeWriter,
}

impl Means for Pipe {
    fn post(&self) -> io::Result<()> {
        (&self.write).write_all(&[1])
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        if timeout.is_some() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a pipe is read without a time-out here"));
        }
        (&self.read).read_exact(&mut [0]).map(|()| true)
    }
}
