// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what the driver did with receivers that have no handler,
//! by its trace events, through the model.
//!
//! The driver tells when it arms a receiver, notices requests, takes one for a reader, and puts it
//! to rest. Posts it does not see.

use super::config::{Config, Waiter};
use super::state::{At, Irq, State, VECTORS};
use super::steps::Polled;
use crate::model::trace::{self, Line, ReplayError, Replayed, Vectors, WAKE};
use crate::upid::UpidValue;

/// The driver's steps, by the names of its trace events after `uintr_polled_`.
const EVENTS: [&str; 6] = ["arm", "notice", "take", "rest", "throttle", "unthrottle"];

/// Follows every receiver without a handler of a trace in the text form of the kernel's tracefs;
/// other events are left alone.
///
/// ```
/// use doorbell_uintr::model::polled::replay;
/// let trace = "\
///     a-1 [000] d.. 1.0: uintr_polled_arm: receiver=1 step=0 to=0 low=0000000000000002 requests=0\n\
///     a-1 [000] d.. 1.1: uintr_polled_notice: receiver=1 step=1 to=0 low=0000000000f70001 requests=20\n\
///     a-1 [000] d.. 1.1: uintr_polled_rest: receiver=1 step=2 to=-1 low=0000000000f70000 requests=0\n";
/// assert_eq!(replay(trace)?.receivers, 1);
/// // Nobody interrupts for a receiver that is at rest.
/// let wrong = trace.replace("polled_arm", "polled_rest");
/// assert!(replay(&wrong).is_err());
/// # Ok::<(), doorbell_uintr::model::polled::ReplayError>(())
/// ```
pub fn replay(trace: &str) -> Result<Replayed, ReplayError> {
    let kind = ("receivers without a handler", ": uintr_polled_");
    trace::replay(trace, kind, &EVENTS, |receiver, lines| {
        let follower = Follower::new(Vectors::of(receiver, lines)?);
        let start = follower.polled.initial();
        trace::follow(
            receiver,
            lines,
            start,
            |state| follower.posts(state),
            |state, i| follower.taken(*state, &lines[i]),
        )
    })
}

struct Follower {
    polled: Polled,
    vectors: Vectors,
}

impl Follower {
    fn new(vectors: Vectors) -> Self {
        // Whoever arms or reads; a waiter of the model for each processor.
        let waiters = [Some((Waiter::Polls, 0)); 2];
        let config = Config { waiters, posts: u8::MAX, vectors: 2, ..Config::SMALLEST };
        Self { polled: Polled { config, hazard: None }, vectors }
    }

    /// The states after one post.
    fn posts(&self, state: &State) -> Vec<State> {
        let posted = |vector| {
            let mut posted = *state;
            posted.post(vector);
            posted.posted = [0; VECTORS];
            posted
        };
        self.vectors.all().map(posted).collect()
    }

    /// Whether the UPID's low half is the one that was seen. Before
    /// it is armed for the first time it names nobody.
    fn shows(state: &State, line: &Line) -> bool {
        let upid = UpidValue { low: line.low, pir: 0 };
        upid.on() == state.on && upid.sn() == state.sn && (state.sn || upid.nv() == WAKE)
    }

    fn taken(&self, mut state: State, line: &Line) -> Vec<State> {
        if !Self::shows(&state, line) {
            return Vec::new();
        }
        let requests = self.vectors.bits(line.requests);
        match line.event {
            "arm" if !state.armed => {
                let Ok(w) = usize::try_from(line.to) else { return Vec::new() };
                state.waiters[w].at = At::Arm;
                self.polled.wait(&mut state, w);
                let looked = trace::closure([quiet(state)], |state| self.posts(state));
                looked.into_iter().filter(|state| state.pir == requests).collect()
            }
            "notice" if state.armed && !state.throttled && i64::from(state.to) == line.to && state.on => {
                let c = usize::from(state.to);
                state.cpus[c].irq = Irq::Begun;
                self.polled.handle(&mut state, c);
                self.noticed(state, c, requests)
            }
            "throttle" if state.armed && !state.throttled && i64::from(state.to) == line.to => {
                (state.throttled, state.sn) = (true, true);
                vec![state]
            }
            "unthrottle" if state.throttled => {
                let Ok(c) = usize::try_from(line.to) else { return Vec::new() };
                state.to = line.to as u8;
                self.polled.unthrottle(&mut state, c);
                self.noticed(state, c, requests)
            }
            "take" if requests.count_ones() == 1 && state.pir & requests != 0 => {
                state.pir &= !requests;
                vec![state]
            }
            "rest" if state.armed => {
                (state.sn, state.armed, state.throttled) = (true, false, false);
                vec![state]
            }
            _ => Vec::new(),
        }
    }

    /// The states after the handler's look at PIR, which found `requests`.
    fn noticed(&self, state: State, c: usize, requests: u8) -> Vec<State> {
        trace::closure([state], |state| self.posts(state))
            .into_iter()
            .filter(|state| state.pir == requests)
            .map(|mut state| {
                self.polled.handle(&mut state, c);
                quiet(state)
            })
            .collect()
    }
}

/// What is left of a step that is over: who took it and what was counted is not followed.
fn quiet(state: State) -> State {
    State {
        on: state.on,
        sn: state.sn,
        to: state.to,
        pir: state.pir,
        armed: state.armed,
        throttled: state.throttled,
        ..State::default()
    }
}
