// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lane as this process sees it.

use super::bulk;
use crate::attach_error::AttachError;
use crate::bell_state::BellState;
use crate::directory::control;
use crate::error::WaitError;
use crate::generation::{news, news_to_keep};
use crate::mapping::Mapping;
use crate::origin::Hold;
use crate::peer::{Lives, PeerId, Trust};
use crate::process::Process;
use crate::rendezvous::{AttachContext, Processes};
use doorbell_core::channel::lane::{Found, Room, Shared};
use doorbell_core::channel::layout::{Attachment, Control};
use doorbell_core::fault;
use doorbell_core::index::Capacity;
use doorbell_core::wake::WakeWords;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Where a sender looks that has not left out its fence.
static FENCED: WakeWords = WakeWords::never_alone();

/// A lane as this process sees it.
///
/// Invariant: `control`, `message_words` and `ring` point into `mapping`, at a
/// whole [`Control`], whole [`WakeWords`] and `capacity` bytes, and are aligned
/// to 128, 128 and 4096. The bytes of the ring that belong to this side are
/// touched by this side's one handle alone; all others only atomically.
#[derive(Debug)]
pub(super) struct Lane {
    control: NonNull<Control>,
    ring: NonNull<u8>,
    capacity: Capacity,
    /// Where the receiver waits for messages.
    pub(super) message_state: Arc<BellState>,
    /// Its words, in `mapping`.
    message_words: NonNull<WakeWords>,
    /// What a sender looks at after each message: these, while it has left out its fence, else
    /// words at which somebody always waits.
    looked_at: NonNull<WakeWords>,
    /// Where the sender waits for room.
    pub(super) room_state: Arc<BellState>,
    /// Keeps `control` and `ring`.
    _mapping: Arc<Mapping>,
    /// As long as it is held, nobody is given the end that is held here.
    _hold: Option<Arc<dyn Hold>>,
    /// Where no hold tells of the other side's death, who does.
    processes: Option<Arc<Processes>>,
}

