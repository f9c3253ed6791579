// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any number of events behind one descriptor.

use super::Event;
use super::alarm::{Alarm, Lanes};
use super::driver::{Driver, Handle};
use super::error::GpuError;
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsRawFd, RawFd};

/// Events that are waited for in an event loop: their descriptor is readable once one is done.
///
/// Watch it (level-triggered) for reading in epoll, poll or any loop, and call [`done`](Self::done) when it is readable. Never read from it.
#[derive(Debug)]
pub struct Events {
    driver: &'static Driver,
    lanes: Lanes,
    waited: Vec<Waited>,
    /// Both of the following, for whoever watches.
    set: OwnedFd,
    /// Ticks while something is waited for: of a device that is lost nobody is told.
    timer: OwnedFd,
}

#[derive(Debug)]
struct Waited {
    key: u64,
    event: Handle,
    number: u64,
}

// SAFETY: the driver's functions may be called from any thread, and whoever uses the handles has the list alone.
unsafe impl Send for Events {}

/// How one event that was waited for ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was added with.
    pub key: u64,
    /// Why it will never be done, if so.
    pub result: Result<(), GpuError>,
}

/// How often the timer ticks.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

fn os(call: &'static str) -> impl FnOnce(Errno) -> GpuError {
    move |errno| GpuError::Os { call, errno }
}

impl Events {
    /// None so far.
    ///
    /// # Errors
    /// Where there is no driver or no context, and where the system has no descriptor left.
    pub fn new() -> Result<Self, GpuError> {
        let driver = Driver::of_process()?;
        let lanes = Lanes::new(driver, Alarm::with_file()?)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let timer = timer.map_err(os("timerfd_create"))?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(os("epoll_create1"))?;
        for file in lanes.alarm.file().into_iter().chain([timer.as_fd()]) {
            epoll::add(&set, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                .map_err(os("epoll_ctl"))?;
        }
        Ok(Self { driver, lanes, waited: Vec::new(), set, timer })
    }

    /// How many are waited for.
    pub fn len(&self) -> usize {
        self.waited.len()
    }

    /// Whether none is waited for.
    pub fn is_empty(&self) -> bool {
        self.waited.is_empty()
    }

    /// Has what was recorded in `event` waited for; [`done`](Self::done) then tells `key`. The event must not be recorded again before.
    ///
    /// # Errors
    /// [`GpuError::Call`].
    ///
    /// # Safety
    /// The event must stay alive until it was told or [removed](Self::remove), or these events are dropped.
    pub unsafe fn add(&mut self, event: &Event<'_>, key: u64) -> Result<(), GpuError> {
        // SAFETY: alive, as the caller promises.
        let number = unsafe { self.lanes.arm(event.raw()) }?;
        if self.waited.is_empty() {
            self.tick(GLANCE)?;
        }
        self.waited.push(Waited { key, event: event.raw(), number });
        Ok(())
    }

    /// Waits for `key` no more.
    pub fn remove(&mut self, key: u64) {
        self.waited.retain(|waited| waited.key != key);
    }

    /// Those that ended since it was asked last. Never waits.
    ///
    /// # Errors
    /// [`GpuError::Os`].
    pub fn done(&mut self) -> Result<Vec<Done>, GpuError> {
        let mut bytes = [0; 8];
        // Emptied before they are looked through: what comes after makes them readable anew.
        if let Some(file) = self.lanes.alarm.file() {
            let _ = rustix::io::read(file, &mut bytes);
        }
        let ticked = rustix::io::read(&self.timer, &mut bytes).is_ok();
        let fired = self.lanes.take();
        let mut done = Vec::new();
        let driver = self.driver;
        self.waited.retain(|waited| {
            if !ticked && !fired.contains(&waited.number) {
                return true;
            }
            // SAFETY: alive until it is told, as whoever added it promised.
            let result = match unsafe { driver.is_done(waited.event) } {
                Ok(false) if !fired.contains(&waited.number) => return true,
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            done.push(Done { key: waited.key, result });
            false
        });
        if self.waited.is_empty() {
            self.tick(Timespec { tv_sec: 0, tv_nsec: 0 })?;
        }
        Ok(done)
    }

    fn tick(&self, every: Timespec) -> Result<(), GpuError> {
        let ticks = Itimerspec { it_interval: every, it_value: every };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &ticks).map_err(os("timerfd_settime"))?;
        Ok(())
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl AsRawFd for Events {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}
