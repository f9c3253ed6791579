// SPDX-License-Identifier: MIT OR Apache-2.0
//! User interrupts: processors, local APICs, driver, scheduler and programs as one checked machine.

mod config;
mod describe;
mod hazard;
mod machine;
mod possible;
mod programs;
mod replay;
mod rules;
mod state;
mod timer;
mod wake;

pub use super::{ReplayError, Replayed};
pub use config::{Config, Interference, Patience, Resume, Sleep, Wake};
pub use hazard::{ELSEWHERE, Hazard};
pub use machine::{Action, Machine, Vector};
pub use replay::replay;
pub use rules::{I1, I2, I3, I4, I5, ITEM_LEFT, NOT_QUIET, SLEEPS_FOREVER, STUCK, UNDELIVERED};
pub use state::State;

use super::{
    Property, Protocol, Step,
    search::{self, Outcome},
};

impl Protocol for Machine {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        Machine::initial(self)
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        Machine::actions(self, state, actions);
    }

    fn step(&self, state: &State, action: Action) -> State {
        Machine::step(self, state, action)
    }

    fn interferes(&self, action: Action) -> bool {
        Machine::interferes(action)
    }

    fn broken(&self, state: &State) -> Option<Property> {
        Self::wrong(state)
    }

    fn invariant(&self, state: &State) -> Option<Property> {
        self.broken_invariant(state)
    }

    fn unfinished(&self, state: &State) -> Option<Property> {
        self.undone(state)
    }

    /// The two processors are equal, and so are the two pairs of
    /// receiver and sender where both are there.
    fn canonical(&self, state: State) -> State {
        let with_cpus = |state: State| {
            let other = state.cpus_exchanged(self.config.apic);
            if other.packed() < state.packed() { other } else { state }
        };
        let one = with_cpus(state);
        if !self.config.tasks_exchangeable() {
            return one;
        }
        let other = with_cpus(state.tasks_exchanged());
        if other.packed() < one.packed() { other } else { one }
    }

    fn lanes(&self) -> Vec<String> {
        describe::lanes()
    }

    fn describe(&self, before: &State, action: Action, after: &State) -> Step {
        describe::step(self, before, action, after)
    }
}

/// Checks one configuration: the correct protocol if `hazard` is
/// `None`, else the one with that mistake in it.
///
/// ```
/// use doorbell_uintr::model::{Verdict, uintr::{Config, Hazard, check}};
/// let outcome = check(Config::XAPIC, Some(Hazard::H27));
/// assert!(matches!(outcome.verdict, Verdict::Fault(_)));
/// ```
#[must_use]
pub fn check(config: Config, hazard: Option<Hazard>) -> Outcome {
    let mistake = hazard.map(|hazard| [hazard.name(), hazard.title()]);
    search::check(&Machine { config, hazard }, config.name, mistake)
}
