// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's part of a rendezvous over a socket.
//!
//! Nobody waits for a single caller: each is at its own step, and a step is taken when its packet
//! is there. Who says nothing costs one of [`MOST_CALLERS`] places, for at most [`HOST_PATIENCE`],
//! and loses it earlier when another needs it.

use super::packet::{
    ACCEPTED, HELLO, OFFER, VERDICT, expect, our_version, peer_at, receive, refuse, send_all, try_receive,
};
use super::path_lock::PathLock;
use super::patience::{HOST_PATIENCE, JOIN_PATIENCE, Patience};
use super::{Connection, Reason, RendezvousError, Segment, Side, Users, address, new_socket, os};
use crate::atfork_lock::ForkMutex;
use crate::deadline::Deadline;
use crate::descriptor;
use crate::origin::Hold;
use crate::peer::{Peer, Trust, Trusted, Untrusted};
use crate::process::Process;
use doorbell_core::layout::{MAJOR, REQUIRED_FEATURES};
use doorbell_core::violation::PeerViolation;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, chmod, fchmod, lstat, open, stat, unlink};
use rustix::io::{Errno, ioctl_fionbio, retry_on_intr};
use rustix::net::SocketFlags;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// So many callers can be between their arrival and their last packet. Of more the one that has
/// been silent longest is turned away.
pub const MOST_CALLERS: usize = 64;

/// How long the kernel's queue of those is whom [`Host`] has not taken in.
const QUEUE: i32 = 128;

/// A path at which processes can meet this one.
///
/// Callers are served side by side: one that connects and says nothing, or a flood of them, keeps
/// nobody else out. Who is none of the host's [`Users`] is hung up on before it is sent anything.
#[derive(Debug)]
pub struct Host<T: Trust = Untrusted> {
    door: Arc<Door>,
    trust: PhantomData<T>,
}

/// A bound path, and those who have come to it.
#[derive(Debug)]
pub(super) struct Door {
    listener: OwnedFd,
    path: PathBuf,
    /// Device and inode of the socket at the path.
    file: (u64, u64),
    /// A forked child has a copy, and its parent goes on.
    process: Process,
    users: Users,
    /// Readable when the listener or a caller is.
    events: OwnedFd,
    /// Who makes the memory for a caller of a service.
    maker: OnceLock<Maker>,
    callers: Mutex<Callers>,
}

/// What a service does for a caller.
struct Maker {
    /// Makes the memory for it, beside so many who have been offered some and not answered yet.
    make: Box<dyn Fn(usize) -> Result<Arc<Segment>, RendezvousError> + Send + Sync>,
    /// Counts one that was turned away.
    refused: Box<dyn Fn(&RendezvousError) + Send + Sync>,
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker(..)")
    }
}

/// The paths at which services of this process listen.
static DOORS: ForkMutex<Vec<Weak<Door>>> = ForkMutex::new(Vec::new());

#[derive(Debug, Default)]
struct Callers {
    here: Vec<Caller>,
    /// Given up to take in, and turn away, a caller for whom there is no descriptor left.
    spare: Option<OwnedFd>,
}

/// Somebody who has connected and is not met yet.
#[derive(Debug)]
struct Caller {
    socket: OwnedFd,
    peer: Peer,
    until: Instant,
    stage: Stage,
}

/// How far somebody has come.
#[derive(Debug)]
enum Stage {
    Silent,
    Greeted(Hello),
    Offered(Offered),
}

/// What a caller said first.
#[derive(Clone, Copy, Debug)]
struct Hello {
    version: u64,
    features: u64,
}

/// What somebody has been offered.
#[derive(Debug)]
struct Offered {
    segment: Arc<Segment>,
    under: Option<Arc<dyn Hold>>,
    holder: u32,
}

/// What a caller's packet, or its turn, calls for.
enum Due {
    Offer(Caller, Hello),
    Meet(Caller, Offered),
}

/// Which steps are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// All, but one segment is offered to all callers, one after another.
    OneAtATime,
    /// Nobody is met.
    Offers,
}

/// What one step of a host did.
pub(crate) enum Step<T: Trust> {
    /// Somebody was met.
    Met(Connection<T>),
    /// Somebody was offered memory.
    Offered,
    /// All wait. Those who are not taken in yet may be `more`.
    Idle { more: bool },
}

