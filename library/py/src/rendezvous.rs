// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments of bells, and how processes come to share them.

use crate::bell::Bell;
use crate::blocking::{self, Stretch};
use crate::buffer::Buffer;
use crate::error::{Error, of_rendezvous, of_violation};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::subscriber::Subscriber;
use crate::users::Users;
use doorbell::channel::{self, Lanes};
use doorbell::rendezvous::{self, Join, MemoryOptions, Offer, inherited, socket};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Bells of one mapping, with bytes beside them.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Segment(Arc<rendezvous::Segment>);

fn bell_of(segment: &rendezvous::Segment, index: u32) -> PyResult<Bell> {
    let bells = segment.mapping().plan().bells;
    let state = segment.state(index);
    let missing =
        || PyIndexError::new_err(format!("there is no bell {index}: the segment has {bells}, from 0 on"));
    Ok(Bell::at(state.ok_or_else(missing)?))
}

/// Lanes have bells and a payload of their own.
fn offer(bells: u32, payload: u64, lanes: u32, capacity: u64) -> PyResult<Offer> {
    if lanes == 0 {
        return Ok(Offer { bells, payload, ..Offer::default() });
    }
    let laid_out = Lanes::new(lanes, lanes, capacity);
    let too_large = || {
        PyValueError::new_err(format!(
            "{lanes} lanes of {capacity} bytes cannot be laid out; take fewer or smaller ones"
        ))
    };
    Ok(Offer::of_lanes(laid_out.ok_or_else(too_large)?))
}

impl Segment {
    pub(crate) fn shared(&self) -> Shared {
        Shared::Segment(Arc::clone(&self.0))
    }
}

#[pymethods]
impl Segment {
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python call")]
    #[new]
    #[pyo3(signature = (bells = 2, eventfds = 2, payload = 0, *, lanes = 0, lane_capacity = 65536, huge_pages = false, locked = false, populated = false, numa_node = None))]
    fn new(
        bells: u32,
        eventfds: u32,
        payload: u64,
        lanes: u32,
        lane_capacity: u64,
        huge_pages: bool,
        locked: bool,
        populated: bool,
        numa_node: Option<u32>,
    ) -> PyResult<Self> {
        let memory = MemoryOptions { huge_pages, locked, numa_node, populated };
        let offer = offer(bells, payload, lanes, lane_capacity)?;
        let offer = Offer { eventfds, memory, ..offer };
        Ok(Self(Arc::new(rendezvous::Segment::new(&offer).map_err(of_rendezvous)?)))
    }

    /// One for `lanes` senders and one receiver, each end of whichever process takes it.
    #[staticmethod]
    fn _to_be_adopted(lanes: u32, lane_capacity: u64) -> PyResult<Self> {
        let offer = offer(0, 0, lanes.max(1), lane_capacity)?;
        Ok(Self(Arc::new(rendezvous::Segment::to_be_adopted(&offer).map_err(of_rendezvous)?)))
    }

    fn bell(&self, index: u32) -> PyResult<Bell> {
        bell_of(&self.0, index)
    }

    fn sender(&self, lane: u32) -> PyResult<Sender> {
        Sender::of(channel::Sender::at(&self.0, lane))
    }

    fn receiver(&self, lane: u32) -> PyResult<Receiver> {
        Receiver::of(channel::Receiver::at(&self.0, lane))
    }

    /// Numbers of the memory's file and of the eventfds. They stay the segment's.
    fn _descriptors(&self) -> Vec<i32> {
        // SAFETY: who has them in Python is asked to follow the
        // protocol, as everybody who shares a segment.
        let all = unsafe { self.0.descriptors() };
        all.into_iter()
            .flat_map(|(memory, eventfds)| std::iter::once(memory).chain(eventfds))
            .map(|file| file.as_raw_fd())
            .collect()
    }

