// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work for whichever thread is free.

use doorbell::queue::{PopError, PushError};
use doorbell::{Deadline, Notify, queue};
use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// Longer than any of these tests takes on the slowest machine: running into it is a hang.
const FOREVER: Duration = Duration::from_secs(60);

#[test]
fn each_value_is_taken_once_by_whichever_thread_is_free() {
    const PUSHERS: u64 = 3;
    const EACH: u64 = 20_000;
    let work = queue(8);
    let pushing: Vec<_> = (0..PUSHERS)
        .map(|pusher| {
            let work = work.clone();
            thread::spawn(move || {
                for number in 0..EACH {
                    work.push_timeout(pusher * EACH + number, FOREVER).expect("hung");
                    if number % 997 == 0 {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
            })
        })
        .collect();
    let popping: Vec<_> = (0..3)
        .map(|_| {
            let work = work.clone();
            thread::spawn(move || {
                let mut taken = Vec::new();
                loop {
                    match work.pop_timeout(FOREVER) {
                        Ok(number) => taken.push(number),
                        Err(PopError::Closed) => return taken,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    pushing.into_iter().for_each(|pusher| pusher.join().unwrap());
    work.close();
    let taken: Vec<u64> = popping.into_iter().flat_map(|popper| popper.join().unwrap()).collect();
    assert_eq!(taken.len() as u64, PUSHERS * EACH);
    assert_eq!(taken.into_iter().collect::<HashSet<_>>().len() as u64, PUSHERS * EACH);
}

/// How often the calling thread was switched away from because it slept.
fn voluntary_switches() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

/// With a wake of all, each of the idle would run for each value.
#[test]
fn of_many_idle_threads_a_push_wakes_one() {
    const WORKERS: u64 = 20;
    const VALUES: u64 = 200;
    let (work, begin) = (queue::<()>(1024), Arc::new(Barrier::new(WORKERS as usize + 1)));
    let done = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (work, begin, done) = (work.clone(), Arc::clone(&begin), Arc::clone(&done));
            thread::spawn(move || {
                begin.wait();
                let before = voluntary_switches();
                while work.pop().is_ok() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
                voluntary_switches() - before
            })
        })
        .collect();
    begin.wait();
    for value in 0..VALUES {
        work.push(()).unwrap();
        // One value at a time, so that all others are idle.
        while u64::from(done.load(Ordering::Relaxed)) <= value {
            thread::yield_now();
        }
    }
    work.close();
    let sleeps: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    // One sleep of each before the first value and after the last, and one
    // for each value. Locks of the test's own, and what else the kernel lets
    // a thread sleep for, are far below what a wake of all makes: 4000.
    assert!(sleeps < 2 * WORKERS + 3 * VALUES, "{sleeps} sleeps");
}

#[test]
fn a_closed_queue_gives_out_what_is_in_it_and_takes_nothing() {
    let work = queue(2);
    work.push(1).unwrap();
    work.push(2).unwrap();
    assert_eq!(work.try_push(3), Err(PushError::Full(3)));
    assert_eq!(work.push_until(3, Some(Deadline::after(Duration::ZERO))), Err(PushError::Full(3)));
    work.close();
    assert_eq!(work.push(3), Err(PushError::Closed(3)));
    assert_eq!([work.pop(), work.pop(), work.pop()], [Ok(1), Ok(2), Err(PopError::Closed)]);
}

#[test]
fn closing_ends_the_sleep_of_all_who_push_or_pop() {
    let (full, empty) = (queue(1), queue::<u32>(1));
    full.push(0).unwrap();
    thread::scope(|scope| {
        let pushing = [(); 2].map(|()| scope.spawn(|| full.push_timeout(1, FOREVER)));
        let popping = [(); 2].map(|()| scope.spawn(|| empty.pop_timeout(FOREVER)));
        // Mostly asleep by then; right in any case.
        thread::sleep(Duration::from_millis(20));
        full.close();
        empty.close();
        pushing.into_iter().for_each(|pusher| assert_eq!(pusher.join().unwrap(), Err(PushError::Closed(1))));
        popping.into_iter().for_each(|popper| assert_eq!(popper.join().unwrap(), Err(PopError::Closed)));
    });
}

#[test]
fn a_permit_is_for_one_and_is_remembered() {
    let notify = Notify::new();
    assert_eq!(notify.wait_timeout(Duration::from_millis(1)), Ok(false));
    notify.notify_one();
    notify.notify_one();
    assert_eq!([(); 3].map(|()| notify.try_wait()), [true, true, false]);
    thread::scope(|scope| {
        let waiting = [(); 4].map(|()| scope.spawn(|| notify.wait_timeout(FOREVER)));
        (0..4).for_each(|_| notify.notify_one());
        waiting.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), Ok(true)));
    });
    assert!(!notify.try_wait());
}
