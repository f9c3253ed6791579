// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mechanisms of systems that are not Linux as a fan-out uses them: a link of its own for each receiver.

use doorbell_results::nearest::{self, Unknown};

pub use doorbell_harness::fanout::fan::{Fan, FanEntry, Hall, Needs, OpenFan};

pub use self::family::FanOuts;
#[path = "../fan/each.rs"]
mod each;
#[path = "../fan/family.rs"]
mod family;
#[path = "../fan/limits.rs"]
pub mod limits;
#[cfg_attr(target_os = "macos", path = "macos/links.rs")]
#[cfg_attr(windows, path = "windows/links.rs")]
mod links;
#[path = "../fan/null.rs"]
mod null;

/// What is fanned out where nothing is named: what the study of semaphores did.
pub const USUAL: &str = if cfg!(windows) { "win-semaphore" } else { "sem-posix-named" };

/// Every way, in the order of the tables: the control, and those of the system.
pub fn all() -> &'static [&'static dyn FanEntry] {
    links::ALL
}

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn FanEntry, Unknown> {
    nearest::find("fan-out", all().iter().copied(), |fan| fan.name(), name)
}