impl Host {
    /// Binds `path` for processes of this one's user and root's: the
    /// socket file gets the rights 0600.
    ///
    /// A socket file that a dead host left is replaced; one with a
    /// living host is not, nor any other file.
    ///
    /// # Errors
    /// [`RendezvousError::Owned`] if another process listens there; [`RendezvousError::NoSocket`];
    /// [`RendezvousError::Os`].
    pub fn bind(path: impl AsRef<Path>) -> Result<Self, RendezvousError> {
        let users = Users::default();
        let mode = users.mode();
        Self::bind_for(path, users, mode)
    }

    /// As [`bind`](Self::bind), for processes of `users`. The socket file gets the rights `mode`: a
    /// process that may not write it cannot even connect.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_for(path: impl AsRef<Path>, users: Users, mode: u32) -> Result<Self, RendezvousError> {
        Ok(Self { door: Arc::new(Door::open(path.as_ref(), users, mode)?), trust: PhantomData })
    }

    /// The same path, whose callers are trusted from now on: memory
    /// that they write is lent out as it lies there.
    ///
    /// # Safety
    /// Whoever is met here follows the protocol for as long as the
    /// connection, its segment or anything taken over them lives. One
    /// that does not makes a `&[u8]` of this process change.
    pub unsafe fn trusting(self) -> Host<Trusted> {
        Host { door: self.door, trust: PhantomData }
    }
}

impl<T: Trust> Host<T> {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.door.path
    }

    /// Waits for the next process and offers it `segment`: a new one, to share with nobody else, or
    /// one that others have joined before. It is offered to one caller at a time;
    /// [`accept_with`](Self::accept_with) has one for each.
    ///
    /// # Errors
    /// [`RendezvousError`], about a caller that is then gone. The
    /// host can go on accepting after any.
    pub fn accept(&self, segment: &Arc<Segment>) -> Result<Connection<T>, RendezvousError> {
        loop {
            if let Some(connection) = self.accept_until(segment, None)? {
                return Ok(connection);
            }
        }
    }

    /// As [`accept`](Self::accept), but waits no longer than until `deadline`, if there is one.
    /// `None` if nobody was met; a caller that has been offered `segment` by then may be met,
    /// with it, by a later call.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_until(
        &self,
        segment: &Arc<Segment>,
        deadline: Option<Deadline>,
    ) -> Result<Option<Connection<T>>, RendezvousError> {
        self.serve(deadline, Which::OneAtATime, |_, _| Ok(Arc::clone(segment)))
    }

    /// As [`accept_until`](Self::accept_until), but does not wait.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn try_accept(&self, segment: &Arc<Segment>) -> Result<Option<Connection<T>>, RendezvousError> {
        self.accept_until(segment, Some(Deadline::after(Duration::ZERO)))
    }

    /// Waits until `deadline` for the next process, and offers each caller that has said hello the
    /// segment that `segment` makes for it. All callers are served side by side: one that takes
    /// its time with the offer keeps nobody waiting.
    ///
    /// ```no_run
    /// use doorbell::rendezvous::{Offer, Segment, socket::Host};
    /// use std::sync::Arc;
    ///
    /// let host = Host::bind("/tmp/quotes")?;
    /// while let Some(connection) = host.accept_with(None, |_| Ok(Arc::new(Segment::new(&Offer::default())?)))? {
    ///     println!("{} has a segment of its own", connection.peer().id());
    /// }
    /// # Ok::<(), doorbell::rendezvous::RendezvousError>(())
    /// ```
    ///
    /// # Errors
    /// As [`accept`](Self::accept); and what `segment` reports, which
    /// has then turned that caller away.
    pub fn accept_with(
        &self,
        deadline: Option<Deadline>,
        mut segment: impl FnMut(&Peer) -> Result<Arc<Segment>, RendezvousError>,
    ) -> Result<Option<Connection<T>>, RendezvousError> {
        self.serve(deadline, Which::All, |peer, _| segment(peer))
    }

    fn serve(
        &self,
        deadline: Option<Deadline>,
        which: Which,
        mut segment: impl FnMut(&Peer, usize) -> Result<Arc<Segment>, RendezvousError>,
    ) -> Result<Option<Connection<T>>, RendezvousError> {
        loop {
            let more = loop {
                match self.door.step(which, &mut segment)? {
                    Step::Met(connection) => return Ok(Some(connection)),
                    Step::Offered => {}
                    Step::Idle { more } => break more,
                }
            };
            // Also while a flood of them goes on.
            if deadline.is_some_and(|deadline| deadline.passed()) {
                return Ok(None);
            }
            if !more {
                self.door.wait(deadline)?;
            }
        }
    }
}

