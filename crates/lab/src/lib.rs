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

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

pub mod cli;
pub mod experiment;

pub use doorbell_harness as trial;
pub use doorbell_harness::trace;
pub use doorbell_machine as machine;
pub use doorbell_report as view;
pub use doorbell_results::{about, anatomy, nearest, quantity, record};
pub use doorbell_subjects::{fan, mechanism, operation, task, transfer};
pub use doorbell_verdict as verdict;
