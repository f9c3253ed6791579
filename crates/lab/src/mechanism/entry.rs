// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mechanism without its type: what the list holds and a trial is given by name.

use super::{
    Carries, Contexts, Explanation, Host, Line, Mechanism, Memory, Notifiers, OpenError, Site, Unavailable,
    Waits,
};
use crate::trial::role::{self, Role};
use crate::trial::side::{Side, SideError};

/// A mechanism, erased.
pub trait Entry: Sync {
    /// See [`Mechanism::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Mechanism::WAITS`].
    fn waits(&self) -> Waits;
    /// See [`Mechanism::MEMORY`].
    fn memory(&self) -> Memory;
    /// See [`Mechanism::DROPS`].
    fn drops(&self) -> bool;
    /// See [`Mechanism::DESCRIPTOR`].
    fn descriptor(&self) -> bool;
    /// See [`Mechanism::NOTIFIERS`].
    fn notifiers(&self) -> Notifiers;
    /// See [`Mechanism::CARRIES`].
    fn carries(&self) -> Carries;
    /// See [`Mechanism::TIMED`].
    fn timed(&self) -> bool;
    /// Whether it joins sides of this kind.
    fn joins(&self, contexts: Contexts) -> bool;
    /// See [`Mechanism::explanation`].
    fn explanation(&self) -> Explanation;
    /// See [`Mechanism::available`].
    fn available(&self, host: &Host) -> Result<(), Unavailable>;
    /// Opens `count` lines in the trial's host.
    fn open(&self, site: &Site, count: usize) -> Result<Box<dyn Lines>, OpenError>;
    /// Goes through what every mechanism must do.
    #[cfg(test)]
    fn rehearse(&self, site: &Site);
}

/// Open lines of one mechanism, erased; a side plays a role over them.
pub trait Lines: Send + Sync {
    /// Plays `role` to its end; the whole measured loop runs inside, compiled for this mechanism.
    fn play(&self, role: Role, side: &mut Side) -> Result<(), SideError>;
}

impl<M: Mechanism> Entry for M {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn waits(&self) -> Waits {
        M::WAITS
    }
    fn memory(&self) -> Memory {
        M::MEMORY
    }
    fn drops(&self) -> bool {
        M::DROPS
    }
    fn descriptor(&self) -> bool {
        M::DESCRIPTOR
    }
    fn notifiers(&self) -> Notifiers {
        M::NOTIFIERS
    }
    fn carries(&self) -> Carries {
        M::CARRIES
    }
    fn timed(&self) -> bool {
        M::TIMED
    }
    fn joins(&self, contexts: Contexts) -> bool {
        match contexts {
            Contexts::Processes => M::PROCESSES,
            Contexts::Threads => M::THREADS,
        }
    }
    fn explanation(&self) -> Explanation {
        M::explanation()
    }
    fn available(&self, host: &Host) -> Result<(), Unavailable> {
        M::available(host)
    }
    fn open(&self, site: &Site, count: usize) -> Result<Box<dyn Lines>, OpenError> {
        let lines = (0..count).map(|_| M::Line::open(site)).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(Open::<M> { lines }))
    }
    #[cfg(test)]
    fn rehearse(&self, site: &Site) {
        super::conformance::rehearse::<M>(site);
    }
}

struct Open<M: Mechanism> {
    lines: Vec<M::Line>,
}

impl<M: Mechanism> Lines for Open<M> {
    fn play(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        role::play::<M>(&self.lines, role, side)
    }
}
