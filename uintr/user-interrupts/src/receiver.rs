// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that can be interrupted.

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::{descriptor, result, sys};

/// What becomes of a system call in which the receiver sleeps when an interrupt comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calls {
    /// The handler runs, and the call goes on where signal(7) says that one does with `SA_RESTART`.
    #[default]
    GoOn,
    /// As `GoOn`. Also restarts poll(2) and epoll_wait(2) without a time-out, which normally fail
    /// with `EINTR` after a handler. With the hardware alone: `ENOTSUP` with the signals backend.
    GoOnPolling,
    /// The handler runs, and the call fails with `EINTR`. With the signals backend either all
    /// receivers of a process say so, or none.
    Fail,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// An interrupt is pending: its handler runs when the thread unmasks.
    Interrupt,
    /// The file of [`Receiver::wait_readable`] can be read.
    Readable,
    /// The time ran out first.
    TimedOut,
}

type Function = dyn Fn(u8);

/// What a handler needs as long as interrupts may come: of one type, so that the C library can carry its address.
enum Handler {
    Counts(AtomicU64),
    Calls(Box<Function>),
}

/// The calling thread as a receiver, until it is dropped.
///
/// It begins masked: the handler runs from [`Receiver::unmask`] on. It runs masked, on the stack of what it interrupts below
/// the red zone, with all registers saved but AMX tiles. What was not handled when the receiver is dropped is gone.
/// One that is dropped before a handler has returned (inside it, or by another user-level thread of
/// its thread) stays registered until its thread ends.
///
/// It stays in its thread:
///
/// ```compile_fail
/// let receiver = user_interrupts::Receiver::counting().unwrap();
/// std::thread::spawn(move || receiver.unmask());
/// ```
pub struct Receiver {
    handler: *mut Handler,
    _of_this_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("unmasked", &self.unmasked()).finish_non_exhaustive()
    }
}

extern "C" fn interrupted(vector: c_uint, argument: *mut c_void) {
    // SAFETY: `argument` is the Handler that the receiver of this thread owns until no interrupt can come any more; nothing
    // has a mutable reference to it.
    match unsafe { &*argument.cast::<Handler>() } {
        // Relaxed: the thread itself looks, and what a sender wrote before it sent is ordered by the delivery.
        Handler::Counts(vectors) => {
            vectors.fetch_or(1 << vector, Relaxed);
        }
        Handler::Calls(function) => {
            // A vector is below 64.
            if catch_unwind(AssertUnwindSafe(|| function(vector as u8))).is_err() {
                // There is no frame to unwind to: what was interrupted knows nothing of it.
                std::process::abort();
            }
        }
    }
}

impl Receiver {
    /// A receiver whose handler does nothing but note the vector, for [`Receiver::take`].
    ///
    /// # Errors
    ///
    /// `EBUSY`: the thread is a receiver already. `EAGAIN`: the user has as many as the driver allows. `ENOSYS` and what
    /// opening `/dev/uintr` may fail with: nothing was [started](crate::start), and there is no hardware.
    pub fn counting() -> io::Result<Self> {
        Self::of(Handler::Counts(AtomicU64::new(0)), Calls::GoOn)
    }

    /// A receiver that calls `handler` with the vector.
    ///
    /// # Safety
    ///
    /// The handler runs between any two instructions of this thread, as a signal's does: in the middle of the allocator,
    /// with locks held, with a value half written. It may call what signal-safety(7) allows a signal's handler, and touch only what is
    /// atomic, or what the thread touches only while it is [masked](Receiver::mask). It may not allocate, take a lock that
    /// the thread takes unmasked, or panic (which aborts the process). With the hardware it interrupts restartable sequences
    /// (rseq(2)) without aborting them: mask around those.
    ///
    /// # Errors
    ///
    /// As [`Receiver::counting`]; `ENOTSUP`: with the signals backend, another receiver of this
    /// process has chosen otherwise, or this one [`Calls::GoOnPolling`].
    pub unsafe fn new(handler: impl Fn(u8) + 'static, calls: Calls) -> io::Result<Self> {
        Self::of(Handler::Calls(Box::new(handler)), calls)
    }