// SAFETY: shared words are only reached through atomics. The payload
// is written by the one `Sender` and read by the one `Receiver` of
// this lane in this process, whose attachment words exclude others.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    pub(super) fn new(attach_context: AttachContext<'_>, number: u32) -> Result<Self, AttachError> {
        let AttachContext { segment, hold, processes } = attach_context;
        let lanes = segment.lanes().ok_or(AttachError::NoChannels)?;
        let missing = AttachError::NoLane { lane: number, lanes: lanes.lanes() };
        if number >= lanes.lanes() {
            return Err(missing);
        }
        let state = |index| segment.state(index).cloned().ok_or(missing);
        let payload = segment.mapping().whole_payload();
        let ring = payload.part(lanes.ring_offset(number), lanes.capacity().get())?;
        let message_state = state(lanes.message_bell(number))?;
        Ok(Self {
            control: NonNull::from(control(segment.mapping(), lanes, number)?),
            ring: NonNull::new(ring.as_ptr()).ok_or(missing)?,
            capacity: lanes.capacity(),
            message_words: NonNull::from(&message_state.record().wake),
            looked_at: NonNull::from(&FENCED),
            message_state,
            room_state: state(lanes.room_bell(number))?,
            _mapping: Arc::clone(segment.mapping()),
            _hold: hold,
            processes,
        })
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    #[inline(always)]
    pub(super) fn control(&self) -> &Control {
        // SAFETY: by the invariant; all its fields are atomics.
        unsafe { self.control.as_ref() }
    }

    /// Where the receiver waits for messages.
    #[inline(always)]
    pub(super) fn message_words(&self) -> &WakeWords {
        // SAFETY: they lie in the mapping, which lives as long as `self`; all their fields are atomics.
        unsafe { self.message_words.as_ref() }
    }

    /// Whether a sender looks for waiters without a fence from now on.
    pub(super) fn leave_out_fence(&mut self, left_out: bool) {
        self.looked_at = if left_out { self.message_words } else { NonNull::from(&FENCED) };
    }

    /// Has a sender anything to do for the message that it has published, such as a fence?
    #[inline(always)]
    pub(super) fn must_ring(&self) -> bool {
        // SAFETY: they lie in the mapping, as above, or are static.
        unsafe { self.looked_at.as_ref() }.has_waiters_unfenced()
    }

    /// The address of byte `offset` of the ring, which a [`Room`] or a [`Found`] of this lane
    /// named. What is empty may lie at its end.
    #[inline(always)]
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        // Ours alone: a `Room` and a `Found` are private copies, made
        // of what was checked, that no peer can write.
        debug_assert!(offset <= self.capacity.get());
        // In the ring, hence in the address space.
        self.ring.as_ptr().wrapping_add(offset as usize)
    }

    /// Copies a message into `room`, which is this lane's, as far as it fits.
    #[inline(always)]
    pub(super) fn write<T: Trust>(&self, room: &Room, message: &[u8]) {
        let message = &message[..message.len().min(room.most() as usize)];
        self.write_all::<T>(room, message);
    }

    /// As `write`, of a message for whose length `room` was made: both are this process's own, so
    /// no peer has a say in it.
    #[inline(always)]
    pub(super) fn write_all<T: Trust>(&self, room: &Room, message: &[u8]) {
        debug_assert!(message.len() as u64 <= room.most());
        if self.write_at_once::<T>(room.payload(), message) {
            return;
        }
        let (words, rest) = message.as_chunks::<8>();
        let mut to = room.payload();
        for word in words {
            self.store(to, u64::from_ne_bytes(*word));
            to += 8;
        }
        if !rest.is_empty() {
            // The padding of the record is ours too.
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.store(to, u64::from_ne_bytes(word));
        }
    }

    /// Copies `bytes` to offset `at` of the message that is written in `room`, which is this
    /// lane's, as far as they fit. Returns how many did.
    pub(super) fn write_part<T: Trust>(&self, room: &Room, at: usize, bytes: &[u8]) -> usize {
        let fitting = bytes.len().min((room.most() as usize).saturating_sub(at));
        let bytes = &bytes[..fitting];
        let begin = room.payload() + at as u64;
        if self.write_at_once::<T>(begin, bytes) {
            return fitting;
        }
        // Whole words from a multiple of 8 on, and the bytes before and after one by one.
        let lead = (begin.next_multiple_of(8) - begin).min(fitting as u64) as usize;
        let (lead, rest) = bytes.split_at(lead);
        let (words, tail) = rest.as_chunks::<8>();
        let mut to = begin;
        let store_bytes = |bytes: &[u8], to: &mut u64| {
            for byte in bytes {
                self.store_byte(*to, *byte);
                *to += 1;
            }
        };
        store_bytes(lead, &mut to);
        for word in words {
            self.store(to, u64::from_ne_bytes(*word));
            to += 8;
        }
        store_bytes(tail, &mut to);
        fitting
    }

    /// Copies `bytes` to `offset`, where they lie in a [`Room`] of
    /// this lane, unless that is to be done by words.
    #[inline(always)]
    fn write_at_once<T: Trust>(&self, offset: u64, bytes: &[u8]) -> bool {
        let to = self.at(offset);
        if T::TRUSTED {
            fault::point();
            // SAFETY: a `Room` lies in the ring in one piece (the caller's word), and belongs to the sender
            // until it is published; a trusted receiver touches only what was published.
            unsafe {
                // Between two cores a string instruction is faster
                // than the language's copy. Measured on x86 alone.
                if !cfg!(target_arch = "x86_64") || !bulk::store(to, bytes) {
                    copy_after_narrow_stores(to, bytes);
                }
            }
            return true;
        }
        // SAFETY: as above; an untrusted receiver is another process, and the one handle of this lane that
        // may be writing here in this process is borrowed.
        unsafe { bulk::store(to, bytes) }
    }

    #[inline(always)]
    fn store(&self, offset: u64, value: u64) {
        fault::point();
        self.word(offset).store(value, Ordering::Relaxed);
    }

    fn store_byte(&self, offset: u64, value: u8) {
        fault::point();
        // SAFETY: it lies in a `Room`, hence in the ring, and the mapping lives as long as `self`.
        unsafe { &*self.at(offset).cast::<AtomicU8>() }.store(value, Ordering::Relaxed);
    }

    /// Copies the first bytes of the message `found`, which is this lane's, as many as there are
    /// and fit: once. Returns how many.
    #[inline(always)]
    pub(super) fn read<T: Trust>(&self, found: &Found, to: &mut [u8]) -> usize {
        let fitting = to.len().min(found.length() as usize);
        let to = &mut to[..fitting];
        let from = self.at(found.payload());
        if T::TRUSTED {
            // SAFETY: a message lies in the ring in one piece (`Found`), and a trusted sender does not write
            // there until it is consumed, for which the receiver must be borrowed.
            unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from, fitting) };
            return fitting;
        }
        // SAFETY: as above, but that the sender may be writing there; it is another process.
        if unsafe { bulk::load(from, to) } {
            return fitting;
        }
        let (words, rest) = to.as_chunks_mut::<8>();
        let mut from = found.payload();
        for word in words {
            *word = self.word(from).load(Ordering::Relaxed).to_ne_bytes();
            from += 8;
        }
        if !rest.is_empty() {
            let word = self.word(from).load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
        fitting
    }
}

