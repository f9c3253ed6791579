// SPDX-License-Identifier: MIT OR Apache-2.0
//! A named POSIX semaphore: both sides open it by its name.

use std::ffi::{CStr, CString};
use std::io::{self, Write};
use std::path::Path;
use std::ptr::NonNull;

use rustix::io::Errno;

use super::c_call::{absent_or_made, c_string, errno, result};
use super::posix_semaphore::{KERNEL, LIMITS, Semaphore, SemaphoreEnd};
use super::{Explanation, Link, Mechanism, OpenError, Site, Unavailable};
use doorbell_harness::run_dir::Note;

pub(crate) struct SemPosixNamed;

/// The name, as the file system and as the calls take it; the waiter makes the semaphore.
pub(crate) struct NamedLink {
    name: String,
    slashed: CString,
}

/// An open semaphore, closed when dropped.
pub(crate) struct Open(NonNull<libc::sem_t>);

// SAFETY: `sem_open` returned the address of an initialised semaphore, and only `drop` closes it.
unsafe impl Semaphore for Open {
    #[inline]
    fn raw(&self) -> *mut libc::sem_t {
        self.0.as_ptr()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the address came from `sem_open` and is not used after this.
        unsafe { libc::sem_close(self.0.as_ptr()) };
    }
}

/// Opens the semaphore that exists under `name`.
fn open_existing(name: &CStr) -> Result<Open, Errno> {
    // SAFETY: `name` lives through the call.
    let semaphore = unsafe { libc::sem_open(name.as_ptr(), 0) };
    // SEM_FAILED is the null pointer.
    NonNull::new(semaphore).map(Open).ok_or_else(errno)
}

/// Where glibc keeps named semaphores: sem_overview(7), under
/// "Accessing named semaphores via the filesystem".
const FOLDER: &str = "/dev/shm";

/// Makes the semaphore `/name` of zero without `sem_open(O_CREAT)`.
///
/// glibc's `sem_open` builds a new semaphore in a file with a random name and then links it to its
/// own. A process killed in between leaves the random name behind, and nobody could tell whose it
/// was. The same bytes under the final name, which is noted before, can always be cleared.
fn make(name: &str) -> io::Result<()> {
    // SAFETY: `sem_t` is plain data, valid when zero.
    let mut semaphore: libc::sem_t = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of a `sem_t` of our own.
    result(unsafe { libc::sem_init(&raw mut semaphore, 1, 0) })?;
    // SAFETY: `semaphore` was all zero before `sem_init` wrote into
    // it, so that every byte is initialised.
    let bytes =
        unsafe { std::slice::from_raw_parts((&raw const semaphore).cast::<u8>(), size_of::<libc::sem_t>()) };
    let path = Path::new(FOLDER).join(format!("sem.{name}"));
    doorbell_files::create_new(&path, 0o600)?.write_all(bytes)
}

impl Mechanism for SemPosixNamed {
    type Link = NamedLink;
    const NAME: &'static str = "sem-posix-named";
    const COALESCES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "named POSIX semaphore",
        how: "The waiter makes the semaphore, and each side opens it by its name with \
            sem_open; the notifier calls sem_post, the waiter sem_wait. Once open it is the \
            unnamed semaphore in a file under /dev/shm that each side has mapped.",
        kernel: KERNEL,
        limits: LIMITS,
        sources: &["sem_overview(7), sem_open(3)", "glibc sysdeps/pthread/sem_open.c"],
    };

    fn available() -> Result<(), Unavailable> {
        rustix::fs::access(FOLDER, rustix::fs::Access::WRITE_OK).map_err(|error| {
            Unavailable::because(format!("{FOLDER}, where named semaphores live: {error}"))
        })?;
        // A name nobody has: only its absence may be the error.
        absent_or_made("sem_open(3)", open_existing(c"/doorbell-probe"))
    }
}

impl Link for NamedLink {
    type Notifier = SemaphoreEnd<Open>;
    type Waiter = SemaphoreEnd<Open>;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let name = site.name()?;
        let slashed = format!("/{name}");
        let line = Self { name, slashed: c_string(&slashed)? };
        site.leave_note(Note::Semaphore(slashed))?;
        Ok(line)
    }
    fn waiter(&self) -> Result<Self::Waiter, OpenError> {
        make(&self.name).map_err(OpenError::of("open(O_CREAT) in /dev/shm"))?;
        self.notifier()
    }
    fn notifier(&self) -> Result<Self::Notifier, OpenError> {
        open_existing(&self.slashed).map(SemaphoreEnd).map_err(OpenError::of("sem_open"))
    }
}