    fn of(handler: Handler, calls: Calls) -> io::Result<Self> {
        let handler = Box::into_raw(Box::new(handler));
        let flags = match calls {
            Calls::GoOn => 0,
            Calls::GoOnPolling => sys::RESUMES,
            Calls::Fail => sys::WAITING_ANY,
        };
        // SAFETY: `interrupted` takes a pointer to a Handler, which lives until the drop has ended the receiver.
        match result(unsafe { sys::uintr_handle(interrupted, handler.cast(), flags) }) {
            Ok(_) => Ok(Self { handler, _of_this_thread: PhantomData }),
            Err(error) => {
                // SAFETY: made above, and the library has not taken it.
                drop(unsafe { Box::from_raw(handler) });
                Err(error)
            }
        }
    }

    /// The vectors that came since the last take, one bit each, bit `n` for vector `n`; 0 with a handler of one's own. What is
    /// sent twice before anybody takes it is one bit.
    #[inline]
    pub fn take(&self) -> u64 {
        // SAFETY: owned until the drop.
        match unsafe { &*self.handler } {
            // A look first: a loop that spins here writes nothing.
            Handler::Counts(vectors) if vectors.load(Relaxed) != 0 => vectors.swap(0, Relaxed),
            _ => 0,
        }
    }

    /// A descriptor for `vector`, close-on-exec. Whoever holds it may [connect](crate::Sender::connect) to it: it can be passed over a
    /// Unix socket, and children inherit it. poll(2) tells `POLLHUP` when the receiver has ended. Its last close revokes the vector; each
    /// [`Sender`](crate::Sender) holds one.
    ///
    /// # Errors
    ///
    /// `ENOSPC`: not below [`VECTORS`](crate::VECTORS). `EBUSY`: somebody holds one. `EMFILE`.
    pub fn vector(&self, vector: u8) -> io::Result<OwnedFd> {
        descriptor(sys::uintr_vector_fd(vector.into(), 0))
    }

    /// What is written to `eventfd` sends `vector`: whoever writes, the kernel too, which does it
    /// for an io_uring(7) at each completion once the eventfd is registered there. What was written
    /// before is sent at once. The vector keeps it open until it is [revoked](Receiver::revoke),
    /// and has no descriptor besides. With the signals backend a thread of the library watches the
    /// eventfd (epoll(7)) and sends; a count that somebody else reads before that thread looks is
    /// lost.
    ///
    /// # Errors
    ///
    /// `EINVAL`: no eventfd. `ENOSPC`: not below [`VECTORS`](crate::VECTORS). `EBUSY`: the vector has a descriptor or an eventfd. `EMFILE`.
    pub fn eventfd(&self, vector: u8, eventfd: BorrowedFd<'_>) -> io::Result<()> {
        result(sys::uintr_vector_eventfd(vector.into(), eventfd.as_raw_fd(), 0)).map(drop)
    }

    /// Nobody may send `vector` any more, whoever holds its descriptor or writes to its eventfd;
    /// sending it then is SIGSEGV in the sender. [`Receiver::vector`] may make it anew; old
    /// descriptors and senders stay invalid.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it has neither.
    pub fn revoke(&self, vector: u8) -> io::Result<()> {
        result(sys::uintr_revoke(vector.into(), 0)).map(drop)
    }

    /// Sends `vector` to this thread `first` from now and then each `period`, or once, in place of
    /// what was set before. What falls due before the last was handled merges with it. It ends with
    /// the receiver, or by [`Receiver::stop_timer`].
    ///
    /// # Errors
    ///
    /// `EINVAL`: `vector` is not below [`VECTORS`](crate::VECTORS), or a time is under 10 µs.
    pub fn timer(&self, vector: u8, first: Duration, period: Option<Duration>) -> io::Result<()> {
        // 1: less than the least, and refused; 0 would mean something else.
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let period = period.map_or(0, nanoseconds);
        result(sys::uintr_timer(vector.into(), nanoseconds(first), period)).map(drop)
    }

