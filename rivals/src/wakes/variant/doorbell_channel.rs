// SPDX-License-Identifier: MIT OR Apache-2.0
//! This project's channels: a lane for each notifier, and one receiver of all. Rings are small, so
//! that notifiers wait too.

use super::{Heard, MakeNotifier, Opened, Waiter, Watch};
use crate::hosted;
use crate::partner::Place;
use crate::wakes::shared::Mail;
use doorbell::channel::{Gather, Lanes, Sender};
use doorbell::peer::{Trust, Trusted, Untrusted};
use doorbell::rendezvous::{Connection, Offer, Segment};
use doorbell::wait::{Adaptive, Wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::Duration;

const MESSAGE: [u8; 8] = [1; 8];
const RING: u64 = 1024;

struct Receives<T: Trust, W: Wait> {
    gather: Gather<T, W>,
    /// Sleeps in poll on the channel's files, and by its way of waiting otherwise.
    polls_files: bool,
}

impl<T: Trust, W: Wait> Receives<T, W> {
    /// As many as one to three, so that the next look finds what this one left.
    fn few(&mut self, most: u64) -> u64 {
        let mut count = 0;
        // An end that was left or died has nothing more.
        while count < most && matches!(self.gather.try_recv(), Ok(Some(_))) {
            count += 1;
        }
        count
    }

    fn sleep(&mut self, limit: Duration) -> bool {
        let files = self.gather.files().expect("slots");
        let mut files: Vec<_> = files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
        let limit =
            Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: i64::from(limit.subsec_nanos()) };
        poll(&mut files, Some(&limit)).expect("waited") > 0
    }
}

impl<T: Trust, W: Wait> Waiter for Receives<T, W> {
    fn wait(&mut self, limit: Duration, _: &Mail) -> Heard {
        if !self.polls_files {
            return match self.gather.recv_timeout(limit) {
                Ok(None) => Heard::TimedOut,
                Ok(Some(_)) => Heard::Woken(1),
                Err(_) => Heard::Woken(0),
            };
        }
        match self.few(3) {
            0 if self.gather.listen().expect("slots") => Heard::Woken(self.few(3)),
            0 if !self.sleep(limit) => Heard::TimedOut,
            0 => Heard::Woken(self.few(3)),
            some => Heard::Woken(some),
        }
    }
    fn again(&mut self, limit: Duration, mail: &Mail) -> Heard {
        if !self.polls_files {
            return self.wait(limit, mail);
        }
        if self.sleep(limit) { Heard::Woken(self.few(3)) } else { Heard::TimedOut }
    }
    fn sweep(&mut self, _: &Mail) -> u64 {
        self.few(u64::MAX)
    }
}

fn lanes(count: usize) -> Result<Lanes, String> {
    Lanes::new(count as u32, 1, RING).ok_or_else(|| format!("no {count} lanes"))
}

fn sends<T: Trust, W: Wait + 'static>(
    mut sender: Sender<T, W>,
    connection: Option<Connection<T>>,
) -> super::Notify {
    Box::new(move || {
        let _ = &connection;
        sender.send(&MESSAGE).expect("the receiver lives");
    })
}

fn threads<W: Wait + Default + 'static>(notifiers: usize, polls_files: bool) -> Result<Opened, String> {
    let offer = Offer::of_lanes(lanes(notifiers)?);
    let segment = Arc::new(Segment::for_threads(&offer).map_err(|error| error.to_string())?);
    let same = Arc::clone(&segment);
    let make = move |lane| {
        let segment = Arc::clone(&same);
        let notifier: MakeNotifier = Box::new(move || {
            sends(Sender::<Trusted, W>::at_waiting_by(&segment, lane as u32).expect("free"), None)
        });
        notifier
    };
    Ok(super::opened(notifiers, make, move || Receives::<Trusted, W> {
        gather: Gather::at_waiting_by(&segment, 0).expect("free"),
        polls_files,
    }))
}

fn processes<T: Trust, W: Wait + Default + 'static>(
    notifiers: usize,
    polls_files: bool,
) -> Result<Opened, String> {
    let lanes = lanes(notifiers / hosted::segments::<T>(notifiers))?;
    let (ours, theirs) = hosted::sockets(notifiers)?;
    let join = |socket| {
        let notifier: MakeNotifier = Box::new(move || {
            let connection = hosted::join(socket);
            sends(Sender::<T, W>::attach_any(&connection).expect("free"), Some(connection))
        });
        notifier
    };
    let watch: Watch = Box::new(move |then| {
        let (gather, _connections) = hosted::gather::<T, W>(ours, lanes);
        then(&mut Receives { gather, polls_files });
    });
    Ok(Opened { notifiers: theirs.into_iter().map(join).collect(), watch })
}

pub fn open<W: Wait + Default + 'static>(
    place: Place,
    notifiers: usize,
    polls_files: bool,
) -> Result<Opened, String> {
    match place {
        Place::Threads => threads::<W>(notifiers, polls_files),
        Place::Processes => processes::<Trusted, W>(notifiers, polls_files),
    }
}

/// Between processes: threads of one have no reason to mistrust each other.
pub fn untrusted(_: Place, notifiers: usize) -> Result<Opened, String> {
    processes::<Untrusted, Adaptive>(notifiers, false)
}
