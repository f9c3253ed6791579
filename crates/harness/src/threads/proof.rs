// SPDX-License-Identifier: MIT OR Apache-2.0
//! The proof that the other side sleeps, which only Linux gives to every program.

use super::side::{Side, SideError};

/// What nobody can be here.
#[derive(Debug)]
pub enum Sleeper {}

impl Sleeper {
    /// Refused.
    pub fn of(_: &Side, _: usize) -> Result<Self, SideError> {
        Err(SideError::Setup {
            call: "the proof of sleep",
            cause: "this system does not tell one thread that another sleeps".to_owned(),
            cure: "take --timing stamp",
        })
    }

    pub fn sleeps(&mut self) -> bool {
        match *self {}
    }
}
