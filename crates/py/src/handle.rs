// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a Python object keeps an end in.

use crate::blocking;
use crate::error::Error;
use pyo3::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// An end that any thread may call, one at a time: a call that does not wait goes ahead of another such, and one that waits has
/// the end to itself, so that all others are refused.
///
/// With the interpreter's lock two short calls never meet. Without (free-threaded CPython) the second waits for the first, which
/// neither waits for anybody nor runs any Python.
#[derive(Debug, Default)]
pub(crate) struct Handle<T> {
    end: Mutex<T>,
    /// Does whoever has it wait?
    waits: AtomicBool,
}

/// The end, for one call.
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    end: MutexGuard<'a, T>,
    waits: &'a AtomicBool,
}

impl<T> Handle<T> {
    pub(crate) fn new(end: T) -> Self {
        Self { end: Mutex::new(end), waits: AtomicBool::new(false) }
    }

    pub(crate) fn lock(&self) -> PyResult<Held<'_, T>> {
        let end = loop {
            match self.end.try_lock() {
                Ok(end) => break end,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if self.waits.load(Ordering::Relaxed) => {
                    return Err(Error::new_err(
                        "another thread is waiting with this handle; give each thread one of its own",
                    ));
                }
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        };
        self.waits.store(blocking::is_waiting(), Ordering::Relaxed);
        Ok(Held { end, waits: &self.waits })
    }

    /// For what must be done before anything else is: nobody waits with an end of which something is lent.
    pub(crate) fn lock_at_last(&self) -> MutexGuard<'_, T> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.end
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.end
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.waits.store(false, Ordering::Relaxed);
    }
}
