// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of waking that are tried, one file each.

mod channel;
mod datagram;
mod doorbell;
mod doorbell_channel;
mod event_listener;
mod eventfd;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
mod ipc_channel;
mod park;
mod pipe;
mod planted;
mod rsevents;
mod semaphore;
mod tokio;

use crate::library::{Crossbeam, CrossfireMany, Flume, Kanal, StdMpsc, Thingbuf};
use crate::partner::Place;
use crate::wakes::shared::Mail;
use ::doorbell::wait::{Adaptive, Eventfd, Futex, IoUring, Spin, Yield};
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use std::time::Duration;

/// What a wait was good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    TimedOut,
    /// It was woken, or needed no wake, and so many notifications were seen then.
    Woken(u64),
}

/// The waiting end, used as its documentation says.
pub trait Waiter {
    /// Waits up to `limit`, then takes what one wake is good for; without a wait if it is seen
    /// before that something is there.
    fn wait(&mut self, limit: Duration, mail: &Mail) -> Heard;

    /// A wait that is not spared by looking at the mail.
    fn again(&mut self, limit: Duration, mail: &Mail) -> Heard {
        self.wait(limit, mail)
    }

    /// Takes everything that is there, without a wait.
    fn sweep(&mut self, mail: &Mail) -> u64;
}

/// Notifies once for each call.
pub type Notify = Box<dyn FnMut()>;
/// Makes a notifying end, in its own thread or process.
pub type MakeNotifier = Box<dyn FnOnce() -> Notify + Send>;
/// Makes the waiting end and hands it to what waits.
pub type Watch = Box<dyn FnOnce(&mut dyn FnMut(&mut dyn Waiter))>;

pub struct Opened {
    pub notifiers: Vec<MakeNotifier>,
    pub watch: Watch,
}

/// Opens the means of waking for so many notifiers.
pub type Open = fn(Place, usize) -> Result<Opened, String>;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Ours,
    Rival,
    /// The system's own means, used by hand.
    ByHand,
    /// With a mistake put in: it must be found.
    Planted,
}

pub struct Variant {
    pub name: &'static str,
    pub kind: Kind,
    /// Where it can be used.
    pub places: &'static [Place],
    pub open: Open,
}

/// All of them.
pub fn variants() -> Vec<Variant> {
    use Kind::{ByHand, Ours, Planted, Rival};
    let anywhere =
        |kind, name, open| Variant { name, kind, places: &[Place::Threads, Place::Processes], open };
    let threads = |kind, name, open| Variant { name, kind, places: &[Place::Threads], open };
    let processes = |kind, name, open| Variant { name, kind, places: &[Place::Processes], open };
    vec![
        anywhere(Planted, "planted: re-arms before it consumes", planted::rearms_first),
        anywhere(Planted, "planted: forgets one wake-up of 500", planted::forgets),
        anywhere(Planted, "planted: a call that does not return", planted::stays),
        anywhere(Ours, "doorbell, adaptive", doorbell::by::<Adaptive>),
        anywhere(Ours, "doorbell, futex", doorbell::by::<Futex>),
        anywhere(Ours, "doorbell, eventfd", doorbell::by::<Eventfd>),
        anywhere(Ours, "doorbell, io_uring", doorbell::by::<IoUring>),
        anywhere(Ours, "doorbell, yield", doorbell::by::<Yield>),
        anywhere(Ours, "doorbell, spin", doorbell::by::<Spin>),
        anywhere(Ours, "doorbell, epoll", |place, count| doorbell::by_epoll(place, count, false)),
        anywhere(Ours, "doorbell, epoll edge", |place, count| doorbell::by_epoll(place, count, true)),
        anywhere(Ours, "doorbell channels, adaptive", |place, count| {
            doorbell_channel::open::<Adaptive>(place, count, false)
        }),
        anywhere(Ours, "doorbell channels, futex", |place, count| {
            doorbell_channel::open::<Futex>(place, count, false)
        }),
        anywhere(Ours, "doorbell channels, epoll", |place, count| {
            doorbell_channel::open::<Futex>(place, count, true)
        }),
        processes(Ours, "doorbell channels, untrusted", doorbell_channel::untrusted),
        anywhere(ByHand, "eventfd, epoll", eventfd::level),
        anywhere(ByHand, "eventfd as semaphore, epoll", eventfd::one_by_one),
        anywhere(ByHand, "eventfd, epoll edge", eventfd::edge),
        anywhere(ByHand, "Unix datagram, epoll", datagram::few),
        anywhere(ByHand, "pipe, epoll", pipe::few),
        anywhere(ByHand, "POSIX semaphore", semaphore::one_by_one),
        #[cfg(feature = "iceoryx2")]
        anywhere(Rival, "iceoryx2, listener", iceoryx2::listener),
        #[cfg(feature = "iceoryx2")]
        anywhere(Rival, "iceoryx2, WaitSet, one try_wait", iceoryx2::wait_set),
        #[cfg(feature = "iceoryx2")]
        anywhere(Rival, "iceoryx2, WaitSet, try_wait until 0", iceoryx2::wait_set_until_nothing),
        anywhere(Rival, "ipc-channel", ipc_channel::timeout),
        threads(Rival, "event-listener, notify(1)", event_listener::notify),
        threads(Rival, "rsevents AutoResetEvent", rsevents::auto_reset),
        threads(Rival, "std park and unpark", park::park),
        threads(Rival, "tokio Notify, notify_one", tokio::notify_one),
        threads(Rival, "tokio Notify, notify_waiters", tokio::notify_waiters),
        threads(Rival, "tokio mpsc", tokio::mpsc),
        threads(Rival, "std mpsc", channel::bounded::<StdMpsc>),
        threads(Rival, "crossbeam-channel", channel::bounded::<Crossbeam>),
        threads(Rival, "crossfire", channel::bounded::<CrossfireMany>),
        threads(Rival, "flume", channel::bounded::<Flume>),
        threads(Rival, "kanal", channel::bounded::<Kanal>),
        threads(Rival, "thingbuf", channel::bounded::<Thingbuf>),
    ]
}

