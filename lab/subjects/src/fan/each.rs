// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ordinary mechanism with a link of its own for each receiver.

use std::marker::PhantomData;

use super::{Fan, FanEntry, FanOutContext, Needs, OpenFan};
use crate::mechanism::{Link, Mechanism, Notification, OpenError, Site, Unavailable};

/// A link of `M` for each receiver.
#[derive(Debug)]
pub(super) struct Each<M> {
    needs: fn(u64) -> Needs,
    mechanism: PhantomData<fn() -> M>,
}

impl<M> Each<M> {
    pub(super) const fn with(needs: fn(u64) -> Needs) -> Self {
        Self { needs, mechanism: PhantomData }
    }
}

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

impl<M: Mechanism> FanEntry for Each<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn summary(&self) -> &'static str {
        M::EXPLANATION.summary
    }
    fn available(&self) -> Result<(), Unavailable> {
        M::available()
    }
    fn notification(&self) -> Notification {
        M::NOTIFICATION
    }
    fn needs(&self, receivers: u64) -> Needs {
        (self.needs)(receivers)
    }
    fn open(&self, site: &Site, context: &FanOutContext) -> Result<Box<dyn OpenFan>, OpenError> {
        let links = (0..context.receivers).map(|_| M::Link::open(site)).collect::<Result<_, _>>()?;
        Ok(Box::new(Links::<M>(links)))
    }
}
