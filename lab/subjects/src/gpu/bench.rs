// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device with all that a way needs of it: a stream, an event, the
//! kernels, and memory that both see.

use super::clock::{Exchange, now_ns};
use super::device::name;
use super::{Start, Wait, Way};
use crate::mechanism::Fault;
use doorbell::gpu::driver::{Driver, Handle};
use doorbell::gpu::{Event, GpuError, Spin, Waiter};
use doorbell::{Bell, raw::BellState};
use doorbell_harness::deadline::relative;
use doorbell_results::machine::clock::Clock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::futex;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst, fence};
use std::time::{Duration, Instant};

/// The kernels, as the driver compiles them.
const KERNELS: &str = concat!(include_str!("kernels.ptx"), "\0");
/// What tells the resident kernel to leave, and what it says then.
const LEAVE: u32 = u32::MAX;
/// Exchanges are enough once they took so long, and were so many.
const ENOUGH: Duration = Duration::from_millis(200);
const FEWEST_EXCHANGES: u32 = 8;
/// Longer than the kernel that answers needs to ask once over the bus.
const LONGEST_PAUSE_NS: u64 = 4000;
/// A resident kernel leaves by itself after so long, nanoseconds: whoever started it may have died.
const LIMIT_NS: u64 = 4_000_000_000;
/// So long a kernel of ours may be waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// And so often the driver is asked meanwhile whether all is well.
const ASK: Duration = Duration::from_millis(100);
// `CU_EVENT_DISABLE_TIMING`, and `CU_EVENT_BLOCKING_SYNC`.
const NO_TIMES: u32 = 2;
const BLOCKS: u32 = 1;

/// Lies in pinned memory, a cache line for each word that one of the two looks at.
#[repr(C, align(4096))]
struct Page {
    /// Begin and end of a kernel.
    stamps: [AtomicU64; 2],
    flag: Line,
    to: Line,
    from: Line,
    /// When a word had come, and when it was asked for last before.
    seen: [AtomicU64; 2],
}

#[repr(C, align(128))]
struct Line(AtomicU32);

/// What a host function wakes.
struct Woken {
    word: AtomicU32,
    file: OwnedFd,
    bell: Arc<BellState>,
}

unsafe extern "C" fn write_eventfd(woken: *mut c_void) {
    // SAFETY: the bench's own, which lives as long as the process.
    let woken = unsafe { &*woken.cast::<Woken>() };
    let _ = rustix::io::write(&woken.file, &1_u64.to_ne_bytes());
}

unsafe extern "C" fn wake_futex(woken: *mut c_void) {
    // SAFETY: as above.
    let woken = unsafe { &*woken.cast::<Woken>() };
    woken.word.fetch_add(1, SeqCst);
    let _ = futex::wake(&woken.word, futex::Flags::PRIVATE, 1);
}

unsafe extern "C" fn ring_bell(woken: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*woken.cast::<Woken>() }.bell.ring();
}

/// One device, made ready for one way.
pub(super) struct Bench {
    driver: &'static Driver,
    way: &'static Way,
    clock: Clock,
    pub(super) device: String,
    kernels: Kernels,
    hybrid: Duration,
    context: Handle,
    stream: Handle,
    event: Handle,
    work: Handle,
    answer: Handle,
    graph: Handle,
    page: &'static Page,
    /// Where the device has it.
    address: u64,
    number: u32,
    waiter: Waiter,
    woken: &'static Woken,
    bell: Bell,
}

// SAFETY: the driver's functions may be called from any thread whose
// context is the bench's, which `enter` sees to.
unsafe impl Send for Bench {}

/// How long kernels work: always the same, or drawn anew for each.
#[derive(Clone)]
pub(super) struct Kernels {
    shortest: u64,
    longest: u64,
    random: fastrand::Rng,
}

impl Kernels {
    pub(super) fn between([shortest, longest]: [u64; 2], seed: u64) -> Self {
        Self { shortest, longest, random: fastrand::Rng::with_seed(seed) }
    }

