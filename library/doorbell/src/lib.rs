// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between threads and processes, and what wakes whoever waits for them.
//!
//! ```
//! let (mut tx, mut rx) = doorbell::channel(64 << 10)?;
//! std::thread::spawn(move || tx.send(b"hello"));
//! assert_eq!(rx.recv()?.to_vec(), b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Between processes a name is a service: [`listen`] in one,
//! [`connect`] in others; see [`service`].
//!
//! Underneath lies a bell in shared memory: one side rings, the other wakes up, between threads or
//! processes, as cheaply as the machine allows, and no ring is ever lost.
//!
//! The [`Bell`] carries no data: it says that there is something to look at in shared memory.
//! [Channels](mod@channel) carry messages and ring by themselves.
//!
//! ```
//! use doorbell::Bell;
//!
//! let mut waiter = Bell::new()?;
//! let ringer = waiter.clone();
//! std::thread::spawn(move || ringer.ring());
//! waiter.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to find | look at |
//! |---|---|
//! | what happens when it is rung before the wait, twice, by a dead peer, through epoll, … | [`Bell`] |
//! | messages | [`mod@channel`] |
//! | work for whichever thread is free | [`mod@queue`], [`Notify`] |
//! | services and their clients | [`service`] |
//! | segments, lanes and other ways to share them | [`raw`] |
//! | bells and channels in tokio | `Async` (feature `tokio`) |
//! | several unlike ends at once | [`Select`] |
//! | kernels of a GPU | `gpu` (feature `gpu`) |
//! | ways of waiting, and which to choose | [`wait`] |
//! | bells between processes, and what is told of a peer's death | [`rendezvous`] |
//! | why no wake-up is lost | [`doorbell_core::wake`] |
//! | memory layout | [`doorbell_core::layout`] |
//! | counters of every process that uses the library | [`counters`] |
//!
//! Linux only: futexes, eventfds and memfds are Linux's.
#![allow(
    clippy::disallowed_methods,
    reason = "the library reads the kernel's files, and the profile of its own user"
)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "doorbell waits with Linux's futexes and eventfds and shares Linux's memfds; there is no port yet"
);

mod aio;
#[cfg(feature = "tokio")]
mod asynchronous;
mod atfork_lock;
mod attach_error;
mod bell;
mod bell_state;
mod calibrate;
mod calibration;
pub mod channel;
#[cfg(feature = "user_interrupts")]
mod connected;
pub mod counters;
mod cpu;
mod deadline;
mod descriptor;
mod directory;
mod environment;
mod errno;
mod error;
mod fd;
mod folder;
mod generation;
#[cfg(feature = "gpu")]
pub mod gpu;
mod holder;
pub mod mapping;
mod membarrier;
mod memory_options;
mod notify;
mod order;
mod origin;
pub mod peer;
mod process;
pub mod profile;
pub mod queue;
pub mod raw;
pub mod rendezvous;
pub mod select;
pub mod service;
mod shown_memory;
mod thread;
mod tokens;
mod user;
pub mod wait;
mod watch;
mod watchers;

#[cfg(feature = "tokio")]
pub use asynchronous::{
    Async, AsyncBell, AsyncDuplex, AsyncService, Awaitable, connect_async, connect_async_by,
};
pub use bell::{Bell, wait_any};
pub use calibrate::{calibration, measure as measure_sleep_cost, sleep_cost};
pub use calibration::{Calibration, CostSource};
pub use channel::pair as channel;
pub use deadline::Deadline;
pub use doorbell_core::violation::PeerViolation;
pub use doorbell_core::window::SleepCost;
pub use error::WaitError;
pub use fd::BellFd;
pub use memory_options::Refusal;
pub use notify::{Notify, NotifyWaiter};
pub use queue::queue;
pub use select::Select;
pub use service::{connect, connect_timeout, listen};
pub use tokens::Tokens;

/// The examples of the page for newcomers, and of the package, run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
