// SPDX-License-Identifier: MIT OR Apache-2.0
//! A name is a service, to which many clients come, which go and come again.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("doorbell-doc-{}", std::process::id()));
//! # let name = folder.with_extension("sock");
//! let mut service = doorbell::listen(&name)?;
//! // In other processes, as a rule.
//! let client = std::thread::spawn(move || {
//!     let mut service = doorbell::connect(&name).unwrap();
//!     service.send(b"how late is it?").unwrap();
//!     service.recv().unwrap()
//! });
//! let (who, question) = service.recv()?;
//! assert_eq!(question, b"how late is it?");
//! service.send(who, b"late")?;
//! assert_eq!(client.join().unwrap(), b"late");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | wanted | look at |
//! |---|---|
//! | requests, each with its reply | [`Caller`], [`Service::recv_request`] |
//! | whoever comes first is the service | [`listen_or_connect`] |
//! | a channel between two clients, or an end for another process | [`pair()`], [`Ends`] |
//!
//! [`inspect`] and `doorbell list-services` show the services there
//! are, their clients, and what lies in their rings.
//!
//! Each client has a segment of its own: whatever it writes, or however it ends, reaches no other.
//! Clients are not trusted; by default they are processes of the service's user, or root's.

mod calls;
mod duplex;
mod ends;
mod inspect;
mod listen_or_connect;
mod name;
mod pair;
mod refusals;

pub use crate::aio::AsyncIo;
pub use crate::folder::{Folder, FolderState};
pub use calls::{Asked, CallError, Caller, Request};
pub use duplex::{Duplex, connect, connect_by, connect_by_timeout, connect_timeout};
pub use ends::{Ends, NotSent, Unopened};
pub use inspect::{ClientSeen, Found, Occupancy, Served, inspect};
pub use listen_or_connect::{Opened, listen_or_connect};
#[cfg(feature = "tokio")]
pub(crate) use name::paths;
pub use name::{VARIABLE, folders, names};
pub use pair::pair;

use crate::channel::{Lanes, Receiver, RecvError, SendError, Sender};
use crate::deadline::Deadline;
use crate::descriptor;
use crate::error::WaitError;
use crate::peer::{PeerId, Untrusted};
use crate::process::Process;
use crate::rendezvous::socket::{Host, MOST_CALLERS};
use crate::rendezvous::{Connection, DESCRIPTORS, Offer, Reason, RendezvousError, Segment, Step, Users};
use crate::select::{File, Parts, Source};
use doorbell_core::violation::PeerViolation;
use duplex::{ANSWERS, REQUESTS};
use refusals::Refusals;
use rustix::event::{PollFd, PollFlags, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How a service listens.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The bytes of the ring in either direction, for each client: 64 KiB.
    pub capacity: u64,
    /// Whose processes may be clients: this user's and root's.
    pub users: Users,
    /// The rights of the socket file, if they are not to follow from `users`.
    pub mode: Option<u32>,
    /// How many clients at most are there at once: 1024. Others are turned away.
    pub most_clients: usize,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { capacity: 64 << 10, users: Users::Same, mode: None, most_clients: 1024 }
    }
}

/// Listens at the service `name` of this user. A name with a slash in it is a path.
///
/// Names are sockets in the first of the [folders] that is this user's alone:
/// `/run/user/UID/doorbell`, which there is while the user is logged in, else `/tmp/doorbell-UID`,
/// else, where another user has made that, `~/.local/state/doorbell/services/BOOT`.
/// [`Service::path`] says which it is; clients look in all of them.
/// [`$DOORBELL_RUNTIME_DIR`](VARIABLE) names another.
///
/// # Errors
/// [`RendezvousError::Owned`] if another process serves the name; [`RendezvousError::NoFolder`];
/// [`RendezvousError::Os`].
pub fn listen(name: impl AsRef<Path>) -> Result<Service, RendezvousError> {
    ListenOptions::default().at(name)
}

