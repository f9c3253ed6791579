// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a GPU, on a driver made for tests (`driver.c`), which is none.

#[path = "../common/alone.rs"]
mod alone;

use alone::alone;
use doorbell::Deadline;
use doorbell::gpu::driver::{Driver, Handle};
use doorbell::gpu::{AsyncWaiter, Event, Events, GpuError, Spin, Waiter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

const LAUNCH_FAILED: i32 = 719;

/// The driver made for tests, compiled once.
fn library() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libcuda-made-for-tests.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gpu/driver.c");
        let mut compiler = Command::new("cc");
        // Whole at once: another run of these tests may open it.
        let made = file.with_extension(std::process::id().to_string());
        compiler.args(["-shared", "-fPIC", "-O1", "-pthread", "-o"]).arg(&made).arg(source);
        assert!(compiler.status().expect("cc").success());
        std::fs::rename(&made, &file).unwrap();
        file
    })
}

/// A stream of a device of its own, which does what `script` says, and an event.
struct Bench {
    driver: &'static Driver,
    stream: Handle,
    event: Handle,
    work: Handle,
    /// Two stamps and a flag.
    memory: Box<[u64; 3]>,
}

impl Bench {
    fn new(script: &str) -> Self {
        let driver = Driver::at(library()).unwrap();
        let path = CString::new(library().to_str().unwrap()).unwrap();
        let text = CString::new(script).unwrap();
        let (mut stream, mut event, mut module, mut work) = (null_mut(), null_mut(), null_mut(), null_mut());
        // SAFETY: the library has this function with this signature; all pointers are good for the calls.
        unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            let say = libc::dlsym(library, c"test_driver_script".as_ptr());
            let say = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(say);
            say(text.as_ptr());
            driver.context_set(null_mut()).unwrap();
            driver.context().unwrap();
            driver.stream_create(&raw mut stream, 1).unwrap();
            driver.event_create(&raw mut event, 2).unwrap();
            driver.module_load(&raw mut module, c".entry work".as_ptr().cast()).unwrap();
            driver.module_function(&raw mut work, module, c"work".as_ptr()).unwrap();
        }
        Self { driver, stream, event, work, memory: Box::new([0; 3]) }
    }

    /// Starts a kernel of `time` and records the event after it.
    fn launch(&mut self, time: Duration) -> Event<'static> {
        let base = self.memory.as_mut_ptr() as u64;
        let (mut ns, mut stamps, mut flag, mut value) = (time.as_nanos() as u64, base, base + 16, 1_u32);
        let mut parameters: [*mut c_void; 4] =
            [(&raw mut ns).cast(), (&raw mut stamps).cast(), (&raw mut flag).cast(), (&raw mut value).cast()];
        let parameters = parameters.as_mut_ptr();
        // SAFETY: the kernel takes these, and the memory is there until the process ends: no test frees its
        // bench before its kernel is done.
        unsafe {
            self.driver
                .launch_kernel(self.work, 1, 1, 1, 1, 1, 1, 0, self.stream, parameters, null_mut())
                .unwrap();
            // Of a device that has failed already it is refused, and the wait says why.
            let _ = self.driver.event_record(self.event, self.stream);
            Event::from_raw(self.event)
        }
    }

    /// Records the event after what is not done before it is [let go](Self::let_go).
    fn hold(&mut self) -> Event<'static> {
        let word = self.word();
        word.store(0, Ordering::SeqCst);
        let at = word.as_ptr() as u64;
        // SAFETY: the word is there until the process ends, as with a kernel; 1 is
        // `CU_STREAM_WAIT_VALUE_EQ`.
        unsafe {
            self.driver.stream_wait_value(self.stream, at, 1, 1).unwrap();
            self.driver.event_record(self.event, self.stream).unwrap();
            Event::from_raw(self.event)
        }
    }

    fn let_go(&mut self) {
        self.word().store(1, Ordering::SeqCst);
    }

    fn word(&mut self) -> &AtomicI32 {
        // SAFETY: as wide at least, and only read by the driver meanwhile.
        unsafe { AtomicI32::from_ptr((&raw mut self.memory[2]).cast()) }
    }

    /// Leaves its memory to kernels that never end.
    fn forget(self) {
        std::mem::forget(self);
    }
}

/// One who never spins.
fn sleeper() -> Waiter {
    let mut waiter = Waiter::new().unwrap();
    waiter.set_spin(Spin::For(Duration::ZERO));
    waiter
}

