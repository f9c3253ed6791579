// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error, and the one way in which the command writes to them.
//!
//! A reader that left, as `head` does, changes nothing about what a verb found: what is written
//! goes nowhere, in silence, and the exit status stays the verb's, wherever that reader was.
//! Whatever else stops a writing, such as a full disk, is told once the verb has ended, and is its
//! status where that is not worse ([`unwritten`]). clippy.toml forbids the streams of the standard
//! library everywhere else.

use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::usage::Usage;
use doorbell_files::replace;
use doorbell_results::record::write::WriteError;

/// Whether nothing more is written to standard output.
static GONE: AtomicBool = AtomicBool::new(false);
/// What could not be written, the first of it.
static UNWRITTEN: Mutex<Option<anyhow::Error>> = Mutex::new(None);

/// Whether the reader of standard output has left or it takes no
/// more, so that nothing more need be made for it.
pub fn gone() -> bool {
    GONE.load(Relaxed)
}

/// Remembers that something could not be written, which is told at the end: it changes nothing
/// about what a verb finds.
pub fn failed(error: anyhow::Error) {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// What could not be written, if anything.
pub fn unwritten() -> Option<anyhow::Error> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Standard output. To write to it never fails.
#[derive(Debug)]
pub struct Out(io::Stdout);

impl Out {
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place of it")]
        Self(io::stdout())
    }

    /// Waits until nobody is left to read it.
    pub fn outlive_reader(&self) -> io::Result<()> {
        // With nothing asked for it tells of an end alone.
        let mut out = [PollFd::new(&self.0, PollFlags::empty())];
        retry_on_intr(|| poll(&mut out, None))?;
        Ok(())
    }

    /// What `act` does, or `instead` where it cannot be done.
    fn done<T>(&mut self, instead: T, act: impl Fn(&mut io::Stdout) -> io::Result<T>) -> io::Result<T> {
        while !gone() {
            match act(&mut self.0) {
                // Whoever shares it made it so; the terminal of `ssh` is such a one.
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    GONE.store(true, Relaxed);
                    if error.kind() != ErrorKind::BrokenPipe {
                        failed(anyhow::Error::new(error).context("cannot write to standard output"));
                    }
                }
                done => return done,
            }
        }
        Ok(instead)
    }
}

/// Until it takes more, or a while where that cannot be asked.
fn wait(out: &io::Stdout) {
    if poll(&mut [PollFd::new(out, PollFlags::OUT)], None).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

impl Default for Out {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.done(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.done((), |out| out.flush())
    }
}

/// Writes `text` to standard output, at once.
pub fn say(text: &str) {
    say_bytes(text.as_bytes());
}

/// Writes `bytes` to standard output, at once.
pub fn say_bytes(bytes: &[u8]) {
    let mut out = Out::new();
    // It never fails.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Writes what `put` writes to the file `target`, whose old content stays until the new one is
/// whole; `-` is standard output. A result is not replaced by what is no result: `report -o a.json
/// b.json` was meant to read both.
pub fn put(target: &Path, put: impl Fn(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    if is_result(target) {
        let refused = format!("{} is a result, which would be gone; name another file", target.display());
        return Err(Usage(refused).into());
    }
    let written = if target.as_os_str() == "-" {
        let mut out = BufWriter::new(Out::new());
        put(&mut out).and_then(|()| out.flush())
    } else {
        replace(target, |file| put(&mut Piped(file)))
    };
    match written {
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => {
            Ok(written.map_err(|cause| WriteError { target: target.to_owned(), cause, rescued: None })?)
        }
    }
}

/// A file, or a pipe whose reader may leave: what is written then goes nowhere, before a writer in
/// between makes another error of it.
struct Piped<W>(W);

impl<W: Write> Write for Piped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// Whether a result lies at `path`.
fn is_result(path: &Path) -> bool {
    /// Enough to see how it begins.
    const HEAD: u64 = 200;
    let is_file = std::fs::metadata(path).is_ok_and(|there| there.is_file());
    let mut head = Vec::new();
    let read =
        is_file.then(|| doorbell_files::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)));
    let head = String::from_utf8_lossy(&head);
    read.is_some_and(|read| read.is_ok())
        && head.trim_start().starts_with('{')
        && head.contains("\"schema_version\"")
}

/// Writes `bytes` to standard error. It is beside the answer: that it
/// cannot be written changes nothing.
pub fn aside_bytes(bytes: &[u8]) {
    #[expect(clippy::disallowed_methods, reason = "the one place of it")]
    let _ = io::stderr().write_all(bytes);
}

/// Writes a line to standard error, which is beside the answer: that
/// it cannot be written changes nothing.
macro_rules! aside {
    () => {
        $crate::cli::out::aside_bytes(b"\n")
    };
    ($($text:tt)*) => {
        $crate::cli::out::aside_bytes(format!("{}\n", format_args!($($text)*)).as_bytes())
    };
}
pub(crate) use aside;
