// SPDX-License-Identifier: MIT OR Apache-2.0
//! A peer that writes anything anywhere while we send and receive.
//!
//! `DOORBELL_MUTATIONS` sets how many writes it makes, `DOORBELL_SEED` which.

use crate::meet::{meet, try_meet};
use crate::other::segment;
use doorbell::channel::{AttachError, Gather, GatherError, Receiver, RecvError, SendError, Sender};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Connection, Join, Reason, RendezvousError, Segment, socket};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait, WaitEntry};
use doorbell::{Deadline, PeerViolation, WaitError};
use rustix::fd::OwnedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use std::cell::Cell;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The whole mapping, as a hostile process maps it.
pub(crate) struct Raw {
    words: *const AtomicU64,
    bytes: usize,
}

// SAFETY: only touched through atomics.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    pub(crate) fn of(segment: &Segment) -> Self {
        let bytes = segment.mapping().plan().size() as usize;
        // SAFETY: a process or thread of this program, which follows the protocol.
        let file = unsafe { segment.mapping().file() }.unwrap();
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, rights, MapFlags::SHARED, file, 0) };
        Self { words: base.unwrap().cast(), bytes }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that long, page-aligned, and stays until the drop.
        unsafe { std::slice::from_raw_parts(self.words, self.bytes / 8) }
    }

    /// Makes a lane of two look unused.
    fn wipe(&self, lane: u32, capacity: u64) {
        let (lane, stride) = (lane as usize, capacity.next_multiple_of(4096) as usize);
        let control = (0..384).step_by(8).map(|at| CONTROL + lane * 384 + at);
        let ring = (0..capacity as usize).step_by(8).map(|at| RING + lane * stride + at);
        control.chain(ring).for_each(|at| self.payload(at).store(0, Ordering::Relaxed));
    }

    /// The words that say who holds the ends of the first of two
    /// lanes: the sender's, and above it the receiver's.
    pub(crate) fn attachments(&self) -> &AtomicU64 {
        self.payload(CONTROL + 256)
    }

    /// The word at `offset` of the payload of a segment with at most four bells.
    pub(crate) fn payload(&self, offset: usize) -> &AtomicU64 {
        &self.words()[(4096 + offset) / 8]
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference into it.
        unsafe { munmap(self.words.cast_mut().cast(), self.bytes) }.unwrap();
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.roll() >> 11) % limit
    }
}

/// The rings of one round, and what is sent through them.
#[derive(Clone, Copy)]
struct Traffic {
    capacity: u64,
    message: &'static [u8],
}

const TRAFFIC: [Traffic; 2] = [
    Traffic { capacity: 512, message: b"a message" },
    // So long that it is copied by one instruction, to and from.
    Traffic { capacity: 16384, message: &[0x5a; 2048] },
];

/// One write: half of them where it hurts, with values that nearly make sense.
fn scribble(raw: &Raw, dice: &mut Dice, Traffic { capacity, message }: Traffic) {
    let words = raw.words();
    let record = message.len() as u64 / 8 + 1;
    let at = match dice.below(4) {
        // Bells, directory and controls.
        0 => dice.below(4096 / 8 + 1024 / 8),
        // Where records of a ring begin, nearly.
        1 => {
            let ring = (8192 + dice.below(2) * capacity.next_multiple_of(4096)) / 8;
            ring + (dice.below(8) * record + dice.below(4)) % (capacity / 8)
        }
        _ => dice.below(words.len() as u64),
    };
    let word = &words[at as usize];
    let now = word.load(Ordering::Relaxed);
    let value = match dice.below(8) {
        0 => 0,
        1 => dice.below(capacity * 3 / 4) << 2 | 1,
        2 => 2,
        3 => now.wrapping_add(8),
        4 => now.wrapping_sub(8),
        5 => u64::MAX - dice.below(16),
        6 => now ^ (1 << dice.below(64)),
        _ => dice.roll(),
    };
    word.store(value, Ordering::Relaxed);
}