    /// The next, nanoseconds: evenly spread by the logarithm.
    fn next_ns(&mut self) -> u64 {
        if self.longest <= self.shortest {
            return self.shortest;
        }
        let [low, high] = [self.shortest.max(1), self.longest].map(|ns| (ns as f64).ln());
        (low + (high - low) * self.random.f64()).exp() as u64
    }
}

/// When one kernel was set off, when the call was over, when the waiter ran again, on the CPU's
/// clock; and when the kernel began and ended on its own. Nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) before: u64,
    pub(super) called: u64,
    pub(super) awake: u64,
    pub(super) began: u64,
    pub(super) ended: u64,
}

pub(super) fn fault(error: GpuError) -> Fault {
    match error {
        GpuError::Call { call, code, name } if name.is_empty() => {
            Fault::new(call, format_args!("error {code}"))
        }
        GpuError::Call { call, code, name } => Fault::new(call, format_args!("{name} ({code})")),
        other => Fault::new("the GPU's driver", other),
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: both are the bench's own, and given up once. The
        // page stays: what is still in the stream may write it.
        unsafe {
            let _ = self.driver.event_destroy(self.event);
            let _ = self.driver.stream_destroy(self.stream);
        }
    }
}

impl Bench {
    pub(super) fn new(
        way: &'static Way,
        kernels: Kernels,
        hybrid: Duration,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let driver = Driver::of_process().map_err(fault)?;
        let bell = Bell::new().map_err(Fault::of("Bell::new"))?;
        Self::open(driver, way, kernels, hybrid, clock, bell).map_err(fault)
    }

