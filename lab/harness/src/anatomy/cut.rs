// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cuts one wake: finds the marks it passed among the kernel's events.

use doorbell_results::anatomy::Mark;
use doorbell_results::event::{Event, What};

/// The instrument's stamps of one wake, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stamps {
    pub sequence: u64,
    /// Just before the notifier's call.
    pub sent: u64,
    /// The waiter's first instruction after its wait.
    pub woke: u64,
    /// After the waiter has read the message; the same as `woke` where there is none.
    pub read: u64,
    /// Whether the wait had run out and only then the message was found.
    #[serde(default)]
    pub rescued: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Each mark it passed, in order, with its time in ticks and its CPU where an event told.
    pub marks: Vec<(Mark, i64, Option<u32>)>,
    /// Whether the waiter came to run on another CPU than the one from which it was woken.
    pub across: bool,
}

/// Cuts the wake of `stamps` between the tasks of notifier and waiter. `events` are sorted, and
/// those of its time are all there.
pub fn cut(stamps: &Stamps, [notifier, waiter]: [i32; 2], events: &[Event]) -> Cut {
    let (sent, woke, read) =
        (stamps.sent.cast_signed(), stamps.woke.cast_signed(), stamps.read.cast_signed());
    let events = between(events, sent, woke);
    let mut marks = vec![(Mark::Sent, sent, None)];
    let mut across = false;
    let mut pass = |mark, event: &Event| marks.push((mark, event.at, Some(event.cpu)));
    let issued = events.iter().position(|event| event.what == What::Waking { task: waiter });
    let entered = |event: &&Event| event.task == notifier && matches!(event.what, What::CallEnters { .. });
    if let Some(index) = issued {
        let waking = &events[index];
        if let Some(event) = events[..index].iter().rfind(entered) {
            pass(Mark::Enters, event);
        }
        pass(Mark::Issued, waking);
        let mut rest = &events[index..];
        let switched =
            rest.iter().position(|event| matches!(event.what, What::Switch { to, .. } if to == waiter));
        // A waiter that is woken before it has left its CPU is not switched in; it just goes on.
        if let Some(index) = switched {
            let (before, switch) = (&rest[..index], &rest[index]);
            across = switch.cpu != waking.cpu;
            if across {
                let to = switch.cpu;
                let sent = before.iter().position(|event| event.what == What::InterruptSent { to });
                if let Some(index) = sent {
                    pass(Mark::InterruptSent, &before[index]);
                }
                let taken =
                    before[sent.unwrap_or(0)..].iter().find(|event| event.cpu == to && event.what.reached());
                if let Some(event) = taken {
                    pass(Mark::Taken, event);
                }
            }
            pass(Mark::ScheduledIn, switch);
            rest = &rest[index..];
        }
        let returned =
            |event: &&Event| event.task == waiter && matches!(event.what, What::CallReturns { .. });
        if let Some(event) = rest.iter().find(returned) {
            pass(Mark::UserMode, event);
        }
    }
    marks.push((Mark::Woke, woke, None));
    if read > woke {
        marks.push((Mark::Read, read, None));
    }
    Cut { marks, across }
}

/// The events from `from` to `to`, both included.
pub fn between(events: &[Event], from: i64, to: i64) -> &[Event] {
    let first = events.partition_point(|event| event.at < from);
    let last = events.partition_point(|event| event.at <= to);
    &events[first..last.max(first)]
}
