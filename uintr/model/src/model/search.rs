// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search: every interleaving of a [`Protocol`], breadth first,
//! with the model checker `stateright`.
//!
//! # What is checked, and why it is enough
//!
//! Steps are of two kinds. *Progress* is what the actors do by themselves:
//! instructions, kernel code, messages that arrive. *Interference* is what
//! is done to them and may never come: preemption, migration, signals,
//! time-outs, revocation. A state with no progress step is *at rest*.
//!
//! 1. **In every reachable state** [`Protocol::broken`] finds nothing: the invariants.
//! 2. **In every reachable state at rest** [`Protocol::unfinished`] finds nothing: all is
//!    delivered, nobody sleeps who has something to do. A time-out is interference, so a protocol
//!    that needs one to go on is found at rest.
//! 3. **From every reachable state** one fixed schedule of progress steps comes to rest. If it did
//!    not, the states it runs through would repeat; that is found and reported as [`NEVER_RESTS`].
//!
//! From 3, rest can be reached from everywhere. In a finite graph this means that every run in
//! which interference ends and no step that is possible again and again is left out for ever
//! (strong fairness) does come to rest, and by 2 it rests in a good state. That is the liveness
//! wanted: every vector posted is delivered after its last post, and no waiter sleeps for ever.
//!
//! The checker's own `eventually` is not used: it forgets a property on a path that ends in a
//! cycle, and mixes up paths that join, both of which its documentation admits. Nor does its
//! breadth-first search reduce by symmetry, so [`Protocol::canonical`] is applied to each state as
//! it is made; a fault found that way is looked for again without symmetry and on one thread, which
//! makes its trace the shortest.
//!
//! States are remembered by a 64-bit hash. With *n* states the chance that two share one, hiding
//! the second, is about n²/2⁶⁵: under 10⁻⁵ for ten million.

use super::chart::{Chart, Step};
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// A short name, such as `I1`.
    pub name: &'static str,
    /// What is wrong when it does not hold, as a sentence without its full stop.
    pub violation: &'static str,
}

pub(super) const fn property(name: &'static str, violation: &'static str) -> Property {
    Property { name, violation }
}

/// The progress steps lead back to where they were.
pub const NEVER_RESTS: Property =
    property("comes to rest", "left to itself the system repeats the same steps for ever and never finishes");

/// A mechanism: its actors, their steps, and what must hold.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// The whole system between two steps.
    type State: Clone + Hash + PartialEq + Send + Sync + 'static;
    /// One atomic step of one actor.
    type Action: Copy + PartialEq + Send + Sync + 'static;

    /// Where every run begins.
    fn initial(&self) -> Self::State;
    /// Adds every step that is possible in `state`, progress in the
    /// order in which the fixed schedule prefers it.
    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>);
    /// The state after a possible step.
    fn step(&self, state: &Self::State, action: Self::Action) -> Self::State;
    /// Whether the step is interference; otherwise it is progress.
    fn interferes(&self, action: Self::Action) -> bool;
    /// The outcome that is wrong in any state: an access to freed
    /// memory, a fault that a correct program sees.
    fn broken(&self, state: &Self::State) -> Option<Property>;
    /// The invariant of the protocol that does not hold in `state`. Broken invariants explain a
    /// fault; only a run without a hazard takes them for one, so that a hazard's trace goes on
    /// to what its victim sees.
    fn invariant(&self, state: &Self::State) -> Option<Property>;
    /// What a state at rest leaves undone.
    fn unfinished(&self, state: &Self::State) -> Option<Property>;
    /// The representative of all states that differ only in which of several equal actors is which.
    fn canonical(&self, state: Self::State) -> Self::State {
        state
    }
    /// Names of the lanes of a chart.
    fn lanes(&self) -> Vec<String>;
    /// The step in words.
    fn describe(&self, before: &Self::State, action: Self::Action, after: &Self::State) -> Step;
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Distinct states visited (up to symmetry, where it was used).
    pub states: usize,
    /// Longest of the shortest ways to a state, in states.
    pub depth: usize,
    /// Whether a fault was found.
    pub verdict: Verdict,
}

/// Whether a fault was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every reachable state was visited, and none has a fault.
    Clean,
    /// The nearest fault.
    Fault(Fault),
}

/// A fault and the shortest way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What does not hold.
    pub property: Property,
    /// The interleaving that leads to it.
    pub chart: Chart,
}

/// Visits every reachable state, or stops at the nearest fault.
///
/// Of a protocol that is meant to be right invariants count as faults, symmetry is used, and two
/// threads search. One that is known to be wrong has a `mistake`, the title of its chart: one
/// thread finds the shortest trace, and invariants only annotate it.
pub(super) fn search<P: Protocol>(protocol: &P, title: &str, mistake: Option<&str>) -> Outcome {
    let run = |threads, symmetric, invariants, livelocks: bool| {
        let settled = livelocks.then(|| Arc::new(Settled::new()));
        let model = Searched { protocol: protocol.clone(), settled, symmetric, invariants };
        model.checker().threads(threads).finish_when(HasDiscoveries::Any).spawn_bfs().join()
    };
    let checker = match mistake {
        None => {
            let checker = run(2, true, true, true);
            if checker.discovery(NO_FAULT).is_some() { run(1, false, true, true) } else { checker }
        }
        // A wake-up that is seen to be lost says more than one that is lost in a loop, so loops come second.
        Some(_) => {
            let checker = run(1, false, false, false);
            if checker.discovery(NO_FAULT).is_some() { checker } else { run(1, false, false, true) }
        }
    };
    let verdict = match checker.discovery(NO_FAULT) {
        None => Verdict::Clean,
        Some(path) => {
            let (states, actions): (Vec<_>, Vec<_>) = path.into_vec().into_iter().unzip();
            let actions = actions.into_iter().flatten().collect();
            Verdict::Fault(checker.model().explain(states, actions, mistake.unwrap_or(title)))
        }
    };
    Outcome { states: checker.unique_state_count(), depth: checker.max_depth(), verdict }
}

