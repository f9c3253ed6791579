// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments turn flags into a plan.

#[cfg(target_os = "linux")]
pub mod anatomy;
#[cfg(target_os = "linux")]
pub mod bench;
pub mod fanout;
#[cfg(target_os = "linux")]
pub mod gate;
#[cfg(target_os = "linux")]
pub mod idle;
#[cfg(target_os = "linux")]
pub mod io;
#[cfg_attr(not(target_os = "linux"), path = "no_live.rs")]
pub mod live;
#[cfg(target_os = "linux")]
pub mod net;
#[cfg(target_os = "linux")]
mod pace;
#[cfg(target_os = "linux")]
pub mod pairs;
#[cfg(target_os = "linux")]
pub mod pick;
pub mod ping;
pub mod run;
#[cfg(target_os = "linux")]
pub mod spin;
#[cfg(target_os = "linux")]
pub mod survey;
#[cfg(target_os = "linux")]
pub mod switch;
#[cfg(target_os = "linux")]
pub mod tasks;
#[cfg(target_os = "linux")]
pub mod tune;
#[cfg(target_os = "linux")]
pub mod uintr;
#[cfg(target_os = "linux")]
pub mod why;
