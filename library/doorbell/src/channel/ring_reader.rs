// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of one lane, without the waiting.

use super::distance::Distance;
use super::error::RecvError;
use super::lane::{Departure, End, Lane, Partner};
use crate::attach_error::AttachError;
use crate::cpu::cpu_mark;
use crate::error::WaitError;
use crate::membarrier;
use crate::process::Process;
use crate::rendezvous::AttachContext;
use doorbell_core::channel::lane::{self, Found, depends_on_cpus};
use doorbell_core::fault;
use doorbell_core::violation::PeerViolation;
use std::mem::take;
use std::sync::atomic::Ordering;

/// The receiving end of one lane.
#[derive(Debug)]
pub(super) struct RingReader {
    pub(super) lane: Lane,
    index: lane::Receiver,
    end: End,
    sender: Partner,
    distance: Distance,
    /// Up to where it had received when `poll_alone_at_leisure` last
    /// found nothing to do, not even to release.
    idle_at: Option<u64>,
    /// Did the last run end because nothing more was there?
    ran_dry: bool,
    violation: Option<PeerViolation>,
    /// The sender's word when its end was told, until it has a successor.
    told: Option<u32>,
}

impl RingReader {
    pub(super) fn on(attach_context: AttachContext<'_>, number: u32) -> Result<Self, AttachError> {
        let lane = Lane::new(attach_context, number)?;
        let end = End::take(&lane, &lane.control().receiver, number)?;
        let index = match lane::Receiver::attach(lane.capacity(), &lane) {
            Ok(index) => index,
            Err(violation) => {
                end.leave(&lane.control().receiver);
                return Err(violation.into());
            }
        };
        let sender = Partner::new(&lane, &lane.room_state);
        let can = membarrier::can_run(lane.message_state.mapping().scope());
        fault::point();
        // Release: pairs with `Fence::leave_out`.
        lane.control().can_run_barrier.store(can.into(), Ordering::Release);
        let distance = Distance::new(index.received());
        Ok(Self {
            lane,
            index,
            end,
            sender,
            distance,
            idle_at: None,
            ran_dry: false,
            violation: None,
            told: None,
        })
    }

    /// The next message, if there is one, and done with the one before. If there is none, releases
    /// what was consumed, and says whether the sender has gone.
    #[inline(always)]
    pub(super) fn poll(&mut self) -> Result<Option<Found>, RecvError> {
        match self.poll_now() {
            Some(found) => Ok(Some(found)),
            None => self.poll_at_leisure(),
        }
    }

