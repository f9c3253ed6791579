// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bell.

use crate::bell_state::BellState;
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::holder::Holder;
use crate::mapping::{MapError, Mapping};
use crate::origin::Origin;
use crate::peer::Lives;
use crate::select::{Parts, Source};
use crate::tokens::{Files, Tokens};
use crate::wait::{Adaptive, Listener, Token, Wait, WaitEntry};
use doorbell_core::layout::{MAKER, Plan};
use doorbell_core::wake::{Waiter, listen};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A bell: one side rings, the other wakes up. It carries no data,
/// only that it was rung, and how often.
///
/// A `Bell` is a **handle**. All handles of one bell hear every ring;
/// each remembers by itself which rings it has heard. `W` is the [way of
/// waiting](crate::wait), chosen per handle; ringing is the same for all.
///
/// ```
/// use doorbell::Bell;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::thread;
///
/// let mut waiter = Bell::new().unwrap();
/// let ringer = waiter.clone();
/// let answer = AtomicU32::new(0);
/// thread::scope(|scope| {
///     scope.spawn(|| {
///         answer.store(42, Ordering::Release);
///         ringer.ring();
///     });
///     waiter.wait().unwrap();
///     assert_eq!(answer.load(Ordering::Acquire), 42);
/// });
/// ```
///
/// # What happens when …
///
/// **… it is rung before anybody waits?** The ring is remembered. The next [`wait`](Self::wait) of
/// every handle that existed returns at once. A handle made later (by cloning) has heard what the
/// handle it was made from had heard.
///
/// **… it is rung twice before the wait?** The wait returns 2, and the next wait sleeps. Rings are
/// counted, not queued: exactly 2³² rings between two waits of one handle would look like none.
///
/// **… nobody waits?** [`ring`](Self::ring) makes no system call: one locked addition and one load.
///
/// **… many wait?** All handles hear the ring; all who sleep are
/// woken. To wake one of many, give each a bell.
///
/// **… the ringer dies?** Rings it made are heard. If the bell came from a
/// [rendezvous](crate::rendezvous), a wait then returns [`WaitError::PeerGone`],
/// once for each peer that went, and again and again when nobody is left. This
/// is so even if it was killed in the middle of ringing.
///
/// **… I drop the connection the bell came from?** A handle that waits by a
/// waiter slot ([`Eventfd`](crate::wait::Eventfd), [`into_fd`](Self::into_fd))
/// keeps the connection to the bell's maker from its first wait on, and waits
/// on; one that has no waiter slot by then gets none ([`WaitError::HungUp`]).
/// Handles that need no waiter slot ring and wait on, but hear of no death.
///
/// **… a waiter dies?** Nothing. At most one ring makes a system call for nothing.
///
/// **… I wait with epoll, and take only part of what there is?** [`into_fd`](Self::into_fd) gives a
/// file that is readable from a ring on until [`BellFd::heard`](crate::BellFd::heard) is called.
/// Until then it stays readable, and rings add nothing.
///
/// **… a process forks?** A bell of [`new`](Self::new) is memory of this process: the child has a
/// copy, which is another bell. A bell of [`for_children`](Self::for_children), or of a rendezvous,
/// is the same bell in both; a handle that both go on using is one waiter with two memories, so
/// clone it before the fork and use one clone on each side, and wait by a way that takes no waiter
/// slot ([`Eventfd`](crate::wait::Eventfd) does).
///
/// **… a process runs another program (exec)?** Its handles are gone, as if it had dropped them.
/// All descriptors are close-on-exec.
///
/// # Memory order
///
/// What happened before a ring happened before the return of a wait that heard it.
#[derive(Debug)]
pub struct Bell<W = Adaptive> {
    state: Arc<BellState>,
    listener: Listener,
    way: W,
    /// The count up to which this handle has heard.
    heard: u32,
    /// How many deaths it has reported.
    deaths: u32,
}

impl Bell {
    /// A bell for the threads of this process, with one eventfd waiter slot.
    ///
    /// ```
    /// let mut bell = doorbell::Bell::new()?;
    /// bell.ring();
    /// assert_eq!(bell.wait()?.get(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MapError::Os`] if there is no memory or no descriptor left.
    pub fn new() -> Result<Self, MapError> {
        Self::with_eventfds(1)
    }

