// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks in a thread of its own, one at a time, so that a look that takes long keeps nobody from
//! leaving, and those who ask meanwhile share it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Who looks.
pub(super) struct Looker<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Looks begun, and the last that ended with what it saw.
    begun: u64,
    ended: u64,
    seen: Option<Arc<T>>,
    asked: bool,
    closed: bool,
}

impl<T: Send + Sync + 'static> Looker<T> {
    /// Begins a thread that waits to be asked.
    pub(super) fn begin(look: impl Fn() -> T + Send + 'static) -> std::io::Result<Self> {
        let state = State { begun: 0, ended: 0, seen: None, asked: false, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("look".to_owned()).spawn(move || own.look(look))?;
        Ok(Self(shared))
    }

    /// What there is to see: of a look that goes on or else of one
    /// begun now; none if it has not ended within `limit`.
    pub(super) fn newest(&self, limit: Duration) -> Option<Arc<T>> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = if state.begun > state.ended { state.begun } else { state.begun + 1 };
        state.asked |= wanted > state.begun;
        self.0.changed.notify_all();
        let (state, _) = self
            .0
            .changed
            .wait_timeout_while(state, limit, |state| state.ended < wanted)
            .unwrap_or_else(PoisonError::into_inner);
        state.seen.clone().filter(|_| state.ended >= wanted)
    }
}

impl<T> Drop for Looker<T> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.changed.notify_all();
    }
}

impl<T> Shared<T> {
    fn look(&self, look: impl Fn() -> T) {
        loop {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |state: &mut State<T>| !state.asked && !state.closed;
            let mut state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            state.asked = false;
            state.begun += 1;
            drop(state);
            let seen = Arc::new(look());
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ended = state.begun;
            state.seen = Some(seen);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::mpsc;

    /// Each who asked while one look stood still began another, and
    /// after some dozens nobody was answered any more.
    #[test]
    fn those_who_ask_while_a_look_stands_still_begin_no_other_and_are_answered_once_it_goes_on() {
        let (go_on, wait) = mpsc::channel::<()>();
        let looks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&looks);
        let looker = Looker::begin(move || {
            wait.recv().unwrap();
            counted.fetch_add(1, SeqCst) + 1
        });
        let looker = looker.unwrap();
        for _ in 0..100 {
            assert_eq!(looker.newest(Duration::from_millis(1)), None);
        }
        go_on.send(()).unwrap();
        assert_eq!(looker.newest(Duration::from_secs(300)).as_deref(), Some(&1));
        go_on.send(()).unwrap();
        // A look that has ended is not sold as a new one.
        assert_eq!(looker.newest(Duration::from_secs(300)).as_deref(), Some(&2));
        assert_eq!(looks.load(SeqCst), 2);
    }
}