    /// As `poll`, for one who has no other lane to look at: keeps its distance from the sender.
    #[inline(always)]
    pub(super) fn poll_alone(&mut self) -> Result<Option<Found>, RecvError> {
        match self.poll_now() {
            Some(found) => Ok(Some(found)),
            // Who looks again and again sees an answer the sooner, the shorter each look is.
            None if self.idle_at == Some(self.index.received()) && !self.is_ready(1) => Ok(None),
            None => self.poll_alone_at_leisure(),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_alone_at_leisure(&mut self) -> Result<Option<Found>, RecvError> {
        self.idle_at = None;
        // Nearly always this is all.
        if !self.sender.is_news() && self.index.must_release() {
            self.release();
            if let Some(found) = self.poll_now() {
                return Ok(Some(found));
            }
        }
        if let Some(found) = self.poll_at_leisure()? {
            return Ok(Some(found));
        }
        if self.distance.keep(self.index.received()) {
            return self.next_behind_pause();
        }
        // All that was received is released by now, and as long as
        // nothing comes the distance has nothing to learn.
        self.idle_at = Some(self.index.received());
        Ok(None)
    }

    fn next_behind_pause(&mut self) -> Result<Option<Found>, RecvError> {
        let found = self.next()?;
        if let Some(found) = found {
            self.distance.found(found.record_size());
        }
        Ok(found)
    }

    /// In front of a run: is there anything for it? If there is
    /// nothing, does what `poll_alone` does.
    #[inline(always)]
    pub(super) fn poll_for_run(&mut self) -> Result<bool, RecvError> {
        // Nearly always the last run left something, and the run itself finds what it is.
        if !(self.ran_dry || self.sender.is_news() || self.index.must_release())
            && self.index.has_such(&self.lane)
        {
            return Ok(true);
        }
        self.poll_for_run_at_leisure()
    }

    /// A run that ended because nothing was there was a look that
    /// found nothing, even if there is something by now.
    #[inline(never)]
    fn poll_for_run_at_leisure(&mut self) -> Result<bool, RecvError> {
        if take(&mut self.ran_dry) && !self.sender.is_news() {
            // First of all the sender gets its room.
            self.put_back();
            if self.distance.keep(self.index.received()) && self.next_behind_pause()?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.poll_alone()?.is_some())
    }

    /// `poll` for nearly every message.
    #[inline(always)]
    pub(super) fn poll_now(&mut self) -> Option<Found> {
        // A forked child must not take its parent's messages.
        if self.sender.is_news() {
            return None;
        }
        self.index.next_at_once(&self.lane)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn poll_at_leisure(&mut self) -> Result<Option<Found>, RecvError> {
        if self.sender.is_news() && !self.end.is_ours() {
            return Err(RecvError::Forked);
        }
        if self.index.must_release() {
            self.release();
        }
        if let Some(found) = self.next_or_release()? {
            return Ok(Some(found));
        }
        if self.sender.may_have_gone(&self.lane.control().sender) {
            return self.check_sender();
        }
        Ok(None)
    }

    fn next_or_release(&mut self) -> Result<Option<Found>, RecvError> {
        let found = self.next()?;
        if found.is_none() {
            // A skip may have gone before nothing.
            if self.index.must_release() {
                self.release();
            } else if self.end.is_ours_at_once() {
                self.index.release_unannounced(&self.lane);
            }
        }
        Ok(found)
    }

    fn next(&mut self) -> Result<Option<Found>, RecvError> {
        if let Some(violation) = self.violation {
            return Err(violation.into());
        }
        self.index.next(&self.lane).map_err(|violation| {
            self.violation = Some(violation);
            violation.into()
        })
    }

    #[cold]
    fn check_sender(&mut self) -> Result<Option<Found>, RecvError> {
        let departure = self.sender.departed(&self.lane.control().sender, &self.end);
        // It may have sent something between our look and its end.
        if let Some(found) = self.next_or_release()? {
            return Ok(Some(found));
        }
        match departure {
            None => Ok(None),
            Some(Departure::Forked) => Err(RecvError::Forked),
            Some(Departure::Left) => Err(RecvError::Closed),
            Some(Departure::Gone(peer)) => Err(RecvError::PeerGone(peer)),
        }
    }

    /// As `End::check_ours`.
    pub(super) fn check_ours(&self) -> Result<(), WaitError> {
        self.end.check_ours()
    }

    /// As `End::is_of`.
    pub(super) fn is_of(&self, current: Process) -> bool {
        self.end.is_of(current)
    }

    /// Says where this receiver wants to be woken that waits for `bytes` bytes. Before it arms:
    /// `Sender::ring` reads it after its fence.
    #[inline]
    pub(super) fn want(&self, bytes: u64) {
        fault::point();
        self.lane.control().message_wanted.store(self.index.wanted(bytes), Ordering::Relaxed);
    }

    /// For the `ready` of a wait: are there `bytes` bytes, or has something happened to the sender?
    #[inline]
    pub(super) fn is_ready(&self, bytes: u64) -> bool {
        let there = if bytes <= 1 {
            self.index.has_next(&self.lane)
        } else {
            self.index.has_bytes(bytes, &self.lane)
        };
        there || self.sender.may_have_gone(&self.lane.control().sender)
    }

    /// After `is_ready`: is there really a message, or the end of a sender, to be told? That a
    /// sender has come looks the same to `is_ready` until this was called.
    pub(super) fn settle(&mut self) -> bool {
        self.index.has_next(&self.lane) || self.sender_has_gone()
    }

    fn sender_has_gone(&mut self) -> bool {
        let word = &self.lane.control().sender;
        self.sender.may_have_gone(word) && self.sender.departed(word, &self.end).is_some()
    }

    /// Are there at least `bytes` bytes of records? `None` if not, and their sender has gone.
    pub(super) fn has_bytes(&mut self, bytes: u64) -> Option<bool> {
        if self.index.has_bytes(bytes, &self.lane) {
            return Some(true);
        }
        (!self.sender_has_gone()).then_some(false)
    }

    pub(super) fn most_bytes(&self) -> u64 {
        self.index.most_bytes()
    }

    /// As `poll`, for one of many lanes. An error comes with whether it is told for the first time.
    #[inline]
    pub(super) fn poll_once(&mut self) -> Result<Option<Found>, (RecvError, bool)> {
        match self.poll() {
            Ok(found) => {
                self.told = None;
                Ok(found)
            }
            Err(error) => Err((error, self.tell())),
        }
    }

    #[cold]
    fn tell(&mut self) -> bool {
        // The word as it was when the end was found: a successor who came since is news.
        let word = self.sender.word_at_departure();
        self.told.replace(word) != Some(word)
    }

    /// For the `ready` of a wait for many lanes: is there a message,
    /// or something to tell that was not told?
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        match self.told {
            None => self.is_ready(1),
            Some(_) if self.violation.is_some() => false,
            // A sender that came, sent and left again leaves the word as it was.
            Some(_) => {
                self.index.has_next(&self.lane) || self.sender.has_changed(&self.lane.control().sender)
            }
        }
    }

    /// As `has_news`, before a sleep: tells the sender of the room there is.
    pub(super) fn look_once(&mut self) -> bool {
        match self.told {
            None => !matches!(self.poll(), Ok(None)),
            Some(_) => self.has_news(),
        }
    }

    /// Was its end told, and has no other sender come?
    pub(super) fn is_over(&self) -> bool {
        self.told.is_some()
    }

    /// Is there nothing to do: no message, no change at the sender, nothing held back?
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        self.told.is_none() && !self.is_ready(1) && self.index.has_released()
    }

    /// Is there a message, as far as one look tells, in a lane whose
    /// sender was not told to have gone?
    #[inline(always)]
    pub(super) fn has_message(&self) -> bool {
        self.told.is_none() && self.index.has_next(&self.lane)
    }

    /// As `settle`, after `has_news`.
    pub(super) fn settle_once(&mut self) -> bool {
        match self.told {
            None => self.settle(),
            Some(_) => self.has_news(),
        }
    }

    /// Is there a message, as far as one look tells?
    pub(super) fn holds_message(&self) -> bool {
        self.index.has_next(&self.lane)
    }

    /// How many messages are there.
    pub(super) fn count(&self) -> usize {
        self.index.waiting(&self.lane).0
    }

    /// The messages that are there, of which none is released before the next look.
    pub(super) fn run(&mut self) -> Run<'_> {
        let Self { lane, index, violation, ran_dry, .. } = self;
        let run = index.run();
        Run { lane, index, run, violation, ran_dry }
    }

