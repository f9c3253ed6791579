// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of a system call that does next to nothing.

use super::alone::{Alone, Bench, Solo};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// A call without arguments that needs nothing set up.
pub(super) trait SystemCall: Copy + Send + Sync + 'static {
    const NAME: &'static str;
    const EXPLANATION: Explanation;
    fn call();
}

/// One such call, timed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bare<C>(pub(super) C);

impl<C: SystemCall> Operation for Bare<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }
    fn form(&self) -> Form {
        Form::alone("call", 1000)
    }
    fn explanation(&self) -> Explanation {
        C::EXPLANATION
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(*self)))
    }
}

impl<C: SystemCall> Alone for Bare<C> {
    type Bench = Self;
    fn set_up(&self, _: &Side) -> Result<Self, SideError> {
        Ok(*self)
    }
}

impl<C: SystemCall> Bench for Bare<C> {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        (0..count).for_each(|_| C::call());
        Ok(())
    }
}
