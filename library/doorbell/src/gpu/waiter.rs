// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for one event: spinning as long as it pays, then sleeping.

use super::Event;
use super::alarm::{Alarm, Lanes};
use super::driver::{Driver, Handle};
use super::error::GpuError;
use crate::deadline::Deadline;
use crate::profile::{self, Profile};
use doorbell_core::window::{SleepCost, Window};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a [`Waiter`] looks at an event before it sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// As long as it pays: never longer than a sleep costs, and as it
    /// has learned from its own waits.
    #[default]
    Adaptive,
    /// Always as long as this, at most four seconds.
    For(Duration),
}

/// What the waits of a [`Waiter`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were done within the spin.
    pub hits: u64,
    /// Spins that ended in a sleep or at the deadline.
    pub in_vain: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Sleeps at whose end a look found the event done that nobody
    /// had told of: the driver's thread was late, or lost.
    pub rescued: u64,
}

/// Waits for events of the GPU, one at a time. It learns from its own waits, so make one for each
/// place of a program that waits.
///
/// It spins by asking the driver, with pauses that grow with the wait to a sixteenth of it, and at
/// most 2 µs: who asks without a pause keeps the driver's lock from threads that launch. Then a
/// thread of the driver's wakes it, through a stream of the waiter's own that waits for the event:
/// nothing is added to the stream of the program, and a wait can end at its deadline. It never
/// sleeps in the driver, where a thread was seen that was not woken for seconds: of whatever wakes
/// nobody it finds out within a tenth of one.
#[derive(Debug)]
pub struct Waiter {
    driver: &'static Driver,
    spin: Spin,
    window: Option<Window>,
    lanes: Option<Lanes>,
    /// What the last wait armed: the event, only to be compared, and its number.
    armed: Option<(Handle, u64)>,
    counts: Counts,
}

// SAFETY: the driver's functions may be called from any thread, and the handle is only compared.
unsafe impl Send for Waiter {}

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_micros(2);
/// The pause is this part of the wait so far.
const PAUSE_PART: u32 = 16;
/// A sleeper looks as often whether the device is lost, for then nobody wakes it.
const GLANCE: Duration = Duration::from_millis(100);
/// One whom the driver's thread does not wake looks first after this,
/// then after twice as long each time, up to that.
const FIRST_GLANCE: Duration = Duration::from_micros(100);
/// What a sleep costs is measured for no longer.
const MEASURING: Duration = Duration::from_millis(20);

impl Waiter {
    /// A waiter that spins as long as it pays.
    ///
    /// # Errors
    /// Where there is no driver: see [`Driver::of_process`].
    pub fn new() -> Result<Self, GpuError> {
        let driver = Driver::of_process()?;
        let (spin, counts) = (Spin::default(), Counts::default());
        Ok(Self { driver, spin, window: None, lanes: None, armed: None, counts })
    }

    /// Has it spin otherwise.
    pub fn set_spin(&mut self, spin: Spin) {
        self.spin = spin;
    }

    /// What its waits came to.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Waits until what was recorded in `event` is done. False where `deadline` came first; the
    /// event may be waited for again.
    ///
    /// # Errors
    /// [`GpuError::Call`]: the work before the event failed, or the device is lost.
    pub fn wait(&mut self, event: &Event<'_>, deadline: Option<Deadline>) -> Result<bool, GpuError> {
        // It may have been recorded anew.
        self.armed = None;
        self.resume(event, deadline)
    }

    /// Goes on with a wait that ended at its deadline: the event was not
    /// recorded since. A long wait in parts costs one call of the driver's
    /// thread so, where [`wait`](Self::wait) asks for one each time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn resume(&mut self, event: &Event<'_>, deadline: Option<Deadline>) -> Result<bool, GpuError> {
        let event = event.raw();
        let _beside = self.driver.beside_captures();
        // SAFETY: an `Event` is alive.
        let looks = || unsafe { self.driver.is_done(event) };
        if looks()? {
            return Ok(true);
        }
        let window = match (self.spin, &mut self.window) {
            (Spin::For(time), _) => u32::try_from(time.as_nanos()).unwrap_or(u32::MAX),
            (Spin::Adaptive, Some(window)) => window.plan(),
            (Spin::Adaptive, empty) => {
                // A deadline that is near leaves no time to measure.
                let near = deadline.is_some_and(|until| until < Deadline::after(MEASURING));
                let cost = if near { known_sleep_cost() } else { Some(sleep_cost(self.driver)) };
                cost.map_or(0, |cost| empty.insert(Window::of_device(cost)).plan())
            }
        };
        let began = Instant::now();
        loop {
            let spun = began.elapsed();
            if spun.as_nanos() >= u128::from(window) {
                break;
            }
            if looks()? {
                self.counts.hits += 1;
                if let Some(learned) = &mut self.window {
                    learned.spun_and_hit(nanoseconds(spun));
                }
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| deadline.passed()) {
                self.counts.in_vain += 1;
                return looks();
            }
            pause(spun);
        }
        self.counts.in_vain += u64::from(window > 0);
        let done = self.sleep(event, deadline)?;
        if let Some(learned) = self.window.as_mut().filter(|_| done) {
            learned.slept(nanoseconds(began.elapsed()), window);
        }
        Ok(done)
    }

    fn sleep(&mut self, event: Handle, deadline: Option<Deadline>) -> Result<bool, GpuError> {
        self.counts.slept += 1;
        let driver = self.driver;
        // SAFETY: `wait` was given an `Event`, which is alive.
        let is_done = || unsafe { driver.is_done(event) };
        let lanes = match &mut self.lanes {
            Some(lanes) => lanes,
            empty => empty.insert(Lanes::new(driver, Alarm::default())?),
        };
        let mut armed = self.armed.filter(|(other, _)| *other == event).map(|(_, number)| number);
        let (mut glance, mut told) = (FIRST_GLANCE, true);
        loop {
            // Before the look: a ring that comes after it has changed the word, and nobody sleeps.
            let seen = lanes.alarm.rung();
            let fired = lanes.take();
            if is_done()? {
                self.counts.rescued += u64::from(!told);
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| deadline.passed()) {
                return Ok(false);
            }
            if armed.is_none_or(|number| fired.contains(&number)) {
                // SAFETY: as above.
                armed = unsafe { lanes.arm(event) }?;
                self.armed = armed.map(|number| (event, number));
            }
            lanes.alarm.sleep(seen, deadline, if armed.is_some() { GLANCE } else { glance })?;
            glance = (glance * 2).min(GLANCE);
            told = lanes.alarm.rung() != seen;
        }
    }
}

