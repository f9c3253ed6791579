// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wake protocol: how a waiter goes to sleep so that no announcement made in between is lost.
//!
//! A **notifier** makes something true that a waiter is waiting for (it stores
//! a message, it counts a ring), and then calls [`WakeWords::announce`]. A
//! **waiter** calls [`wait_until`] (or [`listen`], when a foreign event loop
//! does the sleeping) with a closure that says whether the thing is true.
//!
//! # The words
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `waiters` | waiters set bits, notifiers clear all | one bit per place in which somebody may be asleep |
//! | `epoch` | notifiers that found a bit | the value a futex sleeper compares before it sleeps |
//! | `unfenced` | notifiers that leave out N2, while they do | how many they are |
//!
//! # The steps
//!
//! ```text
//! notifier                               waiter
//! --------                               ------
//! N1 make the thing true                 W1 consume the token left by an earlier wake
//! N2 full fence                          W2 ticket = epoch
//! N3 waiters == 0? then done             W3 set my bit in `waiters`
//! N4 taken = swap(waiters, 0)            W4 full fence
//! N5 epoch += 1                          W5 is the thing true? then done
//! N6 wake the places in `taken`          W6 sleep: on the futex only while epoch == ticket,
//!                                           on a token until there is one
//! ```
//!
//! # Why no wake-up is lost
//!
//! Let a waiter be in W6 and let a notifier have made its thing true and finished. The two full
//! fences N2 and W4 are totally ordered.
//!
//! 1. **N2 before W4.** Then W5, which follows W4, sees the store N1: the waiter is not in W6.
//! 2. **W4 before N2.** Then N3 and N4 see the waiter's bit, unless some notifier took it after W3.
//!    Call the one that took it T; it may be this notifier. T's N4 comes after W3, hence its N5
//!    after W2.
//!    - A futex sleeper has a ticket from before N5. Either the kernel finds the word changed when
//!      it compares, or the sleeper is in the kernel's queue when N6 comes.
//!    - A token sleeper finds the token of N6, which came after W3: its own W1 came before and
//!      cannot have eaten it.
//!
//! Each order is needed. Without either fence both sides may read the old value: x86 too lets a
//! load pass an earlier store. With W1 after W3 the waiter may eat a token whose bit is already
//! cleared, and the next announcement finds no bit. With W2 after W3, or N4 after N5, a notifier
//! that is late with an earlier thing can take the bit of a waiter whose ticket is already the new
//! epoch. Without W5 an announcement between the caller's own look and W3 is slept through. Without
//! N5 a waiter between W5 and W6 sleeps through N6. `races/broken.rs` has each of these mistakes as
//! a switch and shows that the model checker catches it.
//!
//! Several sleepers share the futex bit. None may clear it on its way out, for another may still be
//! asleep behind it; a bit left set costs the next notifier one wake too many. A token has exactly
//! one owner (its **waiter slot**), for a token taken by one waiter is not there for a second.
//!
//! # A notifier without a fence
//!
//! One that notifies far more often than anybody sleeps may leave N2 to the waiter, who then has
//! the kernel run a full fence on every processor on which such a notifier may be
//! (`membarrier(2)`): between two instructions of each notifier there is then a point at which it
//! had a fence. If that point lies after N1, W5 sees the thing; if it lies before N3, N3 sees
//! the bit, which was set before the call. One of both it does.
//!
//! The notifier says so in `unfenced` before it begins ([`WakeWords::begin_unfenced`]), by a fence
//! that pairs with W4: if that fence comes first, the waiter, which reads `unfenced` after W4,
//! makes the call; if W4 comes first, every look N3 after it sees the bit. It takes its word back
//! ([`WakeWords::end_unfenced`]) by a release after its last N1 without a fence: a waiter
//! that finds nobody unfenced any more sees what was made true so. A notifier that dies leaves its
//! count behind, which costs later waiters a call for nothing.
//!
//! # What it costs
//!
//! Announcing to nobody: one fence and one load, no system call, no store. A burst of announcements
//! to one sleeper: one wake, made by whoever takes the bit in N4.
//!
//! # What a dead or hostile peer can do
//!
//! A notifier killed between N4 and N6 leaves a sleeper nobody will wake. The kernel reports the
//! death, and whoever hears of it calls [`WakeWords::wake_everybody`]. A hostile peer can keep a
//! waiter asleep or wake it for nothing; it cannot do anything else with these two words, for no
//! address is computed from them.

