// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a Python object keeps an end in.

use crate::blocking::{self, Stretch};
use crate::error::Error;
use doorbell::wait::Interrupt;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Instant;

/// An end that any thread may call, one at a time. Calls that wait have
/// the end to themselves, and take turns in the order in which they came;
/// one that closes it goes ahead of all, and ends the wait of who has it.
///
/// With the interpreter's lock two short calls never meet. Without (free-threaded CPython) the
/// second waits for the first, which neither waits for anybody nor runs any Python.
#[derive(Debug, Default)]
pub(crate) struct Handle<T> {
    end: Mutex<T>,
    /// Does whoever has it wait?
    waits: AtomicBool,
    /// Is a part of it lent? Changed by whoever has the end alone.
    lent: AtomicBool,
    turns: Mutex<Turns>,
    /// Told when the end is free, or the first of the queue is another.
    free: Condvar,
    /// How many wait for their turn or to close it: whoever lets go of the end looks here.
    queued: AtomicUsize,
}

#[derive(Debug, Default)]
struct Turns {
    /// Ends the wait of whoever has it.
    waiter: Option<Arc<Interrupt>>,
    queue: VecDeque<u64>,
    next: u64,
    closing: usize,
    /// The thread that was lent a part of the end: others wait until
    /// it is given back, and it is refused.
    lent_to: Option<ThreadId>,
    /// The interpreter ends: a thread that waited is not told, for it is not to run any more.
    over: bool,
}

/// The end, for one call.
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    /// `None` only within the drop.
    end: Option<MutexGuard<'a, T>>,
    handle: &'a Handle<T>,
    waits: bool,
}

impl Turns {
    /// May the calling thread have the end? Who was lent a part of it
    /// may, to be refused by its name.
    fn is_free(&self) -> bool {
        self.lent_to.is_none_or(|thread| thread == thread::current().id())
    }
}

impl<T> Handle<T> {
    pub(crate) fn new(end: T) -> Self {
        Self {
            end: Mutex::new(end),
            waits: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            turns: Mutex::default(),
            free: Condvar::new(),
            queued: AtomicUsize::new(0),
        }
    }

