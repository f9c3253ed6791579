// SPDX-License-Identifier: MIT OR Apache-2.0
//! A named pipe of Windows: one byte a notification.

use std::ptr;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_IO_PENDING, ERROR_PIPE_CONNECTED, GENERIC_WRITE, GetLastError, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, OPEN_EXISTING, PIPE_ACCESS_INBOUND,
    ReadFile, WriteFile,
};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{ConnectNamedPipe, CreateNamedPipeW, PIPE_REJECT_REMOTE_CLIENTS};

use super::{
    Carries, Explanation, Fault, Host, Link, Mechanism, Notifier, Notifiers, Object, OpenError, Site,
    Unavailable, Waiter, Woken, done, event,
};

/// The notifier writes a byte, the waiter reads it.
#[derive(Debug)]
pub struct NamedPipe;

/// Both ends, connected.
#[derive(Debug)]
pub struct PipeLink {
    read: Object,
    write: Object,
}

#[derive(Debug)]
pub struct PipeNotifier(Object);

/// The reading end. Its read may still be under way when a timed wait has run out; the next wait goes on with it.
#[derive(Debug)]
pub struct PipeWaiter {
    pipe: Object,
    event: Object,
    /// Where the system writes while a read is under way: at an address that does not change.
    read: Box<Read>,
    pending: bool,
}

struct Read {
    overlapped: OVERLAPPED,
    byte: u8,
}

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

// SAFETY: the operation belongs to the handle, and whoever has the box waits for it.
unsafe impl Send for Read {}

/// What is none for calls that answer so.
fn valid(handle: HANDLE) -> HANDLE {
    if handle == INVALID_HANDLE_VALUE { ptr::null_mut() } else { handle }
}

fn connected(name: &str) -> Result<PipeLink, OpenError> {
    const BYTES: u32 = 4096;
    let name: Vec<u16> = format!("\\\\.\\pipe\\{name}\0").encode_utf16().collect();
    let flags = PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE;
    // SAFETY: the name ends in a zero; bytes, one instance, no attributes.
    let read = unsafe {
        CreateNamedPipeW(name.as_ptr(), flags, PIPE_REJECT_REMOTE_CLIENTS, 1, BYTES, BYTES, 0, ptr::null())
    };
    let read = Object::made("CreateNamedPipeW", valid(read))?;
    // SAFETY: as above.
    let write = unsafe {
        CreateFileW(name.as_ptr(), GENERIC_WRITE, 0, ptr::null(), OPEN_EXISTING, 0, ptr::null_mut())
    };
    let write = Object::made("CreateFileW", valid(write))?;
    // SAFETY: plain data, valid when zero; the call ends at once, for the other end is there.
    let answer = unsafe {
        let mut overlapped: OVERLAPPED = std::mem::zeroed();
        ConnectNamedPipe(read.raw(), &raw mut overlapped)
    };
    // SAFETY: takes nothing.
    if answer == 0 && unsafe { GetLastError() } != ERROR_PIPE_CONNECTED {
        return Err(OpenError::call("ConnectNamedPipe", std::io::Error::last_os_error()));
    }
    Ok(PipeLink { read, write })
}

impl Mechanism for NamedPipe {
    type Link = PipeLink;
    const NAME: &'static str = "win-named-pipe";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const NOTIFIERS: Notifiers = Notifiers::Several;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "named pipe of Windows, one byte a notification",
            how: "The notifier writes a byte with WriteFile; the waiter has an overlapped ReadFile of one byte under way and waits for its event.",
            kernel: "The pipe's file system: a write finds the read that waits, copies the byte into it and completes it, which sets the event; \
                     or it keeps the byte, in memory charged to the pipe's quota.",
            limits: "4096 bytes here, then the writer blocks. The timed wait is that for the event; the read stays under way.",
            sources: &["CreateNamedPipeW, ReadFile, Synchronous and overlapped pipe I/O (Win32 API, Pipes)"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        let name = format!("doorbell-probe-{}", std::process::id());
        connected(&name).map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for PipeLink {
    type Notifier = PipeNotifier;
    type Waiter = PipeWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        // The process's number and one that no other link of it has; a name that is taken is refused, never shared.
        connected(&format!("doorbell-{}-{}", std::process::id(), site.fresh()))
    }
    fn waiter(&self) -> Result<PipeWaiter, OpenError> {
        // SAFETY: plain data, valid when zero.
        let overlapped: OVERLAPPED = unsafe { std::mem::zeroed() };
        let read = Box::new(Read { overlapped, byte: 0 });
        Ok(PipeWaiter { pipe: self.read.clone(), event: event::fresh()?, read, pending: false })
    }
    fn notifier(&self) -> Result<PipeNotifier, OpenError> {
        Ok(PipeNotifier(self.write.clone()))
    }
}

impl Notifier for PipeNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let (byte, mut written) = (1_u8, 0);
        // SAFETY: the handle is open and was opened for calls that end when they are done; the byte lives through the call.
        done("WriteFile", unsafe {
            WriteFile(self.0.raw(), &raw const byte, 1, &raw mut written, ptr::null_mut())
        })
    }
}

impl PipeWaiter {
    #[inline]
    fn take(&mut self, timeout: Option<Duration>) -> Result<bool, Fault> {
        if !self.pending {
            self.read.overlapped.hEvent = self.event.raw();
            // SAFETY: the box keeps both addresses until the read is over: `drop` waits for it.
            let ended = unsafe {
                ReadFile(
                    self.pipe.raw(),
                    &raw mut self.read.byte,
                    1,
                    ptr::null_mut(),
                    &raw mut self.read.overlapped,
                )
            };
            // SAFETY: takes nothing.
            if ended == 0 && unsafe { GetLastError() } != ERROR_IO_PENDING {
                return Err(Fault::new("ReadFile", std::io::Error::last_os_error()));
            }
            self.pending = true;
        }
        if !self.event.wait(timeout)? {
            return Ok(false);
        }
        let mut bytes = 0;
        // SAFETY: as above; it is over, for its event was set.
        let answer = unsafe {
            GetOverlappedResult(self.pipe.raw(), &raw const self.read.overlapped, &raw mut bytes, 0)
        };
        self.pending = false;
        done("GetOverlappedResult", answer).map(|()| true)
    }
}

impl Drop for PipeWaiter {
    fn drop(&mut self) {
        if self.pending {
            let mut bytes = 0;
            // SAFETY: the read is under way, and the box is given back only once it is over, one way or the other.
            unsafe {
                CancelIoEx(self.pipe.raw(), &raw const self.read.overlapped);
                GetOverlappedResult(self.pipe.raw(), &raw const self.read.overlapped, &raw mut bytes, 1);
            }
        }
    }
}

impl Waiter for PipeWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.take(None).map(drop)
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.take(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.take(Some(Duration::ZERO))
    }
}