use crate::fault;
use crate::sync::{AtomicU32, Ordering, compiler_fence, fence, fence_after_rmw};

/// How many waiters of one bell can have a token of their own (an eventfd).
pub const WAITER_SLOTS: u32 = 8;

const FUTEX_BIT: u32 = 1 << 16;
const SLOT_MASK: u32 = (1 << WAITER_SLOTS) - 1;

/// The two shared words of the protocol. See the [module](self) for what they mean.
#[repr(C)]
#[derive(Debug)]
pub struct WakeWords {
    pub(crate) waiters: AtomicU32,
    pub(crate) epoch: AtomicU32,
    pub(crate) unfenced: AtomicU32,
}

#[cfg(not(loom))]
const _: () = {
    assert!(core::mem::offset_of!(WakeWords, waiters) == 0);
    assert!(core::mem::offset_of!(WakeWords, epoch) == 4);
    assert!(core::mem::offset_of!(WakeWords, unfenced) == 8);
};

/// The place in which a waiter sleeps: the futex all share, or a token only it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterSlot {
    bit: u32,
}

impl WaiterSlot {
    /// On the `epoch` word, together with any number of others.
    pub const FUTEX: Self = Self { bit: FUTEX_BIT };

    /// On eventfd number `index` of the bell, alone. `None` if there
    /// is no such number ([`WAITER_SLOTS`]).
    pub const fn eventfd(index: u32) -> Option<Self> {
        if index < WAITER_SLOTS { Some(Self { bit: 1 << index }) } else { None }
    }
}

/// Whom a notifier has to wake. Empty almost always.
///
/// Bits that stand for no waiter slot (only a hostile peer sets them) are never reported.
#[must_use = "the sleepers named here stay asleep until somebody wakes them"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    bits: u32,
}

impl Woken {
    /// Nobody sleeps.
    pub const NOBODY: Self = Self { bits: 0 };

    /// Is there nobody to wake?
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Must those who sleep on the futex be woken, all of them?
    #[inline]
    pub const fn futex(self) -> bool {
        self.bits & FUTEX_BIT != 0
    }

    /// The eventfds that must be written.
    pub fn eventfds(self) -> impl Iterator<Item = u32> {
        slots(self.bits)
    }
}

fn slots(bits: u32) -> impl Iterator<Item = u32> {
    let mut left = bits & SLOT_MASK;
    core::iter::from_fn(move || {
        let slot = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (slot < WAITER_SLOTS).then_some(slot)
    })
}

impl WakeWords {
    /// Words at which somebody always waits, for one who looks by
    /// [`has_waiters_unfenced`](Self::has_waiters_unfenced) and has not left out its fence.
    #[cfg(not(loom))]
    pub const fn never_alone() -> Self {
        Self { waiters: AtomicU32::new(FUTEX_BIT), epoch: AtomicU32::new(0), unfenced: AtomicU32::new(0) }
    }

    /// Words that nobody waits on. In shared memory the same state is: all bytes zero.
    pub fn new() -> Self {
        Self { waiters: AtomicU32::new(0), epoch: AtomicU32::new(0), unfenced: AtomicU32::new(0) }
    }

    /// Notifier: finds out whom to wake for what was made true before this call.
    ///
    /// One fence and one load when nobody is asleep.
    #[inline(always)]
    pub fn announce(&self) -> Woken {
        self.announce_with::<Complete>()
    }

    /// N1 and [`announce`](Self::announce) in one: counts one more in `count`.
    ///
    /// Where the processor's read-modify-write is a full fence (x86) it is the fence of the
    /// announcement too. That holds for a read-modify-write alone and with nothing stored
    /// after it, which is why the two cannot be had apart.
    #[inline(always)]
    pub fn count_and_announce(&self, count: &AtomicU32) -> Woken {
        self.count_and_announce_with::<Complete>(count)
    }

    /// As [`announce`](Self::announce), for waiters that said in shared memory how much they wait
    /// for: wakes them only if `enough` says that there is.
    ///
    /// The waiter writes what it waits for before it arms (W3) and looks for the same in W5;
    /// `enough` reads it. Both are on the far side of their fence from the other's store, as
    /// with the bits: if W4 comes before N2, `enough` sees what the sleeper wrote last.
    #[inline(always)]
    pub fn announce_if(&self, enough: impl FnOnce() -> bool) -> Woken {
        self.announce_if_with::<Complete>(enough)
    }