/// Room in a channel, less than a long burst: notifiers wait for room, and must be woken too.
pub const ROOM: usize = 64;

/// Notifiers made by `make`, and a waiter made by `waiter`.
pub fn opened<W: Waiter + 'static>(
    notifiers: usize,
    make: impl Fn(usize) -> MakeNotifier,
    waiter: impl FnOnce() -> W + 'static,
) -> Opened {
    Opened { notifiers: (0..notifiers).map(make).collect(), watch: Box::new(move |then| then(&mut waiter())) }
}

/// For [`opened`]: each notifier has a clone of `shared`, and notifies by `notify`.
pub fn each<T: Clone + Send + 'static>(
    shared: T,
    notify: impl Fn(&mut T) + Clone + Send + 'static,
) -> impl Fn(usize) -> MakeNotifier {
    move |_| {
        let (mut shared, notify) = (shared.clone(), notify.clone());
        Box::new(move || Box::new(move || notify(&mut shared)))
    }
}

/// For a means of waking that says only that there may be something: looks at the mail, and sleeps
/// if there is none.
pub struct ByMail<S>(S);

/// `sleep` sleeps until it is woken or its second argument holds, which is asked where the
/// documentation says that one must look again. It gives false if it ended by its time-out.
pub fn by_mail<S: FnMut(Duration, &dyn Fn() -> bool) -> bool>(sleep: S) -> ByMail<S> {
    ByMail(sleep)
}

impl<S: FnMut(Duration, &dyn Fn() -> bool) -> bool> Waiter for ByMail<S> {
    fn wait(&mut self, limit: Duration, mail: &Mail) -> Heard {
        match mail.take_few() {
            0 if !(self.0)(limit, &|| mail.any()) => Heard::TimedOut,
            0 => Heard::Woken(mail.take_few()),
            some => Heard::Woken(some),
        }
    }
    fn again(&mut self, limit: Duration, mail: &Mail) -> Heard {
        if (self.0)(limit, &|| false) { Heard::Woken(mail.take_few()) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, mail: &Mail) -> u64 {
        mail.take(u64::MAX)
    }
}

/// An epoll that watches one file.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new(file: impl AsFd, more: epoll::EventFlags) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        epoll::add(&epoll, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN | more).expect("added");
        Self(epoll)
    }

    /// False if it ended by its time-out.
    pub fn wait(&self, limit: Duration) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1];
        let limit =
            Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: i64::from(limit.subsec_nanos()) };
        let (ready, _) = epoll::wait(&self.0, &mut buffer[..], Some(&limit)).expect("waited");
        !ready.is_empty()
    }
}