/// Copies `bytes` to `to`, the first eight of them apart.
///
/// Whoever stamps a message with a number stores a narrow word in front of it and sends it at once.
/// A wide load over that word waits until the store has left for the cache, since no processor
/// forwards a part of what it loads; what takes the word by itself gets it forwarded, and the rest
/// was written long ago. In such loops that is half the time.
///
/// # Safety
/// `to` is valid for writes of `bytes.len()` bytes, and nobody else touches them meanwhile.
#[inline(always)]
unsafe fn copy_after_narrow_stores(to: *mut u8, bytes: &[u8]) {
    match bytes.split_first_chunk::<8>() {
        // SAFETY: by contract.
        Some((first, rest)) => unsafe {
            to.cast::<[u8; 8]>().write(*first);
            to.wrapping_add(8).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
        },
        // SAFETY: by contract.
        None => unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) },
    }
}

impl Shared for Lane {
    #[inline(always)]
    fn word(&self, place: u64) -> &AtomicU64 {
        debug_assert!(place.is_multiple_of(8) && place < self.capacity.get());
        let at = self.ring.as_ptr().wrapping_add(place as usize).cast::<AtomicU64>();
        // SAFETY: `lane::Sender` and `lane::Receiver` of this lane's capacity alone call this, with a place
        // in the ring, a multiple of 8 from an aligned base, whatever the peer writes (their tests
        // go through every word at every place); the other callers are in this file. The mapping
        // lives as long as `self`.
        unsafe { &*at }
    }

    #[inline(always)]
    fn released(&self) -> &AtomicU64 {
        &self.control().released
    }
}

/// One end of a lane, held by this process.
#[derive(Debug)]
pub(super) struct End {
    holder: u32,
    /// A forked child has a copy, which is not the end.
    process: Process,
}

