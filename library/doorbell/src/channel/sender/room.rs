// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room for a message: found at once, waited for, or told of by a file.

use super::Sender;
use crate::channel::error::SendError;
use crate::channel::lane::Departure;
use crate::channel::receiver::MOST_TURNS;
use crate::cpu::cpu_mark;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::mapping::Scope;
use crate::peer::Trust;
use crate::select::{Parts, Source};
use crate::wait::{Token, Wait, WaitEntry};
use doorbell_core::channel::lane::{self, depends_on_cpus};
use doorbell_core::channel::layout::Attachment;
use doorbell_core::fault;
use doorbell_core::wake::{Waiter, listen};
use rustix::fd::BorrowedFd;
use std::sync::atomic::Ordering;

impl<T: Trust, W: Wait> Sender<T, W> {
    /// A file that becomes readable after [`listen`](Self::listen) returned false, when there is
    /// room. For epoll, poll, mio or tokio, level- or edge-triggered.
    ///
    /// Takes a waiter slot for eventfds at the bell at which the sender waits, for good. Never read
    /// from the file or write to it yourself.
    ///
    /// ```
    /// use rustix::event::epoll;
    ///
    /// let (mut sender, _receiver) = doorbell::channel(4096)?;
    /// let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    /// epoll::add(&events, sender.file()?, epoll::EventData::new_u64(7), epoll::EventFlags::IN)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`].
    pub fn file(&mut self) -> Result<BorrowedFd<'_>, WaitError> {
        self.end.check_ours()?;
        self.listener.file()
    }

    /// Before going back to the event loop: is there room for a message of `length` bytes after
    /// all, or something to be told of the receiver? Makes the file unreadable if not, until
    /// there is. Rings for what was pushed.
    ///
    /// Call it when [`try_send`](Self::try_send) found the channel full, and go back to the event
    /// loop only after `false`.
    ///
    /// ```
    /// use doorbell::channel::SendError;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    /// assert!(!sender.listen(500)?);
    /// while receiver.try_recv()?.is_some() {}
    /// poll(&mut [PollFd::new(&sender.file()?, PollFlags::IN)], None)?;
    /// sender.try_send(&[7; 500])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::NoWaiterSlot`], [`WaitError::Os`].
    pub fn listen(&mut self, length: usize) -> Result<bool, WaitError> {
        let ready = self.arm(length as u64)?;
        let (_, index) = self.listener.slots().take_eventfd()?;
        if ready {
            // For one who goes back to the event loop all the same.
            self.lane.room_state.put_token(index);
        }
        Ok(ready)
    }

    /// As `listen`, for one who comes back by itself after true.
    pub(crate) fn arm(&mut self, most: u64) -> Result<bool, WaitError> {
        self.end.check_ours()?;
        let (slot, index) = self.listener.slots().take_eventfd()?;
        // The receiver may sleep over what was pushed and not rung.
        self.ring();
        for _ in 0..MOST_TURNS {
            // A receiver that has come looks like room until this has looked.
            if !matches!(self.try_room(most), Ok(None)) {
                break;
            }
            let wanted = self.want_room(most);
            let state = &*self.lane.room_state;
            let mut waiter = [Waiter::new(&state.record().wake, slot)];
            if !listen(&mut waiter, &mut Token { state, index }, || self.may_go_on(wanted))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Room for a message of `length` bytes, to be waited for together with other ends.
    ///
    /// ```
    /// use doorbell::{Select, channel::SendError};
    ///
    /// let (mut sender, mut receiver) = doorbell::channel::pair(4096)?;
    /// while sender.try_send(&[7; 500]) != Err(SendError::Full) {}
    /// while receiver.try_recv()?.is_some() {}
    /// let room = &mut sender.room_for(500);
    /// assert_eq!(Select::new().wait(&mut [room, &mut receiver], None)?, Some(0));
    /// sender.try_send(&[7; 500])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn room_for(&mut self, length: usize) -> RoomFor<'_, T, W> {
        RoomFor { sender: self, length: length as u64 }
    }

    /// Room for nearly every message: nothing has happened to the receiver or this process, and so
    /// much is open in one piece.
    #[inline(always)]
    pub(super) fn room_now(&self, most: usize) -> Option<lane::Room> {
        if self.receiver.may_have_gone(&self.lane.control().receiver) {
            return None;
        }
        self.index.room_at_once(most as u64)
    }

    /// Room without waiting.
    #[inline(always)]
    pub(crate) fn try_room(&mut self, most: u64) -> Result<Option<lane::Room>, SendError> {
        if self.receiver.may_have_gone(&self.lane.control().receiver) {
            self.check_receiver()?;
        }
        let longest = self.index.longest();
        if most > longest {
            return Err(SendError::TooLong { length: most, longest });
        }
        loop {
            if let Some(room) = self.index.room_at_once(most) {
                return Ok(Some(room));
            }
            if !self.look_for_room(most)? {
                return Ok(None);
            }
        }
    }

    /// As `try_room`, for one who will come again: the receiver may
    /// sleep over what was pushed and not rung.
    pub(super) fn room_or_full(&mut self, most: u64) -> Result<lane::Room, SendError> {
        let room = self.try_room(most)?;
        room.ok_or_else(|| {
            self.ring();
            SendError::Full
        })
    }

    /// After a look at the receiver's word, is there room at once?
    #[inline(never)]
    fn look_for_room(&mut self, most: u64) -> Result<bool, SendError> {
        // Since then nothing is open at once.
        if let Some(violation) = self.violation {
            return Err(violation.into());
        }
        if depends_on_cpus(self.lane.capacity()) {
            let theirs = self.lane.control().receiver_cpu.load(Ordering::Relaxed);
            self.index.set_on_one_cpu(theirs == cpu_mark());
        }
        let room = self.index.room(most, &self.lane);
        Ok(room.inspect_err(|violation| self.violation = Some(*violation))?.is_some())
    }

    #[cold]
    fn check_receiver(&mut self) -> Result<(), SendError> {
        if self.end.is_ours() {
            // Another may have come, who cannot do without. In a forked child it is the parent's to say.
            self.fence.take_back(self.index.tail(), &mut self.lane);
        }
        match self.receiver.departed(&self.lane.control().receiver, &self.end) {
            None => Ok(()),
            Some(Departure::Forked) => Err(SendError::Forked),
            Some(Departure::Left) => Err(SendError::Closed),
            Some(Departure::Gone(peer)) => Err(SendError::PeerGone(peer)),
        }
    }

    #[inline]
    pub(super) fn room(&mut self, most: u64, deadline: Option<Deadline>) -> Result<lane::Room, SendError> {
        match self.try_room(most)? {
            Some(room) => Ok(room),
            None => self.wait_for_room(most, deadline),
        }
    }

    /// Says where this sender wants to be woken that waits for room for `most` bytes. Before it
    /// arms: `RingReader::release` reads it after its fence.
    fn want_room(&self, most: u64) -> u64 {
        let wanted = self.index.wanted(most);
        fault::point();
        self.lane.control().room_wanted.store(wanted, Ordering::Relaxed);
        wanted
    }

    /// For the `ready` of a wait: has the receiver released beyond
    /// `wanted`, or has something happened to it?
    fn may_go_on(&self, wanted: u64) -> bool {
        self.index.may_go_on(wanted, &self.lane) || self.receiver.may_have_gone(&self.lane.control().receiver)
    }

    #[cold]
    fn wait_for_room(&mut self, most: u64, deadline: Option<Deadline>) -> Result<lane::Room, SendError> {
        // The receiver may sleep over what was pushed and not rung.
        self.ring();
        loop {
            let wanted = self.want_room(most);
            let Self { lane, index, receiver, way, listener, .. } = self;
            let ready = || index.may_go_on(wanted, lane) || receiver.may_have_gone(&lane.control().receiver);
            let state = &lane.room_state;
            // Threads take their ends before they send; a process may come later.
            let nobody = Attachment::of(lane.control().receiver.load(Ordering::Acquire)) == Attachment::Never;
            if nobody && deadline.is_none() && state.mapping().scope() == Scope::Threads {
                return Err(SendError::NoReceiver);
            }
            let woken = way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?;
            if let Some(room) = self.try_room(most)? {
                return Ok(room);
            }
            // A hostile receiver can wake us for ever.
            if !woken || deadline.is_some_and(|deadline| deadline.passed()) {
                return Err(if nobody { SendError::NoReceiver } else { SendError::TimedOut });
            }
        }
    }
}

/// Room for a message, as one of the ends of a [`Select`](crate::Select). See [`Sender::room_for`].
#[derive(Debug)]
pub struct RoomFor<'s, T: Trust, W: Wait> {
    sender: &'s mut Sender<T, W>,
    length: u64,
}

impl<T: Trust, W: Wait> Source for RoomFor<'_, T, W> {
    fn look(&mut self) -> bool {
        // The receiver may sleep over what was pushed and not rung.
        self.sender.ring();
        !matches!(self.sender.try_room(self.length), Ok(None))
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let wanted = self.sender.want_room(self.length);
        let Sender { lane, index, receiver, listener, .. } = &mut *self.sender;
        let (lane, index, receiver) = (&*lane, &*index, &*receiver);
        parts.add(WaitEntry { state: &lane.room_state, listener }, move || {
            index.may_go_on(wanted, lane) || receiver.may_have_gone(&lane.control().receiver)
        });
    }
}
