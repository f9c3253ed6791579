// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks for tasks that bring none of their own, kept when their task has ended.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;

use crate::mechanism::Fault;

/// Bytes of a stack, its guard page apart: what a turn needs, a signal frame with all vector
/// registers (11 KiB with AMX), and the 4 KiB within which tops of stacks lie apart.
pub(super) const STACK: usize = 20 << 10;

thread_local! {
    /// Stacks whose tasks have ended.
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A stack that somebody has left, or a new one: a mapping, and a guard page below it.
pub(super) fn stack() -> Result<DefaultStack, Fault> {
    match POOL.with_borrow_mut(Vec::pop) {
        Some(stack) => Ok(stack),
        None => DefaultStack::new(STACK).map_err(Fault::of("mmap")),
    }
}

/// Keeps the stacks of tasks that have ended.
pub(super) fn give_back(stacks: impl IntoIterator<Item = DefaultStack>) {
    POOL.with_borrow_mut(|pool| pool.extend(stacks));
}