    /// As [`announce_if`](Self::announce_if) between [`begin_unfenced`](Self::begin_unfenced) and
    /// [`end_unfenced`](Self::end_unfenced).
    #[inline(always)]
    pub fn announce_unfenced_if(&self, enough: impl FnOnce() -> bool) -> Woken {
        if !self.has_waiters_unfenced() {
            return Woken::NOBODY;
        }
        self.take_waiters_if::<Complete>(enough)
    }

    /// Must [`announce_unfenced_if`](Self::announce_unfenced_if) be
    /// called at all for what was made true before this call? For
    /// those to whom its other half is too long a way for every time.
    #[inline(always)]
    pub fn has_waiters_unfenced(&self) -> bool {
        // Pairs with `Sleep::barrier`, which makes a full fence of it when it matters.
        compiler_fence(Ordering::SeqCst);
        // N3.
        self.waiters.load(Ordering::SeqCst) != 0
    }

    /// Notifier: from now on announces without a fence. The kernel must be
    /// able to run one on the processor on which this thread is, whenever
    /// a waiter asks it to, and every waiter here must be able to ask.
    pub fn begin_unfenced(&self) {
        self.begin_unfenced_with::<Complete>();
    }

    pub(crate) fn begin_unfenced_with<S: Steps>(&self) {
        fault::point();
        self.unfenced.fetch_add(1, Ordering::SeqCst);
        if S::FENCE_IN_BEGIN {
            // Pairs with W4.
            fence(Ordering::SeqCst);
        }
    }

    /// Notifier: from now on announces with a fence again.
    pub fn end_unfenced(&self) {
        fault::point();
        // Release: pairs with the look in `listen_with`, after which
        // W5 sees what was announced without a fence.
        self.unfenced.fetch_sub(1, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn announce_if_with<S: Steps>(&self, enough: impl FnOnce() -> bool) -> Woken {
        if S::FENCE_IN_ANNOUNCE {
            // N2. Pairs with W4 in `listen_with`.
            fence(Ordering::SeqCst);
        }
        self.take_waiters_if::<S>(enough)
    }

    /// As [`announce_if`](Self::announce_if), by one who announces at several bells what was made
    /// true before one full fence (N2 of all).
    #[inline(always)]
    pub fn announce_behind_fence_if(&self, enough: impl FnOnce() -> bool) -> Woken {
        self.take_waiters_if::<Complete>(enough)
    }

    #[inline(always)]
    fn take_waiters_if<S: Steps>(&self, enough: impl FnOnce() -> bool) -> Woken {
        // N3.
        if self.waiters.load(Ordering::SeqCst) == 0 || !enough() {
            return Woken::NOBODY;
        }
        self.take_waiters_slowly::<S>()
    }

    #[inline(always)]
    pub(crate) fn announce_with<S: Steps>(&self) -> Woken {
        if S::FENCE_IN_ANNOUNCE {
            // N2. Pairs with W4 in `listen_with`.
            fence(Ordering::SeqCst);
        }
        self.take_waiters::<S>()
    }

    #[inline(always)]
    pub(crate) fn count_and_announce_with<S: Steps>(&self, count: &AtomicU32) -> Woken {
        count.fetch_add(1, Ordering::SeqCst);
        if S::FENCE_IN_ANNOUNCE {
            // N2. Pairs with W4 in `listen_with`.
            fence_after_rmw();
        }
        self.take_waiters::<S>()
    }

    #[inline(always)]
    fn take_waiters<S: Steps>(&self) -> Woken {
        // N3.
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return Woken::NOBODY;
        }
        self.take_waiters_slowly::<S>()
    }

    #[cold]
    fn take_waiters_slowly<S: Steps>(&self) -> Woken {
        if !S::TAKE_BEFORE_EPOCH {
            self.epoch.fetch_add(1, Ordering::Release);
        }
        fault::point();
        // N4. One of several notifiers gets the bits and with them the duty to wake. Release: a waiter that
        // sets its bit again (W3) must see what was announced. Acquire: N5 stays after it.
        let taken = self.waiters.swap(0, Ordering::AcqRel);
        if S::NEW_EPOCH && S::TAKE_BEFORE_EPOCH && taken != 0 {
            fault::point();
            // N5. Release: a waiter that reads the new epoch (W2) sets its bit after N4.
            self.epoch.fetch_add(1, Ordering::Release);
        }
        Woken { bits: taken }
    }

    /// Wakes whoever might be asleep, bit set or not: the repair after the death of a peer that may
    /// have taken bits and not acted on them. Changes nothing that a waiter waits for.
    pub fn wake_everybody(&self) -> Woken {
        fault::point();
        self.waiters.swap(0, Ordering::AcqRel);
        fault::point();
        self.epoch.fetch_add(1, Ordering::Release);
        Woken { bits: FUTEX_BIT | SLOT_MASK }
    }

    /// The word a futex sleeper sleeps on.
    #[inline]
    pub fn epoch(&self) -> &AtomicU32 {
        &self.epoch
    }

    /// Does anybody sleep here, or is about to? A hint: it may be outdated when it is returned.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) != 0
    }
}