impl ListenOptions {
    /// Listens at the service `name`, as [`listen`] does.
    ///
    /// # Errors
    /// As [`listen`]; [`RendezvousError::CannotLayOut`] if no ring can be that large.
    pub fn at(self, name: impl AsRef<Path>) -> Result<Service, RendezvousError> {
        let capacity = self.capacity;
        let lanes = Lanes::new(2, 2, capacity).ok_or(RendezvousError::CannotLayOut { lanes: 2, capacity })?;
        let mode = self.mode.unwrap_or_else(|| self.users.mode());
        let name = name.as_ref();
        let path = name::path_to_listen_at(name)?;
        let label = inspect::label(&path);
        let host = Host::bind_for(&path, self.users, mode)?;
        name::check_first(name, &path)?;
        let os = |call| move |errno| RendezvousError::Os { call, errno };
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(descriptor::kept);
        let events = events.map_err(os("epoll_create1"))?;
        let (here, most) = (Arc::new(AtomicUsize::new(0)), self.most_clients);
        let refusals = Arc::new(Refusals::default());
        let make = {
            let here = Arc::clone(&here);
            move |offered| match here.load(Ordering::Relaxed) + offered >= most {
                true => Err(RendezvousError::Full { most }),
                false => Ok(Arc::new(Segment::in_file(&label, &Offer::of_lanes(lanes))?)),
            }
        };
        host.serve_by(make, {
            let refusals = Arc::clone(&refusals);
            move |error| refusals.add(error)
        });
        let service = Service {
            host,
            process: Process::current(),
            events,
            clients: Vec::new(),
            here,
            most,
            to_look_at: VecDeque::new(),
            next: 0,
            refusals,
            gone: 0,
            since_others: 0,
        };
        service.watch_callers()?;
        Ok(service)
    }
}

/// The mark of the host among the events; a client's is its place.
const DOOR: u64 = u64::MAX;

/// A client of a [`Service`]. Never reused, also if the same process comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(u64);

impl ClientId {
    /// Its number, in the order of coming, from 0 on.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.0)
    }
}

/// A name, and the clients that came to it.
///
/// Either one thread serves them all ([`recv`](Self::recv), [`send`](Self::send)), or each that
/// comes is handed out as a [`Duplex`] of its own ([`accept`](Self::accept)).
///
/// # What happens when …
///
/// **… a client goes, or dies?** What it had sent is received first. Then it is no more among the
/// [`clients`](Self::clients), and a `send` to it says [`SendError::Closed`].
///
/// **… a client says nothing, or does not take its answers?**
/// Nothing, for the others: `send` never waits.
///
/// **… a client lies?** It is dropped, and counted in [`turned_away`](Self::turned_away).
///
/// **… the service dies?** Clients are told ([`RecvError::PeerGone`]). The next service of the name
/// replaces it; [`connect_timeout`] waits for it.
///
/// **… the process forks?** The service stays the parent's, and loses
/// no client. In the child its calls say `Forked`.
///
/// **… nobody sends for a long time?** It costs nothing: a wake-up and a look are for clients that
/// sent something, however many did not.
#[derive(Debug)]
pub struct Service {
    host: Host,
    /// A forked child has a copy, and shares `events` with its parent.
    process: Process,
    /// Readable when the host or one of the clients is.
    events: OwnedFd,
    clients: Vec<Option<Client>>,
    /// How many of them there are.
    here: Arc<AtomicUsize>,
    /// How many there may be.
    most: usize,
    /// Places of clients that may have sent something, in turn. All others have been armed.
    to_look_at: VecDeque<usize>,
    next: u64,
    refusals: Arc<Refusals>,
    gone: u64,
    /// Messages received since callers and events were last asked for.
    since_others: u32,
}

/// So many messages are received before callers, and clients that had nothing, get their turn.
const MOST_BEFORE_OTHERS: u32 = 64;

/// So many steps of callers are a turn: each makes, maps or gives up memory,
/// which takes as long as many messages. Who comes and goes without end
/// takes no more of the service than that beside each look at its clients.
const STEPS_OF_CALLERS: u32 = 4;

