// SPDX-License-Identifier: MIT OR Apache-2.0
//! `perf bench futex wake`: what it takes one thread to wake many, one at a time.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::alone::{Bench, alone, batch};
use super::figures::batch_time;
use super::{Contexts, Explanation, Fault, Form, Operation, PLAIN};

/// How long the threads are given to fall asleep, as the tool gives them.
const SETTLE: Duration = Duration::from_millis(100);

pub(super) const OPERATION: Operation = Operation {
    name: "futex-wake-all",
    form: Form::alone("wake", 100),
    explanation: Explanation {
        summary: "the protocol of perf bench futex wake: one thread wakes many, one at a time",
        how: "--batch threads, spread over the CPUs, sleep on one private futex for 100 ms; then \
            FUTEX_WAKE for one, over and over until all were woken. A woken thread ends at once.",
        kernel: "Each wake-up unqueues one waiter and puts it on its CPU's run queue; the \
            waker may be preempted by whom it woke, and by threads that end.",
        limits: "The sender's time alone: when the woken threads run is not looked at. Run it \
            unpinned, as the tool.",
        sources: &["Linux tools/perf/bench/futex-wake.c"],
    },
    only: Some(Contexts::Threads),
    usual: false,
    open: |_, _| {
        alone(|side| {
            let allowed = rustix::thread::sched_getaffinity(None)
                .map_err(|error| Fault::new("sched_getaffinity", error))?;
            let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
            let word = Arc::new(AtomicU32::new(0));
            Ok(Sleepers { word, cpus, threads: Vec::new(), count: batch(side) })
        })
    },
    classic: |record| batch_time(record, "perf bench futex wake as printed", "wake-ups", (1e6, "ms")),
    ..PLAIN
};

/// The threads and the word they sleep on.
struct Sleepers {
    word: Arc<AtomicU32>,
    cpus: Vec<usize>,
    threads: Vec<libc::pthread_t>,
    count: u32,
}

/// A thread's whole life: asleep until woken.
extern "C" fn sleep(word: *mut c_void) -> *mut c_void {
    // SAFETY: `Sleepers` keeps the word alive until it has joined every thread.
    let word = unsafe { &*word.cast_const().cast::<AtomicU32>() };
    while word.load(Relaxed) == 0 {
        match futex::wait(word, Flags::PRIVATE, 0, None) {
            Err(Errno::INTR) => {}
            Ok(()) | Err(_) => break,
        }
    }
    std::ptr::null_mut()
}

impl Sleepers {
    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // SAFETY: created by `rewind` and joined once.
            unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
        }
    }

    /// Starts one sleeper on `cpu`.
    fn start(&mut self, cpu: usize) -> Result<(), Fault> {
        let word = Arc::as_ptr(&self.word).cast_mut().cast();
        let mut thread = 0;
        // SAFETY: both structures are plain data: the attributes are initialised by their own function
        // before use and destroyed after, the set holds one CPU; all pointers live through their
        // calls, and `sleep` takes the word, which outlives the thread.
        // JUSTIFICATION: a thread of the standard library has a signal stack to take down when it ends,
        // which the threads of the tool have not, and their ending is part of what is timed.
        let error = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut attributes);
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::pthread_attr_setaffinity_np(
                &raw mut attributes,
                size_of::<libc::cpu_set_t>(),
                &raw const set,
            );
            let error = libc::pthread_create(&raw mut thread, &raw const attributes, sleep, word);
            libc::pthread_attr_destroy(&raw mut attributes);
            error
        };
        if error != 0 {
            return Err(Fault::new("pthread_create", std::io::Error::from_raw_os_error(error)));
        }
        self.threads.push(thread);
        Ok(())
    }
}

impl Bench for Sleepers {
    fn rewind(&mut self) -> Result<(), Fault> {
        self.join();
        for number in 0..self.count as usize {
            self.start(self.cpus[number % self.cpus.len()])?;
        }
        std::thread::sleep(SETTLE);
        Ok(())
    }

    fn run(&mut self, count: u32) -> Result<(), Fault> {
        let mut woken = 0;
        while woken < count as usize {
            woken += futex::wake(&self.word, Flags::PRIVATE, 1)
                .map_err(|error| Fault::new("futex(FUTEX_WAKE)", error))?;
        }
        Ok(())
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        // Whoever still sleeps or comes to sleep, after a fault, finds the word changed.
        self.word.store(1, Relaxed);
        let _ = futex::wake(&self.word, Flags::PRIVATE, i32::MAX as u32);
        self.join();
    }
}