const WAITS: u64 = 10;
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(5);

#[test]
fn a_wait_ends_once_the_kernel_has_whether_it_spins_or_sleeps() {
    let mut bench = Bench::new("");
    for spin in [Spin::Adaptive, Spin::For(Duration::ZERO), Spin::For(Duration::from_secs(1))] {
        let mut waiter = Waiter::new().unwrap();
        waiter.set_spin(spin);
        for _ in 0..20 {
            let event = bench.launch(SHORT);
            assert!(waiter.wait(&event, None).unwrap());
            // The stamps of the kernel's begin and end.
            assert!(bench.memory[1] - bench.memory[0] >= SHORT.as_nanos() as u64);
            bench.memory[1] = 0;
        }
        let counts = waiter.counts();
        match spin {
            Spin::For(Duration::ZERO) => assert_eq!((counts.hits, counts.in_vain), (0, 0), "{counts:?}"),
            Spin::For(_) => assert_eq!((counts.slept, counts.in_vain), (0, 0), "{counts:?}"),
            Spin::Adaptive => {
                assert!(counts.slept > 0, "a millisecond is longer than a sleep costs: {counts:?}")
            }
        }
    }
}

#[test]
fn a_wait_that_is_given_up_may_be_taken_up_again_and_an_early_event_is_not_told_behind_a_late_one() {
    let mut late = Bench::new("never=1");
    let event = late.launch(SHORT);
    let mut waiter = Waiter::new().unwrap();
    for _ in 0..3 {
        assert!(!waiter.wait(&event, Some(Deadline::after(SHORT))).unwrap());
    }
    // The same waiter, while a stream of its own still waits for what never comes.
    let mut bench = Bench::new("");
    let early = bench.launch(LONG);
    waiter.set_spin(Spin::For(Duration::ZERO));
    assert!(waiter.wait(&early, None).unwrap());
    late.forget();
}

/// It was taken for waited for already, and found by the look after 100 ms.
#[test]
fn an_event_that_was_given_up_and_is_recorded_anew_is_told_by_the_driver() {
    let (mut slow, mut quick) = (Bench::new("never=1"), Bench::new(""));
    let mut waiter = sleeper();
    let event = slow.launch(SHORT);
    assert!(!waiter.wait(&event, Some(Deadline::after(SHORT))).unwrap());
    quick.event = slow.event;
    for _ in 0..WAITS {
        assert!(waiter.wait(&quick.launch(SHORT), None).unwrap());
    }
    let counts = waiter.counts();
    // Who was held up for a millisecond finds it done. The first slept in vain.
    assert!(counts.slept > 1 && counts.rescued < counts.slept - 1, "{counts:?}");
    slow.forget();
}

/// However often it is given up, no more than some streams are left
/// after, and it is found all the same.
#[test]
fn an_event_that_was_given_up_often_is_looked_for() {
    let mut bench = Bench::new("");
    let event = bench.launch(LONG * 20);
    let mut waiter = sleeper();
    while !waiter.wait(&event, Some(Deadline::after(SHORT))).unwrap() {}
    assert!(waiter.counts().slept > 0);
    // In parts it is one wait, and told.
    let event = bench.launch(LONG * 20);
    let mut waiter = sleeper();
    let mut done = waiter.wait(&event, Some(Deadline::after(SHORT))).unwrap();
    while !done {
        done = waiter.resume(&event, Some(Deadline::after(SHORT))).unwrap();
    }
    assert!(waiter.counts().slept > 1);
}

#[test]
fn a_driver_that_calls_late_makes_a_wait_late_and_no_more() {
    let mut bench = Bench::new("late_us=20000");
    let mut waiter = Waiter::new().unwrap();
    for _ in 0..5 {
        let event = bench.launch(SHORT);
        assert!(waiter.wait(&event, None).unwrap());
    }
    // The event is done although nobody is called before half a
    // minute is over: a glance, or the deadline, finds it.
    let mut bench = Bench::new("late_us=30000000");
    let mut waiter = sleeper();
    let event = bench.launch(Duration::ZERO);
    assert!(waiter.wait(&event, Some(Deadline::after(Duration::from_secs(10)))).unwrap());
    bench.forget();
}

