// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mechanism without its type: what the list holds and a trial is given by name.

use crate::bench::resident::Resident;
use crate::mechanism::{Explanation, Link, Mechanism, Unavailable, Waiter};
use crate::role::{self, Role};
use crate::side::{Side, SideError};
use crate::site::{OpenError, Site};
use doorbell_results::record::subject::Notification;

pub trait Entry: Sync {
    fn name(&self) -> &'static str;
    /// How it notifies, as it is stored with what was measured.
    fn notification(&self) -> Notification;
    fn above_sockets(&self) -> bool;
    fn usual(&self) -> bool;
    fn in_a_set(&self) -> bool;
    /// See [`Mechanism::EXPLANATION`].
    fn explanation(&self) -> Explanation;
    /// See [`Mechanism::available`].
    fn available(&self) -> Result<(), Unavailable>;
    /// Opens `count` links in the trial's host.
    fn open(&self, site: &Site, count: usize) -> Result<Box<dyn Links>, OpenError>;
    /// Goes through what every mechanism must do.
    #[cfg(any(test, feature = "sample"))]
    fn rehearse(&self, site: &Site);
}

/// Open links of one mechanism, erased; a side runs its role over them.
pub trait Links: Send + Sync {
    /// Plays `role` to its end; the whole measured loop runs inside, compiled for this mechanism.
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError>;
    /// `role`'s ends of them, for a side that comes back to them
    /// slice by slice; none where that cannot be.
    fn resident(&self, role: Role, side: &Side) -> Option<Box<dyn Resident + '_>> {
        let _ = (role, side);
        None
    }
}

impl<M: Mechanism> Entry for M {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn notification(&self) -> Notification {
        M::NOTIFICATION
    }
    fn above_sockets(&self) -> bool {
        M::ABOVE_SOCKETS
    }
    fn usual(&self) -> bool {
        M::USUAL
    }
    fn in_a_set(&self) -> bool {
        <<M::Link as Link>::Waiter as Waiter>::IN_A_SET
    }
    fn explanation(&self) -> Explanation {
        M::EXPLANATION
    }
    fn available(&self) -> Result<(), Unavailable> {
        M::available()
    }
    fn open(&self, site: &Site, count: usize) -> Result<Box<dyn Links>, OpenError> {
        let links = (0..count).map(|_| M::Link::open(site)).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(Open::<M> { links }))
    }
    #[cfg(any(test, feature = "sample"))]
    fn rehearse(&self, site: &Site) {
        crate::conformance::rehearse::<M>(site);
    }
}

struct Open<M: Mechanism> {
    links: Vec<M::Link>,
}

impl<M: Mechanism> Links for Open<M> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        role::run_role::<M>(&self.links, role, side)
    }
    fn resident(&self, role: Role, side: &Side) -> Option<Box<dyn Resident + '_>> {
        role::slices::resident::<M>(&self.links, role, side)
    }
}
