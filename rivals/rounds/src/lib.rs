// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the comparisons share: the clock, the lot that orders a round, the pilot that sizes a block, the partner, and ratios
//! paired by round.
//!
//! The cores of shared machines become half as fast for milliseconds to a second at a time. Therefore the arms of a
//! comparison run in many short blocks, in an order drawn anew for each round, and what is compared is not the median of
//! one with the median of the other, but the median of the ratios of the blocks of one round.

pub mod clock;
pub mod lot;
pub mod partner;
pub mod pilot;
pub mod statistics;
