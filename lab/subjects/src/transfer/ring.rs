// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring with one transfer under way, set up with any flags that the kernel knows.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use io_uring::{IoUring, Parameters, opcode, squeue, types};
use rustix::io::Errno;

use super::{Fault, OpenError, Place, Transfer, Unavailable};
use crate::mechanism::uring::refused;
use doorbell_results::configuration::Direction;

/// Completions are found by looking (include/uapi/linux/io_uring.h).
pub(super) const IOPOLL: u32 = 1 << 0;
/// A thread of the kernel takes submissions.
pub(super) const SQPOLL: u32 = 1 << 1;
/// That thread stays on one CPU.
const SQ_AFF: u32 = 1 << 2;
/// With `IOPOLL`: sleep for half the usual time before looking (Linux 6.13).
pub(super) const HYBRID_IOPOLL: u32 = 1 << 17;

/// How long the kernel's thread looks for submissions before it sleeps, milliseconds: longer than
/// any pause between two here.
const THREAD_IDLE_MS: u32 = 2000;

/// Entries of a ring; one is ever in use.
const ENTRIES: u32 = 4;

/// What io_uring_setup(2) takes and gives back (struct io_uring_params).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Setup {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    sq_off: [u64; 5],
    cq_off: [u64; 5],
}

// Of the crate's parameters, which are this very structure.
const _: () = assert!(size_of::<Setup>() == size_of::<Parameters>());

/// A ring and what it transfers between.
pub(super) struct Ring<'buffer> {
    ring: IoUring,
    place: Place<'buffer>,
}

/// A ring with `flags`.
fn set_up(flags: u32, thread_cpu: Option<u32>) -> Result<IoUring, Errno> {
    let mut setup = Setup { flags, sq_thread_idle: THREAD_IDLE_MS, ..Setup::default() };
    if let Some(cpu) = thread_cpu.filter(|_| flags & SQPOLL != 0) {
        setup.flags |= SQ_AFF;
        setup.sq_thread_cpu = cpu;
    }
    // SAFETY: `setup` has the layout the kernel reads and writes, and lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut setup) };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: the call has just made this descriptor, and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    // SAFETY: a transparent wrapper of a structure with the same layout, whose
    // fields are all integers and valid with any bits. JUSTIFICATION: the
    // crate's builder has no way to pass a flag that is younger than itself.
    let parameters = unsafe { std::mem::transmute::<Setup, Parameters>(setup) };
    // SAFETY: the descriptor is a ring's, handed over, and the
    // parameters are what the kernel said of it.
    unsafe { IoUring::from_fd(fd.into_raw_fd(), parameters) }
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))
}

/// Whether this kernel sets up a ring with `flags`, named `what`, which Linux has since `since`.
pub(super) fn probe(flags: u32, what: &str, since: &str) -> Result<(), Unavailable> {
    match set_up(flags, None) {
        Ok(_) => Ok(()),
        Err(Errno::INVAL) => {
            let release = rustix::system::uname().release().to_string_lossy().into_owned();
            Err(Unavailable::because(format!("kernel {release} has no {what} (needs {since})")))
        }
        Err(error) => Err(refused(error).into()),
    }
}

impl Transfer for Ring<'_> {
    #[inline]
    fn once(&mut self, offset: u64) -> Result<(), Fault> {
        self.enter(offset)
    }
}

impl<'buffer> Ring<'buffer> {
    pub(super) fn open(place: Place<'buffer>, flags: u32) -> Result<Self, OpenError> {
        let ring = set_up(flags, place.thread_cpu).map_err(refused)?;
        Ok(Self { ring, place })
    }

    fn entry(&self, offset: u64) -> squeue::Entry {
        let file = types::Fd(self.place.file.as_raw_fd());
        let (pointer, bytes) = (self.place.buffer.pointer(), self.place.buffer.bytes() as u32);
        match self.place.direction {
            Direction::Read => opcode::Read::new(file, pointer, bytes).offset(offset).build(),
            Direction::Write => opcode::Write::new(file, pointer, bytes).offset(offset).build(),
        }
    }

    fn name(&self) -> &'static str {
        match self.place.direction {
            Direction::Read => "IORING_OP_READ",
            Direction::Write => "IORING_OP_WRITE",
        }
    }

    /// Submits the block at `offset` and enters the kernel until it is done.
    #[inline]
    fn enter(&mut self, offset: u64) -> Result<(), Fault> {
        self.push(offset)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(Fault::new("io_uring_enter", error)),
            }
            if let Some(result) = self.completed() {
                return self.judge(result, offset);
            }
        }
    }

    /// Leaves the block at `offset` for the kernel's thread and looks until it is done.
    #[inline]
    pub(super) fn leave(&mut self, offset: u64) -> Result<(), Fault> {
        self.push(offset)?;
        let mut looks = 0_u32;
        loop {
            if let Some(result) = self.completed() {
                return self.judge(result, offset);
            }
            // The thread may have gone to sleep, which it says in the ring; asking now and then is enough.
            if looks.is_multiple_of(1024) && self.ring.submission().need_wakeup() {
                self.ring.submit().map_err(Fault::of("io_uring_enter"))?;
            }
            looks = looks.wrapping_add(1);
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn push(&mut self, offset: u64) -> Result<(), Fault> {
        let entry = self.entry(offset);
        // SAFETY: the buffer and the file outlive the ring (`'buffer`), and
        // whoever pushed waits for the completion before the buffer is touched
        // again; a ring that is dropped with one under way cancels it.
        unsafe { self.ring.submission().push(&entry) }.map_err(Fault::of("io_uring submission"))
    }

    #[inline]
    fn completed(&mut self) -> Option<i32> {
        self.ring.completion().next().map(|entry| entry.result())
    }

    fn judge(&self, result: i32, offset: u64) -> Result<(), Fault> {
        let bytes = self.place.buffer.bytes();
        match usize::try_from(result) {
            Ok(moved) if moved == bytes => Ok(()),
            Ok(moved) => Err(Fault::new(self.name(), format!("{moved} of {bytes} bytes at {offset}"))),
            Err(_) if result == -libc::EOPNOTSUPP => {
                let cause = format!(
                    "EOPNOTSUPP: what is under this file has no queue to poll. {}",
                    doorbell_results::record::io::CURE
                );
                Err(Fault::new(self.name(), cause))
            }
            Err(_) => Err(Fault::new(self.name(), std::io::Error::from_raw_os_error(-result))),
        }
    }
}