    /// The segment of descriptors that belong to it from now on.
    #[staticmethod]
    fn _adopt(descriptors: Vec<i32>) -> PyResult<Self> {
        let owned = |number: &i32| {
            // SAFETY: only asked.
            rustix::fs::fstat(unsafe { BorrowedFd::borrow_raw(*number) })
                .map_err(|errno| of_rendezvous(rendezvous::RendezvousError::Os { call: "fstat", errno }))?;
            // SAFETY: it is open, and the caller's to give.
            Ok(unsafe { OwnedFd::from_raw_fd(*number) })
        };
        let mut owned = descriptors.iter().map(owned).collect::<PyResult<Vec<_>>>()?.into_iter();
        let memory = owned.next().ok_or_else(|| PyValueError::new_err("there is no descriptor"))?;
        // SAFETY: as in `_descriptors`.
        let segment =
            unsafe { rendezvous::Segment::adopt(memory, owned.collect()) }.map_err(of_rendezvous)?;
        Ok(Self(Arc::new(segment)))
    }

    /// About how many messages lie in all lanes.
    fn _messages(&self) -> usize {
        let lanes = self.0.lanes().map_or(0, Lanes::lanes);
        (0..lanes).filter_map(|lane| self.0.messages(lane)).sum()
    }

    /// Has the ends of the senders, or of the receivers, that nobody has used left.
    fn _leave_unused(&self, senders: bool) {
        self.0.leave_unused(side(senders));
    }

    /// As `_leave_unused`, when the other end of the socket `file` is closed everywhere. Not if
    /// what this returns is dropped before.
    fn _leave_unused_after(&self, file: i32, senders: bool) -> PyResult<Unused> {
        let os =
            |errno| of_rendezvous(rendezvous::RendezvousError::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno });
        // SAFETY: the caller's descriptor, open during the call.
        let file = rustix::io::fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(file) }, 0).map_err(os)?;
        Ok(Unused { _watched: self.0.leave_unused_after(file, side(senders)).map_err(of_rendezvous)? })
    }

    #[getter]
    fn payload_size(&self) -> u64 {
        self.0.payload().len()
    }

    #[getter]
    fn refused(&self) -> Vec<String> {
        self.0.refused().iter().map(ToString::to_string).collect()
    }

    fn write(&self, py: Python<'_>, offset: u64, data: Buffer) -> PyResult<()> {
        let data = data.copy(py)?;
        let beyond = |_| beyond(&self.0, offset, data.len() as u64);
        self.0.payload().write(offset, &data).map_err(beyond)
    }

    fn read<'py>(&self, py: Python<'py>, offset: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        // Before there is memory for a copy: the length may be anything.
        let whole = self.0.payload();
        let part = whole.part(offset, length as u64).map_err(|_| beyond(&self.0, offset, length as u64))?;
        PyBytes::new_with(py, length, |copy| part.read(0, copy).map_err(of_violation))
    }
}

fn side(senders: bool) -> rendezvous::Ends {
    if senders { rendezvous::Ends::Senders } else { rendezvous::Ends::Receivers }
}

/// As long as Python keeps it, the socket is watched.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Unused {
    _watched: rendezvous::Unused,
}

fn beyond(segment: &rendezvous::Segment, offset: u64, length: u64) -> PyErr {
    let size = segment.payload().len();
    PyValueError::new_err(format!(
        "{length} bytes at {offset} reach beyond the {size} bytes beside the bells"
    ))
}

/// Who is at the other end.
#[pyclass(frozen, get_all, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Peer {
    number: u32,
    pid: u32,
    uid: u32,
    gid: u32,
}

/// Where a lane is: the peer need not be trusted over a connection,
/// and must be in memory that is shared with a child.
pub(crate) enum Shared {
    Connection(Arc<rendezvous::Connection>),
    Segment(Arc<rendezvous::Segment>),
}

