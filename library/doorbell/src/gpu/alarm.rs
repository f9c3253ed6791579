// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver's thread rings when an event is done.

use super::driver::{Driver, Handle};
use super::error::GpuError;
use crate::deadline::Deadline;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::futex;
use std::ffi::c_void;
use std::num::NonZeroU32;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many streams wait for one event at most: each wait that is
/// given up leaves one behind until its event is done.
const MOST_OF_ONE: usize = 4;

/// A stream that waits for nobody's but its own (`CU_STREAM_NON_BLOCKING`).
pub(super) const NON_BLOCKING: u32 = 1;

/// Rung by the driver's thread.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// How often it was rung.
    rung: AtomicU32,
    /// For what, by number; taken by whoever waits. Neither holds the lock across a call.
    fired: Mutex<Vec<u64>>,
    file: Option<OwnedFd>,
}

impl Alarm {
    /// One that is a file too.
    pub(super) fn with_file() -> Result<Self, GpuError> {
        let file = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let file = file.map_err(|errno| GpuError::Os { call: "eventfd", errno })?;
        Ok(Self { file: Some(file), ..Self::default() })
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// In a thread of the driver's, which may call nothing of the driver.
    fn ring(&self, number: u64) {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        // Release: pairs with `rung`, after which the list is read.
        self.rung.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.rung, futex::Flags::PRIVATE, u32::MAX);
        if let Some(file) = &self.file {
            // Full after 2^64 - 2 rings that nobody took; readable it is all the same.
            let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
        }
    }

    /// What it was rung for since it was asked last.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.fired.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn rung(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    /// Sleeps while it was rung `seen` times, at most for `longest`.
    pub(super) fn sleep(
        &self,
        seen: u32,
        deadline: Option<Deadline>,
        longest: Duration,
    ) -> Result<(), GpuError> {
        let glance = Deadline::after(longest);
        let until = deadline.map_or(glance, |deadline| deadline.min(glance));
        let every = NonZeroU32::MAX;
        match futex::wait_bitset(&self.rung, futex::Flags::PRIVATE, seen, Some(until.timespec()), every) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(errno) => Err(GpuError::Os { call: "futex", errno }),
        }
    }
}

/// What a call of the driver's thread is about.
struct Call {
    alarm: Arc<Alarm>,
    number: u64,
}

/// Called once by the driver, in a thread of its own.
unsafe extern "C" fn done(call: *mut c_void) {
    // SAFETY: made by `Lanes::arm` from a box, handed to the driver alone, which calls once.
    let call = unsafe { Box::from_raw(call.cast::<Call>()) };
    call.alarm.ring(call.number);
}

/// Streams of ours, in each of which one event at most is waited for: in one stream an early event
/// would be told after a late one.
#[derive(Debug)]
pub(super) struct Lanes {
    driver: &'static Driver,
    /// In which the streams are made.
    context: Handle,
    pub(super) alarm: Arc<Alarm>,
    lanes: Vec<Lane>,
    last: u64,
}

#[derive(Debug)]
struct Lane {
    stream: Handle,
    /// What is waited for in it: the number, and the event.
    armed: Option<(u64, Handle)>,
}

// SAFETY: the driver's functions may be called from any thread; no handle is bound to one.
unsafe impl Send for Lanes {}
// SAFETY: whoever changes it has it alone; the handles are only copied.
unsafe impl Sync for Lanes {}

impl Lanes {
    pub(super) fn new(driver: &'static Driver, alarm: Alarm) -> Result<Self, GpuError> {
        Ok(Self { driver, context: driver.context()?, alarm: Arc::new(alarm), lanes: Vec::new(), last: 0 })
    }

    /// Has the alarm rung once what is recorded in `event` now, or all that is in the stream where
    /// there is none, is done. The number that it is rung for; none where too many waits for
    /// this event were given up before it was done: then it must be looked at.
    ///
    /// # Safety
    /// `event` must be null, or an event of this driver that is alive.
    pub(super) unsafe fn arm(&mut self, event: Handle) -> Result<Option<u64>, GpuError> {
        // What an earlier wait armed stands for what was recorded
        // then, and the event may have been recorded anew.
        let same =
            self.lanes.iter().filter(|lane| lane.armed.is_some_and(|(_, other)| other == event)).count();
        if same >= MOST_OF_ONE && !event.is_null() {
            return Ok(None);
        }
        let mut before = ptr::null_mut();
        // SAFETY: the pointer is good for the call; the thread has its own context again afterwards.
        unsafe {
            self.driver.context_get(&raw mut before)?;
            self.driver.context_set(self.context)?;
        }
        // SAFETY: as the caller promises.
        let armed = unsafe { self.arm_here(event) };
        // SAFETY: it was the thread's.
        unsafe { self.driver.context_set(before) }?;
        armed.map(Some)
    }

    /// The same in a thread whose context is the streams'.
    ///
    /// # Safety
    /// As [`arm`](Self::arm).
    unsafe fn arm_here(&mut self, event: Handle) -> Result<u64, GpuError> {
        let free = self.lanes.iter().position(|lane| lane.armed.is_none());
        let at = free.map_or_else(|| self.add(), Ok)?;
        self.last += 1;
        let (stream, number) = (self.lanes[at].stream, self.last);
        let call = Box::into_raw(Box::new(Call { alarm: Arc::clone(&self.alarm), number }));
        // SAFETY: the stream is ours and alive, the event is as
        // promised, and the call is not freed before it was called.
        let armed = unsafe {
            let waits =
                if event.is_null() { Ok(()) } else { self.driver.stream_wait_event(stream, event, 0) };
            waits.and_then(|()| self.driver.launch_host_function(stream, done, call.cast()))
        };
        if let Err(error) = armed {
            // SAFETY: the driver refused it, and calls nothing. What
            // the stream waits for nobody asked for: it is given up.
            unsafe {
                drop(Box::from_raw(call));
                let _ = self.driver.stream_destroy(self.lanes.swap_remove(at).stream);
            }
            return Err(error);
        }
        self.lanes[at].armed = Some((number, event));
        Ok(number)
    }

    fn add(&mut self) -> Result<usize, GpuError> {
        let mut stream = ptr::null_mut();
        // SAFETY: the pointer is good for the call.
        unsafe { self.driver.stream_create(&raw mut stream, NON_BLOCKING) }?;
        self.lanes.push(Lane { stream, armed: None });
        Ok(self.lanes.len() - 1)
    }

    /// For which numbers the alarm was rung since it was asked last; their streams are free again.
    pub(super) fn take(&mut self) -> Vec<u64> {
        let fired = self.alarm.take();
        for lane in &mut self.lanes {
            lane.armed = lane.armed.filter(|(number, _)| !fired.contains(number));
        }
        fired
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        for lane in &self.lanes {
            // SAFETY: ours, and given up once. What is still waited
            // for in it is told to the alarm, which lives as long.
            let _ = unsafe { self.driver.stream_destroy(lane.stream) };
        }
    }
}
