// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one cell: sides as processes or threads, rendezvous, watchdog, counters.
//!
//! ```text
//! doorbell ──exec──► host ──fork──► initiator / notifier
//!                         └─fork──► responder / waiter
//! ```
//!
//! The host is a fresh process with one thread: it opens the lines, forks the sides, which inherit everything, and
//! sleeps until they are done or the time is up; once a second it gets up for some 10 µs to see that they still move.

pub mod anatomy;
pub mod arena;
pub mod control;
pub mod counters;
pub mod fanout;
pub mod floors;
pub mod host;
pub mod journal;
pub mod latency_limit;
pub mod launch;
pub mod load;
pub mod proof;
pub mod role;
pub mod run_dir;
pub mod side;
#[cfg(test)]
pub(crate) mod stand_in;
pub mod surroundings;
pub mod tracer;
mod watchdog;

pub use doorbell_results::cell;