    fn open(
        driver: &'static Driver,
        way: &'static Way,
        kernels: Kernels,
        hybrid: Duration,
        clock: Clock,
        bell: Bell,
    ) -> Result<Self, GpuError> {
        let (mut device, mut context, mut module, mut memory, mut address) =
            (0, null_mut(), null_mut(), null_mut(), 0);
        let (mut stream, mut event, mut work, mut answer) = (null_mut(), null_mut(), null_mut(), null_mut());
        // SAFETY: all pointers are good for the calls, and the kernels are text that ends in zero. Memory
        // and module are not given back: the process ends after some trials.
        unsafe {
            driver.device_get(&raw mut device, 0)?;
            driver.context_flags(device, way.schedule as u32)?;
            driver.context_retain(&raw mut context, device)?;
            driver.context_set(context)?;
            driver.module_load(&raw mut module, KERNELS.as_ptr().cast())?;
            driver.module_function(&raw mut work, module, c"work".as_ptr())?;
            driver.module_function(&raw mut answer, module, c"answer".as_ptr())?;
            driver.stream_create(&raw mut stream, 1)?;
            driver.event_create(&raw mut event, NO_TIMES | if way.blocks() { BLOCKS } else { 0 })?;
            // Seen by the device (`CU_MEMHOSTALLOC_DEVICEMAP`).
            driver.host_alloc(&raw mut memory, size_of::<Page>(), 2)?;
            std::ptr::write_bytes(memory.cast::<u8>(), 0, size_of::<Page>());
            driver.host_device_pointer(&raw mut address, memory, 0)?;
        }
        // SAFETY: pinned memory begins at a page, is as long as a `Page`, zero, and never given back; the
        // device changes it, and all of it is atomics.
        let page = unsafe { &*memory.cast::<Page>() };
        let file =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| GpuError::Os { call: "eventfd", errno })?;
        let woken: &'static Woken =
            Box::leak(Box::new(Woken { word: AtomicU32::new(0), file, bell: Arc::clone(bell.state()) }));
        let mut waiter = Waiter::new()?;
        waiter.set_spin(Spin::Adaptive);
        let device = name(driver)?;
        let mut bench = Self {
            driver,
            way,
            clock,
            device,
            kernels,
            hybrid,
            context,
            stream,
            event,
            work,
            answer,
            graph: null_mut(),
            page,
            address,
            number: 0,
            waiter,
            woken,
            bell,
        };
        if way.start == Start::Graph {
            bench.capture()?;
        }
        Ok(bench)
    }

    /// Makes its context that of the calling thread.
    pub(super) fn enter(&self) -> Result<(), Fault> {
        // SAFETY: the context is held for good.
        unsafe { self.driver.context_set(self.context) }.map_err(fault)
    }

    fn at(&self, word: *const c_void) -> u64 {
        self.address + (word as usize - std::ptr::from_ref(self.page) as usize) as u64
    }

    fn launch(&self, function: Handle, parameters: &mut [*mut c_void]) -> Result<(), GpuError> {
        let parameters = parameters.as_mut_ptr();
        // SAFETY: the kernel is one of ours and takes these parameters, which lie in the caller's frame and
        // are copied by the call; what they point to is the page.
        unsafe {
            self.driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, self.stream, parameters, null_mut())
        }
    }

    fn launch_work(&mut self, value: u32) -> Result<(), GpuError> {
        let mut ns = self.kernels.next_ns();
        let mut stamps = self.at(self.page.stamps.as_ptr().cast());
        let looked_at = self.way.wait == Wait::Flag;
        let mut flag = if looked_at { self.at(self.page.flag.0.as_ptr().cast()) } else { 0 };
        let mut value = value;
        self.launch(
            self.work,
            &mut [
                (&raw mut ns).cast(),
                (&raw mut stamps).cast(),
                (&raw mut flag).cast(),
                (&raw mut value).cast(),
            ],
        )
    }

    /// A graph of the kernel, which says 1 each time.
    fn capture(&mut self) -> Result<(), GpuError> {
        let mut graph = null_mut();
        // SAFETY: the stream is ours; the mode is that of this thread alone
        // (`CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`).
        unsafe {
            self.driver.capture_begin(self.stream, 1)?;
            let launched = self.launch_work(1);
            self.driver.capture_end(self.stream, &raw mut graph)?;
            launched?;
            self.driver.graph_instantiate(&raw mut self.graph, graph, 0)
        }
    }

    /// Starts the resident kernel for `count` words.
    pub(super) fn settle(&mut self, count: u32) -> Result<(), Fault> {
        self.page.to.0.store(0, SeqCst);
        self.page.from.0.store(0, SeqCst);
        let mut to = self.at(self.page.to.0.as_ptr().cast());
        let mut from = self.at(self.page.from.0.as_ptr().cast());
        let mut seen = self.at(self.page.seen.as_ptr().cast());
        let (mut first, mut count, mut limit) = (1_u32, count, LIMIT_NS);
        let parameters = &mut [
            (&raw mut to).cast(),
            (&raw mut from).cast(),
            (&raw mut seen).cast(),
            (&raw mut first).cast(),
            (&raw mut count).cast(),
            (&raw mut limit).cast(),
        ];
        self.launch(self.answer, parameters).map_err(fault)
    }

    /// One word to the resident kernel, and its answer.
    fn exchange(&self, word: u32) -> Result<Exchange, Fault> {
        let before = now_ns(self.clock);
        // There for everybody once the call is over: `written` is after it.
        self.page.to.0.swap(word, SeqCst);
        let written = now_ns(self.clock);
        self.look(&self.page.from.0, word)?;
        let after = now_ns(self.clock);
        let [seen, missed] = [0, 1].map(|stamp| self.page.seen[stamp].load(SeqCst));
        Ok(Exchange { before, written, after, seen, missed: (missed > 0).then_some(missed) })
    }

    /// `count` exchanges for the relation of the clocks; fewer where
    /// they take long, as on a machine that is busy.
    pub(super) fn exchanges(&mut self, count: u32) -> Result<Vec<Exchange>, Fault> {
        self.settle(count)?;
        let mut random = fastrand::Rng::with_seed(u64::from(count));
        let began = Instant::now();
        let mut exchanges = Vec::with_capacity(count as usize);
        for word in 1..=count {
            // So that words come at every point of the kernel's loop:
            // some just before it asks, and some just after.
            let until = now_ns(self.clock) + random.u64(..LONGEST_PAUSE_NS);
            while now_ns(self.clock) < until {
                std::hint::spin_loop();
            }
            exchanges.push(self.exchange(word)?);
            if word >= FEWEST_EXCHANGES && began.elapsed() > ENOUGH {
                break;
            }
        }
        self.leave()?;
        Ok(exchanges)
    }

    /// Has the resident kernel leave.
    pub(super) fn leave(&self) -> Result<(), Fault> {
        self.page.to.0.store(LEAVE, SeqCst);
        self.synchronize()
    }

    fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: the stream is ours.
        unsafe { self.driver.stream_synchronize(self.stream) }.map_err(fault)
    }

    /// Has the driver say so if a kernel has failed, which then writes nothing and calls nobody any
    /// more.
    fn is_well(&self) -> Result<(), Fault> {
        // SAFETY: the event is ours.
        unsafe { self.driver.is_done(self.event) }.map(drop).map_err(fault)
    }

    /// Spins until `word` is `value`.
    fn look(&self, word: &AtomicU32, value: u32) -> Result<(), Fault> {
        let began = Instant::now();
        let mut asked = Duration::ZERO;
        loop {
            // Before the looks: this machine may stand still after them.
            let is_late = began.elapsed() > PATIENCE;
            for _ in 0..4096 {
                if word.load(SeqCst) == value {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > asked + ASK {
                asked = began.elapsed();
                self.is_well()?;
            }
            if is_late {
                return Err(Fault::new("the kernel", format!("it did not answer within {PATIENCE:?}")));
            }
        }
    }

    /// Sets one kernel off and waits for it.
    pub(super) fn round(&mut self) -> Result<Round, Fault> {
        self.number = self.number % (LEAVE - 1) + 1;
        if self.way.start == Start::Resident {
            let Exchange { before, written, after, seen, .. } = self.exchange(self.number)?;
            return Ok(Round { before, called: written, awake: after, began: seen, ended: seen });
        }
        self.kernel().map_err(fault)?;
        let (before, called) = self.set_off().map_err(fault)?;
        self.wait()?;
        Ok(self.over(before, called))
    }

    /// Sets one kernel off, for somebody else to wait for [its event](Self::event).
    pub(super) fn begin(&mut self) -> Result<(u64, u64), Fault> {
        self.number = self.number % (LEAVE - 1) + 1;
        self.set_off().map_err(fault)
    }

    /// What is recorded after each kernel.
    pub(super) fn event(&self) -> Event<'static> {
        // SAFETY: the bench's own, and whoever waits for it has the bench.
        unsafe { Event::from_raw(self.event) }
    }

    /// The round of the kernel that was set off then and has ended.
    pub(super) fn over(&self, before: u64, called: u64) -> Round {
        let awake = now_ns(self.clock);
        fence(SeqCst);
        let [began, ended] = [0, 1].map(|stamp| self.page.stamps[stamp].load(SeqCst));
        Round { before, called, awake, began, ended }
    }

    /// What is done before the clock is read.
    fn kernel(&mut self) -> Result<(), GpuError> {
        self.page.flag.0.store(0, SeqCst);
        if self.way.start == Start::WaitValue {
            self.page.to.0.store(0, SeqCst);
            let to = self.at(self.page.to.0.as_ptr().cast());
            // SAFETY: the stream is ours and the word lies in the page; 1 is `CU_STREAM_WAIT_VALUE_EQ`.
            unsafe { self.driver.stream_wait_value(self.stream, to, self.number, 1) }?;
            self.launch_work(self.number)?;
            // Until it stands there and waits.
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    /// Reads the clock, sets the kernel off with all that tells of its end, and reads the clock.
    fn set_off(&mut self) -> Result<(u64, u64), GpuError> {
        let before = now_ns(self.clock);
        match self.way.start {
            Start::WaitValue => self.page.to.0.store(self.number, SeqCst),
            // SAFETY: the graph was made for this stream.
            Start::Graph => unsafe { self.driver.graph_launch(self.graph, self.stream) }?,
            Start::Launch | Start::Resident => self.launch_work(self.number)?,
        }
        let woken = std::ptr::from_ref(self.woken).cast_mut().cast::<c_void>();
        // SAFETY: the stream and the event are ours; what a host
        // function is given lives as long as the process.
        unsafe {
            match self.way.wait {
                Wait::Stream | Wait::Flag => {}
                Wait::Event | Wait::Query(_) | Wait::Hybrid | Wait::Adaptive | Wait::Events => {
                    self.driver.event_record(self.event, self.stream)?;
                }
                Wait::HostEventfd => self.driver.launch_host_function(self.stream, write_eventfd, woken)?,
                Wait::HostFutex => self.driver.launch_host_function(self.stream, wake_futex, woken)?,
                Wait::HostBell => self.driver.launch_host_function(self.stream, ring_bell, woken)?,
                Wait::WriteValue => {
                    let from = self.at(self.page.from.0.as_ptr().cast());
                    self.driver.stream_write_value(self.stream, from, self.number, 0)?;
                }
            }
        }
        Ok((before, now_ns(self.clock)))
    }

    fn wait(&mut self) -> Result<(), Fault> {
        let (driver, event) = (self.driver, self.event);
        // SAFETY: the event is ours.
        let is_done = || unsafe { driver.is_done(event) }.map_err(fault);
        let synchronize = || {
            // SAFETY: the event is ours.
            unsafe { driver.event_synchronize(event) }.map_err(fault)
        };
        match self.way.wait {
            Wait::Stream => self.synchronize()?,
            // Of the loop only what goes before its window.
            Wait::Event | Wait::Events => synchronize()?,
            Wait::Query(pause) => {
                while !is_done()? {
                    if pause > 0 {
                        std::thread::sleep(Duration::from_micros(pause));
                    }
                }
            }
            Wait::Hybrid => {
                let began = Instant::now();
                loop {
                    if is_done()? {
                        break;
                    }
                    if began.elapsed() >= self.hybrid {
                        synchronize()?;
                        break;
                    }
                }
            }
            Wait::Adaptive => drop(self.waiter.wait(&self.event(), None).map_err(fault)?),
            // Behind a kernel that failed nobody is called: each of these sleeps no longer than
            // until the driver is to be asked.
            Wait::HostEventfd => {
                let file = &self.woken.file;
                loop {
                    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&relative(ASK))) {
                        Ok(0) => self.is_well()?,
                        Ok(_) => break,
                        Err(Errno::INTR) => {}
                        Err(errno) => return Err(Fault::new("poll", errno)),
                    }
                }
                rustix::io::read(file, &mut [0; 8]).map_err(Fault::of("read"))?;
            }
            Wait::HostFutex => {
                let word = &self.woken.word;
                while word.swap(0, SeqCst) == 0 {
                    let slept = futex::wait(word, futex::Flags::PRIVATE, 0, Some(&relative(ASK)));
                    if slept == Err(Errno::TIMEDOUT) {
                        self.is_well()?;
                    }
                }
            }
            Wait::HostBell => {
                while self.bell.wait_timeout(ASK).map_err(Fault::of("Bell::wait_timeout"))?.is_none() {
                    self.is_well()?;
                }
            }
            Wait::WriteValue => self.look(&self.page.from.0, self.number)?,
            Wait::Flag => {
                let value = if self.way.start == Start::Graph { 1 } else { self.number };
                self.look(&self.page.flag.0, value)?;
            }
        }
        Ok(())
    }
}
