// SPDX-License-Identifier: MIT OR Apache-2.0
//! The questions that `Bell`'s documentation answers, asked of every way of waiting.

use doorbell::wait::{Adaptive, Eventfd, Futex, Null, Wait, Yield};
use doorbell::{Bell, Deadline, WaitError, wait_any};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::AsFd;
use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

/// The tests that every way of waiting must pass.
macro_rules! way_of_waiting {
    ($module:ident, $way:ty) => {
        mod $module {
            way_of_waiting!(@ $way: a_ring_before_the_wait_is_heard
                two_rings_before_the_wait_are_heard_as_two_by_one_wait
                a_ring_wakes_a_sleeper
                a_wait_without_a_ring_ends_at_its_deadline
                a_ring_after_a_timeout_is_heard
                every_handle_hears_every_ring
                ping_pong_loses_nothing
                what_was_written_before_the_ring_is_seen_after_the_wait);
        }
    };
    (@ $way:ty: $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                super::$name::<$way>();
            }
        )*
    };
}

way_of_waiting!(adaptive, doorbell::wait::Adaptive);
way_of_waiting!(eventfd, doorbell::wait::Eventfd);
way_of_waiting!(futex, doorbell::wait::Futex);
#[cfg(feature = "io_uring")]
way_of_waiting!(io_uring, doorbell::wait::IoUring);
way_of_waiting!(spin, doorbell::wait::Spin);
way_of_waiting!(yielding, doorbell::wait::Yield);

fn count(rings: Option<NonZeroU32>) -> u32 {
    rings.map_or(0, NonZeroU32::get)
}

const SOON: Duration = Duration::from_millis(20);

fn a_ring_before_the_wait_is_heard<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    bell.ring();
    assert_eq!(bell.wait().unwrap().get(), 1);
    assert_eq!(bell.try_wait(), None);
}

fn two_rings_before_the_wait_are_heard_as_two_by_one_wait<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    bell.ring();
    bell.ring();
    assert_eq!(bell.wait().unwrap().get(), 2);
    assert_eq!(bell.wait_timeout(SOON).unwrap(), None);
}

fn a_ring_wakes_a_sleeper<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(SOON);
            ringer.ring();
        });
        assert_eq!(bell.wait().unwrap().get(), 1);
    });
}

fn a_wait_without_a_ring_ends_at_its_deadline<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    let deadline = Instant::now() + SOON;
    assert_eq!(bell.wait_deadline(deadline).unwrap(), None);
    assert!(Instant::now() >= deadline);
    assert_eq!(bell.wait_deadline(deadline).unwrap(), None, "a deadline in the past");
}

fn a_ring_after_a_timeout_is_heard<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    for _ in 0..20 {
        assert_eq!(bell.wait_timeout(Duration::from_micros(300)).unwrap(), None);
        ringer.ring();
        assert_eq!(bell.wait().unwrap().get(), 1);
    }
}

fn every_handle_hears_every_ring<W: Wait + Default>() {
    let bell: Bell<W> = Bell::with_eventfds(4).unwrap().waiting_by();
    let handles: [Bell<W>; 4] = std::array::from_fn(|_| bell.clone());
    thread::scope(|scope| {
        for mut handle in handles {
            scope.spawn(move || {
                let mut heard = 0;
                while heard < 3000 {
                    heard += handle.wait().unwrap().get();
                }
                assert_eq!(heard, 3000);
            });
        }
        for _ in 0..3000 {
            bell.ring();
        }
    });
}

fn ping_pong_loses_nothing<W: Wait + Default>() {
    let mut there: Bell<W> = Bell::new().unwrap().waiting_by();
    let mut back: Bell<W> = Bell::new().unwrap().waiting_by();
    let (serve, answer) = (there.clone(), back.clone());
    // Pure spinners on one core need a whole time slice for each turn.
    let rounds = if W::NAME == "spin" { 50 } else { 2000 };
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..rounds {
                assert_eq!(there.wait().unwrap().get(), 1);
                answer.ring();
            }
        });
        for _ in 0..rounds {
            serve.ring();
            assert_eq!(back.wait().unwrap().get(), 1);
        }
    });
}

fn what_was_written_before_the_ring_is_seen_after_the_wait<W: Wait + Default>() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    let written = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=500 {
                written.store(value, Ordering::Relaxed);
                ringer.ring();
            }
        });
        let mut heard = 0;
        while heard < 500 {
            heard += bell.wait().unwrap().get();
            assert!(written.load(Ordering::Relaxed) >= heard);
        }
    });
}

#[test]
fn ringing_for_nobody_is_remembered_by_every_handle_there_is() {
    let mut first = Bell::new().unwrap();
    let mut second = first.clone();
    first.ring();
    let mut third = first.clone();
    assert_eq!((count(first.try_wait()), count(second.try_wait()), count(third.try_wait())), (1, 1, 1));
    let mut fourth = first.clone();
    assert_eq!(count(fourth.try_wait()), 0, "a clone has heard what its origin had heard");
}

