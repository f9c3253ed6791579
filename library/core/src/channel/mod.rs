// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lane: a ring of byte messages with one sender and one receiver, in memory both can write.
//!
//! | to find | look in |
//! |---|---|
//! | what the two sides do, and in which order | [`lane`] |
//! | the arithmetic on indices and lengths, proven for all states of a small width | [`arithmetic`] |
//! | one message to many receivers | [`broadcast`] |
//! | what lies where | [`layout`] |
//!
//! Everything larger is made of lanes: several senders to one
//! receiver are several lanes and one bell.

pub mod arithmetic;
pub mod broadcast;
pub mod lane;
#[cfg(not(loom))]
pub mod layout;
