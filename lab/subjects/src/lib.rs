// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab measures: means of notification, fan-outs, operations, kinds of task, ways to wait
//! for a device. One file each, one line each in the list of its family.

// Empty elsewhere, where `doorbell-lab` says in one error what to build instead.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

// The lists of other systems are below `elsewhere`.
pub mod fan;
pub mod gpu;
mod lone_side;
pub mod mechanism;
pub mod operation;
pub mod shortfall;
pub mod task;
pub mod transfer;

use doorbell_harness::family::Families;

/// Every family. The one list to extend.
pub const FAMILIES: Families = &[
    &mechanism::Mechanisms,
    &fan::FanOuts,
    &operation::Operations,
    &task::Tasks,
    &transfer::Transfers,
    &gpu::Gpus,
];
