// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does, in loom's terms: a futex, an eventfd, and the duty to wake.

use crate::wake::{Sleep, Slept, Steps, Waiter, WaiterSlot, WakeWords, Woken, wait_until_with};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::process::Command;
use std::string::String;

/// The protocol without one step each: a type, and the step that it leaves out or moves.
macro_rules! without {
    ($steps:path: $($(#[$doc:meta])* $broken:ident: $step:ident;)+) => {
        $($(#[$doc])* struct $broken;
        impl $steps for $broken {
            const $step: bool = false;
        })+
    };
}
pub(super) use without;

/// A bell with a futex queue, two eventfds, and a count as the thing one waits for.
pub(super) struct Bell {
    pub(super) words: WakeWords,
    /// The thing: how many messages were published.
    pub(super) published: AtomicU32,
    /// The kernel's futex queue. The kernel compares the word and joins the queue under one lock;
    /// the number counts wakes, so that a sleeper can tell a wake from a spurious return.
    futex: (Mutex<u32>, Condvar),
    /// Two eventfds: the count, and whoever polls it.
    eventfds: [(Mutex<u32>, Condvar); 2],
    /// Held by a notifier from N1 to N3 where it has no fence between them, and by a barrier: which
    /// of both comes first is what the kernel's interruption of the notifier decides. (One
    /// between N1 and N3 lets both sides see each other, which is no worse than either.)
    unfenced: Mutex<()>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self {
            words: WakeWords::new(),
            published: AtomicU32::new(0),
            futex: (Mutex::new(0), Condvar::new()),
            eventfds: [(Mutex::new(0), Condvar::new()), (Mutex::new(0), Condvar::new())],
            unfenced: Mutex::new(()),
        }
    }

    /// The duty that comes with `Woken`.
    pub(super) fn wake(&self, woken: Woken) {
        if woken.futex() {
            *self.futex.0.lock().unwrap() += 1;
            self.futex.1.notify_all();
        }
        for index in woken.eventfds().filter(|&index| index < 2) {
            self.write_token(index as usize);
        }
    }

    pub(super) fn write_token(&self, index: usize) {
        let (count, changed) = &self.eventfds[index];
        *count.lock().unwrap() += 1;
        changed.notify_all();
    }

    /// What a producer does: store (relaxed, so that the protocol's
    /// fences must order it), announce, wake.
    pub(super) fn publish<S: Steps>(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
        self.wake(self.words.announce_with::<S>());
    }

    pub(super) fn publish_twice<S: Steps>(&self) {
        self.publish::<S>();
        self.publish::<S>();
    }

    /// Waits until so many messages were published.
    pub(super) fn wait<M: Means, S: Steps>(&self, wanted: u32) {
        let mut waiters = [Waiter::new(&self.words, M::SLOT)];
        let waited = wait_until_with::<S, _>(&mut waiters, &mut M::sleeper(self), || self.has(wanted));
        assert!(waited.unwrap().ready);
    }

    /// As `publish`, with the read-modify-write that stands for the fence on x86.
    pub(super) fn ring<S: Steps>(&self) {
        self.wake(self.words.count_and_announce_with::<S>(&self.published));
    }

    /// `publish` by one who has said that it leaves out its fence.
    pub(super) fn publish_unfenced(&self) {
        let woken = {
            let _between = self.unfenced.lock().unwrap();
            self.published.fetch_add(1, Ordering::Relaxed);
            self.words.announce_unfenced_if(|| true)
        };
        self.wake(woken);
    }

    /// What `membarrier` does.
    pub(super) fn barrier(&self) {
        drop(self.unfenced.lock().unwrap());
    }

    pub(super) fn has(&self, wanted: u32) -> bool {
        self.published.load(Ordering::Relaxed) >= wanted
    }

    fn futex_wait(&self, ticket: u32) {
        let (lock, changed) = &self.futex;
        let mut wakes = lock.lock().unwrap();
        if self.words.epoch().load(Ordering::Relaxed) != ticket {
            return;
        }
        let before = *wakes;
        while *wakes == before {
            wakes = changed.wait(wakes).unwrap();
        }
    }

    pub(super) fn has_token(&self, index: usize) -> bool {
        *self.eventfds[index].0.lock().unwrap() != 0
    }

    /// Blocks until the eventfd is readable, and leaves it so.
    pub(super) fn poll(&self, index: usize) {
        let (count, changed) = &self.eventfds[index];
        let mut count = count.lock().unwrap();
        while *count == 0 {
            count = changed.wait(count).unwrap();
        }
    }
}

/// What a waiter at a bell sleeps on.
pub(super) trait Means {
    const SLOT: WaiterSlot;
    fn sleeper(bell: &Bell) -> impl Sleep<Error = ()>;
}

pub(super) struct OnFutex;

impl Means for OnFutex {
    const SLOT: WaiterSlot = WaiterSlot::FUTEX;
    fn sleeper(bell: &Bell) -> impl Sleep<Error = ()> {
        Futex(bell)
    }
}

/// On the first of the bell's eventfds.
pub(super) struct OnToken;

impl Means for OnToken {
    const SLOT: WaiterSlot = EVENTFD_0;
    fn sleeper(bell: &Bell) -> impl Sleep<Error = ()> {
        Eventfd(bell, 0)
    }
}

pub(super) struct Futex<'a>(pub(super) &'a Bell);

impl Sleep for Futex<'_> {
    type Error = ();
    fn consume(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }
    fn barrier(&mut self, _: usize) -> Result<(), ()> {
        self.0.barrier();
        Ok(())
    }
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, ()> {
        assert_eq!(waiters.len(), 1, "loom has no way to wait on two queues at once");
        self.0.futex_wait(waiters[0].ticket());
        Ok(Slept::Woken)
    }
}