    /// As [`new`](Self::new), with room for `count` handles (at most
    /// 8) that wait through an eventfd or as a file.
    ///
    /// # Errors
    /// [`MapError::Os`] if there is no memory or no descriptor left.
    pub fn with_eventfds(count: usize) -> Result<Self, MapError> {
        Self::alone(Mapping::for_threads(Plan::new(1, 0, 0)?)?, count)
    }

    /// A bell that this process shares with the children it forks
    /// from now on, with `eventfds` eventfd waiter slots.
    ///
    /// # Errors
    /// [`MapError::Os`] if there is no memory or no descriptor left.
    pub fn for_children(eventfds: usize) -> Result<Self, MapError> {
        Self::alone(Mapping::for_children(Plan::new(1, 0, 0)?)?, eventfds)
    }

    fn alone(mapping: Mapping, eventfds: usize) -> Result<Self, MapError> {
        let slots = eventfds.min(doorbell_core::wake::WAITER_SLOTS as usize);
        let files = Files::new(Tokens::Eventfds, slots, mapping.scope()).map_err(MapError::from)?;
        let origin = Arc::new(Origin::new(Holder::Given(MAKER)));
        let state = BellState::new(Arc::new(mapping), 0, files, Arc::new(Lives::default()), origin);
        Ok(Self::at(Arc::new(state.expect("a mapping planned with one bell has bell 0"))))
    }
}

impl<W: Wait + Default> Bell<W> {
    /// A handle of the bell at `state`. It has heard all rings so far, and been told of all deaths.
    pub fn at(state: Arc<BellState>) -> Self {
        let heard = state.record().rung.load(Ordering::Acquire);
        let deaths = state.lives().deaths();
        Self { listener: Listener::new(&state, W::NAME), state, way: W::default(), heard, deaths }
    }
}

impl<W> Bell<W> {
    /// Another handle of the same bell that waits in another way and
    /// has heard what this one has heard.
    pub fn waiting_by<V: Wait + Default>(&self) -> Bell<V> {
        let mut other = Bell::at(Arc::clone(&self.state));
        other.heard = self.heard;
        other.deaths = self.deaths;
        other
    }
}

impl<W: Wait + Default> Clone for Bell<W> {
    /// Another handle of the same bell. It has heard what this one has heard.
    fn clone(&self) -> Self {
        self.waiting_by()
    }
}

impl<W> Bell<W> {
    /// Rings. Every handle hears it; those who sleep are woken.
    ///
    /// Costs one locked addition and one load when nobody sleeps;
    /// else a system call, once per burst.
    #[inline]
    pub fn ring(&self) {
        self.state.ring();
    }

    /// Takes the rings that came since this handle last heard any. Never waits.
    #[inline]
    pub fn try_wait(&mut self) -> Option<NonZeroU32> {
        let rung = self.state.record().rung.load(Ordering::Acquire);
        let new = NonZeroU32::new(rung.wrapping_sub(self.heard))?;
        self.heard = rung;
        Some(new)
    }

    /// Says that whoever rings this bell waits at `partner`
    /// otherwise. [`Adaptive`] does not spin while it sleeps there.
    pub fn set_partner<V>(&mut self, partner: &Bell<V>) {
        self.listener.set_partner(Arc::clone(&partner.state));
    }

    /// Says whether a signal handler that runs in the waiting thread ends a sleep of this handle
    /// with [`WaitError::Interrupted`]. Without it, waits go on after signals.
    ///
    /// A signal that comes just before the sleep does not end it, as with any system call that
    /// takes no signal mask: a program that must not miss one waits with a deadline too, or for
    /// the [file](Self::into_fd) with `ppoll`. Nor need a handler end it that was installed
    /// with `SA_RESTART`, as `signal` does it: in a wait without a deadline the kernel
    /// goes back to sleep after it.
    pub fn set_interruptible(&mut self, interruptible: bool) {
        self.listener.set_interruptible(interruptible);
    }

    /// This handle's waits so far.
    pub fn counts(&self) -> crate::counters::Counts {
        self.listener.counters().read()
    }

