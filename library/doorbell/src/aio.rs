// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signalling an eventfd so that nobody can make us block.
//!
//! A peer that shares an eventfd shares its flags. It can clear `O_NONBLOCK`, fill the counter, and
//! a `write` then blocks for as long as it likes. `pwritev2` with `RWF_NOWAIT` is refused for
//! eventfds (EOPNOTSUPP up to Linux 6.18). A pipe opened anew has flags of its own, but a peer that
//! reads from it into a page whose fault it withholds (userfaultfd, FUSE) keeps the pipe's lock,
//! and our write waits for that. What remains is the kernel's own way: the completion of an
//! asynchronous read signals an eventfd (`IOCB_FLAG_RESFD`, io_submit(2)) by adding to the counter
//! under a spinlock, and never waits.
//!
//! What is read is nothing, from a memfd that only this process has.

use crate::atfork_lock::ForkMutex;
use crate::descriptor;
use crate::errno::checked;
use crate::error::Unmade;
use crate::process::Process;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use std::ffi::{c_long, c_ulong};
use std::fmt;
use std::sync::Arc;

/// This process's context for asynchronous reads.
#[derive(Debug)]
pub(crate) struct Signaller {
    process: Process,
    context: c_ulong,
    nothing: OwnedFd,
}

/// `struct iocb` of `linux/aio_abi.h`. Big-endian machines swap `key`
/// and `rw_flags`, which are both zero here.
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    lio_opcode: u16,
    reqprio: i16,
    fildes: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    fields: [u64; 4],
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<IoEvent>() == 32);

/// `IOCB_CMD_PREAD`.
const READ: u16 = 0;
/// `IOCB_FLAG_RESFD`.
const SIGNAL: u32 = 1;
/// Completions that may lie unread, as the kernel is asked. It makes room for more (a page of them,
/// and eight for each CPU), and when its ring is full, we read it; but of `fs.aio-max-nr`, which
/// all processes share, it counts what was asked for.
const DEPTH: c_long = 1;
/// So many are read at once.
const AT_ONCE: usize = 64;

static OURS: ForkMutex<Option<Arc<Signaller>>> = ForkMutex::new(None);

impl Signaller {
    /// This process's. A forked child has its parent's memory but not its context: it gets its own.
    ///
    /// # Errors
    /// Which call failed, and what the kernel says: it was built without asynchronous I/O,
    /// `fs.aio-max-nr` is reached, or a filter forbids it.
    pub(crate) fn ours() -> Result<Arc<Self>, Unmade> {
        let mut ours = OURS.lock();
        let process = Process::current();
        if let Some(signaller) = ours.as_ref().filter(|signaller| signaller.process == process) {
            return Ok(Arc::clone(signaller));
        }
        let nothing = memfd_create("doorbell-nothing", MemfdFlags::CLOEXEC).and_then(descriptor::kept);
        let nothing = nothing.map_err(|errno| ("memfd_create", errno))?;
        let mut context: c_ulong = 0;
        // SAFETY: `context` is zero, as demanded, and valid for the call.
        checked(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) })
            .map_err(|errno| ("io_setup", errno))?;
        let signaller = Arc::new(Self { process, context, nothing });
        signaller.prove()?;
        // The kernel destroys the context with the process; it is used until then.
        *ours = Some(Arc::clone(&signaller));
        Ok(signaller)
    }

    /// Signals an eventfd of our own: a filter may let pass what
    /// makes a context, and refuse what uses it.
    fn prove(&self) -> Result<(), Unmade> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let eventfd = eventfd(0, flags).map_err(|errno| ("eventfd2", errno))?;
        self.submit(eventfd.as_fd()).map_err(|errno| ("io_submit", errno))?;
        // A filter may also say that it was done.
        rustix::io::read(&eventfd, &mut [0; 8]).map(drop).map_err(|errno| ("io_submit", errno))
    }

    /// Adds one to the counter of `eventfd`, or leaves it at its end. Never blocks. False if the
    /// kernel lacks the memory for it, or a filter refuses it.
    #[must_use]
    pub(crate) fn signal(&self, eventfd: BorrowedFd<'_>) -> bool {
        submit_with_room(|| self.submit(eventfd), || self.discard_completions())
    }

    fn submit(&self, eventfd: BorrowedFd<'_>) -> Result<c_long, Errno> {
        let request = Iocb {
            lio_opcode: READ,
            // Descriptors that are open are not negative.
            fildes: self.nothing.as_raw_fd().unsigned_abs(),
            flags: SIGNAL,
            resfd: eventfd.as_raw_fd().unsigned_abs(),
            ..Iocb::default()
        };
        let list = [&raw const request];
        // SAFETY: one request, valid for the call; it reads zero bytes,
        // so that nothing is written anywhere. It is complete when the
        // call returns: a read at the end of a memfd does not wait.
        unsafe { checked(libc::syscall(libc::SYS_io_submit, self.context, c_long::from(1), list.as_ptr())) }
    }

    fn discard_completions(&self) {
        let mut events = [IoEvent::default(); AT_ONCE];
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let (least, most): (c_long, c_long) = (0, AT_ONCE as c_long);
        // SAFETY: `events` has room for `most`, and both pointers are valid for the call.
        let _ = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                least,
                most,
                events.as_mut_ptr(),
                &raw const now,
            )
        };
    }
}