fn nanoseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

/// Keeps from asking again for a part of what the wait took so far.
fn pause(spun: Duration) {
    let until = Instant::now() + (spun / PAUSE_PART).min(LONGEST_PAUSE);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Sleeps that are measured, and so many at least.
const ROUNDS: usize = 20;
const FEWEST_ROUNDS: usize = 3;
/// What is left between two of them, so that the thread that wakes is
/// as fast asleep as after a kernel.
const APART: Duration = Duration::from_micros(300);
/// Bounds for what can be a measurement.
const BELIEVABLE_NS: std::ops::RangeInclusive<u32> = 2_000..=500_000;

/// What a sleep costs in this process, once it is known.
static COST: OnceLock<SleepCost> = OnceLock::new();

/// What a sleep until the driver's thread wakes costs here: what `doorbell tune` left in this
/// machine's [profile](crate::profile), else [measured](measure_sleep_cost) once in a process.
pub fn sleep_cost(driver: &'static Driver) -> SleepCost {
    // Where it cannot be measured a waiter hardly spins, and its wait says what is wrong.
    let least = SleepCost { latency: *BELIEVABLE_NS.start(), price: *BELIEVABLE_NS.start() };
    known_sleep_cost().unwrap_or_else(|| *COST.get_or_init(|| measure_sleep_cost(driver).unwrap_or(least)))
}

/// The same, where nothing has to be measured.
fn known_sleep_cost() -> Option<SleepCost> {
    static TUNED: OnceLock<Option<SleepCost>> = OnceLock::new();
    let tuned = || *TUNED.get_or_init(|| Profile::read(&profile::path()?).ok()?.gpu);
    COST.get().copied().or_else(tuned)
}

/// Measures what a sleep until the driver's thread wakes costs, which
/// takes some 10 ms, and 20 at most.
///
/// # Errors
/// [`GpuError::Call`]; [`GpuError::Os`] where that was not time for three sleeps.
pub fn measure_sleep_cost(driver: &'static Driver) -> Result<SleepCost, GpuError> {
    let mut lanes = Lanes::new(driver, Alarm::default())?;
    let mut waits = Vec::with_capacity(ROUNDS);
    let mut spent = Vec::with_capacity(ROUNDS);
    let until = Deadline::after(MEASURING);
    'rounds: while waits.len() < ROUNDS {
        std::thread::sleep(APART);
        let (began, cpu) = (Instant::now(), cpu_time());
        let seen = lanes.alarm.rung();
        // SAFETY: there is no event.
        unsafe { lanes.arm(std::ptr::null_mut()) }?;
        while lanes.alarm.rung() == seen {
            if until.passed() && waits.len() >= FEWEST_ROUNDS {
                break 'rounds;
            }
            // Behind work that failed nobody is called.
            if until.passed() {
                return Err(GpuError::Os { call: "cuLaunchHostFunc", errno: Errno::TIMEDOUT });
            }
            lanes.alarm.sleep(seen, Some(until), GLANCE)?;
        }
        waits.push(began.elapsed());
        spent.push(cpu_time().saturating_sub(cpu));
        lanes.take();
    }
    waits.sort_unstable();
    let within = |time: Duration| nanoseconds(time).clamp(*BELIEVABLE_NS.start(), *BELIEVABLE_NS.end());
    // Other threads of the process may have worked meanwhile: the least is the sleep's own.
    let price = spent.into_iter().min().unwrap_or_default();
    Ok(SleepCost { latency: within(waits[waits.len() / 2]), price: within(price) })
}

/// Of all threads of this process, the driver's among them.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
