// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any number of events behind one descriptor.
//!
//! A call of the driver's thread for each event costs that thread's wake-up and the loop's own:
//! twice what a timer does. So where events take about as long as those before them, they are
//! looked at when they should be done, and then every so often, by a timer; of several that end at
//! about the same time one look tells. Where they do not, what is over sooner than a timer is
//! worth, and what takes long, the driver's thread tells.

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
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Events that are waited for in an event loop: their descriptor is readable once one is done.
///
/// Watch it (level-triggered) for reading in epoll, poll or any loop, and call [`done`](Self::done)
/// when it is readable, which may tell of none. Never read from it.
#[derive(Debug)]
pub struct Events {
    driver: &'static Driver,
    lanes: Lanes,
    waited: Vec<Waited>,
    lasts: Lasts,
    rescued: u64,
    /// Both of the following, for whoever watches.
    set: OwnedFd,
    /// When to look next; while something is waited for at least
    /// every 100 ms, for of a device that is lost nobody is told.
    timer: OwnedFd,
}

#[derive(Debug)]
struct Waited {
    key: u64,
    event: Handle,
    added: Instant,
    /// The number by which the driver's thread tells it, where it does.
    number: Option<u64>,
    /// When to look whether it is done.
    look_at: Instant,
    /// Whether it was not done yet when it should have been.
    late: bool,
}

// SAFETY: the driver's functions may be called from any thread, and
// whoever uses the handles has the list alone.
unsafe impl Send for Events {}

/// How one event that was waited for ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was added with.
    pub key: u64,
    /// Why it will never be done, if so.
    pub result: Result<(), GpuError>,
}

/// How often the timer ticks at least.
const GLANCE: Duration = Duration::from_millis(100);
/// What is expected to take so long is looked at by a timer: a wake-up by a timer takes some 50 µs
/// itself, and after long kernels the one interrupt costs less than the looks.
const BY_TIMER: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_millis(20);
/// Between two looks at what is late lies this part of what was expected, or of what it took so
/// far, and no less than that.
const LOOK_PART: u32 = 16;
const SHORTEST_LOOK: Duration = Duration::from_micros(50);
/// What takes longer than twice what was expected, and than this, is told by the driver's thread.
const LATE: Duration = Duration::from_millis(1);

fn os(call: &'static str) -> impl FnOnce(Errno) -> GpuError {
    move |errno| GpuError::Os { call, errno }
}

/// How long events take from when they are added, and whether it can be relied on.
#[derive(Debug, Default)]
struct Lasts {
    expected: Duration,
    /// How many in a row were about as long as expected, of those that are known exactly.
    alike: u32,
    /// How many first looks in a row since found some that were done,
    /// and nobody knows for how long.
    early: u32,
}

/// So many alike are regular; after so many first looks that came too late or just in time one is
/// to be told exactly again.
const REGULAR: u32 = 16;
const EARLY: u32 = 8;

impl Lasts {
    /// When to look at an event; none where the driver's thread is to tell it.
    fn by_timer(&self) -> Option<Duration> {
        let regular = self.alike >= REGULAR && self.early < EARLY;
        (regular && BY_TIMER.contains(&self.expected)).then_some(self.expected)
    }

    /// An event was done after `took`, as it was told, or found soon after.
    fn learn(&mut self, took: Duration) {
        self.early = 0;
        let alike = took.abs_diff(self.expected) <= (self.expected / 4).max(SHORTEST_LOOK);
        self.alike = if alike { self.alike + 1 } else { 0 };
        self.expected = (self.expected * 3 + took) / 4;
    }

