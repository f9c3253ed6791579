// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels between threads and processes: order, back-pressure, departures, deaths, lies.
//!
//! The other process is this test program again, started with a role; see `other`.

#[path = "../common/alone.rs"]
mod alone;
#[cfg(feature = "tokio")]
mod asynchronous;
mod broadcast;
#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
mod death;
#[cfg(feature = "fault_injection")]
mod every_write;
mod gather;
mod hostile;
mod leaving;
#[path = "../common/meet.rs"]
mod meet;
mod other;
mod processes;
mod select;
mod several;
mod smol;
mod threads;
#[cfg(feature = "zerocopy")]
mod typed;

/// Not a test: what the other process does.
#[test]
fn child() {
    other::play();
}
