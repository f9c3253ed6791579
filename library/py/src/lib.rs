// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python package `doorbell`: what of it is Rust. Documented for users in
//! `python/doorbell/_native.pyi`.
//!
//! Every call that may block lets go of the interpreter's lock and hears signals; see `blocking`.

mod bell;
mod blocking;
mod buffer;
mod changes;
mod ends;
mod error;
mod gather;
mod gpu;
mod handle;
mod lending;
mod locked;
mod place;
mod publisher;
mod receiver;
mod rendezvous;
mod select;
mod sender;
mod service;
mod steps;
mod subscriber;
mod users;

use pyo3::prelude::*;

/// What the package `doorbell` is made of; import that.
///
/// It needs no interpreter's lock: every class is frozen, so that the compiler has seen that its
/// parts may be used by several threads at once; ends lie in handles that let one thread at a time
/// through (`handle`); what is lent out as a buffer is counted under a lock (`place`). What Python
/// hands over is copied from a buffer that it exports, and, as with every extension, whoever writes
/// there meanwhile sends a mixture.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::bell::{Bell, BellFile, wait_any};
    #[pymodule_export]
    use super::ends::{_pair, Ends, Unopened};
    #[pymodule_export]
    use super::error::{
        Closed, Dropped, Error, HungUp, Lent, PeerGone, PeerViolation, RendezvousError, Untrusted,
    };
    #[pymodule_export]
    use super::gather::Gather;
    #[pymodule_export]
    use super::gpu::{GpuEvents, GpuWaiter};
    #[pymodule_export]
    use super::publisher::Publisher;
    #[pymodule_export]
    use super::receiver::{Receiver, View};
    #[pymodule_export]
    use super::rendezvous::{Connection, Host, Peer, Pending, Segment, inherit, join};
    #[pymodule_export]
    use super::select::Select;
    #[pymodule_export]
    use super::sender::{Sender, Slot};
    #[pymodule_export]
    use super::service::{_connect, Service, services};
    #[pymodule_export]
    use super::subscriber::Subscriber;
    use pyo3::prelude::*;

    /// What an error concerns of a gather's lanes: none, if it does not say otherwise.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.getattr("Error")?.setattr("lane", module.py().None())
    }
}
