// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one configuration: sides as processes or threads, rendezvous,
//! watchdog, counters, traced events.
//!
//! ```text
//! doorbell ──exec──► host ──fork──► initiator / notifier
//!                         └─fork──► responder / waiter
//! ```
//!
//! The host is a fresh process with one thread: it opens the links, forks the sides, which inherit
//! everything, and sleeps until they are done or the time is up; once a second it gets up for some
//! 10 µs to see that they still move.
//!
//! Where there is no fork the sides are threads of the host. What then stands in the place of a
//! file is below `threads`.
//!
//! What is measured is not known here. It comes as families ([`family::Family`]), whose members
//! implement the traits of [`mechanism`], [`fanout::fan`] or [`entry::Links`]; the loops of
//! [`role`] are compiled once for each.

// Empty elsewhere, where `doorbell-lab` says in one error what to build instead.
#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

pub mod anatomy;
mod any_path;
pub mod arena;
/// The barest sleep on a word that the system has: what every comparison is made in multiples of.
pub mod bare {
    pub use crate::futex::{FutexNotifier as Notifier, FutexWaiter as Waiter};
    pub type Link = crate::futex::FutexLink;
}
pub mod bench;
#[cfg(any(test, feature = "sample"))]
pub mod conformance;
pub mod control;
pub mod counters;
pub mod deadline;
pub mod entry;
pub mod environment;
#[cfg(any(test, feature = "sample"))]
pub mod fake_side;
pub mod family;
pub mod fanout;
pub mod fork;
pub mod futex;
pub mod host;
pub mod in_turn;
pub mod journal;
pub mod latency_limit;
pub mod launch;
pub mod load;
pub mod mechanism;
mod no_task;
mod one_by_one;
mod opened;
pub mod order;
pub mod primitives;
pub mod proof;
pub mod role;
pub mod roles;
pub mod run_dir;
mod running;
pub mod scheduler;
#[cfg(test)]
mod scripted;
mod shares;
pub mod side;
pub mod site;
pub mod task;
pub mod trace;
pub mod tracer;
pub mod usage;
mod watchdog;
pub mod watched_word;
