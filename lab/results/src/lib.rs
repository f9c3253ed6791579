// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of the lab: what was asked, on what machine, what was
//! measured, and the file that holds it.
//!
//! Everything here is data and what follows from data alone. Nothing measures, nothing asks the
//! machine, nothing prints: whoever wants to read, check, convert or judge result files needs this
//! crate and no other of the lab's.
//!
//! ```text
//! machine + plan (configurations) → records → result file
//! ```

#![allow(
    missing_docs,
    reason = "only this repository's programs use the crate: a name says what it is, and a comment what it does not say"
)]

pub mod about;
pub mod anatomy;
pub mod configuration;
pub mod event;
pub mod figure;
pub mod machine;
pub mod nearest;
pub mod plan;
pub mod quantity;
pub mod record;
pub mod schedule;
pub mod written;

/// Whether a field says no more than a file without it.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