/// So many writes are made at most while no victim does anything, or,
/// where one hangs, so long is waited for it.
const MOST_UNSEEN: u64 = 1000;
const SOON: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Tally {
    progress: AtomicU64,
    delivered: AtomicU64,
    violations: AtomicU64,
}

/// Sends and receives over memory that is being scribbled on. Every
/// outcome but a panic or a hang is good.
fn suffer<W: Wait + Default>(
    connection: &Connection,
    (out, back): (u32, u32),
    raw: &Raw,
    Traffic { capacity, message }: Traffic,
    tally: &Tally,
    stop: &AtomicBool,
) {
    let soon = Duration::from_micros(30);
    let mut bytes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        tally.progress.fetch_add(1, Ordering::Relaxed);
        let ends = (
            Sender::<_, W>::attach_waiting_by(connection, out),
            Receiver::<_, W>::attach_waiting_by(connection, back),
        );
        let (Ok(mut sender), Ok(mut receiver)) = ends else {
            // One more of the peer's whims, so that the round goes on: all is as if nobody had been there.
            [out, back].into_iter().for_each(|lane| raw.wipe(lane, capacity));
            continue;
        };
        let mut ended = 0;
        while ended < 2 && !stop.load(Ordering::Relaxed) {
            tally.progress.fetch_add(1, Ordering::Relaxed);
            ended = 0;
            let most = message.len() + 31;
            let mut outcome =
                sender.reserve_deadline(most, doorbell::Deadline::after(soon)).and_then(|mut slot| {
                    slot.write(3, message);
                    slot.commit_first(message.len() + 11)
                });
            if outcome.is_ok() {
                outcome = sender.send_timeout(message, soon);
            }
            match outcome {
                Ok(()) | Err(SendError::Full | SendError::TimedOut | SendError::Wait(_)) => {}
                Err(SendError::Violation(_)) => {
                    tally.violations.fetch_add(1, Ordering::Relaxed);
                    ended += 1;
                }
                Err(_) => ended += 1,
            }
            // One by itself, and a few as a run.
            let mut received = receiver.recv_timeout(soon).map(|message| {
                message.map_or(0, |message| {
                    message.copy_to_vec(&mut bytes);
                    assert_eq!(bytes.len(), message.len());
                    1
                })
            });
            if let Ok(alone) = received {
                received = receiver.try_recv_batch().map(|run| {
                    alone + run.take(3).inspect(|message| message.copy_to_vec(&mut bytes)).count() as u64
                });
            }
            match received {
                Ok(received) => {
                    tally.delivered.fetch_add(received, Ordering::Relaxed);
                }
                Err(RecvError::Wait(_)) => {}
                Err(RecvError::Violation(_)) => {
                    tally.violations.fetch_add(1, Ordering::Relaxed);
                    ended += 1;
                }
                Err(_) => ended += 1,
            }
        }
    }
}

