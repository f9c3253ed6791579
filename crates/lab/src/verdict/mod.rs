// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts: pure functions of result files.

pub mod answer;
pub mod check;
pub mod claims;
pub mod compare;
pub mod contest;
pub mod gate;
pub mod pick;
pub mod quantile;
pub mod spin;
pub mod statistics;
pub mod study;
pub mod tune;
pub mod worst;
