// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bells whose waiters are woken by user interrupts: by hardware where there is some, else by
//! signals. `ci/test/67-uintr.sh` runs this program in a guest that has it.
#![cfg(not(miri))]

use doorbell::rendezvous::{Offer, RendezvousError, Segment};
use doorbell::wait::Eventfd;
use doorbell::{Bell, Deadline, Tokens, WaitError, wait_any};
use std::os::fd::AsRawFd;
use std::time::Duration;
use user_interrupts::Backend;

/// Beyond it a wake-up is lost.
const NEVER: Duration = Duration::from_secs(120);

fn offer(bells: u32) -> Offer {
    user_interrupts::start(&[Backend::Hardware, Backend::Signals]).unwrap();
    Offer { bells, eventfds: 2, tokens: Tokens::UserInterrupts, ..Offer::default() }
}

fn waiter(segment: &Segment, index: u32) -> Bell<Eventfd> {
    segment.bell_waiting_by(index).unwrap()
}

/// Each answer is to one ring: none is missing, and none is there twice.
fn answers(mine: &Bell, theirs: &mut Bell<Eventfd>, rounds: usize) {
    for _ in 0..rounds {
        mine.ring();
        assert_eq!(theirs.wait_timeout(NEVER).unwrap().map(u32::from), Some(1));
    }
}

#[test]
fn two_threads_ring_each_other_awake() {
    let segment = Segment::for_threads(&offer(2)).unwrap();
    println!("{}", user_interrupts::reason());
    let (mut here, mut there) = (waiter(&segment, 0), waiter(&segment, 1));
    let (to_here, to_there) = (segment.bell(0).unwrap(), segment.bell(1).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10_000 {
                assert_eq!(there.wait_timeout(NEVER).unwrap().map(u32::from), Some(1));
                to_here.ring();
            }
        });
        answers(&to_there, &mut here, 10_000);
    });
}

#[test]
fn a_ring_before_the_wait_is_heard_and_a_wait_in_vain_ends_with_its_time() {
    let segment = Segment::for_threads(&offer(1)).unwrap();
    let (mut waiter, ringer) = (waiter(&segment, 0), segment.bell(0).unwrap());
    ringer.ring();
    ringer.ring();
    assert_eq!(waiter.wait().unwrap().get(), 2);
    assert_eq!(waiter.wait_timeout(Duration::from_millis(1)).unwrap(), None);
    ringer.ring();
    assert_eq!(waiter.wait().unwrap().get(), 1);
}

#[test]
fn a_waiter_hears_any_of_three() {
    let segment = Segment::for_threads(&offer(3)).unwrap();
    let mut waiters = [0, 1, 2].map(|index| waiter(&segment, index));
    let ringer = segment.bell(2).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| ringer.ring());
        let [a, b, c] = &mut waiters;
        let place = wait_any(&mut [a, b, c], Some(Deadline::after(NEVER))).unwrap();
        assert_eq!(place, Some(2));
    });
}

#[test]
fn its_file_is_one_of_an_event_loop() {
    let segment = Segment::for_threads(&offer(1)).unwrap();
    let ringer = segment.bell(0).unwrap();
    let mut file = waiter(&segment, 0).into_fd().unwrap();
    for round in 0..1000 {
        std::thread::scope(|scope| {
            scope.spawn(|| ringer.ring());
            let mut ready = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry that lives through the call.
            assert_eq!(unsafe { libc::poll(&raw mut ready, 1, 120_000) }, 1, "round {round}");
        });
        assert_eq!(file.heard().unwrap().map(u32::from), Some(1), "round {round}");
    }
}

#[test]
fn two_children_ring_and_each_connects_for_itself() {
    let segment = Segment::for_children(&offer(2)).unwrap();
    for child in 0..2 {
        // A handle has heard all that was rung before it was made, so
        // the child's is made before anybody can ring.
        let mut childs = waiter(&segment, 1);
        // SAFETY: between fork and _exit the child rings, waits and
        // ends; the library's locks are free in it.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let to_parent = segment.bell(0).unwrap();
            for _ in 0..1000 {
                let heard = childs.wait_timeout(NEVER);
                to_parent.ring();
                if !matches!(heard, Ok(Some(one)) if one.get() == 1) {
                    // SAFETY: ends this process at once.
                    unsafe { libc::_exit(1) }
                }
            }
            // What is dropped here is the parent's too.
            drop((to_parent, childs));
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        assert!(pid > 0);
        let (mut own, to_child) = (waiter(&segment, 0), segment.bell(1).unwrap());
        answers(&to_child, &mut own, 1000);
        let mut status = 0;
        // SAFETY: the status lives through the call.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!(status, 0, "child {child}");
    }
}

/// Waits, in a child of a process that makes the bell and ends; says
/// by the exit of the pipe how that went.
fn wait_for_a_maker_that_ends(result: libc::c_int) -> ! {
    let segment = Segment::for_children(&offer(1)).unwrap();
    // SAFETY: as in the test.
    if unsafe { libc::fork() } == 0 {
        let hung_up = waiter(&segment, 0).wait() == Err(WaitError::HungUp);
        // SAFETY: one byte of this frame; then this process ends at once.
        unsafe {
            libc::write(result, [u8::from(hung_up)].as_ptr().cast(), 1);
            libc::_exit(0)
        }
    }
    let bell = segment.bell(0).unwrap();
    while !bell.state().record().wake.has_sleepers() {
        std::thread::yield_now();
    }
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(0) }
}

#[test]
fn a_wait_ends_with_the_process_that_made_the_bell() {
    if user_interrupts::start(&[Backend::Hardware, Backend::Signals]).unwrap() == Backend::Signals {
        doorbell_skipped::skip("by signals nobody is told of the end of a vector's maker");
        return;
    }
    let mut ends = [0; 2];
    // SAFETY: the array lives through the call.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: between fork and _exit the child makes a bell, waits
    // and ends; the library's locks are free in it.
    if unsafe { libc::fork() } == 0 {
        wait_for_a_maker_that_ends(ends[1]);
    }
    let mut ready = libc::pollfd { fd: ends[0], events: libc::POLLIN, revents: 0 };
    let mut said = [2_u8];
    // SAFETY: one entry, and one byte, that live through the calls.
    unsafe {
        assert_eq!(libc::poll(&raw mut ready, 1, 120_000), 1, "it waits on");
        assert_eq!(libc::read(ends[0], said.as_mut_ptr().cast(), 1), 1);
    }
    assert_eq!(said, [1]);
}

#[test]
fn other_processes_than_children_are_offered_none() {
    let refused = Segment::new(&offer(1));
    assert!(matches!(refused, Err(RendezvousError::Os { .. })), "{refused:?}");
}