/// One peer met, and the segment shared with it.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Connection {
    segment: Arc<rendezvous::Segment>,
    /// `None` once closed.
    met: Mutex<Option<Arc<rendezvous::Connection>>>,
    /// Held while a call takes a log from the connection.
    subscribing: Mutex<()>,
}

impl Connection {
    fn of(connection: rendezvous::Connection) -> Self {
        let (segment, met) = (Arc::clone(connection.segment()), Mutex::new(Some(Arc::new(connection))));
        Self { segment, met, subscribing: Mutex::new(()) }
    }

    fn met(&self) -> MutexGuard<'_, Option<Arc<rendezvous::Connection>>> {
        self.met.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn shared(&self) -> PyResult<Shared> {
        self.peers_connection().map(Shared::Connection)
    }

    /// The connection, which a thread may use while another closes it.
    pub(crate) fn peers_connection(&self) -> PyResult<Arc<rendezvous::Connection>> {
        self.met().clone().ok_or_else(closed)
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the connection is closed")
}

#[pymethods]
impl Connection {
    fn sender(&self, lane: u32) -> PyResult<Sender> {
        let met = self.met();
        Sender::of(channel::Sender::attach(met.as_ref().ok_or_else(closed)?, lane))
    }

    fn receiver(&self, lane: u32) -> PyResult<Receiver> {
        let met = self.met();
        Receiver::of(channel::Receiver::attach(met.as_ref().ok_or_else(closed)?, lane))
    }

    fn subscribe(&self, py: Python<'_>, lane: u32) -> PyResult<Subscriber> {
        let connection = self.peers_connection()?;
        // A signal handler that runs while this thread waits would wait for itself.
        let alone = self.subscribing.try_lock();
        if matches!(alone, Err(TryLockError::WouldBlock)) {
            let message = "this connection waits to be admitted already; subscribe again when it is";
            return Err(Error::new_err(message));
        }
        // It waits for the publisher to admit this process, with nothing locked that another thread waits for.
        blocking::meet(py, || Subscriber::of(channel::broadcast::Subscriber::join(&connection, lane)))
    }

    fn bell(&self, index: u32) -> PyResult<Bell> {
        bell_of(&self.segment, index)
    }

    #[getter]
    fn segment(&self) -> Segment {
        Segment(Arc::clone(&self.segment))
    }

    #[getter]
    fn peer(&self) -> Option<Peer> {
        let met = self.met();
        let peer = met.as_ref()?.peer();
        let id = peer.id();
        Some(Peer { number: id.number, pid: id.pid, uid: peer.uid(), gid: peer.gid() })
    }

    fn close(&self) {
        self.met().take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}

/// A path at which processes can meet this one.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Host {
    /// `None` once closed.
    host: Mutex<Option<Arc<socket::Host>>>,
}

impl Host {
    fn host(&self) -> PyResult<Arc<socket::Host>> {
        let host = self.host.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        host.clone().ok_or_else(|| PyValueError::new_err("the host is closed"))
    }
}

#[pymethods]
impl Host {
    #[new]
    #[pyo3(signature = (path, *, users = Users::default(), mode = None))]
    fn new(path: PathBuf, users: Users, mode: Option<u32>) -> PyResult<Self> {
        let mode = mode.unwrap_or_else(|| users.0.mode());
        let host = socket::Host::bind_for(path, users.0, mode).map_err(of_rendezvous)?;
        Ok(Self { host: Mutex::new(Some(Arc::new(host))) })
    }

    #[pyo3(signature = (segment, timeout = None))]
    fn accept(
        &self,
        py: Python<'_>,
        segment: &Segment,
        timeout: Option<f64>,
    ) -> PyResult<Option<Connection>> {
        let host = self.host()?;
        let connection = blocking::wait_on_files(py, timeout, |until| {
            // Before the file is looked at: whom an earlier call
            // heard, and left for this one, says nothing more.
            let mut met = host.try_accept(&segment.0).map_err(of_rendezvous)?;
            if met.is_none() && readable((*host).as_fd(), until)? {
                met = host.try_accept(&segment.0).map_err(of_rendezvous)?;
            }
            Ok(met.map_or(Stretch::Nothing, Stretch::Came))
        })?;
        Ok(connection.map(Connection::of))
    }

