// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source's way of measuring: counting timer interrupts of an
//! interval while the tasks run, beside a cycle counter.

use super::generations::Generations;
use super::stackless_rotating::live;
use super::{Explanation, Fault, MadeOf, Needs, PLAIN, TaskContext, TaskKind};
use crate::mechanism::c_call::{ThreadTimer, handle};
use doorbell_harness::side::SideError;
use doorbell_results::figure::timer_ticks::{BY_CYCLES, BY_TICKS, RUNS as RUNS_TIMED, STEP, TICKS, WORST};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed};
/// 5000 ticks of a timebase of 10 MHz, that of QEMU's board `virt`.
const INTERVAL_NS: i64 = 500_000;

/// Runs that the source averages on the emulator.
const AVERAGED: usize = 10;

static COUNT: AtomicU64 = AtomicU64::new(0);

static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Whether a tick may arm the timer anew: one that was due before the
/// timer was stopped may be delivered after.
static TICKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Ticks and picoseconds of each recorded run.
    static RUNS: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

pub(super) const KIND: TaskKind = TaskKind {
    name: "timer-ticks",
    explanation: Explanation {
        summary: "stackless-rotating, measured by counting timer ticks beside the cycle counter",
        how: "Runs stackless-rotating while a timer of 0.5 ms ticks (5000 units of a timebase \
            of 10 MHz), begun at a moment randomised. As in the source, the handler counts and \
            arms the timer anew from when it runs.",
        kernel: "A timer interrupt and a signal for each tick.",
        limits: "A count is a whole number: one tick more or less is an error of one tick's \
            length, however short the run. Each tick also takes time from the run it measures.",
        sources: &["HUST-OS/tornado-os, analysis0.rs", "timer_create(2)"],
    },
    made_of: MadeOf::Code,
    needs: Needs { tasks: 0, descriptors: 0, mappings: 0, bytes: 512 },
    one_turn: true,
    usual: false,
    generation: |task_context, generations| {
        let timer = Timer::start()?;
        let before = COUNT.load(Relaxed);
        live(task_context, generations)?;
        let ticks = COUNT.load(Relaxed) - before;
        drop(timer);
        let ps = task_context.stretches().map(|(ps, _)| ps).sum();
        RUNS.with_borrow_mut(|runs| {
            if generations.probing {
                runs.clear();
            } else {
                runs.push((ticks, ps));
            }
        });
        Ok(())
    },
    conclude: |task_context, generations| {
        RUNS.with_borrow(|runs| figures(runs, task_context, generations));
    },
    ..PLAIN
};

/// What ticks and cycles say of the same runs.
fn figures(runs: &[(u64, u64)], task_context: &TaskContext, generations: &mut Generations) {
    let interval_ps = INTERVAL_NS as f64 * 1e3;
    let number = runs.len() as f64;
    let ticks: u64 = runs.iter().map(|run| run.0).sum();
    let ps: u64 = runs.iter().map(|run| run.1).sum();
    let handoffs = number * task_context.total() as f64;
    let run_ps = (ps as f64 / number).max(1.0);
    generations.figure(TICKS, ticks as f64 / number, "ticks", format!("{ticks} ticks / {number} runs"));
    generations.figure(RUNS_TIMED, number, "runs", "generations whose ticks were counted".to_owned());
    let by_ticks = ticks as f64 * interval_ps / handoffs / 1e3;
    let formula = format!("{ticks} ticks x {INTERVAL_NS} ns / {handoffs} hand-offs");
    generations.figure(BY_TICKS, by_ticks, "ns", formula);
    let formula = format!("{} ns / {handoffs} hand-offs", ps / 1000);
    generations.figure(BY_CYCLES, ps as f64 / 1e3 / handoffs, "ns", formula);
    let step = interval_ps / run_ps * 100.0;
    generations.figure(
        STEP,
        step,
        "%",
        format!("{INTERVAL_NS} ns / {:.0} ns a run: the error of one count", run_ps / 1e3),
    );
    if let Some(worst) = worst_of_ten(runs, interval_ps) {
        let formula =
            format!("greatest of |ticks x interval - cycles| / cycles over means of {AVERAGED} runs");
        generations.figure(WORST, worst * 100.0, "%", formula);
    }
}

