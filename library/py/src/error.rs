// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions.

use doorbell::channel::broadcast::JoinError;
use doorbell::channel::{AttachError, GatherError, RecvError, SendError};
use doorbell::mapping::MapError;
use doorbell::{PeerViolation as Violation, WaitError, rendezvous};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(doorbell, Error, PyException, "What this package raises, beside OSError and ValueError.");
create_exception!(
    doorbell,
    PeerGone,
    Error,
    "A peer closed its end or died; what it had rung before was delivered first."
);
create_exception!(doorbell, PeerViolation, Error, "The peer broke the protocol: it is faulty or hostile.");
create_exception!(
    doorbell,
    RendezvousError,
    Error,
    "A rendezvous failed, or an end of a lane could not be had."
);
create_exception!(
    doorbell,
    Untrusted,
    RendezvousError,
    "A trusted end, which lends out memory as it lies there, on a segment that somebody untrusted shares."
);
create_exception!(
    doorbell,
    Lent,
    RendezvousError,
    "The peer is not trusted, and memory of the segment is lent out by a channel of trusted ends."
);
create_exception!(
    doorbell,
    HungUp,
    RendezvousError,
    "The segment was joined, and this process has hung up on its maker since, or was forked from \
     the one that joined."
);

create_exception!(
    doorbell,
    Closed,
    Error,
    "The other end of the lane was left; what had been sent was received first, and another may attach."
);

create_exception!(
    doorbell,
    Dropped,
    Error,
    "This subscriber of a broadcast was too slow, and the publisher does not wait for it."
);

pub(crate) fn of_attach(error: AttachError) -> PyErr {
    let message = error.to_string();
    match error {
        AttachError::Violation(_) => PeerViolation::new_err(message),
        AttachError::Untrusted => Untrusted::new_err(message),
        AttachError::HungUp => HungUp::new_err(message),
        _ => RendezvousError::new_err(message),
    }
}

pub(crate) fn of_send(error: SendError) -> PyErr {
    let message = error.to_string();
    match error {
        SendError::Closed => Closed::new_err(message),
        SendError::PeerGone(_) => PeerGone::new_err(message),
        SendError::Violation(_) => PeerViolation::new_err(message),
        SendError::TooLong { .. } => PyValueError::new_err(message),
        SendError::Wait(error) => of_wait(error),
        _ => Error::new_err(message),
    }
}

pub(crate) fn of_receive(error: RecvError) -> PyErr {
    let message = error.to_string();
    match error {
        RecvError::Closed => Closed::new_err(message),
        RecvError::PeerGone(_) => PeerGone::new_err(message),
        RecvError::Violation(_) => PeerViolation::new_err(message),
        RecvError::Dropped => Dropped::new_err(message),
        RecvError::Wait(error) => of_wait(error),
        _ => Error::new_err(message),
    }
}

/// With the lane's number in `lane`.
pub(crate) fn of_gather(py: Python<'_>, error: GatherError) -> PyErr {
    let GatherError { lane, error } = error;
    let raised = of_receive(error);
    match lane.map(|lane| raised.value(py).setattr("lane", lane)) {
        Some(Err(failed)) => failed,
        _ => raised,
    }
}

pub(crate) fn of_join(error: JoinError) -> PyErr {
    let message = error.to_string();
    match error {
        JoinError::Attach(error) => of_attach(error),
        JoinError::Meet(error) => of_rendezvous(error),
        JoinError::Violation(_) => PeerViolation::new_err(message),
        _ => RendezvousError::new_err(message),
    }
}

fn os(errno: rustix::io::Errno, message: String) -> PyErr {
    // OSError's constructor chooses the subclass by the number.
    PyOSError::new_err((errno.raw_os_error(), message))
}

pub(crate) fn of_wait(error: WaitError) -> PyErr {
    let message = error.to_string();
    match error {
        WaitError::PeerGone(_) => PeerGone::new_err(message),
        WaitError::HungUp => HungUp::new_err(message),
        WaitError::Os { errno, .. } | WaitError::Unsupported { errno, .. } => os(errno, message),
        _ => Error::new_err(message),
    }
}

pub(crate) fn of_map(error: MapError) -> PyErr {
    of_rendezvous(error.into())
}

pub(crate) fn of_violation(violation: Violation) -> PyErr {
    PeerViolation::new_err(violation.to_string())
}

pub(crate) fn of_rendezvous(error: rendezvous::RendezvousError) -> PyErr {
    let message = error.to_string();
    match error {
        rendezvous::RendezvousError::Os { errno, .. }
        | rendezvous::RendezvousError::Map(MapError::Os { errno, .. }) => os(errno, message),
        rendezvous::RendezvousError::Violation(_) => PeerViolation::new_err(message),
        rendezvous::RendezvousError::Lent => Lent::new_err(message),
        rendezvous::RendezvousError::HungUp => HungUp::new_err(message),
        rendezvous::RendezvousError::Forked => Error::new_err(message),
        _ => RendezvousError::new_err(message),
    }
}

/// The error of an end that is used after it was closed.
pub(crate) fn closed() -> PyErr {
    PyValueError::new_err("this end of the lane was closed")
}
