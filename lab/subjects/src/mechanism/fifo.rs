// SPDX-License-Identifier: MIT OR Apache-2.0
//! A FIFO: a pipe with a name in the file system.

use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat, open};

use super::descriptor::{Reader, Writer};
use super::pipe::Pipe;
use super::{Carries, Explanation, Link, Mechanism, OpenError, Site};

pub(crate) struct Fifo;

pub(crate) struct FifoLink(PathBuf);

impl Mechanism for Fifo {
    type Link = FifoLink;
    const NAME: &'static str = "fifo";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "FIFO (named pipe), one byte a notification",
        how: "Each side opens the FIFO by its name; the notifier writes one byte, the waiter \
            blocks in read(2) for one byte. Each direction has a FIFO of its own, in the run's \
            folder.",
        kernel: "Once open, the same code as a pipe; the name is only looked up at open(2).",
        limits: "As a pipe: 65536 bytes by default, then the writer blocks. Opening for \
            reading waits for a writer unless O_NONBLOCK is given. The name outlives its \
            users. The timed wait is ppoll(2) before the read, a check is the same with a timeout of 0.",
        sources: &["fifo(7), mkfifo(3)", "Linux fs/pipe.c, fifo_open"],
    };
}

impl Link for FifoLink {
    type Notifier = Writer<Pipe>;
    type Waiter = Reader<Pipe>;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let path = site.path("fifo");
        // Every kernel has FIFOs; whether this file system takes one shows now.
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).map_err(OpenError::of("mkfifo"))?;
        Ok(Self(path))
    }
    fn waiter(&self) -> Result<Reader<Pipe>, OpenError> {
        // Without O_NONBLOCK this call would wait for the notifier,
        // which in turn comes only after the waiter.
        let fd = open(&self.0, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .map_err(OpenError::of("open"))?;
        fcntl_setfl(&fd, OFlags::empty()).map_err(OpenError::of("fcntl(F_SETFL)"))?;
        Ok(Reader::new(fd))
    }
    fn notifier(&self) -> Result<Writer<Pipe>, OpenError> {
        open(&self.0, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map(Writer::new)
            .map_err(OpenError::of("open"))
    }
}