#[test]
fn a_wait_breaks_no_capture_of_another_thread() {
    let name = "a_wait_breaks_no_capture_of_another_thread";
    alone(name, || {
        let mut bench = Bench::new("");
        // SAFETY: the library has this word, and nothing else writes it.
        unsafe { test_driver_word(c"test_driver_captures").as_ref() }.store(1, Ordering::SeqCst);
        for spin in [Spin::For(Duration::ZERO), Spin::For(Duration::from_secs(1))] {
            let mut waiter = Waiter::new().unwrap();
            waiter.set_spin(spin);
            let event = bench.launch(SHORT);
            assert!(waiter.wait(&event, None).unwrap());
        }
        assert_eq!(calls_for([SHORT; 3]), 3);
    });
}

#[test]
fn a_thread_without_a_context_waits_too() {
    let mut bench = Bench::new("");
    let mut waiter = sleeper();
    let mut events = Events::new().unwrap();
    let event = bench.launch(SHORT);
    assert!(waiter.wait(&event, None).unwrap());
    let event = bench.launch(SHORT);
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || {
            assert!(waiter.wait(&event, None).unwrap());
            // SAFETY: the bench's, which outlives them.
            unsafe { events.add(&event, 1) }.unwrap();
            while events.done().unwrap().is_empty() {
                assert!(is_readable(&events, 30));
            }
        });
        waits.join().unwrap();
    });
}