    /// Lends out the message that was found, until the next look or
    /// `put_back`: nothing is released before.
    #[inline(always)]
    pub(super) fn lend(&mut self, found: Found) {
        self.index.consume(found);
    }

    /// Done with the message that was lent out, if one was.
    #[inline(always)]
    pub(super) fn put_back(&mut self) {
        if self.index.must_release() {
            self.release();
        }
    }

    /// Releases what was consumed and held back, and tells the sender.
    pub(super) fn give_back(&mut self) {
        if self.index.can_release() {
            self.release();
        }
    }

    #[inline(never)]
    fn release(&mut self) {
        // A forked child that drops its copy knows an old index: the sender would take it for a lie, or for
        // less room than it was told of already, and sleep.
        if !self.end.is_ours_at_once() {
            return;
        }
        if depends_on_cpus(self.lane.capacity()) {
            fault::point();
            self.lane.control().receiver_cpu.store(cpu_mark(), Ordering::Relaxed);
        }
        let (before, now) = self.index.release(&self.lane);
        let wanted = &self.lane.control().room_wanted;
        self.lane.room_state.announce_if(|| {
            doorbell_core::channel::arithmetic::passes(wanted.load(Ordering::Relaxed), before, now)
        });
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lane.control().dropped.load(Ordering::Relaxed)
    }
}

