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
pub use machine::{Action, Machine};
pub use replay::replay;
pub use rules::{I1, I2, I3, I4, I5, ITEM_LEFT, NOT_QUIET, SLEEPS_FOREVER, STUCK, UNDELIVERED};
pub use state::{Irq, State};

use super::{Configuration, Property, Protocol, Step};

impl Configuration for Config {
    type Hazard = Hazard;
    type Protocol = Machine;

    const ALL: &'static [Self] = &[
        Self::BLOCKING,
        Self::RUNNING,
        Self::DIRECT,
        Self::RUNNING_DIRECT,
        Self::XAPIC,
        Self::PAYLOAD,
        Self::LIFE_CYCLE,
        Self::RUNNING_LIFE_CYCLE,
        Self::SHARED,
        Self::DRIVER,
        Self::DRIVER_RUNNING,
        Self::DRIVER_LIFE_CYCLE,
        Self::DRIVER_HOT_PLUG,
        Self::DRIVER_DESCRIPTOR,
        Self::DRIVER_STACK,
        Self::DRIVER_SHARED,
        Self::DRIVER_SHARED_LIFE_CYCLE,
        Self::DRIVER_SHARED_HOT_PLUG,
        Self::DRIVER_SHARED_RUNNING,
        Self::DRIVER_SHARED_DESCRIPTOR,
        Self::DRIVER_SHARED_STACK,
        Self::DRIVER_CALLS,
        Self::DRIVER_RING,
        Self::DRIVER_SHARED_CALLS,
        Self::DRIVER_TIMER,
        Self::DRIVER_TIMER_RUNNING,
        Self::DRIVER_TIMER_HOT_PLUG,
        Self::DRIVER_SHARED_TIMER,
    ];
    const LARGEST: Option<Self> = Some(Self::FULL);

    fn name(self) -> &'static str {
        self.name
    }

    fn protocol(self, hazard: Option<Hazard>) -> Machine {
        Machine { config: self, hazard }
    }
}

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
