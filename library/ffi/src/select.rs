// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for unlike ends at once.

use crate::bell::{at, doorbell_bell};
use crate::broadcast::doorbell_subscriber;
use crate::channel::doorbell_receiver;
use crate::error::{Failure, came, doorbell_status, guard};
use crate::gather::doorbell_gather;
use crate::lock::{Locked, lock};
use crate::pointer::{Out, free, guard_new, guard_or, lent};
use crate::service::doorbell_service;
use doorbell::Select;
use doorbell::select::{File, Means, Selectable};
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

/// `handle` is a doorbell_bell, which is no file.
pub const DOORBELL_END_BELL: u32 = 0;
/// `handle` is a doorbell_receiver, of which no message is held.
pub const DOORBELL_END_RECEIVER: u32 = 1;
/// `handle` is a doorbell_gather, of which no message is held.
pub const DOORBELL_END_GATHER: u32 = 2;
/// `handle` is a doorbell_subscriber.
pub const DOORBELL_END_SUBSCRIBER: u32 = 3;
/// `handle` is a doorbell_service.
pub const DOORBELL_END_SERVICE: u32 = 4;
/// `fd` is a descriptor, until it can be read, or is at its end.
pub const DOORBELL_END_READABLE: u32 = 5;
/// `fd` is a descriptor, until it can be written.
pub const DOORBELL_END_WRITABLE: u32 = 6;

/// One of the ends of a doorbell_select_wait().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_end {
    /// What it is: DOORBELL_END_BELL and so on.
    pub kind: u32,
    /// The descriptor, if it is one.
    pub fd: i32,
    /// The handle, if it is none.
    pub handle: *const std::ffi::c_void,
}

/// Waits for unlike ends. Keep it between waits: it learns from them, and gives each end its turn.
#[derive(Debug)]
pub struct doorbell_select(Mutex<Select>);

/// Makes one. Where `by_files` is false and the kernel has futex_waitv(), it sleeps on futexes for
/// bells and ends of channels alone; else in poll(), for which each bell lends it an eventfd.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_select_new(
    by_files: bool,
    select: *mut *mut doorbell_select,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(select, "select", || {
            let made = if by_files { Select::by_files() } else { Select::new() };
            Ok(doorbell_select(Mutex::new(made)))
        })
    }
}

/// Frees it. No end is touched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_select_free(select: *mut doorbell_select) {
    // SAFETY: the header's contract.
    unsafe { free(select) };
}

/// Whether it sleeps in poll() also where there is no descriptor among
/// its ends: because that was asked for, or because the kernel has no
/// futex_waitv(). False for NULL and while another thread waits with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_select_by_files(select: *const doorbell_select) -> bool {
    // SAFETY: the header's contract.
    guard_or(false, || Ok(lock(&unsafe { lent(select, "select") }?.0)?.means() != Means::Futexes))
}

/// Waits until one of `count` ends has something, or something is to be told
/// of its peer, or until `deadline`. `which` becomes its place: receive there
/// without waiting. It may have nothing, rarely: then wait again. Nothing is
/// taken by waiting. Each end gets its turn, however busy others are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_select_wait(
    select: *const doorbell_select,
    ends: *const doorbell_end,
    count: usize,
    deadline: u64,
    which: *mut usize,
) -> doorbell_status {
    guard(|| {
        if ends.is_null() || count == 0 {
            return Err(Failure::invalid("there is no end to wait for"));
        }
        // SAFETY: the header's contract: `count` ends.
        let ends = unsafe { std::slice::from_raw_parts(ends, count) };
        // SAFETY: the header's contract.
        let (select, out) = unsafe { (lent(select, "select")?, Out::new(which, "which")?) };
        let mut select = lock(&select.0)?;
        let mut locked = ends.iter().map(lock_end).collect::<Result<Vec<_>, _>>()?;
        let mut ends = locked.iter_mut().map(|end| end.selectable()).collect::<Result<Vec<_>, _>>()?;
        let place = select.wait(&mut ends, at(deadline))?;
        Ok(came(place, |place| out.put(place)))
    })
}

/// The end, of which no other thread makes use meanwhile.
fn lock_end(end: &doorbell_end) -> Result<Box<dyn Locked + '_>, Failure> {
    // SAFETY: the header's contract: a handle of the kind that is named, or a descriptor that is open.
    unsafe {
        Ok(match end.kind {
            DOORBELL_END_BELL => Box::new(lent(end.handle.cast::<doorbell_bell>(), "a bell")?.waiter()?),
            DOORBELL_END_RECEIVER => {
                Box::new(lock(&lent(end.handle.cast::<doorbell_receiver>(), "a receiver")?.0)?)
            }
            DOORBELL_END_GATHER => {
                Box::new(lock(&lent(end.handle.cast::<doorbell_gather>(), "a gather")?.0)?)
            }
            DOORBELL_END_SUBSCRIBER => {
                Box::new(lock(&lent(end.handle.cast::<doorbell_subscriber>(), "a subscriber")?.0)?)
            }
            DOORBELL_END_SERVICE => {
                Box::new(lock(&lent(end.handle.cast::<doorbell_service>(), "a service")?.0)?)
            }
            DOORBELL_END_READABLE | DOORBELL_END_WRITABLE if end.fd < 0 => {
                return Err(Failure::invalid(format!("{} is no descriptor", end.fd)));
            }
            DOORBELL_END_READABLE => Box::new(Descriptor(File::readable(BorrowedFd::borrow_raw(end.fd)))),
            DOORBELL_END_WRITABLE => Box::new(Descriptor(File::writable(BorrowedFd::borrow_raw(end.fd)))),
            kind => {
                return Err(Failure::invalid(format!(
                    "{kind} is no kind of end; doorbell.h names them, from DOORBELL_END_BELL on"
                )));
            }
        })
    }
}

struct Descriptor<'a>(File<BorrowedFd<'a>>);

impl Locked for Descriptor<'_> {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        Ok(&mut self.0)
    }
}