/// What processes have taken of the kernel's limit of asynchronous I/O,
/// which all share: `fs.aio-nr` of `fs.aio-max-nr`. Each process that
/// serves or connects takes 1, and nobody can any more when none is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncIo {
    /// `fs.aio-nr`.
    pub taken: u64,
    /// `fs.aio-max-nr`.
    pub most: u64,
}

impl AsyncIo {
    /// As the kernel says now. `None` where it does not.
    pub(crate) fn now() -> Option<Self> {
        let read = |name| std::fs::read_to_string(format!("/proc/sys/fs/{name}")).ok()?.trim().parse().ok();
        Some(Self { taken: read("aio-nr")?, most: read("aio-max-nr")? })
    }

    /// How many more can be taken.
    pub fn left(self) -> u64 {
        self.most.saturating_sub(self.taken)
    }

    /// Is so little left that it should be raised before it is met?
    pub fn is_short(self) -> bool {
        self.left() < self.most / 16
    }
}

impl fmt::Display for AsyncIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, most } = self;
        let (left, more) = (self.left(), most.saturating_mul(2));
        write!(
            f,
            "{taken} of fs.aio-max-nr, which is {most}, are taken: {left} more processes can serve \
             or connect; raise it by `sysctl fs.aio-max-nr={more}`"
        )
    }
}

/// Submits, and makes room for completions for as long as there is none: other threads may have
/// filled it again. Each time one of them has made progress, so that more rounds than this are a
/// lack of memory, of which the kernel says the same.
fn submit_with_room(mut submit: impl FnMut() -> Result<c_long, Errno>, mut make_room: impl FnMut()) -> bool {
    const MOST_ROUNDS: u32 = 1000;
    for _ in 0..MOST_ROUNDS {
        match submit() {
            Err(Errno::AGAIN) => make_room(),
            // With open descriptors nothing else fails, unless a filter that came after the proof says so.
            result => return result.is_ok(),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{AsyncIo, DEPTH, Errno, checked, submit_with_room};
    use std::ffi::c_ulong;

    /// Each took 64, so that a machine as it comes (65,536) had room for a thousand processes.
    #[test]
    fn a_process_takes_one_of_what_all_processes_have_of_asynchronous_io() {
        const CONTEXTS: u64 = 50;
        let Some(before) = AsyncIo::now() else {
            doorbell_skipped::skip("fs.aio-nr is not shown here");
            return;
        };
        for _ in 0..CONTEXTS {
            let mut context: c_ulong = 0;
            // SAFETY: `context` is zero, as demanded, and valid for
            // the call. The kernel destroys it with the process.
            checked(unsafe { libc::syscall(libc::SYS_io_setup, DEPTH, &raw mut context) }).unwrap();
        }
        let taken = AsyncIo::now().unwrap().taken.saturating_sub(before.taken);
        // Others come and go meanwhile.
        assert!(taken < CONTEXTS * 16, "{CONTEXTS} contexts took {taken}");
    }

    #[test]
    fn what_is_nearly_used_up_is_told_with_what_is_left_and_how_to_raise_it() {
        let (few, many) = (AsyncIo { taken: 65_500, most: 65_536 }, AsyncIo { taken: 64, most: 65_536 });
        assert!(few.is_short() && !many.is_short());
        let said = few.to_string();
        assert!(said.contains("36 more processes") && said.contains("fs.aio-max-nr=131072"), "{said}");
        assert_eq!(AsyncIo { taken: 9, most: 4 }.left(), 0, "it was lowered since");
    }

    /// Two tries were made, and then the token was lost.
    #[test]
    fn a_signal_is_tried_again_while_other_threads_fill_the_room_that_was_made() {
        let (mut tries, mut rooms) = (0, 0);
        let submit = || {
            tries += 1;
            if tries <= 10 { Err(Errno::AGAIN) } else { Ok(1) }
        };
        assert!(submit_with_room(submit, || rooms += 1));
        assert_eq!((tries, rooms), (11, 10));
    }

    #[test]
    fn a_signal_that_the_kernel_has_no_memory_for_is_reported_for_another_way() {
        assert!(!submit_with_room(|| Err(Errno::AGAIN), || {}));
        assert!(!submit_with_room(|| Err(Errno::PERM), || {}), "nor one that a filter refuses");
    }
}