#[test]
fn whatever_is_written_into_the_mapping_nothing_panics_and_nothing_hangs() {
    let set = |name| std::env::var(name).ok().and_then(|number: String| number.parse::<u64>().ok());
    let wanted = set("DOORBELL_MUTATIONS").unwrap_or(300_000);
    let tallies = TRAFFIC.map(|_| Tally::default());
    // Any seed but zero.
    let mut dice = Dice(set("DOORBELL_SEED").unwrap_or(0).wrapping_mul(2) ^ 0x2545_f491_4f6c_dd1d);
    let mut made = 0;
    let mut round = 0;
    while made < wanted {
        round += 1;
        let kind = round % TRAFFIC.len();
        let (traffic, tally) = (TRAFFIC[kind], &tallies[kind]);
        let segment = segment(2, 2, traffic.capacity);
        let (ours, theirs) = meet(&segment);
        let raw = Raw::of(&segment);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let victims = [(&ours, (0, 1)), (&theirs, (1, 0))].map(|(connection, lanes)| {
                let (raw, stop) = (&raw, &stop);
                scope.spawn(move || match round % 3 {
                    0 => suffer::<Adaptive>(connection, lanes, raw, traffic, tally, stop),
                    1 => suffer::<Futex>(connection, lanes, raw, traffic, tally, stop),
                    _ => suffer::<Eventfd>(connection, lanes, raw, traffic, tally, stop),
                })
            });
            for number in 1..=20_000 {
                scribble(&raw, &mut dice, traffic);
                made += 1;
                // Now and then a lull, so that some messages get through.
                if dice.below(256) == 0 {
                    (0..dice.below(2000)).for_each(|_| std::hint::spin_loop());
                }
                // What is written while the victims do not run is not suffered.
                if number % MOST_UNSEEN == 0 {
                    let (seen, begun) = (tally.progress.load(Ordering::Relaxed), Instant::now());
                    while tally.progress.load(Ordering::Relaxed) == seen && begun.elapsed() < SOON {
                        thread::yield_now();
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            let (began, mut last) = (Instant::now(), tally.progress.load(Ordering::Relaxed));
            let mut since = began;
            while !victims.iter().all(|victim| victim.is_finished()) {
                // Waits last microseconds: a minute without an end of one is a hang, on any machine.
                if since.elapsed() > Duration::from_secs(60) {
                    eprintln!("a victim hangs in round {round}");
                    std::process::abort();
                }
                let now = tally.progress.load(Ordering::Relaxed);
                if now != last {
                    (since, last) = (Instant::now(), now);
                }
                scribble(&raw, &mut dice, traffic);
                thread::yield_now();
            }
            victims.into_iter().for_each(|victim| victim.join().unwrap());
        });
    }
    println!("{made} mutations in {round} rounds");
    for (tally, traffic) in tallies.iter().zip(TRAFFIC) {
        let [delivered, violations] =
            [&tally.delivered, &tally.violations].map(|count| count.load(Ordering::Relaxed));
        println!("{delivered} messages of {} bytes, {violations} violations", traffic.message.len());
        assert!(delivered > 0 && violations > 0, "no real test");
    }
}

/// The lie, and what the receiver must say to it.
fn lie_to_receiver(lie: impl Fn(&Raw, &mut Sender)) -> RecvError {
    let segment = segment(2, 2, 512);
    let (ours, theirs) = meet(&segment);
    let raw = Raw::of(&segment);
    let mut sender: Sender = Sender::attach(&theirs, 0).unwrap();
    let mut receiver: Receiver = Receiver::attach(&ours, 0).unwrap();
    lie(&raw, &mut sender);
    let first = receiver.recv_timeout(Duration::from_secs(60)).unwrap_err();
    assert_eq!(receiver.try_recv().unwrap_err(), first, "a liar is not listened to again");
    first
}

/// Where the first ring begins, in the payload of a segment with four bells.
const RING: usize = 4096;
/// Where the first lane's control lies.
pub(crate) const CONTROL: usize = 128;

#[test]
fn a_record_that_cannot_be_is_a_violation() {
    let told = |word: u64| lie_to_receiver(|raw, _| raw.payload(RING).store(word, Ordering::Release));
    let beyond = PeerViolation::LengthOutOfRange { length: 5000, available: 504 };
    assert_eq!(told(5000 << 2 | 1), RecvError::Violation(beyond), "a length beyond the ring");
    let overflows = told(u64::MAX << 2 | 1);
    assert!(
        matches!(overflows, RecvError::Violation(PeerViolation::LengthOutOfRange { .. })),
        "{overflows:?}"
    );
    // Of no kind; and a skip at the ring's first place, which would be an endless loop.
    for value in [3, 2] {
        assert_eq!(told(value), RecvError::Violation(PeerViolation::BadValue { field: "record", value }));
    }
}

#[test]
fn a_released_index_that_was_never_sent_is_a_violation() {
    for lie in [8, 4, 1 << 40, u64::MAX - 7] {
        let segment = segment(2, 2, 64);
        let (ours, theirs) = meet(&segment);
        let raw = Raw::of(&segment);
        let mut sender: Sender = Sender::attach(&ours, 0).unwrap();
        let _receiver: Receiver = Receiver::attach(&theirs, 0).unwrap();
        sender.send(&[0; 16]).unwrap();
        sender.send(&[0; 16]).unwrap();
        raw.payload(CONTROL).store(lie, Ordering::Release);
        let told = sender.send_timeout(&[0; 16], Duration::from_millis(1));
        if lie == 8 {
            // A multiple of eight within what was sent cannot be told from the truth, and harms nobody else.
            assert!(matches!(told, Ok(()) | Err(SendError::Full | SendError::TimedOut)));
        } else {
            assert!(matches!(told, Err(SendError::Violation(_))), "{lie:#x}: {told:?}");
        }
    }
}

#[test]
fn a_lane_full_of_lies_is_not_attached_to() {
    let segment = segment(2, 2, 64);
    let (ours, _theirs) = meet(&segment);
    let raw = Raw::of(&segment);
    for place in 0..8 {
        raw.payload(RING + place * 8).store(1, Ordering::Release);
    }
    let refused = Sender::<_, Futex>::attach_waiting_by(&ours, 0).unwrap_err();
    assert!(matches!(refused, AttachError::Violation(PeerViolation::IndexOutOfRange { .. })));
    raw.payload(CONTROL).store(3, Ordering::Release);
    let refused = Receiver::<_, Futex>::attach_waiting_by(&ours, 0).unwrap_err();
    assert_eq!(refused, AttachError::Violation(PeerViolation::Misaligned { value: 3, unit: 8 }));
}

#[test]
fn one_liar_among_many_senders_costs_the_others_nothing() {
    let segments = [segment(2, 2, 512), segment(2, 2, 512)];
    let connections = [meet(&segments[0]), meet(&segments[1])];
    let mut gather: Gather = Gather::default();
    for (ours, _) in &connections {
        gather.add(ours, 0).unwrap();
    }
    let mut honest: Sender = Sender::attach(&connections[1].1, 0).unwrap();
    let raw = Raw::of(&segments[0]);
    raw.payload(RING).store(3, Ordering::Release);
    honest.send(b"still here").unwrap();
    let mut told = None;
    let mut received = None;
    for _ in 0..2 {
        match gather.recv_timeout(Duration::from_secs(60)) {
            Ok(message) => received = message.map(|(lane, message)| (lane, message.to_vec())),
            Err(error) => told = Some(error),
        }
    }
    let violation = RecvError::Violation(PeerViolation::BadValue { field: "record", value: 3 });
    assert_eq!(told, Some(GatherError { lane: Some(0), error: violation }));
    assert_eq!(received, Some((1, b"still here".to_vec())));
}

/// Wakes without a reason, faster than the deadline comes.
#[test]
fn a_peer_that_wakes_again_and_again_does_not_hold_a_waiter_beyond_its_deadline() {
    let segment = segment(2, 2, 512);
    let (ours, theirs) = meet(&segment);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (theirs, stop) = (&theirs, &stop);
        scope.spawn(move || {
            let state = theirs.segment().state(0).unwrap();
            while !stop.load(Ordering::Relaxed) {
                // Changes the epoch and wakes, as a death does.
                state.announce();
                state.record().wake.epoch().fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut futex: Receiver<_, Futex> = Receiver::attach_waiting_by(&ours, 0).unwrap();
        assert!(futex.recv_timeout(Duration::from_millis(5)).unwrap().is_none());
        drop(futex);
        let mut eventfd: Receiver<_, Eventfd> = Receiver::attach_waiting_by(&ours, 0).unwrap();
        assert!(eventfd.recv_timeout(Duration::from_millis(5)).unwrap().is_none());
        stop.store(true, Ordering::Relaxed);
    });
}

thread_local! {
    /// Where `Crowd` writes.
    static ATTACHMENTS: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

/// A way of waiting under which a new sender comes whenever nobody
/// looks, as a hostile peer can have it.
#[derive(Default)]
struct Crowd {
    waits_after_the_deadline: u32,
}

impl Wait for Crowd {
    const NAME: &'static str = "crowd";

    fn wait(
        &mut self,
        _: &mut [WaitEntry<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        ATTACHMENTS.get().unwrap().fetch_add(1, Ordering::Relaxed);
        if deadline.is_some_and(|deadline| deadline.passed()) {
            self.waits_after_the_deadline += 1;
            assert!(self.waits_after_the_deadline < 100, "held beyond the deadline");
        }
        Ok(ready())
    }
}

/// Each new word in the sender's place was reason enough to go on.
#[test]
fn a_peer_that_comes_again_and_again_does_not_hold_a_receiver_beyond_its_deadline() {
    let segment = segment(2, 2, 512);
    let (ours, _theirs) = meet(&segment);
    let raw: &'static Raw = Box::leak(Box::new(Raw::of(&segment)));
    // The receiver's stays ours.
    ATTACHMENTS.set(Some(raw.attachments()));
    let mut receiver: Receiver<_, Crowd> = Receiver::attach_waiting_by(&ours, 0).unwrap();
    assert!(receiver.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
}

/// Says hello as a joiner does, and counts what comes with the answer.
fn descriptors_offered(joiner: &OwnedFd) -> usize {
    let hello = [u64::from_ne_bytes(*b"DBHELLO1"), u64::from(doorbell_core::layout::MAJOR) << 32, u64::MAX];
    let hello: Vec<u8> = hello.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(send(joiner, &hello, SendFlags::empty()), Ok(hello.len()));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut offer = [0; 64];
    let into = &mut [IoSliceMut::new(&mut offer)];
    let received = recvmsg(joiner, into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    assert_eq!(received.bytes, 40, "an offer");
    let count = |message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.count(),
        _ => 0,
    };
    control.drain().map(count).sum()
}

/// What a trusted receiver lends out would change under its reader.
#[test]
fn trusted_ends_and_untrusted_peers_do_not_share_a_segment() {
    let shared = segment(2, 2, 512);
    let (ours, theirs) = meet(&shared);
    for connection in [&ours, &theirs] {
        let segment = connection.segment();
        assert_eq!(Sender::<_, Futex>::at_waiting_by(segment, 0).unwrap_err(), AttachError::Untrusted);
        assert_eq!(Receiver::<_, Futex>::at_waiting_by(segment, 1).unwrap_err(), AttachError::Untrusted);
        assert_eq!(Gather::<_, Futex>::at_waiting_by(segment, 1).unwrap_err(), AttachError::Untrusted);
    }

    let lent = segment(2, 2, 512);
    let _sender: Sender<Trusted> = Sender::at(&lent, 0).unwrap();
    let (hosting, joining) = try_meet(&lent, Join::default());
    assert_eq!(hosting.unwrap_err(), RendezvousError::Lent);
    assert_eq!(joining.unwrap_err(), RendezvousError::Refused(Reason::Lent));
    // The host was found to have sent the memory before it refused: what a joiner has, it keeps.
    let (host, joiner) = socket::pair().unwrap();
    let refusing = thread::scope(|scope| {
        let hosting = scope.spawn(|| socket::host_over(host, &lent).map(drop));
        assert_eq!(descriptors_offered(&joiner), 0);
        hosting.join().unwrap()
    });
    assert_eq!(refusing, Err(RendezvousError::Lent));
    // And whoever got it counts as met, though it never said that it takes it.
    let given = segment(2, 2, 512);
    let (host, joiner) = socket::pair().unwrap();
    let unfinished = thread::scope(|scope| {
        let hosting = scope.spawn(|| socket::host_over(host, &given).map(drop));
        assert_eq!(descriptors_offered(&joiner), 5, "the memory, and an eventfd for each bell");
        drop(joiner);
        hosting.join().unwrap()
    });
    assert!(matches!(unfinished, Err(RendezvousError::NoAnswer(_))), "{unfinished:?}");
    assert_eq!(Sender::<_, Futex>::at_waiting_by(&given, 0).map(drop), Err::<(), _>(AttachError::Untrusted));
    let (connection, _joined) = crate::meet::meet_as::<Trusted>(&lent);
    Sender::<_, Futex>::attach_waiting_by(&connection, 1).expect("whoever is trusted may come");
}