impl Default for WakeWords {
    fn default() -> Self {
        Self::new()
    }
}

/// One waiter at one pair of words.
#[derive(Debug)]
pub struct Waiter<'a> {
    words: &'a WakeWords,
    slot: WaiterSlot,
    ticket: u32,
}

impl<'a> Waiter<'a> {
    /// A waiter that will sleep on `slot`. If the waiter slot is a
    /// token, it must belong to this waiter alone.
    pub fn new(words: &'a WakeWords, slot: WaiterSlot) -> Self {
        Self { words, slot, ticket: 0 }
    }

    /// The words it waits on.
    pub fn words(&self) -> &'a WakeWords {
        self.words
    }

    /// The epoch before it armed: a futex sleeper sleeps only while the word still has this value.
    pub fn ticket(&self) -> u32 {
        self.ticket
    }

    /// W2. Acquire: W3 stays after it, and after the N4 of the notifier that wrote this epoch.
    fn read_ticket(&mut self) {
        self.ticket = self.words.epoch.load(Ordering::Acquire);
    }

    /// Sets the waiter's bit. W3.
    fn arm(&self) {
        fault::point();
        // It acquires what the notifier released that cleared the bits before (N4). SeqCst so that
        // `fence_after_rmw` may follow it.
        self.words.waiters.fetch_or(self.slot.bit, Ordering::SeqCst);
    }
}

/// How one round of sleeping ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// Woken, or the word had changed, or for no reason: look again.
    Woken,
    /// The deadline passed.
    TimedOut,
}

/// What the platform does for a waiter: take tokens, and sleep.
pub trait Sleep {
    /// What can go wrong in a system call.
    type Error;

    /// Takes the token a notifier left for waiter number `index`, if there is one, without
    /// blocking. Nothing to do where there are no tokens.
    ///
    /// # Errors
    /// What the system call reported.
    fn consume(&mut self, index: usize) -> Result<(), Self::Error>;

    /// Makes a full fence of what any notifier of waiter number `index` does that leaves out its
    /// own: on every processor, a point between two of its instructions after all that
    /// happened before this call.
    ///
    /// # Errors
    /// What the system call reported.
    fn barrier(&mut self, index: usize) -> Result<(), Self::Error>;