    /// The bell as this process sees it.
    pub fn state(&self) -> &Arc<BellState> {
        &self.state
    }

    pub(crate) fn parts(&mut self) -> (&BellState, &mut Listener) {
        (&self.state, &mut self.listener)
    }

    pub(crate) fn listener(&mut self) -> &mut Listener {
        &mut self.listener
    }

    /// Makes its eventfd unreadable and arms, unless there is news
    /// after all. Says whether there is.
    pub(crate) fn arm(&mut self) -> Result<bool, WaitError> {
        let (slot, index) = self.listener.slots().take_eventfd()?;
        let state = &*self.state;
        let mut waiter = [Waiter::new(&state.record().wake, slot)];
        listen(&mut waiter, &mut Token { state, index }, || self.has_news())
    }

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        news(&self.state, self.heard, self.deaths)
    }

    /// What a wait whose `ready` was true returns. `None` if that was no news: nobody was left, and
    /// somebody has come meanwhile.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Result<Option<NonZeroU32>, WaitError> {
        if let Some(rings) = self.try_wait() {
            return Ok(Some(rings));
        }
        self.tell_death().map(|()| None)
    }

    /// The next death that is to be told, as an error.
    fn tell_death(&mut self) -> Result<(), WaitError> {
        if !self.state.lives().unreported(self.deaths) {
            return Ok(());
        }
        match self.state.lives().report(&mut self.deaths) {
            Some(peer) => Err(WaitError::PeerGone(peer)),
            // Nobody was left, and somebody has come meanwhile.
            None => Ok(()),
        }
    }
}

#[inline]
fn news(state: &BellState, heard: u32, deaths: u32) -> bool {
    state.record().rung.load(Ordering::Acquire) != heard || state.lives().unreported(deaths)
}

impl<W: Wait> Bell<W> {
    /// Waits for a ring this handle has not heard. Returns how many there were.
    ///
    /// # Errors
    /// [`WaitError`].
    #[inline]
    pub fn wait(&mut self) -> Result<NonZeroU32, WaitError> {
        loop {
            // Only `Null` returns without a ring and without a deadline.
            if let Some(rings) = self.wait_until(None)? {
                return Ok(rings);
            }
        }
    }

    /// Waits for a ring, but not longer than `timeout`. `None` if none came.
    ///
    /// # Errors
    /// [`WaitError`].
    #[inline]
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<NonZeroU32>, WaitError> {
        if let Some(rings) = self.try_wait() {
            return Ok(Some(rings));
        }
        self.wait_until(Some(Deadline::after(timeout)))
    }

    /// Waits for a ring, but not beyond `deadline`. `None` if none
    /// came. The wall clock plays no part.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_deadline(&mut self, deadline: Instant) -> Result<Option<NonZeroU32>, WaitError> {
        self.wait_until(Some(Deadline::at(deadline)))
    }

    /// Waits for a ring, but not beyond `deadline` if there is one. `None` if none came.
    ///
    /// # Errors
    /// [`WaitError`].
    #[inline]
    pub fn wait_until(&mut self, deadline: Option<Deadline>) -> Result<Option<NonZeroU32>, WaitError> {
        loop {
            let Self { state, listener, way, heard, deaths } = self;
            let ready = || news(state, *heard, *deaths);
            let ready = way.wait(&mut [WaitEntry { state, listener }], ready, deadline)?;
            match self.take_news()? {
                // No news, and no end of the time.
                None if ready && !deadline.is_some_and(|deadline| deadline.passed()) => {}
                heard => return Ok(heard),
            }
        }
    }
}

impl<W: Wait> Source for Bell<W> {
    fn look(&mut self) -> bool {
        self.has_news()
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        let Self { state, listener, heard, deaths, .. } = self;
        let (state, heard, deaths) = (&**state, *heard, *deaths);
        parts.add(WaitEntry { state, listener }, move || news(state, heard, deaths));
    }
}

