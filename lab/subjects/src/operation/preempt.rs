// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a thread that computes is interrupted, and what that takes from it: by timers of its
//! own, and by others that watch the time for it.
//!
//! Each round the thread says when it wants to be interrupted, and computes: it reads its clock
//! until the handler has run. How late the handler came is the response; the time between the two
//! readings around the interrupt is what the thread lost, and is the operation.

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{
    AtomicI32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use user_interrupts::{Backend, Calls, Receiver};

use super::{Contexts, Explanation, Fault, Form, Links, OpenError, Operation, PLAIN, Unavailable};
use crate::mechanism::c_call::{ThreadTimer, handle};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::{Now, monotonic_ns};

/// Who interrupts the thread that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preempt {
    /// Its own timer, in user mode.
    UintrTimer,
    /// Its own timer, by a signal.
    SignalTimer,
    /// A thread that sleeps on a timerfd, by a signal.
    Timerfd,
    /// A thread that looks at the clock all the time, by a signal.
    Watcher,
}

/// From the moment that the thread says it until it is due.
const QUANTUM: Duration = Duration::from_micros(100);

/// The shortest that a user interrupt's timer takes.
const LEAST: Duration = Duration::from_micros(10);

/// Rounds before anything is recorded.
const WARMUP: u64 = 20;

const SIGNAL: libc::c_int = libc::SIGUSR1;
const VECTOR: u8 = 0;

/// For a watcher: nothing is due any more, and it ends.
const OVER: u64 = u64::MAX;

/// When the handler ran, 0: not yet. One trial runs in a process.
static FIRED: AtomicU64 = AtomicU64::new(0);

fn fires() {
    FIRED.store(monotonic_ns(), Relaxed);
}

extern "C" fn on_signal(_: libc::c_int) {
    fires();
}

pub(super) const UINTR_TIMER: Operation = Operation {
    name: "preempt-uintr-timer",
    available: || {
        user_interrupts::can_start(&[Backend::Hardware]).map(drop).map_err(|error| {
            Unavailable::because(format!(
                "{error}; `doorbell vm run --accel uintr --driver` has a CPU and the driver"
            ))
        })
    },
    open: |_, _| {
        user_interrupts::start(&[Backend::Hardware]).map_err(OpenError::of("uintr_start"))?;
        open(Preempt::UintrTimer)
    },
    ..preemption(
        Form::alone("preemption", 1),
        "a thread that computes is interrupted by its own timer, in user mode, without a signal",
        "The timer's interrupt posts to the thread as SENDUIPI would; the CPU runs the handler on the \
         way back to user mode.",
    )
};

pub(super) const SIGNAL_TIMER: Operation = Operation {
    name: "preempt-signal-timer",
    open: |_, _| open(Preempt::SignalTimer),
    ..preemption(
        Form::alone("preemption", 1),
        "a thread that computes is interrupted by its own timer's signal",
        "The timer's interrupt queues the signal; the way back to user mode builds its frame, and the \
         handler ends by sigreturn.",
    )
};

pub(super) const TIMERFD: Operation = Operation {
    name: "preempt-timerfd",
    open: |_, _| open(Preempt::Timerfd),
    ..preemption(
        Form::two_sides("preemption", 1),
        "a thread that computes is signalled by one that sleeps on a timerfd",
        "The timer's interrupt wakes the sleeper, which signals: on one core two switches, over two an \
         interrupt of the other core.",
    )
};

pub(super) const WATCHER: Operation = Operation {
    name: "preempt-watcher",
    shares_a_core: false,
    open: |_, _| open(Preempt::Watcher),
    ..preemption(
        Form::two_sides("preemption", 1),
        "a thread that computes is signalled by one that spins on the clock",
        "The signal interrupts the other core, whose way back to user mode runs the handler. The \
         watcher's core does nothing else.",
    )
};

/// What all of them are.
const fn preemption(form: Form, summary: &'static str, kernel: &'static str) -> Operation {
    Operation {
        form,
        explanation: Explanation {
            summary,
            how: "The thread requests an interrupt in 100 us and reads its clock until the handler \
                has run. Lateness: from the requested time to the handler's reading of the clock. \
                Time taken: between the thread's readings before and after the interrupt.",
            kernel,
            limits: "The time taken includes one or two readings of the clock. A user interrupt's \
                timer takes a duration, so that the entry into that call counts as lateness. All \
                handlers only read the clock and store it.",
            sources: &["timer_create(2), timerfd_create(2)", "uintr/driver/timer.c; uintr(3)"],
        },
        only: Some(Contexts::Threads),
        usual: false,
        ..PLAIN
    }
}

fn open(by: Preempt) -> Result<Box<dyn Links>, OpenError> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
        .map_err(OpenError::of("timerfd_create"))?;
    Ok(Box::new(Preemption { by, timer, due: AtomicU64::new(0), thread: AtomicI32::new(0) }))
}

/// What both sides, threads of one process, know.
struct Preemption {
    by: Preempt,
    timer: OwnedFd,
    /// For the watcher, nanoseconds of the monotonic clock; 0: nothing.
    due: AtomicU64,
    /// Whom to signal.
    thread: AtomicI32,
}

impl Links for Preemption {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        if role.index() == 0 {
            self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            let own = self.sets_up()?;
            side.control.meet(2, 1);
            let computed = self.computes(&own, side);
            // Also where that failed: the other waits.
            self.tells(OVER)?;
            return computed;
        }
        side.control.meet(2, 1);
        let opened = side.open_window();
        match self.by {
            Preempt::UintrTimer | Preempt::SignalTimer => {}
            Preempt::Timerfd => self.sleeps()?,
            Preempt::Watcher => self.watches()?,
        }
        side.close_window(opened);
        side.step(Step::Finished, 0);
        Ok(())
    }
}