impl Host {
    /// From now on callers are offered what `make` makes ([`step`](Self::step)); also by a thread
    /// of this process that is one itself, and would else wait for this one, and which tells
    /// `refused` whom it turned away.
    pub(crate) fn serve_by(
        &self,
        make: impl Fn(usize) -> Result<Arc<Segment>, RendezvousError> + Send + Sync + 'static,
        refused: impl Fn(&RendezvousError) + Send + Sync + 'static,
    ) {
        if self.door.maker.set(Maker { make: Box::new(make), refused: Box::new(refused) }).is_ok() {
            let mut doors = DOORS.lock();
            doors.retain(|door| door.strong_count() > 0);
            doors.push(Arc::downgrade(&self.door));
        }
    }

    /// Takes the next step that is due, without waiting.
    pub(crate) fn step(&self) -> Result<Step<Untrusted>, RendezvousError> {
        let Some(maker) = self.door.maker.get() else { return Ok(Step::Idle { more: false }) };
        self.door.step_by(maker, Which::All)
    }

    /// Sleeps until a step is due, or `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Deadline>) -> Result<(), RendezvousError> {
        self.door.wait(deadline)
    }

    /// Whoever watches the file of this host for edges is told once
    /// more that it is readable, if it is.
    pub(crate) fn tell_again(&self) -> Result<(), RendezvousError> {
        let _ = epoll::delete(&self.door.events, &self.door.listener);
        self.door.watch(&self.door.listener)
    }
}

impl Door {
    /// Where a service of this process listens, if one does at `path`.
    pub(super) fn of_this_process(path: &Path) -> Option<Arc<Self>> {
        let there = stat(path).ok()?;
        let doors = DOORS.lock();
        let mut doors = doors.iter().filter_map(Weak::upgrade);
        doors.find(|door| door.file == (there.st_dev, there.st_ino) && door.process.is_current())
    }

    /// Gives those their offers who wait for one.
    pub(super) fn make_offers(&self) {
        let Some(maker) = self.maker.get() else { return };
        // Who comes and goes without end is the service's to serve.
        for _ in 0..MOST_CALLERS {
            match self.step_by(maker, Which::Offers) {
                Ok(Step::Offered) => {}
                Ok(Step::Met(_) | Step::Idle { .. }) => return,
                Err(error) => (maker.refused)(&error),
            }
        }
    }

    fn step_by(&self, maker: &Maker, which: Which) -> Result<Step<Untrusted>, RendezvousError> {
        self.step(which, &mut |_: &Peer, offered| (maker.make)(offered))
    }

    fn step<T: Trust>(
        &self,
        which: Which,
        segment: &mut impl FnMut(&Peer, usize) -> Result<Arc<Segment>, RendezvousError>,
    ) -> Result<Step<T>, RendezvousError> {
        if !self.process.is_current() {
            return Err(RendezvousError::Forked);
        }
        let more = self.take_in()?;
        match self.next_step(which)? {
            None => Ok(Step::Idle { more }),
            Some(Due::Meet(caller, offered)) => caller.meet(offered).map(Step::Met),
            // Nothing is locked while the caller's function runs, which may take its time or use this host.
            Some(Due::Offer(mut caller, hello)) => {
                let is_offered = |caller: &&Caller| matches!(caller.stage, Stage::Offered(_));
                let offered = self.callers().here.iter().filter(is_offered).count();
                let made = segment(&caller.peer, offered);
                let made = made.inspect_err(|error| refuse(&caller.socket, OFFER, error))?;
                caller.stage = Stage::Offered(offer::<T>(&caller.socket, hello, made)?);
                caller.until = Instant::now() + HOST_PATIENCE;
                self.watch(&caller.socket)?;
                self.callers().here.push(caller);
                Ok(Step::Offered)
            }
        }
    }