    fn fileno(&self) -> PyResult<i32> {
        Ok((*self.host()?).as_fd().as_raw_fd())
    }

    fn close(&self) {
        self.host.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}

/// Waits until `file` can be read. `false` if the deadline or a signal came first.
fn readable(file: BorrowedFd<'_>, until: Option<Instant>) -> PyResult<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }));
    match poll(&mut [PollFd::from_borrowed_fd(file, PollFlags::IN)], left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(of_rendezvous(rendezvous::RendezvousError::Os { call: "poll", errno })),
    }
}

/// Meets the host at a path.
#[pyfunction]
#[pyo3(signature = (path, *, most_memory = rendezvous::MOST_MEMORY, most_eventfds = rendezvous::MOST_EVENTFDS, patience = PATIENCE, users = Users::default()))]
pub(crate) fn join(
    py: Python<'_>,
    path: PathBuf,
    most_memory: u64,
    most_eventfds: u32,
    patience: f64,
    users: Users,
) -> PyResult<Connection> {
    let join = join_options(most_memory, most_eventfds, patience)?.host(users.0);
    blocking::meet(py, || join.at(path).map_err(of_rendezvous)).map(Connection::of)
}

/// How many seconds a busy host is waited for.
pub(crate) const PATIENCE: f64 = socket::JOIN_PATIENCE.as_secs() as f64;

/// How to join, but for whose process the host may be.
pub(crate) fn join_options(most_memory: u64, most_eventfds: u32, patience: f64) -> PyResult<Join> {
    let patience = Duration::try_from_secs_f64(patience)
        .map_err(|error| PyValueError::new_err(format!("a patience of {patience} seconds: {error}")))?;
    Ok(Join::default().most_memory(most_memory).most_eventfds(most_eventfds).patience(patience))
}

/// The child's part of a rendezvous with its parent.
#[pyfunction]
#[pyo3(signature = (*, most_memory = rendezvous::MOST_MEMORY, most_eventfds = rendezvous::MOST_EVENTFDS, patience = PATIENCE))]
pub(crate) fn inherit(
    py: Python<'_>,
    most_memory: u64,
    most_eventfds: u32,
    patience: f64,
) -> PyResult<Connection> {
    let join = join_options(most_memory, most_eventfds, patience)?;
    blocking::meet(py, || join.inherited().map_err(of_rendezvous)).map(Connection::of)
}

/// The parent's end of a rendezvous with a child, until the child has been started.
#[pyclass(frozen, module = "doorbell")]
#[derive(Debug)]
pub(crate) struct Pending(Mutex<Option<inherited::Pending>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Option<inherited::Pending>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn met_already() -> PyErr {
    PyValueError::new_err("the child was met already; prepare another rendezvous for another child")
}

#[pymethods]
impl Pending {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(inherited::prepare().map_err(of_rendezvous)?))))
    }

    fn fileno(&self) -> PyResult<i32> {
        self.lock().as_ref().map(|pending| pending.childs_end().as_raw_fd()).ok_or_else(met_already)
    }

    fn variable(&self, number: i32) -> PyResult<String> {
        let pending = self.lock();
        pending.as_ref().ok_or_else(met_already)?.variable(number).map_err(of_rendezvous)
    }

    fn meet(&self, py: Python<'_>, segment: &Segment, child: u32) -> PyResult<Connection> {
        let pending = self.lock().take().ok_or_else(met_already)?;
        let meet = || pending.meet(&segment.0, child).map_err(of_rendezvous);
        blocking::meet(py, meet).map(Connection::of)
    }
}
