// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of Windows (Win32 API: Synchronization, I/O completion ports).

use std::cell::UnsafeCell;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::{Duration, Instant};
use std::{io, ptr};

use doorbell_results::record::subject::Carries;
use windows_sys::Win32::Foundation::{
    ERROR_TIMEOUT, GetLastError, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatus, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::Threading::{
    AcquireSRWLockExclusive, CONDITION_VARIABLE, CONDITION_VARIABLE_INIT, CreateEventW, CreateSemaphoreW,
    INFINITE, ReleaseSRWLockExclusive, ReleaseSemaphore, SRWLOCK, SRWLOCK_INIT, SetEvent,
    SleepConditionVariableSRW, WaitForSingleObject, WaitOnAddress, WakeByAddressSingle,
    WakeConditionVariable,
};

use super::{Kind, Means, USUAL};

pub(super) const ALL: &[Kind] = &[
    Kind {
        name: "win-semaphore",
        what: "CreateSemaphore, ReleaseSemaphore, WaitForSingleObject",
        open: || {
            // SAFETY: no attributes and no name; both counts are numbers.
            let made = unsafe { CreateSemaphoreW(ptr::null(), 0, i32::MAX, ptr::null()) };
            Object::open(made, |handle| {
                // SAFETY: the handle is open; the count before is not asked for.
                unsafe { ReleaseSemaphore(handle, 1, ptr::null_mut()) }
            })
        },
        ..USUAL
    },
    Kind {
        name: "win-event",
        what: "an event that resets itself: SetEvent, WaitForSingleObject",
        coalesces: true,
        open: || {
            // SAFETY: no attributes and no name; the rest are flags.
            let made = unsafe { CreateEventW(ptr::null(), 0, 0, ptr::null()) };
            Object::open(made, |handle| {
                // SAFETY: the handle is open.
                unsafe { SetEvent(handle) }
            })
        },
        ..USUAL
    },
    Kind {
        name: "wait-on-address",
        what: "WaitOnAddress, WakeByAddressSingle: what the futex is to Linux, for threads of one process",
        coalesces: true,
        open: || Ok(Arc::new(Word::default())),
        ..USUAL
    },
    Kind {
        name: "srw-condvar",
        what: "a condition variable with a slim lock",
        open: || {
            Ok(Arc::new(Condition {
                lock: UnsafeCell::new(SRWLOCK_INIT),
                condition: UnsafeCell::new(CONDITION_VARIABLE_INIT),
                posted: UnsafeCell::new(0),
            }))
        },
        ..USUAL
    },
    Kind {
        name: "iocp-post",
        what: "a completion posted to an I/O completion port",
        carries: Carries::Word,
        open: || {
            // SAFETY: no file and no port that exists: a new port, for one thread at a time.
            let made = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, ptr::null_mut(), 0, 1) };
            Ok(Arc::new(Port(owned(made)?)))
        },
        ..USUAL
    },
];

/// Milliseconds of a time as Windows takes it, rounded up: a wait
/// that ran out must not have been too short.
fn milliseconds(timeout: Option<Duration>) -> u32 {
    timeout.map_or(INFINITE, |timeout| {
        u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE - 1).min(INFINITE - 1)
    })
}