    fn open(path: &Path, users: Users, mode: u32) -> Result<Self, RendezvousError> {
        let address = address(path)?;
        let listener = new_socket(SocketFlags::NONBLOCK)?;
        let mode = Mode::from_raw_mode(mode);
        // The file is made with these rights, less the umask: nobody
        // connects before they are as they shall be.
        fchmod(&listener, mode).map_err(os("fchmod"))?;
        // Until we listen: another host that found nobody listening would remove our socket as a stale one.
        let _lock = PathLock::take(path)?;
        match rustix::net::bind(&listener, &address) {
            Err(Errno::ADDRINUSE) => {
                // A file, or a link, is refused as a dead host's socket is.
                let there = lstat(path).map_err(os("lstat"))?;
                if FileType::from_raw_mode(there.st_mode) != FileType::Socket {
                    return Err(RendezvousError::NoSocket { path: path.to_owned() });
                }
                if is_served(path)? {
                    return Err(RendezvousError::Owned { path: path.to_owned() });
                }
                unlink(path).map_err(os("unlink"))?;
                rustix::net::bind(&listener, &address).map_err(os("bind"))?;
            }
            result => result.map_err(os("bind"))?,
        }
        chmod(path, mode).map_err(os("chmod"))?;
        rustix::net::listen(&listener, QUEUE).map_err(os("listen"))?;
        let ours = stat(path).map_err(os("stat"))?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(descriptor::kept);
        let events = events.map_err(os("epoll_create1"))?;
        let callers = Mutex::new(Callers { spare: Some(spare()?), ..Callers::default() });
        let (path, file) = (path.to_owned(), (ours.st_dev, ours.st_ino));
        let door = Self {
            listener,
            path,
            file,
            process: Process::current(),
            users,
            events,
            maker: OnceLock::new(),
            callers,
        };
        door.watch(&door.listener)?;
        Ok(door)
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, socket: &OwnedFd) -> Result<(), RendezvousError> {
        let readable = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&self.events, socket, epoll::EventData::new_u64(0), readable).map_err(os("epoll_ctl"))
    }

    /// Takes a caller out of those who are here. Explicitly out of the events too: a forked child
    /// may have a copy of its socket, which would keep it there.
    fn take_out(&self, callers: &mut Callers, at: usize) -> Caller {
        let caller = callers.here.remove(at);
        let _ = epoll::delete(&self.events, &caller.socket);
        caller
    }

    /// Takes in those who wait at the door. Says whether there may be more.
    fn take_in(&self) -> Result<bool, RendezvousError> {
        let mut callers = self.callers();
        if callers.spare.is_none() {
            callers.spare = spare().ok();
        }
        if callers.here.len() >= MOST_CALLERS && can_be_read(&self.listener) {
            self.turn_one_away(&mut callers);
        }
        for _ in callers.here.len()..MOST_CALLERS {
            match accept(&self.listener) {
                Ok(socket) => self.admit(&mut callers, socket)?,
                Err(Errno::AGAIN) => return Ok(false),
                // Somebody who has gone again.
                Err(Errno::CONNABORTED) => {}
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    // Also if nobody waits. Who does stays in the queue and the listener readable: whoever
                    // came back at once would spin. So the caller is taken in place of
                    // the spare descriptor, and of a silent one if there is any.
                    drop(callers.spare.take());
                    let socket = match accept(&self.listener) {
                        Ok(socket) => socket,
                        Err(Errno::AGAIN) => return Ok(false),
                        Err(_) => {
                            std::thread::sleep(Duration::from_millis(10));
                            return Err(RendezvousError::Os { call: "accept4", errno });
                        }
                    };
                    if !self.turn_one_away(&mut callers) {
                        refuse(&socket, OFFER, &os("accept4")(errno));
                        drop(socket);
                        callers.spare = spare().ok();
                        return Err(RendezvousError::Os { call: "accept4", errno });
                    }
                    callers.spare = spare().ok();
                    self.admit(&mut callers, socket)?;
                }
                Err(errno) => return Err(RendezvousError::Os { call: "accept4", errno }),
            }
        }
        Ok(true)
    }

    fn admit(&self, callers: &mut Callers, socket: OwnedFd) -> Result<(), RendezvousError> {
        let peer = peer_at(&socket, None)?;
        self.users.check(&peer).inspect_err(|error| refuse(&socket, OFFER, error))?;
        self.watch(&socket)?;
        let until = Instant::now() + HOST_PATIENCE;
        callers.here.push(Caller { socket, peer, until, stage: Stage::Silent });
        Ok(())
    }

    /// Hangs up on who has said nothing for the longest, else on who waits for its turn, or for
    /// whom we wait, for the longest. Says whether there was anybody.
    fn turn_one_away(&self, callers: &mut Callers) -> bool {
        let rank = |at: &usize| {
            let caller = &callers.here[*at];
            let stage = match caller.stage {
                Stage::Silent => 0,
                Stage::Offered(_) => 1,
                Stage::Greeted(_) => 2,
            };
            (stage, caller.until)
        };
        // Who has sent something is not waited for: the next step is ours.
        let is_waited_for = |at: &usize| !can_be_read(&callers.here[*at].socket);
        let worst = (0..callers.here.len()).filter(is_waited_for).min_by_key(rank);
        let worst = worst.map(|at| self.take_out(callers, at));
        worst.inspect(|caller| caller.refuse(&RendezvousError::Refused(Reason::Crowded))).is_some()
    }

    /// The next step that is due. If all wait, `None`.
    fn next_step(&self, which: Which) -> Result<Option<Due>, RendezvousError> {
        let mut callers = self.callers();
        let now = Instant::now();
        for at in 0..callers.here.len() {
            let one_is_offered = callers.here.iter().any(|caller| matches!(caller.stage, Stage::Offered(_)));
            let caller = &mut callers.here[at];
            if which == Which::Offers && matches!(caller.stage, Stage::Offered(_)) {
                continue;
            }
            let read = match &caller.stage {
                Stage::Silent => caller.read_hello(),
                Stage::Greeted(_) => caller.read_nothing(),
                Stage::Offered(_) => caller.read_verdict(),
            };
            let failed = match read {
                Ok(true) if matches!(caller.stage, Stage::Offered(_)) => {
                    let mut caller = self.take_out(&mut callers, at);
                    if let Stage::Offered(offered) = mem::replace(&mut caller.stage, Stage::Silent) {
                        return Ok(Some(Due::Meet(caller, offered)));
                    }
                    return Ok(None);
                }
                Ok(_) => match caller.stage {
                    Stage::Greeted(hello) if !(which == Which::OneAtATime && one_is_offered) => {
                        let caller = self.take_out(&mut callers, at);
                        return Ok(Some(Due::Offer(caller, hello)));
                    }
                    _ if now < caller.until => continue,
                    _ => RendezvousError::TimedOut { after: HOST_PATIENCE },
                },
                Err(error) => error,
            };
            self.take_out(&mut callers, at).refuse(&failed);
            return Err(failed);
        }
        Ok(None)
    }

    /// Sleeps until a caller comes or sends a packet, or the time of one is up, or `deadline`.
    fn wait(&self, deadline: Option<Deadline>) -> Result<(), RendezvousError> {
        let until = self.callers().here.iter().map(|caller| caller.until).min();
        let until = until.map(Deadline::at).into_iter().chain(deadline);
        let left = until.map(|deadline| deadline.remaining()).min_by_key(|left| (left.tv_sec, left.tv_nsec));
        let mut event = Vec::with_capacity(1);
        match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut event), left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(RendezvousError::Os { call: "epoll_wait", errno }),
        }
    }
}

