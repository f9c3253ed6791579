// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins the kernel's events and the instrument's stamps, and cuts each wake-up into its stages.
//!
//! ```text
//! stamps ─┐
//! events ─┴─► cut (one wake: marks in order) ─► collect (paths, distributions, the wakes worth showing)
//! ```

#[cfg(target_os = "linux")]
pub mod collect;
pub mod cut;
#[cfg(target_os = "linux")]
pub mod missing_events;
#[cfg(all(test, target_os = "linux"))]
mod recorded;
#[cfg(all(test, target_os = "linux"))]
mod tests;
