// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab behind the command `doorbell`: it measures how long one execution context takes to wake another.
//!
//! Data walks one way (see `DESIGN.md`):
//!
//! ```text
//! machine + flags → plan → trial, trial, … → record → result file → verdict · view
//! ```
//!
//! Code that measures (`mechanism`, `trial`) prints nothing; code that prints (`view`, `cli`) measures nothing.

pub mod about;
pub mod anatomy;
pub mod cli;
pub mod experiment;
pub mod machine;
pub mod mechanism;
mod nearest;
pub mod operation;
pub mod quantity;
pub mod record;
pub mod task;
pub mod trace;
pub mod transfer;
pub mod trial;
pub mod verdict;
pub mod view;