/// Does anybody listen at `path`? Whoever has more callers than fit
/// its queue does, and is not waited for.
pub(crate) fn is_served(path: &Path) -> Result<bool, RendezvousError> {
    let address = address(path)?;
    let answer = rustix::net::connect(&new_socket(SocketFlags::NONBLOCK)?, &address);
    Ok(!matches!(answer, Err(Errno::CONNREFUSED | Errno::NOENT)))
}

/// A descriptor to give up.
fn spare() -> Result<OwnedFd, RendezvousError> {
    open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).and_then(descriptor::kept).map_err(os("open"))
}

fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK))
        .and_then(descriptor::kept)
}

impl Caller {
    /// `None` if it has sent nothing yet.
    fn read<const N: usize>(&self) -> Result<Option<[u64; N]>, RendezvousError> {
        try_receive(&self.socket, &mut Vec::new())
    }

    /// Says why it is hung up on.
    fn refuse(&self, error: &RendezvousError) {
        // Who has been offered memory reads no more.
        if !matches!(self.stage, Stage::Offered(_)) {
            refuse(&self.socket, OFFER, error);
        }
    }

    fn read_hello(&mut self) -> Result<bool, RendezvousError> {
        let Some([hello, version, features]) = self.read()? else { return Ok(false) };
        expect("hello", hello, HELLO)?;
        self.stage = Stage::Greeted(Hello { version, features });
        Ok(true)
    }