/// Messages that are received one after another, and released by a later look.
#[derive(Debug)]
pub(super) struct Run<'a> {
    lane: &'a Lane,
    index: &'a mut lane::Receiver,
    run: lane::Run,
    violation: &'a mut Option<PeerViolation>,
    ran_dry: &'a mut bool,
}

impl<'a> Run<'a> {
    /// The next. What is wrong with the sender is told by the next look.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<(&'a Lane, Found)> {
        match self.index.next_of_run(&mut self.run, self.lane) {
            Ok(Some(found)) => Some((self.lane, found)),
            Ok(None) => {
                *self.ran_dry = true;
                None
            }
            Err(violation) => {
                self.violation.get_or_insert(violation);
                None
            }
        }
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        if self.end.is_ours() {
            // A successor begins here.
            self.index.release_unannounced(&self.lane);
        }
        self.end.leave(&self.lane.control().receiver);
        self.lane.room_state.announce();
    }
}

#[cfg(test)]
mod tests {
    use super::RingReader;
    use crate::channel::{Lanes, Sender};
    use crate::peer::Trusted;
    use crate::rendezvous::{Offer, Segment};

    /// The release after the first look has no second: the sender
    /// that was told of no room sleeps, and so do we.
    #[test]
    fn a_skip_that_is_found_only_at_the_second_look_is_told_to_the_sender() {
        let segment = Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 256).unwrap())).unwrap();
        let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        let mut reader = RingReader::on(segment.attach_context().unwrap(), 0).unwrap();
        for _ in 0..12 {
            sender.send(&[0; 8]).unwrap();
            let found = reader.poll().unwrap().unwrap();
            reader.lend(found);
        }
        reader.give_back();
        // 64 bytes are left before the end of the ring.
        let _ = sender.reserve(72).unwrap();
        assert_eq!(reader.check_sender(), Ok(None));
        assert!(!reader.index.can_release(), "the sender was not told");
    }

    /// A receiver of batches was at its sender's heels: by the next look there was something, so
    /// that none found nothing.
    #[test]
    fn a_run_that_went_dry_is_a_look_that_found_nothing() {
        let segment = Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap())).unwrap();
        let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        let mut reader = RingReader::on(segment.attach_context().unwrap(), 0).unwrap();
        for run in 0..20 {
            for _ in 0..10 {
                sender.send(&[0; 8]).unwrap();
            }
            assert!(reader.poll_for_run().unwrap());
            let mut messages = reader.run();
            let taken = std::iter::from_fn(|| messages.next()).count();
            assert_eq!(taken, 10);
            assert!(run < 10 || reader.distance.has_paused(), "no pause before run {run}");
        }
    }

    #[test]
    fn a_run_that_is_given_up_loses_nothing_and_leaves_the_rest() {
        let segment = Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap())).unwrap();
        let mut sender: Sender<Trusted> = Sender::at(&segment, 0).unwrap();
        let mut reader = RingReader::on(segment.attach_context().unwrap(), 0).unwrap();
        for _ in 0..1000 {
            for length in [8, 24, 16] {
                sender.send(&vec![0; length]).unwrap();
            }
            assert!(reader.poll_for_run().unwrap());
            let mut messages = reader.run();
            assert_eq!(messages.next().unwrap().1.length(), 8);
            for length in [24, 16] {
                let found = reader.poll_alone().unwrap().unwrap();
                assert_eq!(found.length(), length);
                reader.lend(found);
            }
        }
    }
}
