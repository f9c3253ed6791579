// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python package `doorbell`: what of it is Rust. Documented for users in `python/doorbell/_native.pyi`.
//!
//! Every call that may block lets go of the interpreter's lock and hears signals; see [`blocking`].

mod bell;
mod blocking;
mod channel;
mod error;
mod meeting;

use pyo3::prelude::*;

/// What the package `doorbell` is made of; import that.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::bell::{Bell, BellFile, wait_any};
    #[pymodule_export]
    use super::channel::{Receiver, Sender, View};
    #[pymodule_export]
    use super::error::{Closed, Error, HungUp, Lent, MeetError, PeerGone, PeerViolation, Untrusted};
    #[pymodule_export]
    use super::meeting::{Board, Host, Owner, Peer, Pending, Session, inherit, join, join_named};
}