    /// The end, for a call that does not wait for its turn. An error
    /// while another thread waits with it.
    pub(crate) fn lock(&self) -> PyResult<Held<'_, T>> {
        self.at_once().ok_or_else(|| {
            Error::new_err(
                "another thread is waiting with this handle, or holds a message of it; give each \
                 thread one of its own",
            )
        })
    }

    /// As `lock`, but `None` while another thread waits with it, or holds a message: then there is
    /// nothing for the caller either.
    pub(crate) fn at_once(&self) -> Option<Held<'_, T>> {
        loop {
            let end = match self.end.try_lock() {
                Ok(end) => end,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if self.waits.load(Ordering::Relaxed) => return None,
                Err(TryLockError::WouldBlock) => {
                    thread::yield_now();
                    continue;
                }
            };
            let is_free = !self.lent.load(Ordering::Relaxed) || self.turns().is_free();
            // Whoever looked meanwhile is told by its drop.
            let held = self.held(end);
            return is_free.then_some(held);
        }
    }

    /// The end, to give back what was lent of it: nobody waits with it meanwhile.
    pub(crate) fn take_back(&self) -> Held<'_, T> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.turns().lent_to = None;
        self.lent.store(false, Ordering::Relaxed);
        // Whoever waits for that is told when the end is let go.
        Held { end: Some(end), handle: self, waits: false }
    }

    /// Has `run` wait with the end, in stretches, when it is the caller's turn, until something
    /// came or `timeout` is over (`None`).
    pub(crate) fn wait<R: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        run: impl Fn(&mut T, Option<Instant>) -> PyResult<Stretch<R>> + Sync,
    ) -> PyResult<Option<R>>
    where
        T: Send,
    {
        blocking::wait(py, timeout, |until| self.stretch(until, &run))
    }

    /// As `wait`, for an end without a bell.
    pub(crate) fn wait_on_files<R: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        run: impl Fn(&mut T, Option<Instant>) -> PyResult<Stretch<R>> + Sync,
    ) -> PyResult<Option<R>>
    where
        T: Send,
    {
        blocking::wait_on_files(py, timeout, |until| self.stretch(until, &run))
    }

    fn stretch<R>(
        &self,
        until: Option<Instant>,
        run: impl Fn(&mut T, Option<Instant>) -> PyResult<Stretch<R>>,
    ) -> PyResult<Stretch<R>> {
        let Some(mut end) = self.turn(until) else { return Ok(Stretch::Nothing) };
        let result = run(&mut end, until);
        if let Ok(Stretch::Lent(_)) = &result {
            self.turns().lent_to = Some(thread::current().id());
            self.lent.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Has `close` close the end, ahead of all who wait for it.
    /// Whoever waits with it is told that it is closed.
    pub(crate) fn close<R: Send>(&self, py: Python<'_>, close: impl FnOnce(&mut T) -> R + Send) -> R
    where
        T: Send,
    {
        py.detach(|| close(&mut self.ahead_of_all()))
    }

    /// As `close`, when the interpreter ends: a thread that waits with it stays where it is.
    pub(crate) fn close_at_exit<R: Send>(&self, py: Python<'_>, close: impl FnOnce(&mut T) -> R + Send) -> R
    where
        T: Send,
    {
        self.turns().over = true;
        self.close(py, close)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held<'a>(&'a self, end: MutexGuard<'a, T>) -> Held<'a, T> {
        let interrupt = blocking::interrupt();
        let waits = interrupt.is_some();
        if let Some(interrupt) = interrupt {
            let mut turns = self.turns();
            if turns.closing > 0 {
                interrupt.interrupt();
            }
            turns.waiter = Some(interrupt);
            self.waits.store(true, Ordering::Relaxed);
        }
        Held { end: Some(end), handle: self, waits }
    }

    /// The end, unless another has it.
    fn free_end(&self) -> Option<MutexGuard<'_, T>> {
        // Pairs with the drop of `Held`: either that sees that
        // somebody is queued, or this that the end is free.
        fence(Ordering::SeqCst);
        match self.end.try_lock() {
            Ok(end) => Some(end),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the caller's turn, without the interpreter's lock.
    /// `None` if that has not come by `until`.
    fn turn(&self, until: Option<Instant>) -> Option<Held<'_, T>> {
        let mut turns = self.turns();
        let mine = turns.next;
        turns.next += 1;
        turns.queue.push_back(mine);
        self.queued.fetch_add(1, Ordering::SeqCst);
        let end = loop {
            if turns.closing == 0 && !turns.over && turns.is_free() && turns.queue.front() == Some(&mine) {
                let end = self.free_end();
                if end.is_some() {
                    break end;
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            turns = match left {
                _ if turns.over => self.free.wait(turns).unwrap_or_else(PoisonError::into_inner),
                None => self.free.wait(turns).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break None,
                Some(left) => self.free.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        };
        turns.queue.retain(|queued| *queued != mine);
        self.queued.fetch_sub(1, Ordering::SeqCst);
        drop(turns);
        // Another is the first now.
        self.free.notify_all();
        end.map(|end| self.held(end))
    }

    fn ahead_of_all(&self) -> Held<'_, T> {
        let mut turns = self.turns();
        turns.closing += 1;
        self.queued.fetch_add(1, Ordering::SeqCst);
        if let Some(waiter) = &turns.waiter {
            waiter.interrupt();
        }
        let end = loop {
            match self.free_end() {
                Some(end) => break end,
                None => turns = self.free.wait(turns).unwrap_or_else(PoisonError::into_inner),
            }
        };
        turns.closing -= 1;
        self.queued.fetch_sub(1, Ordering::SeqCst);
        drop(turns);
        self.held(end)
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.end.as_ref().expect("it is taken in the drop alone")
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.end.as_mut().expect("it is taken in the drop alone")
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            self.handle.turns().waiter = None;
            self.handle.waits.store(false, Ordering::Relaxed);
        }
        self.end = None;
        fence(Ordering::SeqCst);
        if self.handle.queued.load(Ordering::Relaxed) > 0 {
            // Behind whoever looked before the end was free, and is about to sleep.
            drop(self.handle.turns());
            self.handle.free.notify_all();
        }
    }
}