#[test]
fn a_kernel_that_fails_and_a_device_that_is_lost_end_a_wait_by_their_names() {
    let failed = |error: GpuError| match error {
        GpuError::Call { code, name, .. } => {
            assert_eq!((code, name.as_str()), (LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"));
        }
        other => panic!("{other}"),
    };
    let mut bench = Bench::new("fail=719");
    let event = bench.launch(SHORT);
    failed(Waiter::new().unwrap().wait(&event, None).unwrap_err());

    // Asleep, and nobody calls any more.
    let mut lost = Bench::new("never=1 lost_us=5000000");
    let event = lost.launch(SHORT);
    let mut waiter = sleeper();
    failed(waiter.wait(&event, None).unwrap_err());
    assert_eq!(waiter.counts().slept, 1);
    lost.forget();
}

fn is_readable(events: &Events, wait: i64) -> bool {
    let wait = Timespec { tv_sec: wait, tv_nsec: 0 };
    poll(&mut [PollFd::new(&events.as_fd(), PollFlags::IN)], Some(&wait)).unwrap() == 1
}

/// The order in which they are done is the test's: each ends when it is let go.
#[test]
fn one_descriptor_tells_of_many_events_each_once_in_the_order_in_which_they_are_done() {
    let mut benches: Vec<Bench> = (0..8).map(|_| Bench::new("")).collect();
    let mut events = Events::new().unwrap();
    assert!(!is_readable(&events, 0));
    for round in 0..10 {
        for (place, bench) in (0..).zip(&mut benches) {
            let event = bench.hold();
            // SAFETY: the bench keeps its event.
            unsafe { events.add(&event, round * 8 + place) }.unwrap();
        }
        assert!(events.done().unwrap().is_empty(), "all are held");
        // 5 has no divisor in common with 8: each is let go once, and hardly one after the one before it.
        for place in (0..8).map(|step| (step * 5 + round) % 8) {
            benches[place as usize].let_go();
            let told = loop {
                assert!(is_readable(&events, 30), "nobody tells of event {place}");
                let told = events.done().unwrap();
                if !told.is_empty() {
                    break told;
                }
            };
            let told: Vec<(u64, bool)> = told.iter().map(|done| (done.key, done.result.is_ok())).collect();
            assert_eq!(told, [(round * 8 + place, true)]);
        }
        assert!(events.is_empty());
        // A call that comes after the look makes it readable once more.
        assert!(events.done().unwrap().is_empty(), "nothing is waited for any more");
    }
}

/// With a call that woke nobody the timer found each of them, and no test said so.
#[test]
fn events_that_no_timer_is_set_for_are_told_by_the_driver() {
    let mut bench = Bench::new("");
    let mut events = Events::new().unwrap();
    for round in 0..WAITS {
        let event = bench.hold();
        // SAFETY: the bench keeps its event.
        unsafe { events.add(&event, round) }.unwrap();
        bench.let_go();
        while !events.is_empty() {
            assert!(is_readable(&events, 30));
            events.done().unwrap();
        }
    }
    assert!(events.rescued() < WAITS, "{} of {WAITS} were found by the timer", events.rescued());
}

/// A number of the driver made for tests.
fn test_driver_word(name: &CStr) -> NonNull<AtomicI32> {
    let path = CString::new(library().to_str().unwrap()).unwrap();
    // SAFETY: the library has what the tests name, and is never closed.
    let found = unsafe { libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    NonNull::new(found.cast()).expect("a word of the driver made for tests")
}

/// How often the driver made for tests was asked to call a function,
/// by whatever test of this process.
fn calls() -> i32 {
    // SAFETY: the library changes it with one instruction.
    unsafe { test_driver_word(c"test_driver_calls").as_ref() }.load(Ordering::SeqCst)
}

/// Waits through `Events` for kernels of `times`, one at a time; how often the driver was asked to
/// call a function meanwhile.
fn calls_for(times: impl IntoIterator<Item = Duration>) -> i32 {
    let mut bench = Bench::new("");
    let mut events = Events::new().unwrap();
    let before = calls();
    for (round, time) in (0..).zip(times) {
        let event = bench.launch(time);
        // SAFETY: the bench's, which outlives them.
        unsafe { events.add(&event, round) }.unwrap();
        let told = loop {
            assert!(is_readable(&events, 30), "nothing within thirty seconds of kernel {round}");
            if let Some(told) = events.done().unwrap().pop() {
                break told;
            }
        };
        assert_eq!((told.key, told.result), (round, Ok(())));
        assert!(events.is_empty());
        assert!(bench.memory[1] - bench.memory[0] >= time.as_nanos() as u64);
        bench.memory[1] = 0;
    }
    calls() - before
}

#[test]
fn regular_events_and_a_much_longer_one_among_them_are_each_told_once() {
    let name = "regular_events_and_a_much_longer_one_among_them_are_each_told_once";
    alone(name, || {
        let long = LONG * 2;
        let called = calls_for([long; 80].into_iter().chain([long * 10]).chain([long; 5]));
        // How many a timer finds depends on how busy the machine is; the longer one it does not.
        assert!((6..=86).contains(&called), "{called} calls");
    });
}

#[test]
fn events_of_which_none_is_as_long_as_the_last_are_each_told_by_a_call() {
    let name = "events_of_which_none_is_as_long_as_the_last_are_each_told_by_a_call";
    alone(name, || assert_eq!(calls_for([SHORT, LONG * 10].repeat(12)), 24));
}

#[test]
fn a_descriptor_tells_of_a_lost_device_too_and_of_no_event_that_was_removed() {
    let mut lost = Bench::new("never=1 lost_us=5000000");
    let mut events = Events::new().unwrap();
    let event = lost.launch(SHORT);
    // SAFETY: the bench keeps its event.
    unsafe {
        events.add(&event, 1).unwrap();
        events.add(&event, 2).unwrap();
    }
    events.remove(1);
    let mut told = Vec::new();
    while told.is_empty() {
        assert!(is_readable(&events, 30));
        told = events.done().unwrap();
    }
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].key, 2);
    assert!(matches!(told[0].result, Err(GpuError::Call { code: LAUNCH_FAILED, .. })));
    lost.forget();
}

#[test]
fn a_task_waits_and_a_wait_that_was_dropped_disturbs_no_later_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut late = Bench::new("never=1");
        let mut bench = Bench::new("");
        let mut waiter = AsyncWaiter::new().unwrap();
        let never = late.launch(SHORT);
        assert!(tokio::time::timeout(LONG, waiter.wait(&never)).await.is_err());
        for _ in 0..5 {
            let event = bench.launch(SHORT);
            waiter.wait(&event).await.unwrap();
            assert_ne!(bench.memory[1], 0);
            bench.memory[1] = 0;
        }
        late.forget();
    });
}

/// Each thread has a waiter of its own, as in a serving process.
#[test]
fn threads_that_wait_at_once_lose_no_event() {
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                let mut bench = Bench::new("");
                let mut waiter = Waiter::new().unwrap();
                for round in 0..300_u64 {
                    let event = bench.launch(Duration::from_micros((round * 7 + thread * 13) % 90));
                    assert!(waiter.wait(&event, None).unwrap());
                    assert_ne!(std::mem::take(&mut bench.memory[1]), 0);
                }
                let counts = waiter.counts();
                assert!(counts.hits + counts.slept <= 300, "{counts:?}");
            });
        }
    });
}
