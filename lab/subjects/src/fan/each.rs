// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ordinary mechanism with a link of its own for each receiver.

use super::{Fan, FanEntry, Needs};
use crate::mechanism::{Link, Mechanism, OpenError};

struct Links<M: Mechanism>(Vec<M::Link>);

impl<M: Mechanism> Fan for Links<M> {
    type Notifier = <M::Link as Link>::Notifier;
    type Waiter = <M::Link as Link>::Waiter;
    fn waiter(&self, number: u32) -> Result<Self::Waiter, OpenError> {
        self.0[number as usize].waiter()
    }
    fn notifier(&self, number: u32) -> Result<Self::Notifier, OpenError> {
        self.0[number as usize].notifier()
    }
}

/// A link of `M` for each receiver.
pub(super) const fn each<M: Mechanism>(needs: fn(u64) -> Needs) -> FanEntry {
    FanEntry {
        name: M::NAME,
        summary: M::EXPLANATION.summary,
        available: M::available,
        needs,
        notification: M::NOTIFICATION,
        shared: false,
        open: |site, context| {
            let links = (0..context.receivers).map(|_| M::Link::open(site)).collect::<Result<_, _>>()?;
            Ok(Box::new(Links::<M>(links)))
        },
    }
}