    /// Nothing is sent by the timer any more.
    ///
    /// # Errors
    ///
    /// None that a living receiver knows.
    pub fn stop_timer(&self) -> io::Result<()> {
        result(sys::uintr_timer(0, 0, 0)).map(drop)
    }

    /// Holds interrupts off: what comes is kept for later. CLUI.
    #[inline]
    pub fn mask(&self) {
        #[cfg(target_arch = "x86_64")]
        if crate::sender::by_hardware() {
            // SAFETY: CLUI; the process has hardware. Not `nomem`: what a handler wrote is read
            // after it.
            unsafe { std::arch::asm!(".byte 0xf3, 0x0f, 0x01, 0xee", options(nostack, preserves_flags)) };
            return;
        }
        sys::uintr_mask_call();
    }

    /// Lets interrupts come: the handler runs for what is pending before this returns, and later between any two
    /// instructions. STUI.
    #[inline]
    pub fn unmask(&self) {
        #[cfg(target_arch = "x86_64")]
        if crate::sender::by_hardware() {
            // SAFETY: STUI; the process has hardware. A delivery keeps the red zone, flags and registers.
            unsafe { std::arch::asm!(".byte 0xf3, 0x0f, 0x01, 0xef", options(nostack, preserves_flags)) };
            return;
        }
        sys::uintr_unmask_call();
    }

    /// Whether interrupts may come. TESTUI.
    #[inline]
    pub fn unmasked(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        if crate::sender::by_hardware() {
            let open: u8;
            // SAFETY: TESTUI, which sets CF to UIF; the process has hardware.
            unsafe {
                std::arch::asm!(".byte 0xf3, 0x0f, 0x01, 0xed", "setc {open}", open = out(reg_byte) open, options(nostack));
            }
            return open != 0;
        }
        sys::uintr_unmasked_call() != 0
    }

    /// Sleeps until an interrupt is pending, or `timeout` has passed. Call it masked, after a look
    /// at what is waited for, and unmask afterwards, where the handler runs: nothing can come
    /// between.
    ///
    /// # Errors
    ///
    /// `EINTR`: a signal's handler ran.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Pending> {
        pending(sys::uintr_wait_until(deadline(timeout), 0))
    }

    /// As [`Receiver::wait`], and ends as soon as `file` can be read too, also where an interrupt
    /// is pending besides: what pselect(2) is beside signals. `file` may be an epoll(7) or an
    /// io_uring(7), after which the loop asks without blocking what there is.
    ///
    /// # Errors
    ///
    /// `EINTR`: a signal's handler ran, or, with the signals backend, for no reason that concerns
    /// the caller.
    pub fn wait_readable(&self, file: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<Pending> {
        pending(sys::uintr_wait_fd(file.as_raw_fd(), deadline(timeout), 0))
    }
}

fn deadline(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, |timeout| now().saturating_add(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)))
}

fn pending(said: c_int) -> io::Result<Pending> {
    match result(said) {
        Ok(0) => Ok(Pending::Interrupt),
        Ok(_) => Ok(Pending::Readable),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(Pending::TimedOut),
        Err(error) => Err(error),
    }
}

/// CLOCK_MONOTONIC, nanoseconds: what deadlines are on.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call, which cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Of 32 bits both are shorter, and lib.rs alone is to say that there is no port to them.
    #[expect(clippy::unnecessary_cast, reason = "they are of 64 bits wherever this is built")]
    let [seconds, rest] = [time.tv_sec as i64, time.tv_nsec as i64];
    seconds * 1_000_000_000 + rest
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let ended = result(sys::uintr_unregister_handler(0));
        if ended.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) {
            // A handler has yet to return, and others may come: they need this.
            return;
        }
        // SAFETY: made by Box::into_raw, and no handler runs any more: in a child of fork it has ended already.
        drop(unsafe { Box::from_raw(self.handler) });
    }
}
