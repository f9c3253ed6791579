// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every race of the wake protocol, explored by loom: one test per
//! race, named after the operations that race.
//!
//! A lost wake-up shows as a deadlock: loom reports that every thread is blocked. `broken` proves
//! that it would: it leaves out one step at a time and expects the report.
//!
//! Run with `ci/test/20-loom.sh`.

mod any_waiter;
mod broadcast;
mod broken;
mod futex;
mod lane;
mod lane_broken;
mod platform;
mod several;
mod task;
mod token;
mod unfenced;
mod wake_one;
