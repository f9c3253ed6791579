// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab measures: means of notification, fan-outs, operations, kinds of task, ways to wait for a device. One file each,
//! one line each in the list of its family.

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

// The lists of other systems are below `elsewhere`.
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/fan.rs")]
pub mod fan;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mechanism.rs")]
pub mod mechanism;
#[cfg(target_os = "linux")]
pub mod operation;
pub mod shortfall;
#[cfg(target_os = "linux")]
pub mod task;
#[cfg(target_os = "linux")]
pub mod transfer;

use doorbell_harness::family::Families;

/// Every family. The one list to extend.
#[cfg(target_os = "linux")]
pub const FAMILIES: Families =
    &[&mechanism::Mechanisms, &fan::FanOuts, &operation::Operations, &task::Tasks, &transfer::Transfers];

/// Every family that is had on other systems.
#[cfg(not(target_os = "linux"))]
pub const FAMILIES: Families = &[&mechanism::Mechanisms, &fan::FanOuts];