    /// Sleeps until a notifier wakes one of `waiters`. May return earlier for no reason.
    ///
    /// A futex sleeper must let the kernel compare [`Waiter::ticket`] with [`WakeWords::epoch`]; a
    /// token sleeper must return at once if its token is there.
    ///
    /// # Errors
    /// What the system call reported.
    fn sleep(&mut self, waiters: &[Waiter<'_>]) -> Result<Slept, Self::Error>;
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// True if the thing waited for is there; false if the deadline passed first.
    pub ready: bool,
    /// How many times the waiter went to sleep.
    pub sleeps: u32,
}

/// Waiter: sleeps until `ready` says true, by the steps of the [module](self).
///
/// `ready` must look at whatever the notifier makes true before
/// [`WakeWords::announce`], with an acquiring load. With several `waiters`,
/// any of their notifiers ends the sleep and `ready` tells which.
///
/// # Errors
/// What the sleeper's system call reported.
#[inline]
pub fn wait_until<S: Sleep>(
    waiters: &mut [Waiter<'_>],
    sleeper: &mut S,
    ready: impl FnMut() -> bool,
) -> Result<Waited, S::Error> {
    wait_until_with::<Complete, S>(waiters, sleeper, ready)
}

pub(crate) fn wait_until_with<T: Steps, S: Sleep>(
    waiters: &mut [Waiter<'_>],
    sleeper: &mut S,
    mut ready: impl FnMut() -> bool,
) -> Result<Waited, S::Error> {
    let mut sleeps: u32 = 0;
    loop {
        if listen_with::<T, S>(waiters, sleeper, &mut ready)? {
            return Ok(Waited { ready: true, sleeps });
        }
        sleeps = sleeps.saturating_add(1);
        // W6.
        let slept = sleeper.sleep(waiters)?;
        if ready() {
            return Ok(Waited { ready: true, sleeps });
        }
        if slept == Slept::TimedOut {
            return Ok(Waited { ready: false, sleeps });
        }
    }
}

/// Waiter: steps W1 to W5 alone, for a waiter whose sleep happens
/// elsewhere (an event loop on its eventfd).
///
/// Returns what `ready` said. After `false`, any announcement whose
/// thing `ready` did not see leaves a token.
///
/// # Errors
/// What the sleeper's system call reported.
#[inline]
pub fn listen<S: Sleep>(
    waiters: &mut [Waiter<'_>],
    sleeper: &mut S,
    ready: impl FnMut() -> bool,
) -> Result<bool, S::Error> {
    listen_with::<Complete, S>(waiters, sleeper, ready)
}

#[inline(always)]
pub(crate) fn listen_with<T: Steps, S: Sleep>(
    waiters: &mut [Waiter<'_>],
    sleeper: &mut S,
    mut ready: impl FnMut() -> bool,
) -> Result<bool, S::Error> {
    if T::CONSUME_BEFORE_ARM {
        // W1. Before W3, for a token that comes after W3 is the wake-up itself.
        consume_all(waiters, sleeper)?;
    }
    for waiter in waiters.iter_mut() {
        if T::TICKET_BEFORE_ARM {
            waiter.read_ticket();
        }
        if T::ARM {
            waiter.arm();
        }
        if !T::TICKET_BEFORE_ARM {
            waiter.read_ticket();
        }
    }
    if T::FENCE_IN_LISTEN {
        // W4. Pairs with N2 in `announce`: whichever fence comes
        // later, the load after it sees the store before the other.
        fence_after_rmw();
    }
    for (index, waiter) in waiters.iter().enumerate() {
        // Acquire: pairs with `end_unfenced`.
        if T::BARRIER && waiter.words.unfenced.load(Ordering::Acquire) != 0 {
            sleeper.barrier(index)?;
        }
    }
    if !T::CONSUME_BEFORE_ARM {
        consume_all(waiters, sleeper)?;
    }
    // W5.
    Ok(T::CHECK_AFTER_ARM && ready())
}

fn consume_all<S: Sleep>(waiters: &[Waiter<'_>], sleeper: &mut S) -> Result<(), S::Error> {
    (0..waiters.len()).try_for_each(|index| sleeper.consume(index))
}

/// Which steps are taken. Everything outside the tests takes [`Complete`]; the tests leave out one
/// at a time and show that the model checker notices.
pub(crate) trait Steps {
    const FENCE_IN_ANNOUNCE: bool = true;
    const TAKE_BEFORE_EPOCH: bool = true;
    const NEW_EPOCH: bool = true;
    const CONSUME_BEFORE_ARM: bool = true;
    const ARM: bool = true;
    const FENCE_IN_LISTEN: bool = true;
    const TICKET_BEFORE_ARM: bool = true;
    const CHECK_AFTER_ARM: bool = true;
    const BARRIER: bool = true;
    const FENCE_IN_BEGIN: bool = true;
}

/// Every step.
pub(crate) struct Complete;
impl Steps for Complete {}

#[cfg(all(test, loom))]
pub(crate) mod broken {
    //! Mistakes that no left out step makes, for the model checker.
    use super::{WakeWords, Woken};

    /// Clears the shared futex bit on the way out.
    pub(crate) fn clear_shared_bit(words: &WakeWords) {
        words.waiters.fetch_and(!super::FUTEX_BIT, crate::sync::Ordering::AcqRel);
    }

    /// Takes the bits with a load and a store where the protocol swaps.
    pub(crate) fn announce_with_load_and_store(words: &WakeWords) -> Woken {
        use crate::sync::{Ordering, fence};
        fence(Ordering::SeqCst);
        let bits = words.waiters.load(Ordering::Acquire);
        if bits != 0 {
            words.waiters.store(0, Ordering::Release);
            words.epoch.fetch_add(1, Ordering::Release);
        }
        Woken { bits }
    }
}
