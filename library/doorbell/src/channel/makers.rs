// SPDX-License-Identifier: MIT OR Apache-2.0
//! Those who make senders to one receiver: when the last has gone,
//! and what they made that the receiver has not taken.

use super::ring_reader::RingReader;
use crate::bell_state::BellState;
use crate::rendezvous::Segment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What those who make senders have in common. With the last of them,
/// and of the senders, it is dropped.
#[derive(Debug)]
pub(super) struct Alive {
    pub(super) makers: Arc<Makers>,
    pub(super) room: Mutex<Room>,
    /// Of each ring.
    pub(super) capacity: u64,
}

#[derive(Debug)]
pub(super) struct Room {
    pub(super) segments: Vec<Arc<Segment>>,
    /// How many lanes the next segment has: as many as there are, so that there are few bells.
    pub(super) next: u32,
    pub(super) grows: bool,
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Release: whoever sees it sees all that the senders sent, and that they left.
        self.makers.gone.store(true, Ordering::Release);
        self.makers.state.announce();
    }
}

/// What the receiver knows of those who make senders.
#[derive(Debug)]
pub(super) struct Makers {
    gone: AtomicBool,
    /// Are there lanes that the receiver has not taken?
    has_fresh: AtomicBool,
    fresh: Mutex<Vec<RingReader>>,
    /// Where the receiver waits.
    state: Arc<BellState>,
}

impl Makers {
    /// Of senders to one who waits at `state`.
    pub(super) fn at(state: Arc<BellState>) -> Self {
        Self {
            gone: AtomicBool::new(false),
            has_fresh: AtomicBool::new(false),
            fresh: Mutex::default(),
            state,
        }
    }

    /// Has the receiver take these too. They are its ends already: a sender that found none would
    /// take it for one that never comes.
    pub(super) fn add(&self, readers: Vec<RingReader>) {
        lock(&self.fresh).extend(readers);
        // Release: whoever sees it finds them.
        self.has_fresh.store(true, Ordering::Release);
        // Nobody waits at their bell yet.
        self.state.announce();
    }

    /// Can no other sender come, and have all left?
    pub(super) fn are_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Is there something that a receiver has not taken, or not told?
    pub(super) fn have_news(&self) -> bool {
        self.are_gone() || self.have_fresh()
    }

    pub(super) fn have_fresh(&self) -> bool {
        self.has_fresh.load(Ordering::Acquire)
    }

    pub(super) fn take_fresh(&self) -> Vec<RingReader> {
        let mut fresh = lock(&self.fresh);
        self.has_fresh.store(false, Ordering::Release);
        std::mem::take(&mut fresh)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
