// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every mechanism must do, told to each of them: both ends of a link in one process, where
//! the order of notifications and waits is ours to choose.

use crate::mechanism::{Link, Mechanism, Notifier, Waiter, Woken};
use crate::site::Site;
use doorbell_results::record::subject::Notifiers;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
/// A time-out that nothing which works runs into.
const NEVER: Duration = Duration::from_secs(30);

/// A time-out that is meant to run out.
const SHORT: Duration = Duration::from_millis(2);

/// Enough for a thread to have fallen asleep in most runs; the tests also hold when it has not.
const SETTLE: Duration = Duration::from_millis(10);

pub fn rehearse<M: Mechanism>(site: &Site) {
    a_wait_with_nothing_rung_times_out_and_a_later_one_succeeds::<M>(site);
    a_notification_before_the_wait_is_kept::<M>(site);
    a_look_consumes_what_it_finds::<M>(site);
    two_notifications_leave_what_the_mechanism_says::<M>(site);
    a_sleeping_waiter_is_woken_whatever_else_interrupts_it::<M>(site);
    a_second_notifier_wakes_or_is_known_not_to::<M>(site);
}

fn link<M: Mechanism>(site: &Site) -> M::Link {
    M::Link::open(site).unwrap_or_else(|error| panic!("{}: {error}", M::NAME))
}

type Ends<L> = (<L as Link>::Waiter, <L as Link>::Notifier);

fn ends<L: Link>(link: &L) -> Ends<L> {
    (link.waiter().unwrap(), link.notifier().unwrap())
}

fn a_wait_with_nothing_rung_times_out_and_a_later_one_succeeds<M: Mechanism>(site: &Site) {
    let link = link::<M>(site);
    let (mut waiter, mut notifier) = ends(&link);
    for _ in 0..3 {
        assert_eq!(waiter.wait_for(SHORT).unwrap(), Woken::TimedOut, "{}", M::NAME);
        assert_eq!(waiter.wait_for(Duration::ZERO).unwrap(), Woken::TimedOut, "{}", M::NAME);
        assert!(!waiter.poll().unwrap(), "{}", M::NAME);
        notifier.notify().unwrap();
        assert_eq!(waiter.wait_for(NEVER).unwrap(), Woken::Notified, "{}", M::NAME);
    }
    assert_eq!(waiter.wait_for(SHORT).unwrap(), Woken::TimedOut, "{}", M::NAME);
}

fn a_notification_before_the_wait_is_kept<M: Mechanism>(site: &Site) {
    let link = link::<M>(site);
    let (mut waiter, mut notifier) = ends(&link);
    for _ in 0..3 {
        notifier.notify().unwrap();
        waiter.wait().unwrap();
        assert!(!waiter.poll().unwrap(), "{}: one notification woke twice", M::NAME);
    }
}

/// Two notifiers take turns, and each notification is awaited before
/// the next: whatever merges, none may be lost.
fn a_second_notifier_wakes_or_is_known_not_to<M: Mechanism>(site: &Site) {
    let link = link::<M>(site);
    let mut waiter = link.waiter().unwrap();
    let mut first = link.notifier().unwrap();
    let second = link.notifier();
    if M::NOTIFIERS == Notifiers::One {
        // It cannot even be had, or what it writes is what the first has written.
        if let Ok(mut second) = second {
            first.notify().unwrap();
            waiter.wait().unwrap();
            second.notify().unwrap();
            assert_eq!(
                waiter.wait_for(SHORT).unwrap(),
                Woken::TimedOut,
                "{} has room for two notifiers",
                M::NAME
            );
        }
        return;
    }
    let mut second = second.unwrap_or_else(|error| panic!("{}: no second notifier: {error}", M::NAME));
    for turn in 0..6 {
        if turn % 2 == 0 {
            first.notify().unwrap()
        } else {
            second.notify().unwrap()
        }
        assert_eq!(waiter.wait_for(NEVER).unwrap(), Woken::Notified, "{}: turn {turn} was lost", M::NAME);
    }
    assert_eq!(waiter.wait_for(SHORT).unwrap(), Woken::TimedOut, "{}: woken once too often", M::NAME);
}

fn a_look_consumes_what_it_finds<M: Mechanism>(site: &Site) {
    let link = link::<M>(site);
    let (mut waiter, mut notifier) = ends(&link);
    for _ in 0..3 {
        notifier.notify().unwrap();
        let start = Instant::now();
        // What goes through a network stack or another task's work may take a moment.
        while !waiter.poll().unwrap() {
            assert!(start.elapsed() < NEVER, "{}: never seen", M::NAME);
        }
        assert!(!waiter.poll().unwrap(), "{}: seen twice", M::NAME);
    }
    // A look that leaves something under way must not swallow what comes next.
    notifier.notify().unwrap();
    waiter.wait().unwrap();
}

fn two_notifications_leave_what_the_mechanism_says<M: Mechanism>(site: &Site) {
    let link = link::<M>(site);
    let (mut waiter, mut notifier) = ends(&link);
    notifier.notify().unwrap();
    notifier.notify().unwrap();
    assert_eq!(waiter.wait_for(NEVER).unwrap(), Woken::Notified, "{}", M::NAME);
    if !M::COALESCES {
        assert_eq!(waiter.wait_for(NEVER).unwrap(), Woken::Notified, "{}", M::NAME);
    }
    assert_eq!(waiter.wait_for(SHORT).unwrap(), Woken::TimedOut, "{}", M::NAME);
    // And what merged has not worn the link out.
    notifier.notify().unwrap();
    waiter.wait().unwrap();
}

extern "C" fn nothing(_: libc::c_int) {}

fn a_sleeping_waiter_is_woken_whatever_else_interrupts_it<M: Mechanism>(site: &Site) {
    // SAFETY: `sigaction` is plain data, valid when zero: without SA_RESTART, so that calls return
    // EINTR. The handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
    for timed in [false, true] {
        let link = link::<M>(site);
        let (task, ready, over) = (AtomicI32::new(0), AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut waiter = link.waiter().unwrap();
                task.store(rustix::thread::gettid().as_raw_nonzero().get(), SeqCst);
                while !ready.load(SeqCst) {
                    thread::yield_now();
                }
                if timed {
                    assert_eq!(waiter.wait_for(NEVER).unwrap(), Woken::Notified, "{}", M::NAME);
                } else {
                    waiter.wait().unwrap();
                }
                over.store(true, SeqCst);
            });
            while task.load(SeqCst) == 0 && !waits.is_finished() {
                thread::yield_now();
            }
            let mut notifier = link.notifier().unwrap();
            ready.store(true, SeqCst);
            for _ in 0..5 {
                thread::sleep(SETTLE / 5);
                // SAFETY: takes numbers only; the thread is not joined before it is notified below.
                unsafe { libc::tgkill(std::process::id().cast_signed(), task.load(SeqCst), libc::SIGUSR1) };
            }
            thread::sleep(SETTLE);
            assert!(!over.load(SeqCst), "{}: a signal that was not its own ended the wait", M::NAME);
            notifier.notify().unwrap();
            waits.join().unwrap();
        });
    }
}