/// What interrupts the thread, as far as it is the thread's own.
enum Own {
    Receiver(Receiver),
    Timer(ThreadTimer),
    Nothing,
}

/// What a call returned, as a fault of `call`.
fn done(call: &'static str, returned: libc::c_int) -> Result<(), Fault> {
    if returned == 0 { Ok(()) } else { Err(Fault::new(call, std::io::Error::last_os_error())) }
}

impl Preemption {
    fn sets_up(&self) -> Result<Own, SideError> {
        FIRED.store(0, Relaxed);
        if self.by == Preempt::UintrTimer {
            // SAFETY: the handler reads the clock, which allocates and locks nothing, and writes an atomic.
            let receiver = unsafe { Receiver::new(|_| fires(), Calls::GoOn) };
            let receiver = receiver.map_err(Fault::of("uintr_handle"))?;
            receiver.unmask();
            return Ok(Own::Receiver(receiver));
        }
        // SAFETY: the handler reads the clock and writes an atomic, both async-signal-safe.
        unsafe { handle(SIGNAL, on_signal, libc::SA_RESTART) }.map_err(Fault::of("sigaction"))?;
        if self.by != Preempt::SignalTimer {
            return Ok(Own::Nothing);
        }
        Ok(ThreadTimer::new(SIGNAL).map(Own::Timer).map_err(Fault::of("timer_create"))?)
    }

    /// Has whoever interrupts do so at `due`.
    fn asks(&self, own: &Own, due: u64) -> Result<(), Fault> {
        match own {
            Own::Receiver(receiver) => {
                // Who lost its CPU just now asks for the least there is.
                let left = Duration::from_nanos(due.saturating_sub(monotonic_ns())).max(LEAST);
                receiver.timer(VECTOR, left, None).map_err(Fault::of("uintr_timer"))
            }
            Own::Timer(timer) => {
                // SAFETY: `itimerspec` is plain data, valid when zero.
                let mut once: libc::itimerspec = unsafe { std::mem::zeroed() };
                once.it_value.tv_sec = (due / 1_000_000_000).cast_signed();
                once.it_value.tv_nsec = (due % 1_000_000_000).cast_signed();
                // SAFETY: the timer lives as long as `own`, the setting through the call.
                let set = unsafe {
                    libc::timer_settime(timer.0, libc::TIMER_ABSTIME, &raw const once, ptr::null_mut())
                };
                done("timer_settime", set)
            }
            Own::Nothing => self.tells(due),
        }
    }

    /// Tells the other side what is due.
    fn tells(&self, due: u64) -> Result<(), Fault> {
        // Pairs with the Acquire loads of the other side.
        self.due.store(due, Release);
        if self.by != Preempt::Timerfd {
            return Ok(());
        }
        // The past is at once.
        let at = if due == OVER { 1 } else { due };
        let it_value = Timespec {
            tv_sec: (at / 1_000_000_000).cast_signed(),
            tv_nsec: (at % 1_000_000_000).cast_signed(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .map(drop)
            .map_err(Fault::of("timerfd_settime"))
    }

    fn signals(&self) -> Result<(), Fault> {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: takes integers only; the thread has its handler since the sides met, and lives until this
        // one ends. JUSTIFICATION: neither rustix nor libc has tgkill.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, self.thread.load(Relaxed), SIGNAL) };
        done("tgkill", if sent == 0 { 0 } else { -1 })
    }

    fn sleeps(&self) -> Result<(), Fault> {
        loop {
            rustix::io::retry_on_intr(|| rustix::io::read(&self.timer, &mut [0_u8; 8]))
                .map_err(Fault::of("read"))?;
            // Pairs with the Release store in `tells`.
            if self.due.load(Acquire) == OVER {
                return Ok(());
            }
            self.signals()?;
        }
    }

    fn watches(&self) -> Result<(), Fault> {
        loop {
            // Pairs with the Release store in `tells`.
            let due = self.due.load(Acquire);
            if due == OVER {
                return Ok(());
            }
            if due == 0 || monotonic_ns() < due {
                std::hint::spin_loop();
            } else if self.due.compare_exchange(due, 0, Relaxed, Relaxed).is_ok() {
                self.signals()?;
            }
        }
    }

    fn computes(&self, own: &Own, side: &mut Side) -> Result<(), SideError> {
        let clock = side.clock;
        let count = side.configuration.until.count.unwrap_or(u64::MAX);
        let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
        let quantum = QUANTUM.as_nanos() as u64;
        let mut opened = side.open_window();
        let mut round = 0;
        while round < WARMUP.saturating_add(count) && !side.interrupted() {
            if round == WARMUP {
                side.times.clear();
                opened = side.open_window();
            }
            FIRED.store(0, Relaxed);
            let due = monotonic_ns() + quantum;
            self.asks(own, due)?;
            let mut before = clock.now();
            let fired = loop {
                let now = clock.now();
                let fired = FIRED.load(Relaxed);
                if fired != 0 {
                    break fired;
                }
                before = now;
            };
            // The interrupt came after one of the two last readings.
            let lost = clock.now().saturating_sub(before);
            side.times.operation.record(clock.ps(lost));
            side.times.response.record(fired.saturating_sub(due) * 1000);
            round += 1;
            side.step(Step::Operates, round);
            if round > WARMUP && window.is_some_and(|window| clock.now().saturating_sub(opened) >= window) {
                break;
            }
        }
        side.close_window(opened);
        side.tally.sent = round.saturating_sub(WARMUP);
        side.tally.seen = side.tally.sent;
        side.tally.warmup = WARMUP.min(round);
        side.step(Step::Finished, round);
        Ok(())
    }
}
