// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared scheduler, as a process uses it: its own part of the pool, and the image's functions.

use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::Ordering::Relaxed;

use doorbell_core::wake::{Sleep, Slept, Waiter, WaiterSlot, listen};
use squall_scheduler::call::Call;
use squall_scheduler::image::{Entries, IMAGE, MAIL, PART, hand_over};
use squall_scheduler::mailbox::{ALL_SLEEP, Connection, Mailbox};
use squall_scheduler::pool::{ATTENTION, LEVELS, Part, Task};

use crate::kernel::{call, must, time};

/// This space's part of the pool.
pub(crate) fn part() -> *mut Part {
    with_exposed_provenance_mut(PART)
}

/// The image's functions.
#[inline(always)]
pub(crate) fn image() -> &'static Entries {
    // SAFETY: the kernel has mapped the image there, for reading, for as long as the space lives.
    unsafe { &*core::ptr::with_exposed_provenance(IMAGE) }
}

/// The running task goes after the others of its level.
#[inline(always)]
pub(crate) fn yield_now() {
    // SAFETY: the part is initialised before anything runs that calls this.
    unsafe { hand_over(image().yield_now, part()) }
}

/// The running task sleeps until somebody makes it ready.
pub(crate) fn block() {
    // SAFETY: as in `yield_now`; the running task is in its ring.
    unsafe { hand_over(image().block, part()) }
}

/// Takes this space's part of the pool, with room for so many tasks; false if there is no memory.
pub(crate) fn take_part(tasks: usize, how: usize) -> bool {
    if call(Call::Pool, [tasks, how, 0, 0]) < 0 {
        return false;
    }
    // SAFETY: the kernel has just mapped it, zeroed.
    unsafe { Part::initialise(part()) };
    true
}

/// Task number `index` of the part.
pub(crate) fn task(index: usize) -> *mut Task {
    // SAFETY: `take_part` asked for room after the part's head.
    unsafe { part().add(1).cast::<Task>().add(index) }
}

/// Makes a task ready.
pub(crate) fn insert(task: *mut Task, level: usize) {
    // SAFETY: tasks stay where they are.
    unsafe { (image().insert)(part(), task, level) }
}

/// Whether a task other than the executor is ready.
pub(crate) fn tasks_are_ready() -> bool {
    // SAFETY: an atomic word of this space's own part.
    let ready = unsafe { (*part()).ready.load(Relaxed) };
    ready & ((1 << LEVELS) - 2) != 0
}

/// The connection with another space.
pub(crate) fn connection(with: usize) -> &'static Connection {
    // SAFETY: made by `connect`, for as long as the space lives; all
    // of it is atomic but what the two agree on.
    unsafe { &*core::ptr::with_exposed_provenance(MAIL + with * 4096) }
}

/// Shares a page of mail with another space.
pub(crate) fn connect(with: usize) -> &'static Connection {
    must(Call::Connect, [with, 0, 0, 0]);
    connection(with)
}

/// The mail from `other` to `me`.
pub(crate) fn from(other: usize, me: usize) -> &'static Mailbox {
    &connection(other).to[usize::from(me > other)]
}

/// Wakes task behind `door` of `other`.
pub(crate) fn knock(other: usize, me: usize, door: u32) {
    if !connection(other).to[usize::from(other > me)].knock(door).is_empty() {
        // Refused only if the other has ended.
        call(Call::Kick, [other, 0, 0, 0]);
    }
}

/// How an executor sleeps: the token is a bit of its part, which the kernel sets.
struct Token;

impl Sleep for Token {
    type Error = core::convert::Infallible;

    fn consume(&mut self, _: usize) -> Result<(), Self::Error> {
        // SAFETY: an atomic word of this space's own part.
        unsafe { (*part()).ready.fetch_and(!ATTENTION, Relaxed) };
        Ok(())
    }

    fn barrier(&mut self, _: usize) -> Result<(), Self::Error> {
        // All who announce here do it with a fence; a neighbour that
        // claims otherwise withholds its own mail only.
        Ok(())
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, Self::Error> {
        must(Call::Park, [0; 4]);
        Ok(Slept::Woken)
    }
}

/// Where an executor's mail comes from.
pub(crate) struct Mail {
    /// This space's number.
    pub(crate) me: usize,
    /// The spaces it is connected with.
    pub(crate) others: [usize; 2],
    /// How many of them there are.
    pub(crate) count: usize,
}

impl Mail {
    fn boxes(&self) -> impl Iterator<Item = &'static Mailbox> {
        let me = self.me;
        self.others.into_iter().take(self.count).map(move |other| from(other, me))
    }

    fn there_is(&self) -> bool {
        // SAFETY: an atomic word of this space's own part.
        let alarm = unsafe { (*part()).mail.load(core::sync::atomic::Ordering::Acquire) != 0 };
        alarm || self.boxes().any(Mailbox::has_knocks)
    }

    /// Forgets the token, arms, looks: steps W1 to W5. After `false`
    /// any mail that comes leaves the token.
    pub(crate) fn listen(&self) -> bool {
        let Some(slot) = WaiterSlot::eventfd(0) else { unreachable!("there is a first slot") };
        // SAFETY: atomic words of this space's own part, which stays.
        let own = unsafe { &(*part()).words };
        let nobody = || Waiter::new(own, slot);
        let mut waiters = [nobody(), nobody(), nobody()];
        for (waiter, mailbox) in waiters[1..].iter_mut().zip(self.boxes()) {
            *waiter = Waiter::new(mailbox.words(), slot);
        }
        listen(&mut waiters[..self.count + 1], &mut Token, || self.there_is())
            .unwrap_or_else(|never| match never {})
    }

    /// Sleeps until there is mail, unless there is some.
    pub(crate) fn sleep(&self) {
        if !self.listen() {
            must(Call::Park, [0; 4]);
        }
    }
}

/// Sleeps until `other` knocks; the knocks, or none if it ended without one.
pub(crate) fn knocks_of(other: usize, me: usize) -> Option<u64> {
    let mail = Mail { me, others: [other, 0], count: 1 };
    let knocks = || Some(from(other, me).collect()).filter(|knocks| *knocks != 0);
    loop {
        if let Some(knocks) = knocks() {
            return Some(knocks);
        }
        // In this order: an end after the question leaves its mark for `sleep`.
        if take_mail() & ALL_SLEEP != 0 {
            return None;
        }
        if call(Call::Connect, [other, 0, 0, 0]) < 0 {
            // It may have knocked before it ended.
            return knocks();
        }
        mail.sleep();
    }
}

/// Sleeps for so many timebase ticks, whatever mail comes meanwhile.
pub(crate) fn sleep_for(ticks: usize, me: usize) {
    let end = time() as usize + ticks;
    loop {
        // In this order: an alarm that goes off at once leaves its mark for `sleep`.
        take_mail();
        let now = time() as usize;
        if now >= end {
            return;
        }
        must(Call::Alarm, [end - now, 0, 0, 0]);
        Mail { me, others: [0; 2], count: 0 }.sleep();
    }
}

/// Takes the kernel's mail.
pub(crate) fn take_mail() -> u64 {
    // SAFETY: an atomic word of this space's own part. Acquire pairs with the kernel's Release.
    unsafe { (*part()).mail.swap(0, core::sync::atomic::Ordering::Acquire) }
}
