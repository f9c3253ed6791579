// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a future goes on in one poll: the one loop of all of them.
//!
//! Each thing that is received, sent or heard takes a part of the task's turn
//! ([`tokio::task::coop`]), and so does each look in vain: whoever always has something keeps
//! neither other tasks nor the time-out around this future waiting.

use std::task::{Context, Poll, ready};
use tokio::task::coop::poll_proceed;

/// What one look did.
pub(super) enum Turn<R> {
    /// There was something, or an error.
    Done(R),
    /// There may be something now.
    Again,
    /// There is nothing, and the task is woken when there is.
    Asleep,
}

/// How often one poll looks again. Only what is hostile seems to have
/// something, or is woken, more often.
pub(super) const MOST_TURNS: u32 = 4;

/// Looks until there is something, or nothing and the task is woken for it.
pub(super) fn take_turns<R>(
    cx: &mut Context<'_>,
    mut look: impl FnMut(&mut Context<'_>) -> Turn<R>,
) -> Poll<R> {
    for _ in 0..MOST_TURNS {
        let turn = ready!(poll_proceed(cx));
        match look(cx) {
            Turn::Done(result) => {
                turn.made_progress();
                return Poll::Ready(result);
            }
            Turn::Again => turn.made_progress(),
            Turn::Asleep => return Poll::Pending,
        }
    }
    // A hostile peer can always seem to have something. Others get their turn: the runtime, and what
    // stands around this future, a time-out for one.
    cx.waker().wake_by_ref();
    Poll::Pending
}