impl End {
    /// Takes the end of `lane`, the number of which is `number`, whose word is `word`.
    pub(super) fn take(lane: &Lane, word: &AtomicU32, number: u32) -> Result<Self, AttachError> {
        let holder = lane.room_state.holder();
        let ours = Attachment::word(holder);
        loop {
            fault::point();
            let taken =
                word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| match Attachment::of(word) {
                    Attachment::Never | Attachment::Left(_) | Attachment::Died(_) => Some(ours),
                    Attachment::Holder(_) => None,
                });
            let Err(word) = taken else { return Ok(Self { holder, process: Process::current() }) };
            // Nobody may have met its holder yet, who could have freed it.
            match (Attachment::of(word), &lane.processes) {
                (Attachment::Holder(there), Some(processes)) if processes.has_ended(there) => {}
                _ => return Err(AttachError::Taken { lane: number }),
            }
        }
    }

    /// Is it this process's, and not a copy of what the process that forked this one has?
    pub(super) fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    /// As `is_ours`, for one who knows that the calling process is `current`.
    pub(super) fn is_of(&self, current: Process) -> bool {
        self.process == current
    }

    /// Before a waiter slot is taken, or anything is written that our waiting parent is woken by.
    pub(super) fn check_ours(&self) -> Result<(), WaitError> {
        if self.is_ours() { Ok(()) } else { Err(WaitError::Forked) }
    }

    /// As `is_ours`, for nearly every message.
    #[inline(always)]
    pub(super) fn is_ours_at_once(&self) -> bool {
        self.process.is_current_generation()
    }

    /// Leaves it to others.
    pub(super) fn leave(&self, word: &AtomicU32) {
        if self.is_ours() {
            fault::point();
            // Release: whoever sees that it was left sees all that was done there. Fails only if a peer wrote
            // what it must not: while an end is held, so is the hold, and nobody gives it away.
            let (ours, left) = (Attachment::word(self.holder), Attachment::left(self.holder));
            let _ = word.compare_exchange(ours, left, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// What one side has found out about the other.
#[derive(Debug)]
pub(super) struct Partner {
    lives: Arc<Lives>,
    /// Where nobody tells of its death unasked, whom to ask.
    processes: Option<Arc<Processes>>,
    word: u32,
    /// Of this process, when `departed` last looked.
    news: u64,
    word_at_departure: u32,
}

/// The word as it will be when the death of a dead holder has been
/// seen to (`vacate`), so that this is no change.
fn settled(word: u32, lives: &Lives) -> u32 {
    match Attachment::of(word) {
        Attachment::Holder(holder) if lives.gone(holder).is_some() => Attachment::died(holder),
        _ => word,
    }
}

/// Makes the end look as if nobody had ever been there, if whoever was has left or died.
pub(super) fn forget_departed(word: &AtomicU32, state: &BellState) {
    let now = word.load(Ordering::Acquire);
    if let Attachment::Left(_) | Attachment::Died(_) = Attachment::of(settled(now, state.lives())) {
        fault::point();
        // Not if somebody has come since.
        let _ = word.compare_exchange(now, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// How a partner went.
pub(super) enum Departure {
    Left,
    Gone(PeerId),
    /// It is where it was. We are a forked child, and our end is our parent's.
    Forked,
}

impl Partner {
    /// That of whoever has an end of `lane`, which waits at `theirs`. If it is to be asked for, so
    /// are we: it is woken to look.
    pub(super) fn new(lane: &Lane, theirs: &BellState) -> Self {
        let (lives, processes) = (Arc::clone(theirs.lives()), lane.processes.clone());
        if processes.is_some() {
            theirs.announce();
        }
        Self { news: news_to_keep(), lives, processes, word: 0, word_at_departure: 0 }
    }

    /// May anything have happened to it since `departed` last looked?
    #[inline(always)]
    pub(super) fn may_have_gone(&self, word: &AtomicU32) -> bool {
        word.load(Ordering::Acquire) != self.word || self.is_news()
    }

    /// Has anything happened in this process since `departed` last looked?
    #[inline(always)]
    pub(super) fn is_news(&self) -> bool {
        news() != self.news
    }

    /// Has it gone, as far as our end `ours` is concerned? Reports so until another has come.
    #[cold]
    pub(super) fn departed(&mut self, word: &AtomicU32, ours: &End) -> Option<Departure> {
        if !ours.is_ours() {
            return Some(Departure::Forked);
        }
        let lives = &self.lives;
        let news = news_to_keep();
        let now = word.load(Ordering::Acquire);
        let departure = match Attachment::of(now) {
            // Also if it has hung up since: it had left before.
            Attachment::Left(_) => Some(Departure::Left),
            Attachment::Died(holder) => Some(Departure::Gone(lives.name(holder).unwrap_or(PeerId::UNMET))),
            Attachment::Holder(holder) => {
                if let Some(processes) = &self.processes {
                    processes.watch(holder);
                }
                lives.gone(holder).map(Departure::Gone)
            }
            Attachment::Never => None,
        };
        let departure = departure.or_else(|| lives.all_gone().map(Departure::Gone));
        self.word_at_departure = settled(now, lives);
        if departure.is_none() {
            (self.word, self.news) = (now, news);
        }
        departure
    }

    /// The word in which `departed` last saw it.
    pub(super) fn word_at_departure(&self) -> u32 {
        self.word_at_departure
    }

    /// Has anything changed since `departed` last looked?
    pub(super) fn has_changed(&self, word: &AtomicU32) -> bool {
        let now = word.load(Ordering::Acquire);
        now != self.word_at_departure && settled(now, &self.lives) != self.word_at_departure
    }
}