    /// Whoever waits for its offer has nothing to say, but may hang up.
    fn read_nothing(&self) -> Result<bool, RendezvousError> {
        match self.read::<2>()? {
            None => Ok(false),
            Some([value, _]) => {
                Err(RendezvousError::Violation(PeerViolation::BadValue { field: "verdict", value }))
            }
        }
    }

    fn read_verdict(&self) -> Result<bool, RendezvousError> {
        let Some(verdict) = self.read()? else { return Ok(false) };
        check_verdict(verdict)?;
        Ok(true)
    }

    /// The last step: who has joined what it was offered is met.
    fn meet<T: Trust>(self, offered: Offered) -> Result<Connection<T>, RendezvousError> {
        let Self { socket, peer, .. } = self;
        // What is sent over it from now on is waited for.
        ioctl_fionbio(&socket, false).map_err(os("FIONBIO"))?;
        let Offered { segment, under, holder } = offered;
        Connection::new(&segment, under, peer, socket, holder, Side::Host)
    }
}

/// Sends the caller at `socket` the memory and descriptors of
/// `segment`, unless they are nothing for it.
fn offer<T: Trust>(
    socket: &OwnedFd,
    hello: Hello,
    segment: Arc<Segment>,
) -> Result<Offered, RendezvousError> {
    let plan = segment.mapping().plan();
    let acceptable =
        hello.version >> 32 == u64::from(MAJOR) && plan.features & REQUIRED_FEATURES & !hello.features == 0;
    let holder = segment.mapping().next_holder();
    let words = [OFFER, our_version(), plan.bells.into(), segment.eventfds_per_bell.into(), holder.into()];
    // A joiner of another version finds that out from the version, which stands in a refusal too.
    let unusable = RendezvousError::Refused(Reason::Unusable);
    let admitted = if acceptable { segment.admit::<T>() } else { Err(unusable) };
    let under = admitted.inspect_err(|error| refuse(socket, OFFER, error))?;
    let mut descriptors = Vec::new();
    descriptors.extend(segment.mapping().descriptor());
    for state in &segment.states {
        descriptors
            .extend((0..state.eventfd_slots()).filter_map(|index| Some(state.eventfd(index)?.as_fd())));
    }
    send_all(socket, &words, &descriptors)?;
    Ok(Offered { segment, under, holder })
}

/// Offers `segment` to whoever takes it out of `socket`. What is to
/// be kept of its admission, and its number.
pub(super) fn offer_to<T: Trust>(
    socket: &OwnedFd,
    segment: &Arc<Segment>,
) -> Result<(Option<Arc<dyn Hold>>, u32), RendezvousError> {
    // Whoever lacks something of the segment says so when it comes.
    let hello = Hello { version: our_version(), features: u64::MAX };
    let Offered { under, holder, .. } = offer::<T>(socket, hello, Arc::clone(segment))?;
    Ok((under, holder))
}

fn check_verdict([magic, verdict]: [u64; 2]) -> Result<(), RendezvousError> {
    expect("verdict", magic, VERDICT)?;
    match verdict {
        ACCEPTED => Ok(()),
        value => Err(match Reason::of_word(value) {
            Some(reason) => RendezvousError::Refused(reason),
            None => RendezvousError::Violation(PeerViolation::BadValue { field: "verdict", value }),
        }),
    }
}

