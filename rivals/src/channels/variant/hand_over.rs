// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sleeping costs at the least: one place for a message and one futex, by hand. Whoever sends
//! always wakes, and whoever receives sleeps at once.

use crate::channels::link::{End, Link, Place, link};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::thread::futex::{Flags, wait, wake};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const FULL: u32 = 1;
/// And the sender sleeps until it is taken.
const FULL_AND_WAITED_FOR: u32 = 2;

#[repr(C, align(128))]
struct Hand<const S: usize> {
    state: AtomicU32,
    message: [u8; S],
}

/// Both directions, in memory that is mapped before the partner is forked, and stays.
struct Ends<const S: usize> {
    out: NonNull<Hand<S>>,
    back: NonNull<Hand<S>>,
}

// SAFETY: the mapping is never unmapped, and a side touches a message
// only while the state says that it is its own.
unsafe impl<const S: usize> Send for Ends<S> {}

fn state<const S: usize>(hand: NonNull<Hand<S>>) -> &'static AtomicU32 {
    // SAFETY: it points into the mapping, which is never unmapped; no reference to the whole exists.
    unsafe { &(*hand.as_ptr()).state }
}

fn sleep(state: &AtomicU32, expected: u32) {
    // A signal, or another state: the caller looks again.
    let _ = wait(state, Flags::empty(), expected, None);
}

impl<const S: usize> End<S> for Ends<S> {
    fn send(&mut self, message: &[u8; S]) {
        let state = state(self.out);
        loop {
            match state.load(Ordering::Acquire) {
                EMPTY => break,
                FULL => {
                    let marked = (Ordering::Relaxed, Ordering::Relaxed);
                    let _ = state.compare_exchange(FULL, FULL_AND_WAITED_FOR, marked.0, marked.1);
                }
                _ => sleep(state, FULL_AND_WAITED_FOR),
            }
        }
        // SAFETY: it is empty, and so this side's.
        unsafe { (&raw mut (*self.out.as_ptr()).message).write(*message) };
        state.store(FULL, Ordering::Release);
        wake(state, Flags::empty(), 1).expect("a valid word");
    }

    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let state = state(self.back);
        while state.load(Ordering::Acquire) == EMPTY {
            sleep(state, EMPTY);
        }
        // SAFETY: it is full, and so this side's, until it is said to be empty.
        read(unsafe { &(*self.back.as_ptr()).message });
        if state.swap(EMPTY, Ordering::Release) == FULL_AND_WAITED_FOR {
            wake(state, Flags::empty(), 1).expect("a valid word");
        }
    }
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    let hand = || {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let mapped = unsafe { mmap_anonymous(null_mut(), size_of::<Hand<S>>(), rights, MapFlags::SHARED) };
        let mapped = mapped.map_err(|errno| format!("mmap: {errno}"))?;
        NonNull::new(mapped.cast::<Hand<S>>()).ok_or_else(|| "mmap: nothing".to_owned())
    };
    let (there, back) = (hand()?, hand()?);
    let (ours, theirs) = (Ends { out: there, back }, Ends { out: back, back: there });
    link::<S, _, _>(Place::Processes, move || ours, move || theirs)
}
