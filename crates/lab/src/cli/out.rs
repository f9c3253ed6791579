// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error, and the one way in which the command writes to them.
//!
//! A reader that left, as `head` does, changes nothing about what a verb found: what is written goes nowhere, in silence, and the
//! exit status stays the verb's. Whatever else stops standard output, such as a full disk, is an error. clippy.toml forbids the
//! streams of the standard library everywhere else.

use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::usage::Usage;
use doorbell_files::replace;
use doorbell_results::record::write::WriteError;

/// Whether the reader of standard output has left.
static GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output has left, so that nothing more need be made for it.
pub fn gone() -> bool {
    GONE.load(Relaxed)
}

/// Standard output.
#[derive(Debug)]
pub struct Out(io::Stdout);

impl Out {
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place of it")]
        Self(io::stdout())
    }
}

impl Default for Out {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if gone() {
            return Ok(bytes.len());
        }
        read_by_nobody(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if gone() {
            return Ok(());
        }
        read_by_nobody(self.0.flush(), ())
    }
}

/// What was done, or `instead` where that was to write for a reader who has left.
fn read_by_nobody<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            GONE.store(true, Relaxed);
            Ok(instead)
        }
        done => done,
    }
}

/// Writes `text` to standard output, at once.
pub fn say(text: &str) -> io::Result<()> {
    say_bytes(text.as_bytes())
}

/// Writes `bytes` to standard output, at once.
pub fn say_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = Out::new();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes what `put` writes to the file `target`, whose old content stays until the new one is whole; `-` is standard output. A result is
/// not replaced by what is no result: `report -o a.json b.json` was meant to read both.
pub fn put(target: &Path, put: impl Fn(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    if is_result(target) {
        let refused = format!("{} is a result, which would be gone; name another file", target.display());
        return Err(Usage(refused).into());
    }
    let written = if target.as_os_str() == "-" {
        let mut out = BufWriter::new(Out::new());
        put(&mut out).and_then(|()| out.flush())
    } else {
        replace(target, |file| put(file))
    };
    Ok(written.map_err(|cause| WriteError { target: target.to_owned(), cause, rescued: None })?)
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

/// Writes `bytes` to standard error. It is beside the answer: that it cannot be written changes nothing.
pub fn aside_bytes(bytes: &[u8]) {
    #[expect(clippy::disallowed_methods, reason = "the one place of it")]
    let _ = io::stderr().write_all(bytes);
}

/// Writes a line to standard error, which is beside the answer: that it cannot be written changes nothing.
macro_rules! aside {
    () => {
        $crate::cli::out::aside_bytes(b"\n")
    };
    ($($text:tt)*) => {
        $crate::cli::out::aside_bytes(format!("{}\n", format_args!($($text)*)).as_bytes())
    };
}
pub(crate) use aside;
