// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts: pure functions of result files.

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

pub mod across;
pub mod anatomy;
pub mod answer;
pub mod beside;
pub mod best;
pub mod by_block;
pub mod cause;
pub mod check;
pub mod claims;
pub mod clock_bound;
pub mod compare;
pub mod conditions;
pub mod decided;
pub mod fleet;
pub mod gate;
pub mod gpu;
mod hung;
pub mod identity;
pub mod looks;
pub mod machines;
pub mod missed;
pub mod pick;
pub mod plausibility;
pub mod populations;
pub mod provisional;
pub mod quantile;
pub mod ratio;
pub mod sleeps;
pub mod slices;
pub mod spin;
pub mod statistics;
pub mod tune;
pub mod unmeasured;
pub mod verdict;
pub mod versus;
pub mod what_if;
pub mod why;
pub mod worst;