#[derive(Debug)]
struct Client {
    id: ClientId,
    peer: PeerId,
    sender: Sender<Untrusted>,
    receiver: Receiver<Untrusted>,
    ends: Ends,
    to_be_looked_at: bool,
}

impl Service {
    /// The path at which it listens.
    pub fn path(&self) -> &Path {
        self.host.path()
    }

    /// Waits for the next client, which is this caller's alone:
    /// [`recv`](Self::recv) does not hear of it.
    ///
    /// # Errors
    /// [`RendezvousError::Os`]. What is wrong with a caller turns it away, and no other.
    pub fn accept(&mut self) -> Result<Duplex, RendezvousError> {
        loop {
            if let Some(client) = self.accept_deadline(None)? {
                return Ok(client);
            }
        }
    }

    /// As [`accept`](Self::accept), but waits no longer than `timeout`. `None` if nobody came.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_timeout(&mut self, timeout: Duration) -> Result<Option<Duplex>, RendezvousError> {
        self.accept_deadline(Some(Deadline::after(timeout)))
    }

    /// As [`accept`](Self::accept), but waits no longer than until
    /// `deadline`, if there is one. `None` if nobody came.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_deadline(&mut self, deadline: Option<Deadline>) -> Result<Option<Duplex>, RendezvousError> {
        let mut steps = 0;
        loop {
            let more = match self.step()? {
                Step::Met(connection) => match Duplex::over(&connection, ANSWERS, REQUESTS) {
                    Ok(duplex) => return Ok(Some(duplex)),
                    Err(error) => {
                        self.refusals.add(&error);
                        true
                    }
                },
                Step::Offered => true,
                Step::Idle { more } => more,
            };
            steps += 1;
            if deadline.is_some_and(|deadline| deadline.passed()) && (!more || steps >= MOST_CALLERS) {
                if more {
                    self.host.tell_again()?;
                }
                return Ok(None);
            }
            if !more {
                self.host.wait(deadline)?;
            }
        }
    }

    /// A file that is readable when somebody wants to be
    /// [accepted](Self::accept_timeout), once that has said that there was nobody:
    /// for a runtime that awaits nothing but clients. ([`AsFd`] tells of the
    /// messages of those whom [`recv`](Self::recv) serves too.) Never read from it.
    ///
    /// Here in smol's reactor:
    ///
    /// ```
    /// use async_io::{Async, block_on};
    /// use doorbell::service::{Duplex, Service};
    /// use std::time::Duration;
    ///
    /// async fn accept(service: &mut Service) -> Result<Duplex, Box<dyn std::error::Error>> {
    ///     let callers = Async::new(service.callers().try_clone_to_owned()?)?;
    ///     loop {
    ///         if let Some(client) = service.accept_timeout(Duration::ZERO)? {
    ///             return Ok(client);
    ///         }
    ///         callers.readable().await?;
    ///     }
    /// }
    ///
    /// # let name = std::env::temp_dir().join(format!("doorbell-smol-{}.sock", std::process::id()));
    /// let mut service = doorbell::listen(&name)?;
    /// let client = std::thread::spawn(move || doorbell::connect(name).unwrap().send(b"hello"));
    /// assert_eq!(block_on(accept(&mut service))?.recv()?, b"hello");
    /// client.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn callers(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }

    /// The next step of callers, without waiting. What is wrong with
    /// one turns it away, and ends a step.
    fn step(&mut self) -> Result<Step<Untrusted>, RendezvousError> {
        match self.host.step() {
            // The service's own fault, of which the next call would tell again.
            Err(
                error @ (RendezvousError::Forked | RendezvousError::HungUp | RendezvousError::TooMany { .. }),
            ) => Err(error),
            Err(RendezvousError::Os { call: call @ ("epoll_wait" | "epoll_ctl"), errno }) => {
                Err(RendezvousError::Os { call, errno })
            }
            // About a caller that is gone now. There may be a flood of them, and clients to be served.
            Err(error) => {
                self.refusals.add(&error);
                Ok(Step::Offered)
            }
            result => result,
        }
    }

    /// The next message of any client, and whose it is. Waits while there is none.
    ///
    /// # Errors
    /// [`ServiceError`]. What is wrong with a client ends that client, and is no error here.
    pub fn recv(&mut self) -> Result<(ClientId, Vec<u8>), ServiceError> {
        let mut message = Vec::new();
        loop {
            if let Some(client) = self.recv_into(&mut message, None)? {
                return Ok((client, message));
            }
        }
    }

    /// As [`recv`](Self::recv), but waits no longer than `timeout`. `None` if nothing came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<(ClientId, Vec<u8>)>, ServiceError> {
        let mut message = Vec::new();
        let client = self.recv_into(&mut message, Some(Deadline::after(timeout)))?;
        Ok(client.map(|client| (client, message)))
    }

    /// As [`recv`](Self::recv), but does not wait.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn try_recv(&mut self) -> Result<Option<(ClientId, Vec<u8>)>, ServiceError> {
        self.recv_timeout(Duration::ZERO)
    }

    /// Receives into memory that is used again and again. Waits until `deadline`, if there is one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_into(
        &mut self,
        message: &mut Vec<u8>,
        deadline: Option<Deadline>,
    ) -> Result<Option<ClientId>, ServiceError> {
        if !self.is_ours_at_once() {
            return Err(WaitError::Forked.into());
        }
        loop {
            // Clients that always have something would keep those out who come, or have been armed.
            if self.since_others == MOST_BEFORE_OTHERS {
                self.take_in_callers()?;
                self.wait(Some(Deadline::after(Duration::ZERO)))?;
            }
            while let Some(place) = self.to_look_at.pop_front() {
                if let Some(client) = self.look_at(place, message)? {
                    self.since_others += 1;
                    return Ok(Some(client));
                }
            }
            let more = self.take_in_callers()?;
            if !self.to_look_at.is_empty() {
                continue;
            }
            let is_over = || deadline.is_some_and(|deadline| deadline.passed());
            let callers = self.wait(if more { Some(Deadline::after(Duration::ZERO)) } else { deadline })?;
            if self.to_look_at.is_empty() && is_over() {
                if callers {
                    // Who waits for edges of our file has heard of them already.
                    let _ = epoll::delete(&self.events, &self.host);
                    self.watch_callers()?;
                }
                return Ok(None);
            }
        }
    }

    fn watch_callers(&self) -> Result<(), RendezvousError> {
        epoll::add(&self.events, &self.host, epoll::EventData::new_u64(DOOR), epoll::EventFlags::IN)
            .map_err(|errno| RendezvousError::Os { call: "epoll_ctl", errno })
    }

    /// A turn of those who wait at the door. Says whether there may be more of them.
    fn take_in_callers(&mut self) -> Result<bool, RendezvousError> {
        for _ in 0..STEPS_OF_CALLERS {
            match self.step()? {
                Step::Met(connection) => {
                    if let Err(error) = self.add(&connection) {
                        self.refusals.add(&error);
                    }
                }
                Step::Offered => {}
                Step::Idle { more } => return Ok(more),
            }
        }
        Ok(true)
    }

    fn add(&mut self, connection: &Connection) -> Result<(), RendezvousError> {
        let mut client = Client {
            id: ClientId(self.next),
            peer: connection.peer().id(),
            receiver: Receiver::attach(connection, REQUESTS)?,
            sender: Sender::attach(connection, ANSWERS)?,
            ends: Ends::over(Arc::clone(connection.hold())),
            to_be_looked_at: true,
        };
        let place = self.clients.iter().position(Option::is_none).unwrap_or(self.clients.len());
        let file = client.receiver.file().map_err(|error| match error {
            WaitError::Os { call, errno } => RendezvousError::Os { call, errno },
            // The one who has the memory too took all places.
            _ => RendezvousError::Violation(PeerViolation::BadValue { field: "waiter slot", value: 0 }),
        })?;
        let data = epoll::EventData::new_u64(place as u64);
        epoll::add(&self.events, file, data, epoll::EventFlags::IN)
            .map_err(|errno| RendezvousError::Os { call: "epoll_ctl", errno })?;
        self.next += 1;
        if place == self.clients.len() {
            self.clients.push(None);
        }
        self.clients[place] = Some(client);
        self.here.fetch_add(1, Ordering::Relaxed);
        self.to_look_at.push_back(place);
        Ok(())
    }

    /// Receives from the client at `place`, which has its next turn
    /// after the others. If it has nothing, it is armed.
    fn look_at(&mut self, place: usize, to: &mut Vec<u8>) -> Result<Option<ClientId>, ServiceError> {
        let Some(client) = self.clients.get_mut(place).and_then(Option::as_mut) else { return Ok(None) };
        client.to_be_looked_at = false;
        let came = match client.receiver.try_recv() {
            Ok(Some(message)) => message.try_take_into(to).map(|()| true),
            Ok(None) => client.receiver.listen().map(|_| false).map_err(RecvError::from),
            Err(error) => Err(error),
        };
        match came {
            Ok(true) => {
                client.to_be_looked_at = true;
                self.to_look_at.push_back(place);
                Ok(Some(client.id))
            }
            // If something came after all, its file says so.
            Ok(false) => Ok(None),
            // We are a child whose page no kernel emptied (`generation`).
            Err(RecvError::Forked) => Err(WaitError::Forked.into()),
            Err(error) => {
                if let RecvError::Violation(violation) = error {
                    self.refusals.add(&violation.into());
                } else if matches!(error, RecvError::NoMemory { .. }) {
                    self.refusals.add(&RendezvousError::Os { call: "malloc", errno: Errno::NOMEM });
                }
                self.remove(place);
                Ok(None)
            }
        }
    }

    /// As `Process::is_current_generation`: for every message.
    fn is_ours_at_once(&self) -> bool {
        self.process.is_current_generation()
    }

    fn remove(&mut self, place: usize) {
        let Some(mut client) = self.clients.get_mut(place).and_then(Option::take) else { return };
        self.gone += 1;
        self.here.fetch_sub(1, Ordering::Relaxed);
        if let Ok(file) = client.receiver.file() {
            // A forked child may have a copy of the file, which would stay among the events.
            let _ = epoll::delete(&self.events, file);
        }
    }

    /// Sleeps until the host or a client has something. Says whether the host has.
    fn wait(&mut self, deadline: Option<Deadline>) -> Result<bool, ServiceError> {
        self.since_others = 0;
        let mut events = Vec::with_capacity(64);
        // Callers that are silent cost nothing but their place; they
        // are turned away when somebody needs it.
        let left = deadline.map(|deadline| deadline.remaining());
        match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut events), left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(WaitError::Os { call: "epoll_wait", errno }.into()),
        }
        let callers = events.iter().any(|event| event.data.u64() == DOOR);
        for event in &events {
            let place = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if let Some(client) = self.clients.get_mut(place).and_then(Option::as_mut)
                && !std::mem::replace(&mut client.to_be_looked_at, true)
            {
                self.to_look_at.push_back(place);
            }
        }
        Ok(callers)
    }

    /// Sends `message` to `client`, if there is room: one that does
    /// not take its answers keeps nobody else waiting.
    ///
    /// # Errors
    /// [`SendError::Full`]; [`SendError::Forked`]; [`SendError::Closed`] if the client is not there
    /// any more; else as [`Sender::try_send`].
    pub fn send(&mut self, client: ClientId, message: &[u8]) -> Result<(), SendError> {
        if !self.is_ours_at_once() {
            return Err(SendError::Forked);
        }
        self.sender(client).ok_or(SendError::Closed)?.try_send(message)
    }

    /// As [`send`](Self::send), but waits up to `timeout` while there
    /// is no room: others are not served meanwhile.
    ///
    /// # Errors
    /// [`SendError::TimedOut`]; [`SendError::PeerGone`] if it goes
    /// meanwhile; else as [`send`](Self::send).
    pub fn send_timeout(
        &mut self,
        client: ClientId,
        message: &[u8],
        timeout: Duration,
    ) -> Result<(), SendError> {
        if !self.is_ours_at_once() {
            return Err(SendError::Forked);
        }
        self.sender(client).ok_or(SendError::Closed)?.send_timeout(message, timeout)
    }

    /// The sending end to `client`, for whoever wants to write in
    /// place, or awaits its room. `None` if it has gone.
    pub fn sender(&mut self, client: ClientId) -> Option<&mut Sender<Untrusted>> {
        self.clients.iter_mut().flatten().find(|there| there.id == client).map(|there| &mut there.sender)
    }

    /// For ends that are sent to `client`, and those it sends. `None` if it has gone.
    pub fn ends(&self, client: ClientId) -> Option<&Ends> {
        self.clients.iter().flatten().find(|there| there.id == client).map(|there| &there.ends)
    }

    /// Hangs up on `client`. Says whether it was there; in a forked child none is.
    pub fn disconnect(&mut self, client: ClientId) -> bool {
        if !self.process.is_current() {
            return false;
        }
        let place =
            self.clients.iter().position(|there| there.as_ref().is_some_and(|there| there.id == client));
        place.inspect(|place| self.remove(*place)).is_some()
    }

    /// The clients that are there, and their processes. One that has gone may be among them until
    /// its last message was received.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, PeerId)> {
        self.clients.iter().flatten().map(|client| (client.id, client.peer))
    }

    /// How many clients there can be at once, as far as this process knows now: by
    /// [`ListenOptions::most_clients`], and by the descriptors that it may still open (`ulimit
    /// -n`), of which each takes 6. For one who starts a service, and would rather say so
    /// then than turn clients away later.
    ///
    /// ```
    /// # let name = std::env::temp_dir().join(format!("doorbell-most-{}.sock", std::process::id()));
    /// let service = doorbell::listen(&name)?;
    /// if service.most_clients() < 1024 {
    ///     eprintln!("at most {} clients: raise `ulimit -n`", service.most_clients());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn most_clients(&self) -> usize {
        let may_be_open = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // The folder that is read is one of them.
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count().saturating_sub(1));
        let left = usize::try_from(may_be_open).unwrap_or(usize::MAX).saturating_sub(open);
        let here = self.here.load(Ordering::Relaxed);
        self.most.min(here.saturating_add(left / DESCRIPTORS))
    }

    /// How many callers and clients were turned away: silent ones, other users', those that broke
    /// the protocol, those for whom there was no room.
    pub fn turned_away(&self) -> u64 {
        self.refusals.count()
    }

    /// Why the last of them were turned away, at most 16, the last one last. Those who could hear
    /// it were told the same; and `doorbell list-services` shows it.
    pub fn refusals(&self) -> Vec<Reason> {
        self.refusals.last()
    }

    /// How many clients are not among [`clients`](Self::clients) any more: those that went, and
    /// those that were hung up on. Who waits for room in an answer's ring looks whether it has
    /// changed: nobody else wakes it.
    pub fn gone(&self) -> u64 {
        self.gone
    }
}

impl Source for Service {
    fn look(&mut self) -> bool {
        // That it is another process's is told by `try_recv`.
        !self.is_ours_at_once() || !self.to_look_at.is_empty() || File::readable(&self.events).look()
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        parts.files.push(PollFd::new(&self.events, PollFlags::IN));
    }
}

impl AsFd for Service {
    /// Readable when there may be something for [`try_recv`](Self::try_recv),
    /// once that has said that there was nothing.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Why a service cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceError {
    /// Callers cannot be met.
    Rendezvous(RendezvousError),
    /// Waiting failed.
    Wait(WaitError),
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rendezvous(error) => error.fmt(f),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServiceError {}

impl From<RendezvousError> for ServiceError {
    fn from(error: RendezvousError) -> Self {
        Self::Rendezvous(error)
    }
}

impl From<WaitError> for ServiceError {
    fn from(error: WaitError) -> Self {
        Self::Wait(error)
    }
}
