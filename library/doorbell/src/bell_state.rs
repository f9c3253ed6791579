// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bell as this process sees it: its record in shared memory, its eventfds (or what stands for
//! them), and how to wake its sleepers.

use crate::aio::Signaller;
use crate::cpu::cpu_mark;
use crate::error::WaitError;
use crate::mapping::{Mapping, Scope};
use crate::membarrier;
use crate::origin::Origin;
use crate::peer::Lives;
use crate::tokens::Files;
use doorbell_core::fault;
use doorbell_core::layout::BellRecord;
use doorbell_core::wake::Woken;
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::futex;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One bell as this process sees it. Shared by all its handles in this process.
///
/// Channels build on it: they publish in their own memory, then call
/// [`announce`](Self::announce); and they wait with a [`Wait`](crate::wait::Wait)
/// on a [`WaitEntry`](crate::wait::WaitEntry) made of it.
#[derive(Debug)]
pub struct BellState {
    /// Points into `mapping`, which lives as long.
    record: NonNull<BellRecord>,
    mapping: Arc<Mapping>,
    files: Files,
    lives: Arc<Lives>,
    /// Whom this process has the bell from.
    origin: Arc<Origin>,
}

// SAFETY: the record is only reached through atomics, and lives in `mapping`.
unsafe impl Send for BellState {}
// SAFETY: as above.
unsafe impl Sync for BellState {}

impl BellState {
    /// Bell number `index` of `mapping`; `None` if there is none.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        index: u32,
        files: Files,
        lives: Arc<Lives>,
        origin: Arc<Origin>,
    ) -> Option<Self> {
        let record = NonNull::from(mapping.bell(index)?);
        Some(Self { record, mapping, files, lives, origin })
    }

    /// The bell in shared memory.
    #[inline]
    pub fn record(&self) -> &BellRecord {
        // SAFETY: it points into `mapping`, which `self` keeps.
        unsafe { self.record.as_ref() }
    }

    /// The memory it lies in.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Rings the bell: what [`Bell::ring`](crate::Bell::ring) does,
    /// without a handle that could wait.
    #[inline]
    pub fn ring(&self) {
        fault::point();
        let record = self.record();
        // It releases what happened before the ring.
        self.wake_if_any(record.wake.count_and_announce(&record.rung));
    }

    /// Wakes whoever sleeps here, for something the caller made true
    /// before. One fence and one load if nobody does.
    #[inline]
    pub fn announce(&self) {
        self.wake_if_any(self.record().wake.announce());
    }

    /// As [`announce`](Self::announce), but wakes only if `enough`
    /// says that there is what the sleepers wait for.
    #[inline]
    pub(crate) fn announce_if(&self, enough: impl FnOnce() -> bool) {
        self.wake_if_any(self.record().wake.announce_if(enough));
    }

    /// The duty that comes with `woken`, which is nothing almost always.
    #[inline(always)]
    pub(crate) fn wake_if_any(&self, woken: Woken) {
        if !woken.is_empty() {
            self.wake(woken);
        }
    }

    /// Wakes whoever might sleep here, whatever the words say: after a death.
    pub(crate) fn wake_everybody(&self) {
        self.wake(self.record().wake.wake_everybody());
    }

    /// The duty that comes with `woken`.
    ///
    /// Nothing is returned, for there is nothing a notifier could do
    /// about a failure: an eventfd that cannot count further has a token
    /// already, and the other calls cannot fail with valid arguments.
    #[cold]
    fn wake(&self, woken: Woken) {
        let record = self.record();
        // Before the wake, so that the sleeper finds it. A hint, hence relaxed.
        let cpu = cpu_mark();
        fault::point();
        record.ringer_cpu.store(cpu, Ordering::Relaxed);
        if woken.futex() {
            // The kernel takes the number as a signed one.
            const ALL: u32 = i32::MAX as u32;
            let _ = futex::wake(record.wake.epoch(), self.futex_flags(), ALL);
        }
        for index in woken.eventfds() {
            self.put_token(index as usize);
        }
    }

    /// Puts a token into eventfd number `index`, if there is one.
    /// Never blocks, whatever an untrusted peer does.
    pub(crate) fn put_token(&self, index: usize) {
        if self.files.put(index) {
            return;
        }
        let Some(eventfd) = self.eventfd(index) else { return };
        if !self.lives.all_trusted()
            && let Ok(signaller) = Signaller::ours()
            && signaller.signal(eventfd.as_fd())
        {
            return;
        }
        // Everybody is trusted to leave O_NONBLOCK as it is. (Or the kernel has no memory for a signal, or
        // this is the forked child of a process that met somebody untrusted, and the kernel refuses
        // it what the parent got: better a write that may block than a wake-up lost.)
        // EAGAIN: the count is at its end, so there is a token. Nothing else can happen to an eventfd.
        let _ = rustix::io::write(eventfd, &1_u64.to_ne_bytes());
    }

    /// For [`doorbell_core::wake::Sleep::barrier`].
    pub(crate) fn barrier(&self) -> Result<(), WaitError> {
        membarrier::run(self.mapping.scope())
    }

    pub(crate) fn futex_flags(&self) -> futex::Flags {
        match self.mapping.scope() {
            Scope::Threads => futex::Flags::PRIVATE,
            Scope::Processes => futex::Flags::empty(),
        }
    }

    /// How many waiters can have one.
    pub(crate) fn eventfd_slots(&self) -> usize {
        self.files.len()
    }

    /// Eventfd number `index`, if it was made.
    pub(crate) fn eventfd(&self, index: usize) -> Option<&OwnedFd> {
        self.files.get(index)
    }

    /// Makes eventfd number `index`, which nobody else does at the
    /// same time, unless it was made before.
    pub(crate) fn make_eventfd(&self, index: usize) -> Result<(), WaitError> {
        self.files.make(index).map_err(|(call, errno)| WaitError::Os { call, errno })
    }

    pub(crate) fn lives(&self) -> &Arc<Lives> {
        &self.lives
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn holder(&self) -> u32 {
        self.origin.holder(&self.mapping)
    }
}
