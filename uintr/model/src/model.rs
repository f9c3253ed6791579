// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of ways to wake somebody, searched exhaustively for interleavings that lose the wake-up.
//!
//! Each mechanism is a [`Protocol`]: actors, their atomic steps, what must hold in every state and
//! what must hold when nothing is left to do. A *hazard* is a named switch that puts a well-known
//! mistake back in. `search` runs the model checker `stateright` over it.

pub mod chart;
mod hazard;
pub mod polled;
pub mod search;
pub mod threads;
mod trace;
pub mod uintr;

pub use chart::{Chart, Step};
pub use hazard::{Configuration, Entry, Mistake, check};
pub use search::{Fault, Outcome, Property, Protocol, Verdict};
pub use trace::{ReplayError, Replayed};