/// Waits for a ring at any of several bells, or for `deadline`. Returns the place in `bells` of one
/// that was rung; its [`try_wait`](Bell::try_wait) then says how often. `None` if the deadline came
/// first, or if there are no bells.
///
/// The way of waiting is that of the first bell.
///
/// # Errors
/// [`WaitError::TooManyBells`] if the way cannot wait for so many. [`WaitError::PeerGone`] if a
/// peer at any of them went and no ring is left unheard there.
///
/// ```
/// use doorbell::{Bell, wait_any};
///
/// let mut bells: [Bell; 3] = std::array::from_fn(|_| Bell::new().unwrap());
/// bells[1].ring();
/// assert_eq!(wait_any(&mut bells.each_mut(), None).unwrap(), Some(1));
/// assert_eq!(bells[1].try_wait().unwrap().get(), 1);
/// ```
pub fn wait_any<W: Wait>(
    bells: &mut [&mut Bell<W>],
    deadline: Option<Deadline>,
) -> Result<Option<usize>, WaitError> {
    if bells.len() > W::MOST_BELLS {
        return Err(WaitError::TooManyBells { most: W::MOST_BELLS });
    }
    loop {
        let (mut entries, mut marks, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        for bell in bells.iter_mut() {
            let Bell { state, listener, way, heard, deaths } = &mut **bell;
            marks.push((&**state, *heard, *deaths));
            entries.push(WaitEntry { state, listener });
            ways.push(way);
        }
        let Some(way) = ways.first_mut() else { return Ok(None) };
        let any = || marks.iter().position(|(state, heard, deaths)| news(state, *heard, *deaths));
        let ready = way.wait(&mut entries, || any().is_some(), deadline)?;
        let place = any();
        drop(entries);
        if let Some(place) = place.filter(|_| ready) {
            let bell = &mut *bells[place];
            // A ring is left to be taken by its handle.
            if bell.state.record().rung.load(Ordering::Acquire) != bell.heard {
                return Ok(Some(place));
            }
            bell.tell_death()?;
        }
        // As in `Bell::wait_until`.
        if !ready || deadline.is_some_and(|deadline| deadline.passed()) {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bell, wait_any};
    use crate::deadline::Deadline;
    use crate::error::WaitError;
    use crate::peer::PeerId;
    use crate::wait::{Wait, WaitEntry};
    use std::time::Duration;

    /// Nobody comes so late.
    const FOREVER: Duration = Duration::from_secs(3600);

    fn gone() -> PeerId {
        PeerId { number: 1, pid: 1 }
    }

    /// One whose first wait is ended by that nobody is left, and whose second is ended by a ring.
    /// In between somebody comes.
    #[derive(Debug, Default)]
    struct SomebodyComes(u32);

    impl Wait for SomebodyComes {
        const NAME: &'static str = "somebody comes";
        const MOST_BELLS: usize = 1;

        fn wait(
            &mut self,
            entries: &mut [WaitEntry<'_>],
            mut ready: impl FnMut() -> bool,
            _: Option<Deadline>,
        ) -> Result<bool, WaitError> {
            self.0 += 1;
            match self.0 {
                1 => assert!(ready()),
                _ => entries[0].state.ring(),
            }
            entries[0].state.lives().met();
            Ok(true)
        }
    }

    /// A bell whose only peer has died, of which it was told.
    fn left_alone<W: Wait + Default>() -> Bell<W> {
        let mut bell = Bell::new().unwrap().waiting_by::<W>();
        bell.state().lives().met();
        bell.state().lives().died(gone(), 1, || {});
        assert_eq!(bell.take_news(), Err(WaitError::PeerGone(gone())));
        bell
    }

    /// It ended long before its time, and one without a deadline said in C that it had timed out.
    #[test]
    fn a_wait_goes_on_when_somebody_comes_while_it_is_told_that_nobody_is_left() {
        assert_eq!(
            left_alone::<SomebodyComes>().wait_timeout(FOREVER).map(|rings| rings.map(u32::from)),
            Ok(Some(1))
        );
        assert_eq!(
            left_alone::<SomebodyComes>().wait_until(None).map(|rings| rings.map(u32::from)),
            Ok(Some(1))
        );
        let mut bell = left_alone::<SomebodyComes>();
        assert_eq!(wait_any(&mut [&mut bell], Some(Deadline::after(FOREVER))), Ok(Some(0)));
        assert_eq!(bell.try_wait().map(u32::from), Some(1), "it was named because it was rung");
    }
}
