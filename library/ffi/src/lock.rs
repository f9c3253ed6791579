// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles that one thread at a time uses.

use crate::error::Failure;
use doorbell::select::Selectable;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// What a handle guards, unless another thread uses it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        // After a panic, which was reported: what is shared is as a
        // killed process leaves it, and the rest as good as before.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Failure::in_use()),
    }
}

/// What a handle guards, as one of the ends of a wait.
pub(crate) trait Locked {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure>;
}

impl<T: Locked> Locked for MutexGuard<'_, T> {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        (**self).selectable()
    }
}
