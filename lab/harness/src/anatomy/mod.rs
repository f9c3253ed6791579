// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins the kernel's events and the instrument's stamps, and cuts each wake-up into its stages.
//!
//! ```text
//! stamps ─┐
//! events ─┴─► cut (one wake: marks in order) ─► collect (paths, distributions, the wakes worth showing)
//! ```

pub mod collect;
pub mod cut;
pub mod missing_events;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
