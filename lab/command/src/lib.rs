// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab behind the command `doorbell`: it measures how long one
//! execution context takes to wake another.
//!
//! Data walks one way (see `DESIGN.md`):
//!
//! ```text
//! machine + flags → plan → trial, trial, … → record → result file → verdict · view
//! ```
//!
//! What measures, what judges and what shows are crates of their own; here are the verbs and the
//! run.

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

#[cfg(target_os = "linux")]
pub mod cli;
#[cfg(target_os = "linux")]
pub mod run;

#[cfg(not(target_os = "linux"))]
compile_error!(
    "`doorbell` measures Linux. On Windows and macOS build `doorbell-other-systems`, whose results \
     it reads (book/other-systems.md)"
);