/// The greatest relative error of the mean of ten runs by ticks.
fn worst_of_ten(runs: &[(u64, u64)], interval_ps: f64) -> Option<f64> {
    let error = |ten: &[(u64, u64)]| {
        let by_ticks: f64 = ten.iter().map(|run| run.0 as f64 * interval_ps).sum();
        let by_cycles: f64 = ten.iter().map(|run| run.1 as f64).sum();
        (by_ticks - by_cycles).abs() / by_cycles.max(1.0)
    };
    runs.chunks_exact(AVERAGED).map(error).max_by(f64::total_cmp)
}

/// A timer that ticks until it is dropped.
struct Timer;

impl Timer {
    fn start() -> Result<Self, SideError> {
        if TIMER.load(Relaxed).is_null() {
            create()?;
        }
        TICKING.store(true, Relaxed);
        arm(fastrand::i64(1..=INTERVAL_NS));
        Ok(Self)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // Seen by every later tick, for ticks are handled in this thread.
        TICKING.store(false, Relaxed);
        arm(0);
    }
}

/// Creates the timer of this process and its handler; both stay until the process ends. The calling
/// thread gets the ticks, so that they interrupt the run and not a thread that sleeps beside it.
fn create() -> Result<(), SideError> {
    // SAFETY: the handler only uses atomics and arms the timer, which a signal handler may.
    unsafe { handle(libc::SIGALRM, tick, libc::SA_RESTART) }.map_err(Fault::of("sigaction"))?;
    let timer = ThreadTimer::new(libc::SIGALRM).map_err(Fault::of("timer_create"))?;
    TIMER.store(ManuallyDrop::new(timer).0, Relaxed);
    Ok(())
}

/// Lets the timer tick once in `ns`; 0 stops it.
fn arm(ns: i64) {
    let at = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec { tv_sec: 0, tv_nsec: ns },
    };
    // SAFETY: the timer was created before it is armed; `at` lives
    // through the call, which has no other way to fail.
    unsafe { libc::timer_settime(TIMER.load(Relaxed), 0, &raw const at, std::ptr::null_mut()) };
}

extern "C" fn tick(_: i32) {
    if TICKING.load(Relaxed) {
        COUNT.fetch_add(1, Relaxed);
        // From now on, as in the source, and not from when it was due.
        arm(INTERVAL_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::super::task_context::tests::task_context;
    use super::*;

    /// Time until the timer's next tick, nanoseconds; 0 if it is stopped.
    fn rest() -> i64 {
        // SAFETY: itimerspec is plain data, valid when zero.
        let mut rest: libc::itimerspec = unsafe { std::mem::zeroed() };
        // SAFETY: the timer was created by `Timer::start`, and `rest` is ours.
        assert_eq!(unsafe { libc::timer_gettime(TIMER.load(Relaxed), &raw mut rest) }, 0);
        rest.it_value.tv_sec * 1_000_000_000 + rest.it_value.tv_nsec
    }

    #[test]
    fn ticks_come_until_they_are_stopped_and_a_late_one_starts_nothing() {
        let timer = Timer::start().unwrap();
        while COUNT.load(Relaxed) < 3 {
            std::hint::spin_loop();
        }
        drop(timer);
        let counted = COUNT.load(Relaxed);
        // As the kernel delivers one that was due when the timer was stopped.
        tick(libc::SIGALRM);
        assert_eq!((rest(), COUNT.load(Relaxed)), (0, counted));
    }

    /// They were once worked out anew in every generation, and the time that took grew with the
    /// trial and counted as reaping.
    #[test]
    fn figures_are_worked_out_once_of_all_runs() {
        let (task_context, mut generations) = (task_context(10, 1), Generations::default());
        RUNS.set(vec![(1, 400_000_000), (0, 600_000_000)]);
        (KIND.conclude)(&task_context, &mut generations);
        let (_, figures) = generations.result(0);
        let ticks: Vec<_> = figures.iter().filter(|figure| figure.name == TICKS).collect();
        assert_eq!(ticks.len(), 1, "{figures:?}");
        assert!(ticks[0].formula.ends_with("/ 2 runs"), "{figures:?}");
    }

    #[test]
    fn ten_runs_of_a_third_of_a_tick_are_off_by_as_much_as_their_ticks_are() {
        let third = 166_666_667;
        let mut runs = vec![(0, third); 10];
        assert_eq!(worst_of_ten(&runs[..9], 5e8), None);
        assert!((worst_of_ten(&runs, 5e8).unwrap() - 1.0).abs() < 1e-6);
        runs[..3].iter_mut().for_each(|run| run.0 = 1);
        assert!((worst_of_ten(&runs, 5e8).unwrap() - 0.1).abs() < 1e-3);
    }
}