const NO_FAULT: &str = "no fault";

/// A protocol in the checker's terms.
struct Searched<P: Protocol> {
    protocol: P,
    /// Where loops are looked for; `None` to leave them.
    settled: Option<Arc<Settled>>,
    symmetric: bool,
    invariants: bool,
}

impl<P: Protocol> Searched<P> {
    fn progress(&self, state: &P::State) -> Option<P::Action> {
        let mut actions = Vec::new();
        self.protocol.actions(state, &mut actions);
        actions.into_iter().find(|&action| !self.protocol.interferes(action))
    }

    fn next(&self, state: &P::State, action: P::Action) -> P::State {
        let next = self.protocol.step(state, action);
        if self.symmetric { self.protocol.canonical(next) } else { next }
    }

    fn fault(&self, state: &P::State) -> Option<Property> {
        self.protocol
            .broken(state)
            .or_else(|| self.invariants.then(|| self.protocol.invariant(state)).flatten())
            .or_else(|| match self.progress(state) {
                None => self.protocol.unfinished(state),
                Some(_) => {
                    let settled = self.settled.as_ref()?;
                    (!self.comes_to_rest(state, settled)).then_some(NEVER_RESTS)
                }
            })
    }

    /// Follows the fixed schedule until rest, or until a state from which rest is known to follow.
    fn comes_to_rest(&self, state: &P::State, settled: &Settled) -> bool {
        let mut state = state.clone();
        let mut seen = Vec::new();
        loop {
            let hash = fingerprint(&state);
            if settled.contains(hash) {
                break;
            }
            if seen.contains(&hash) {
                return false;
            }
            seen.push(hash);
            match self.progress(&state) {
                Some(action) => state = self.next(&state, action),
                None => break,
            }
        }
        settled.extend(&seen);
        true
    }

    /// The chart of a path that ends in a fault. A path that never
    /// rests is followed until it repeats itself.
    fn explain(&self, mut states: Vec<P::State>, mut actions: Vec<P::Action>, title: &str) -> Fault {
        let property =
            self.fault(states.last().expect("a path has a state")).expect("the path ends in a fault");
        if property == NEVER_RESTS {
            let mut seen = HashSet::new();
            while let Some(state) = states.last()
                && seen.insert(fingerprint(state))
                && let Some(action) = self.progress(state)
            {
                states.push(self.next(state, action));
                actions.push(action);
            }
        }
        let mut held = true;
        let steps = states.windows(2).zip(&actions).map(|(pair, &action)| {
            let mut step = self.protocol.describe(&pair[0], action, &pair[1]);
            step.interference = self.protocol.interferes(action);
            if held && let Some(broken) = self.protocol.invariant(&pair[1]) {
                held = false;
                step.breaks = Some(broken.name);
            }
            step
        });
        let chart = Chart {
            title: title.to_owned(),
            lanes: self.protocol.lanes(),
            steps: steps.collect(),
            end: property.violation.to_owned(),
        };
        Fault { property, chart: chart.without_idle_lanes() }
    }
}

impl<P: Protocol> Model for Searched<P> {
    type State = P::State;
    type Action = P::Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![self.protocol.initial()]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        self.protocol.actions(state, actions);
    }

    fn next_state(&self, last: &Self::State, action: Self::Action) -> Option<Self::State> {
        Some(self.next(last, action))
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        // One property for everything: with a single `always` the checker stops at the first state that
        // breaks it, which in breadth-first order on one thread is a nearest one. With several it
        // would go on, and overwrite what it found with longer paths.
        vec![stateright::Property::always(NO_FAULT, |model: &Self, state| model.fault(state).is_none())]
    }
}

/// Hashes of states from which the fixed schedule is known to come to
/// rest, shared by the checker's threads.
struct Settled([Mutex<Hashes>; 64]);

/// The hashes are mixed already.
type Hashes = HashSet<u64, BuildHasherDefault<Unmixed>>;

#[derive(Default)]
struct Unmixed(u64);

impl Hasher for Unmixed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 64-bit hashes are stored");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Settled {
    fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    fn shard(&self, hash: u64) -> impl std::ops::DerefMut<Target = Hashes> {
        // A poisoned shard means that another checker thread panicked; the set itself is whole.
        self.0[(hash >> 32) as usize % 64].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contains(&self, hash: u64) -> bool {
        self.shard(hash).contains(&hash)
    }

    fn extend(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.shard(hash).insert(hash);
        }
    }
}

fn fingerprint(state: &impl Hash) -> u64 {
    let mut hasher = Mixer(0);
    state.hash(&mut hasher);
    hasher.finish()
}

/// A hash of a few words, faster than the standard library's by the time
/// that counts here. Each word is mixed in with the 64-bit finaliser of
/// MurmurHash3, a bijection, so states of one word never collide.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mut x = self.0.rotate_left(23) ^ word;
        x = (x ^ x >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        x = (x ^ x >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        self.0 = x ^ x >> 33;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