/// Sleeps on one of the bell's eventfds.
pub(super) struct Eventfd<'a>(pub(super) &'a Bell, pub(super) usize);

impl Sleep for Eventfd<'_> {
    type Error = ();
    fn consume(&mut self, _: usize) -> Result<(), ()> {
        *self.0.eventfds[self.1].0.lock().unwrap() = 0;
        Ok(())
    }
    fn barrier(&mut self, _: usize) -> Result<(), ()> {
        self.0.barrier();
        Ok(())
    }
    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, ()> {
        self.0.poll(self.1);
        Ok(Slept::Woken)
    }
}

/// Sleeps like `S`, but its first sleep times out at once.
pub(super) struct Impatient<S>(pub(super) S, pub(super) bool);

impl<S: Sleep> Sleep for Impatient<S> {
    type Error = S::Error;
    fn consume(&mut self, index: usize) -> Result<(), S::Error> {
        self.0.consume(index)
    }
    fn barrier(&mut self, index: usize) -> Result<(), S::Error> {
        self.0.barrier(index)
    }
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, S::Error> {
        if std::mem::take(&mut self.1) {
            return Ok(Slept::TimedOut);
        }
        self.0.sleep(waiters)
    }
}

pub(super) const EVENTFD_0: WaiterSlot = WaiterSlot::eventfd(0).unwrap();
pub(super) const EVENTFD_1: WaiterSlot = WaiterSlot::eventfd(1).unwrap();

/// Does in a thread of its own each of `others`, and `here` what is left to do, with what they share.
pub(super) fn race<T: 'static, const N: usize>(shared: T, others: [fn(&T); N], here: impl FnOnce(&T)) {
    let shared = Arc::new(shared);
    let others = others.map(|other| meanwhile(&shared, other));
    here(&shared);
    for other in others {
        other.join().unwrap();
    }
}

/// Does `act` in a thread of its own.
pub(super) fn meanwhile<T: 'static>(
    shared: &Arc<T>,
    act: impl FnOnce(&T) + 'static,
) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || act(&shared))
}

/// Explores every interleaving of a small race.
pub(super) fn explore(race: impl Fn() + Sync + Send + 'static) {
    loom::model(race);
}

/// Explores a larger race, in every interleaving with at most [`PREEMPTIONS`] preemptions
/// (`LOOM_MAX_PREEMPTIONS` changes it; blocking does not count as one).
pub(super) fn explore_bounded(race: impl Fn() + Sync + Send + 'static) {
    explore_within(PREEMPTIONS, race);
}

/// As `explore_bounded`, with at most so many preemptions.
pub(super) fn explore_within(preemptions: usize, race: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(race);
}

/// The most that any of the mistakes in `broken` needs. One more takes minutes instead of seconds.
const PREEMPTIONS: usize = 4;

const IN_CHILD: &str = "DOORBELL_BROKEN_RACE";

/// Explores `race` and expects loom to stop with a message that contains `report`.
///
/// The exploration runs in a process of its own, in which only the calling test runs: loom aborts
/// when it unwinds out of a deadlock, because the blocked threads' locals can no longer be dropped.
pub(super) fn caught(report: &str, race: impl Fn() + Sync + Send + 'static) {
    if std::env::var_os(IN_CHILD).is_some() {
        return explore_bounded(race);
    }
    let this_test = String::from(std::thread::current().name().expect("tests run in named threads"));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this_test, "--nocapture", "--test-threads=1"])
        .env(IN_CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "the mistake went unnoticed");
    assert!(said.contains(report), "loom stopped for another reason: {said}");
}
