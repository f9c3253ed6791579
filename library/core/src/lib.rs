// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both sides of a doorbell must agree on: the layout of the
//! memory they share, the arithmetic on indices the other side wrote,
//! and the one protocol by which a waiter goes to sleep and is woken.
//!
//! Nothing here calls the kernel or allocates. The crate `doorbell` supplies the system calls.
//!
//! | to find | look in |
//! |---|---|
//! | how nobody's wake-up gets lost | [`wake`] |
//! | how one of many is woken | [`wake_one`] |
//! | what lies where in a mapping | [`layout`] |
//! | reading and writing memory the peer writes too | [`peer_memory`] |
//! | arithmetic on an index the peer wrote | [`index`] |
//! | what a peer did wrong | [`violation`] |
//! | a ring of messages between one sender and one receiver | [`channel`] |
//! | how long to spin before sleeping | [`window`] |
#![no_std]
// Tests may let a sum overflow: that is a failed test.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::arithmetic_side_effects
    )
)]

#[cfg(test)]
extern crate std;

// Offsets of the layout, `sem_t`'s room, counts that never wrap: all are those of 64 bits.
#[cfg(not(target_pointer_width = "64"))]
compile_error!("doorbell is of 64 bits; there is no port to 32 bits yet");

pub mod channel;
#[cfg(all(test, not(loom)))]
mod design;
pub mod fault;
pub mod index;
#[cfg(not(loom))]
pub mod layout;
#[cfg(not(loom))]
pub mod peer_memory;
#[cfg(all(test, loom))]
mod races;
pub mod sync;
#[cfg(all(test, not(loom)))]
mod threads_of_miri;
pub mod violation;
pub mod wake;
pub mod wake_one;
pub mod window;