impl<T: Trust> AsFd for Host<T> {
    /// Readable when a process wants to meet, or one that is being met has sent its next packet:
    /// time for [`try_accept`](Self::try_accept).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.door.events.as_fd()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Somebody may have removed it, and another host may be there
        // now. None comes in between: we still listen.
        if self.process.is_current()
            && stat(&self.path).is_ok_and(|there| (there.st_dev, there.st_ino) == self.file)
        {
            let _ = unlink(&self.path);
        }
    }
}

/// The host's part over a connected `SOCK_SEQPACKET` socket, whose other end need not be trusted.
/// Waits for it up to [`JOIN_PATIENCE`] with each packet.
///
/// # Errors
/// [`RendezvousError`].
pub fn host_over(socket: OwnedFd, segment: &Arc<Segment>) -> Result<Connection, RendezvousError> {
    host_whom(socket, segment, None)
}

/// As [`host_over`], with a peer that is trusted if `T` says so.
///
/// # Safety
/// If `T` is [`Trusted`]: as [`Host::trusting`].
///
/// # Errors
/// [`RendezvousError`].
pub unsafe fn host_over_as<T: Trust>(
    socket: OwnedFd,
    segment: &Arc<Segment>,
) -> Result<Connection<T>, RendezvousError> {
    host_whom(socket, segment, None)
}

/// As [`host_over`], with a child whose number the parent knows and the socket does not.
pub(super) fn host_whom<T: Trust>(
    socket: OwnedFd,
    segment: &Arc<Segment>,
    child: Option<u32>,
) -> Result<Connection<T>, RendezvousError> {
    let patience = Patience::of(JOIN_PATIENCE);
    let peer = peer_at(&socket, child)?;
    let [hello, version, features] = receive(&socket, &mut Vec::new(), &patience)?;
    expect("hello", hello, HELLO)?;
    let offered = offer::<T>(&socket, Hello { version, features }, Arc::clone(segment))?;
    let verdict = receive(&socket, &mut Vec::new(), &patience)?;
    check_verdict(verdict)?;
    Connection::new(segment, offered.under, peer, socket, offered.holder, Side::Host)
}

/// Is there a packet, a caller, or an end?
fn can_be_read(file: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)), Ok(1))
}

#[cfg(test)]
mod tests {
    use super::super::join::connect;
    use super::{Host, Patience, RendezvousError, new_socket};
    use rustix::io::Errno;
    use rustix::net::{SocketAddrUnix, SocketFlags};
    use std::time::Duration;

    /// A listener that was given a file's name by mistake removed the file: to be refused is how a
    /// dead host's socket looks.
    #[test]
    fn a_file_that_is_no_socket_is_not_taken_for_what_a_dead_host_left() {
        let path = std::env::temp_dir().join(format!("doorbell-file-{}", std::process::id()));
        std::fs::write(&path, "years of work").unwrap();
        let refused = Host::bind(&path).map(drop);
        assert_eq!(refused, Err(RendezvousError::NoSocket { path: path.clone() }));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "years of work");
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(Host::bind(&link).map(drop), Err(RendezvousError::NoSocket { path: link.clone() }));
        for path in [path, link] {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// `connect` slept for as long as the host did not accept; and in
    /// `bind` with the path's lock held.
    #[test]
    fn a_host_with_a_full_queue_holds_nobody_up_for_ever() {
        let path = std::env::temp_dir().join(format!("doorbell-queue-{}", std::process::id()));
        let _host = Host::bind(&path).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let mut callers = Vec::new();
        let full = loop {
            let caller = new_socket(SocketFlags::NONBLOCK).unwrap();
            match rustix::net::connect(&caller, &address) {
                Ok(()) => callers.push(caller),
                Err(errno) => break errno,
            }
        };
        assert_eq!(full, Errno::AGAIN);
        let (told, tells) = std::sync::mpsc::channel();
        let there = path.clone();
        std::thread::spawn(move || {
            let joined = connect(&there, &Patience::of(Duration::from_millis(1))).map(drop);
            told.send((joined, Host::bind(&there).map(drop))).unwrap();
        });
        let answers = tells.recv_timeout(Duration::from_secs(60)).expect("hung");
        let late = RendezvousError::TimedOut { after: Duration::from_millis(1) };
        assert_eq!(answers, (Err(late), Err(RendezvousError::Owned { path })));
    }
}