#[test]
fn the_null_way_looks_once() {
    let mut bell: Bell<Null> = Bell::new().unwrap().waiting_by();
    assert_eq!(bell.wait_timeout(Duration::from_secs(3600)).unwrap(), None);
    bell.ring();
    assert_eq!(count(bell.wait_timeout(Duration::from_secs(3600)).unwrap()), 1);
}

#[test]
fn waiters_of_different_kinds_at_one_bell_all_wake() {
    let bell = Bell::new().unwrap();
    fn wait_for_one<W: Wait>(mut bell: Bell<W>) {
        assert_eq!(bell.wait().unwrap().get(), 1);
    }
    thread::scope(|scope| {
        let (futex, eventfd) = (bell.waiting_by::<Futex>(), bell.waiting_by::<Eventfd>());
        let r#yield = bell.waiting_by::<Yield>();
        scope.spawn(|| wait_for_one(futex));
        scope.spawn(|| wait_for_one(eventfd));
        scope.spawn(|| wait_for_one(r#yield));
        thread::sleep(SOON);
        bell.ring();
    });
}

#[test]
fn a_slot_is_refused_while_taken_and_granted_when_given_back() {
    let bell: Bell<Eventfd> = Bell::new().unwrap().waiting_by();
    let holder = bell.clone().into_fd().unwrap();
    let mut refused = bell.clone();
    assert_eq!(refused.wait_timeout(SOON), Err(WaitError::NoWaiterSlot { slots: 1 }));
    drop(holder);
    assert_eq!(refused.wait_timeout(SOON), Ok(None));
}

/// The next holder of a waiter slot must not be confused by what its predecessor left.
#[test]
fn a_token_left_in_a_slot_disturbs_nobody() {
    let bell = Bell::new().unwrap();
    let file = bell.clone().into_fd().unwrap();
    bell.ring();
    assert!(is_readable(&file));
    drop(file);
    let mut next = bell.waiting_by::<Eventfd>();
    assert_eq!(count(next.try_wait()), 1);
    assert_eq!(next.wait_timeout(SOON).unwrap(), None);
    bell.ring();
    assert_eq!(next.wait().unwrap().get(), 1);
}

fn is_readable(file: &impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[test]
fn the_file_is_readable_from_the_ring_until_it_was_heard() {
    let bell = Bell::new().unwrap();
    let mut file = bell.clone().into_fd().unwrap();
    assert!(!is_readable(&file));
    bell.ring();
    assert!(is_readable(&file));
    bell.ring();
    assert!(is_readable(&file), "looking does not take the token");
    assert_eq!(count(file.heard().unwrap()), 2);
    assert!(!is_readable(&file));
    assert_eq!(count(file.heard().unwrap()), 0);
    bell.ring();
    assert!(is_readable(&file));
}

#[test]
fn a_ring_before_the_file_was_made_makes_it_readable_at_once() {
    let bell = Bell::new().unwrap();
    let waiter = bell.clone();
    bell.ring();
    assert!(is_readable(&waiter.into_fd().unwrap()));
}

/// One event per readiness, edge-triggered: the pattern that loses
/// wake-ups where the token is taken after arming.
#[test]
fn an_edge_triggered_loop_hears_every_ring() {
    let bell = Bell::new().unwrap();
    let mut file = bell.clone().into_fd().unwrap();
    let events = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&events, &file, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)
        .unwrap();
    const RINGS: u32 = 20_000;
    thread::scope(|scope| {
        scope.spawn(|| (0..RINGS).for_each(|_| bell.ring()));
        let mut heard = 0;
        while heard < RINGS {
            let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 1];
            let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
            let (ready, _) = epoll::wait(&events, &mut buffer[..], Some(&timeout)).unwrap();
            assert!(!ready.is_empty(), "stuck after {heard} rings");
            heard += count(file.heard().unwrap());
        }
    });
}

mod any {
    use super::*;

    fn any_bell_wakes<W: Wait + Default>() {
        let mut bells: [Bell<W>; 5] = std::array::from_fn(|_| Bell::new().unwrap().waiting_by());
        let ringers: [Bell<W>; 5] = std::array::from_fn(|index| bells[index].clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                for round in 0..200 {
                    ringers[round % 5].ring();
                    if round % 10 == 0 {
                        thread::sleep(Duration::from_micros(200));
                    }
                }
            });
            let mut heard = 0;
            while heard < 200 {
                let place = wait_any(&mut bells.each_mut(), None).unwrap().unwrap();
                heard += count(bells[place].try_wait());
            }
        });
        let soon = Deadline::after(SOON);
        assert_eq!(wait_any(&mut bells.each_mut(), Some(soon)).unwrap(), None);
    }

    #[test]
    fn any_of_five_bells_wakes_a_waiter_of_every_kind() {
        any_bell_wakes::<Futex>();
        any_bell_wakes::<Eventfd>();
        any_bell_wakes::<Adaptive>();
        any_bell_wakes::<Yield>();
        #[cfg(feature = "io_uring")]
        any_bell_wakes::<doorbell::wait::IoUring>();
    }

    #[test]
    fn none_of_no_bells_is_none() {
        assert_eq!(wait_any::<Adaptive>(&mut [], None).unwrap(), None);
    }
}

