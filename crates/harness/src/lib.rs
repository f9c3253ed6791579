// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one configuration: sides as processes or threads, rendezvous, watchdog, counters, traced events.
//!
//! ```text
//! doorbell ──exec──► host ──fork──► initiator / notifier
//!                         └─fork──► responder / waiter
//! ```
//!
//! The host is a fresh process with one thread: it opens the links, forks the sides, which inherit everything, and
//! sleeps until they are done or the time is up; once a second it gets up for some 10 µs to see that they still move.
//!
//! Where there is no fork the sides are threads of the host. What then stands in the place of a file is below `threads`.
//!
//! What is measured is not known here. It comes as families ([`family::Family`]), whose members implement the traits of
//! [`mechanism`], [`fanout::fan`] or [`entry::Links`]; the loops of [`role`] are compiled once for each.

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

pub mod anatomy;
#[cfg(target_os = "linux")]
mod any_path;
pub mod arena;
/// The barest sleep on a word that the system has: what every comparison is made in multiples of.
pub mod bare {
    #[cfg(target_os = "linux")]
    pub use crate::futex::{FutexLink as Link, FutexNotifier as Notifier, FutexWaiter as Waiter};
    #[cfg(target_os = "macos")]
    pub use crate::sync_wait_on_address::{
        AddressLink as Link, AddressNotifier as Notifier, AddressWaiter as Waiter,
    };
    #[cfg(windows)]
    pub use crate::wait_on_address::{
        AddressLink as Link, AddressNotifier as Notifier, AddressWaiter as Waiter,
    };
}
#[cfg(target_os = "linux")]
pub mod bench;
#[cfg(any(test, feature = "sample"))]
pub mod conformance;
pub mod control;
pub mod counters;
pub mod deadline;
pub mod entry;
#[cfg_attr(not(target_os = "linux"), path = "threads/environment.rs")]
pub mod environment;
#[cfg(any(test, feature = "sample"))]
pub mod fake_side;
pub mod family;
pub mod fanout;
#[cfg(target_os = "linux")]
pub mod fork;
#[cfg(target_os = "linux")]
pub mod futex;
#[cfg_attr(not(target_os = "linux"), path = "threads/host.rs")]
pub mod host;
#[cfg(not(target_os = "linux"))]
#[path = "threads/input.rs"]
mod input;
#[cfg_attr(not(target_os = "linux"), path = "threads/journal.rs")]
pub mod journal;
#[cfg(target_os = "linux")]
pub mod latency_limit;
#[cfg_attr(not(target_os = "linux"), path = "threads/launch.rs")]
pub mod launch;
pub mod load;
pub mod mechanism;
#[cfg(target_os = "linux")]
mod no_task;
pub mod order;
pub mod part;
pub mod primitives;
#[cfg_attr(not(target_os = "linux"), path = "threads/proof.rs")]
pub mod proof;
pub mod role;
#[cfg_attr(not(target_os = "linux"), path = "threads/run_dir.rs")]
pub mod run_dir;
#[cfg(target_os = "linux")]
mod running;
#[cfg_attr(not(target_os = "linux"), path = "threads/scheduler.rs")]
pub mod scheduler;
#[cfg(test)]
mod scripted;
#[cfg(target_os = "linux")]
mod shares;
pub mod side;
pub mod site;
#[cfg(target_os = "macos")]
pub mod sync_wait_on_address;
/// What only the system can be asked of a thread, in one file for each.
#[cfg_attr(target_os = "linux", path = "task/linux.rs")]
#[cfg_attr(target_os = "macos", path = "task/macos.rs")]
#[cfg_attr(windows, path = "task/windows.rs")]
pub mod task;
#[cfg(target_os = "linux")]
pub mod trace;
#[cfg(target_os = "linux")]
pub mod tracer;
pub mod usage;
#[cfg(windows)]
pub mod wait_on_address;
mod watchdog;
pub mod watched_word;