    /// Events were done at the first look, `took` after the latest of them was added.
    fn found_early(&mut self, took: Duration) {
        self.early += 1;
        self.expected = self.expected.min(took) * 63 / 64;
    }
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
        Ok(Self { driver, lanes, waited: Vec::new(), lasts: Lasts::default(), rescued: 0, set, timer })
    }

    /// How many are waited for.
    pub fn len(&self) -> usize {
        self.waited.len()
    }

    /// Events that a look found done of which the driver's thread was
    /// to tell and had not: it was late, or lost.
    pub fn rescued(&self) -> u64 {
        self.rescued
    }

    /// Whether none is waited for.
    pub fn is_empty(&self) -> bool {
        self.waited.is_empty()
    }

    /// Has what was recorded in `event` waited for; [`done`](Self::done) then tells `key`. The
    /// event must not be recorded again before.
    ///
    /// # Errors
    /// [`GpuError::Call`].
    ///
    /// # Safety
    /// The event must stay alive until it was told or
    /// [removed](Self::remove), or these events are dropped.
    pub unsafe fn add(&mut self, event: &Event<'_>, key: u64) -> Result<(), GpuError> {
        let event = event.raw();
        let _beside = self.driver.beside_captures();
        let added = Instant::now();
        let by_timer = self.lasts.by_timer();
        let number = match by_timer {
            // SAFETY: alive, as the caller promises.
            None => unsafe { self.lanes.arm(event) }?,
            Some(_) => None,
        };
        let unarmed = if number.is_some() { GLANCE } else { SHORTEST_LOOK };
        let look_at = added + by_timer.unwrap_or(unarmed);
        self.waited.push(Waited { key, event, added, number, look_at, late: false });
        // Where it cannot be looked at it is not waited for: whoever added it may give it up.
        let set = self.set_timer();
        if set.is_err() {
            self.waited.pop();
        }
        set
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
        let _ = rustix::io::read(&self.timer, &mut bytes);
        let fired = self.lanes.take();
        let now = Instant::now();
        let (mut done, mut early) = (Vec::new(), None);
        let driver = self.driver;
        let _beside = driver.beside_captures();
        for mut waited in std::mem::take(&mut self.waited) {
            let told = waited.number.is_some_and(|number| fired.contains(&number));
            let took = now.saturating_duration_since(waited.added);
            // SAFETY: alive until it is told, as whoever added it promised.
            let result = match unsafe { driver.is_done(waited.event) } {
                Ok(false) => {
                    self.look_again(&mut waited, now, told);
                    self.waited.push(waited);
                    continue;
                }
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            };
            self.rescued += u64::from(waited.number.is_some() && !told);
            if waited.late || told {
                self.lasts.learn(took);
            } else {
                early = Some(early.map_or(took, |other: Duration| other.min(took)));
            }
            done.push(Done { key: waited.key, result });
        }
        if let Some(took) = early {
            self.lasts.found_early(took);
        }
        let set = self.set_timer();
        // What is found is told; where the timer is refused, so it is by the next look.
        if done.is_empty() {
            set?;
        }
        Ok(done)
    }

    /// What is not done is looked at again later; what is much later than expected, the driver's
    /// thread tells. What it told of was this event as it was recorded earlier.
    fn look_again(&mut self, waited: &mut Waited, now: Instant, told: bool) {
        if waited.look_at > now && !told {
            return;
        }
        let expected = self.lasts.expected;
        waited.number = waited.number.filter(|_| !told);
        waited.late = true;
        let took = now.saturating_duration_since(waited.added);
        if waited.number.is_none() && took > (expected * 2).max(LATE) {
            // SAFETY: alive until it is told, as whoever added it
            // promised. Where it is refused the timer goes on.
            waited.number = unsafe { self.lanes.arm(waited.event) }.ok().flatten();
        }
        let looks = (expected.max(took) / LOOK_PART).max(SHORTEST_LOOK);
        let pause = if waited.number.is_some() { GLANCE } else { looks };
        waited.look_at = now + pause;
    }

    /// Sets the timer to the next look.
    fn set_timer(&self) -> Result<(), GpuError> {
        let next = self.waited.iter().map(|waited| waited.look_at).min();
        // Nothing at all would stop it, which is for when nothing is waited for.
        let wait = next.map_or(Duration::ZERO, |next| {
            next.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1))
        });
        let it_value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let timer = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer).map_err(os("timerfd_settime"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(exact: &[Duration]) -> Lasts {
        let mut lasts = Lasts::default();
        exact.iter().for_each(|took| lasts.learn(*took));
        lasts
    }

    #[test]
    fn what_is_regular_is_looked_at_when_it_should_be_done_and_one_surprise_ends_that() {
        let mut lasts = after(&[MS * 3; 40]);
        let expected = lasts.by_timer().expect("forty alike are regular");
        assert!(expected.abs_diff(MS * 3) < MS / 10, "{expected:?}");
        lasts.learn(MS * 9);
        assert_eq!(lasts.by_timer(), None);
        [MS * 3; 40].iter().for_each(|took| lasts.learn(*took));
        assert!(lasts.by_timer().is_some(), "and forty alike are regular again");
    }

    #[test]
    fn what_is_not_regular_or_too_short_or_too_long_is_left_to_the_drivers_thread() {
        let mixed: Vec<Duration> = (0..200).map(|round| MS * (1 + round * 7 % 10)).collect();
        for times in [&mixed[..], &[MS / 50; 200], &[MS * 40; 200], &[]] {
            assert_eq!(after(times).by_timer(), None, "{:?}", times.first());
        }
    }

    /// Kernels that have become short would be found late for ever:
    /// nobody knows when they were done.
    #[test]
    fn first_looks_that_always_find_it_done_have_it_told_exactly_again() {
        let mut lasts = after(&[MS * 3; 40]);
        (0..EARLY).for_each(|_| lasts.found_early(MS * 3));
        assert_eq!(lasts.by_timer(), None);
        lasts.learn(MS / 5);
        assert_eq!(lasts.by_timer(), None, "and that it is no longer regular comes out");
    }
}