#[cfg(feature = "tokio")]
mod tokio_tasks {
    use super::*;
    use doorbell::AsyncBell;

    #[tokio::test(flavor = "current_thread")]
    async fn a_task_hears_every_ring() {
        let bell = Bell::new().unwrap();
        let mut waiter = AsyncBell::new(bell.clone()).unwrap();
        let ringer = thread::spawn(move || (0..10_000).for_each(|_| bell.ring()));
        let mut heard = 0;
        while heard < 10_000 {
            heard += tokio::time::timeout(Duration::from_secs(30), waiter.wait())
                .await
                .expect("stuck")
                .unwrap()
                .get();
        }
        ringer.join().unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_cancelled_wait_takes_no_ring() {
        let bell = Bell::new().unwrap();
        let mut waiter = AsyncBell::new(bell.clone()).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(5), waiter.wait()).await.is_err());
        bell.ring();
        assert_eq!(waiter.wait().await.unwrap().get(), 1);
    }
}

mod signals {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    extern "C" fn ignore(_: libc::c_int) {}

    fn let_a_handler_run_for(signal: libc::c_int, flags: libc::c_int) {
        // SAFETY: a plain struct of which all bytes zero is a value; the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as *const () as usize;
            action.sa_flags = flags;
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }

    /// Has `wait` wait in a thread of its own and say when it has been interrupted, sends that thread
    /// `signal` again and again, also a while after, and rings `bell` then.
    fn interrupt_and_ring<W: Wait + Default + 'static>(
        signal: libc::c_int,
        bell: Bell<W>,
        wait: impl FnOnce(Bell<W>, &AtomicBool) + Send,
    ) {
        let (ringer, was_interrupted) = (bell.clone(), &AtomicBool::new(false));
        thread::scope(|scope| {
            let (send, number) = std::sync::mpsc::channel();
            let waiter = scope.spawn(move || {
                // SAFETY: no arguments.
                send.send(unsafe { libc::pthread_self() } as usize).unwrap();
                wait(bell, was_interrupted);
            });
            let number = number.recv().unwrap();
            let mut signals_after = 0;
            while signals_after < 20 && !waiter.is_finished() {
                // SAFETY: the thread is not joined yet.
                unsafe { libc::pthread_kill(number as libc::pthread_t, signal) };
                signals_after += u32::from(was_interrupted.load(Ordering::SeqCst));
                thread::sleep(Duration::from_millis(1));
            }
            ringer.ring();
        });
    }

    const FOREVER: Duration = Duration::from_secs(60);

    fn ends_the_wait_of_one_who_asked<W: Wait + Default + 'static>() {
        interrupt_and_ring(libc::SIGUSR1, Bell::new().unwrap().waiting_by::<W>(), |mut bell, interrupted| {
            bell.set_interruptible(true);
            assert_eq!(bell.wait_timeout(FOREVER), Err(WaitError::Interrupted), "{}", W::NAME);
            bell.set_interruptible(false);
            interrupted.store(true, Ordering::SeqCst);
            assert_eq!(count(bell.wait_timeout(FOREVER).unwrap()), 1, "{}", W::NAME);
        });
    }

    /// As that flag says. A wait with a deadline is one that the kernel does not restart.
    #[test]
    fn a_handler_with_sa_restart_ends_a_wait_with_a_deadline_and_no_other() {
        let_a_handler_run_for(libc::SIGUSR2, libc::SA_RESTART);
        interrupt_and_ring(
            libc::SIGUSR2,
            Bell::new().unwrap().waiting_by::<Futex>(),
            |mut bell, interrupted| {
                bell.set_interruptible(true);
                assert_eq!(bell.wait_timeout(FOREVER), Err(WaitError::Interrupted));
                interrupted.store(true, Ordering::SeqCst);
                assert_eq!(bell.wait().unwrap().get(), 1);
            },
        );
    }

    #[test]
    fn a_signal_ends_the_wait_of_one_who_asked_for_it_and_no_others() {
        let_a_handler_run_for(libc::SIGUSR1, 0);
        ends_the_wait_of_one_who_asked::<Adaptive>();
        ends_the_wait_of_one_who_asked::<Futex>();
        ends_the_wait_of_one_who_asked::<Eventfd>();
        #[cfg(feature = "io_uring")]
        ends_the_wait_of_one_who_asked::<doorbell::wait::IoUring>();
    }
}

/// The kernel takes 128 futexes at once and says EINVAL to more.
#[test]
fn more_bells_than_the_kernel_waits_for_at_once_are_refused_by_name() {
    let mut bells: Vec<Bell<Futex>> = (0..129).map(|_| Bell::new().unwrap().waiting_by()).collect();
    let mut all: Vec<_> = bells.iter_mut().collect();
    assert_eq!(wait_any(&mut all, None), Err(WaitError::TooManyBells { most: 128 }));
    all[127].ring();
    assert_eq!(wait_any(&mut all[..128], None), Ok(Some(127)));
}