/// Looks whether there is something to take, and sleeps as long as there is not, until the time is
/// over; `sleep` answers with zero when it fails or its time ran out.
fn awaited(
    timeout: Option<Duration>,
    mut taken: impl FnMut() -> bool,
    mut sleep: impl FnMut(u32) -> i32,
) -> io::Result<bool> {
    let ends = timeout.map(|timeout| Instant::now() + timeout);
    while !taken() {
        let rest = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        if rest == Some(Duration::ZERO) {
            return Ok(false);
        }
        // SAFETY: takes nothing.
        if sleep(milliseconds(rest)) == 0 && unsafe { GetLastError() } != ERROR_TIMEOUT {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(true)
}

/// What a call has made; null is its refusal.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made it, and nobody else closes it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// What a call that answers with zero when it fails has said.
fn done(answer: i32) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// An object of the kernel that is waited for by its handle.
struct Object {
    handle: OwnedHandle,
    signal: fn(HANDLE) -> i32,
}

impl Object {
    fn open(handle: HANDLE, signal: fn(HANDLE) -> i32) -> io::Result<Arc<dyn Means>> {
        Ok(Arc::new(Self { handle: owned(handle)?, signal }))
    }
}

impl Means for Object {
    fn post(&self) -> io::Result<()> {
        done((self.signal)(self.handle.as_raw_handle()))
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        // SAFETY: the handle is open as long as this holds it.
        match unsafe { WaitForSingleObject(self.handle.as_raw_handle(), milliseconds(timeout)) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A word, and the value that the waiter saw last.
#[derive(Debug, Default)]
struct Word {
    posted: AtomicU32,
    /// Touched by the waiter alone.
    seen: AtomicU32,
}

impl Means for Word {
    fn post(&self) -> io::Result<()> {
        // Pairs with the Acquire load in `wait`.
        self.posted.fetch_add(1, Release);
        // SAFETY: takes an address and looks at nothing there.
        unsafe { WakeByAddressSingle(self.posted.as_ptr().cast()) };
        Ok(())
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let seen = self.seen.load(Relaxed);
        let taken = || {
            // Pairs with the Release increment in `post`.
            let posted = self.posted.load(Acquire);
            self.seen.store(posted, Relaxed);
            posted != seen
        };
        awaited(timeout, taken, |rest| {
            let word = self.posted.as_ptr().cast();
            // SAFETY: both are four bytes that live through the call;
            // the word is an atomic, read as one by the system.
            unsafe { WaitOnAddress(word, (&raw const seen).cast(), size_of::<u32>(), rest) }
        })
    }
}

/// Lock, condition variable and count, as programs keep them: side by side.
#[repr(C, align(128))]
struct Condition {
    lock: UnsafeCell<SRWLOCK>,
    condition: UnsafeCell<CONDITION_VARIABLE>,
    /// Not yet taken. Touched only by who holds the lock.
    posted: UnsafeCell<u64>,
}

// SAFETY: lock and condition are made for concurrent callers, and the lock guards the count.
unsafe impl Sync for Condition {}
// SAFETY: neither belongs to a thread.
unsafe impl Send for Condition {}

impl Condition {
    fn locked<T>(&self, act: impl FnOnce(*mut u64) -> T) -> T {
        // SAFETY: the lock is initialised, lives as long as this, and
        // is released by the thread that took it.
        unsafe { AcquireSRWLockExclusive(self.lock.get()) };
        let done = act(self.posted.get());
        // SAFETY: as above.
        unsafe { ReleaseSRWLockExclusive(self.lock.get()) };
        done
    }
}

impl Means for Condition {
    fn post(&self) -> io::Result<()> {
        // SAFETY: aligned, alive, and the lock makes it ours for now.
        self.locked(|posted| unsafe { *posted += 1 });
        // SAFETY: initialised, and lives as long as this.
        unsafe { WakeConditionVariable(self.condition.get()) };
        Ok(())
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.locked(|posted| {
            let taken = || {
                // SAFETY: as in `post`; through the pointer each time, for the count changes during
                // the sleep.
                let there = unsafe { posted.read() } > 0;
                // SAFETY: as above.
                unsafe { *posted -= u64::from(there) };
                there
            };
            awaited(timeout, taken, |rest| {
                // SAFETY: both are initialised, and this thread holds the lock.
                unsafe { SleepConditionVariableSRW(self.condition.get(), self.lock.get(), rest, 0) }
            })
        })
    }
}

/// An I/O completion port.
struct Port(OwnedHandle);

impl Means for Port {
    fn post(&self) -> io::Result<()> {
        // SAFETY: the handle is open; a completion of no operation is allowed.
        done(unsafe { PostQueuedCompletionStatus(self.0.as_raw_handle(), 0, 0, ptr::null()) })
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let (mut bytes, mut key, mut overlapped) = (0, 0, ptr::null_mut());
        let (port, time) = (self.0.as_raw_handle(), milliseconds(timeout));
        // SAFETY: the handle is open and all three are ours.
        let taken = unsafe {
            GetQueuedCompletionStatus(port, &raw mut bytes, &raw mut key, &raw mut overlapped, time)
        };
        // SAFETY: takes nothing.
        let ran_out = taken == 0 && unsafe { GetLastError() } == WAIT_TIMEOUT;
        if ran_out { Ok(false) } else { done(taken).map(|()| true) }
    }
}
