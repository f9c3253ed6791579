// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod clock;

/// What a run ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The clock of the run.
    pub clock: clock::Clock,
}
