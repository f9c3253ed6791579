// SPDX-License-Identifier: MIT OR Apache-2.0
//! What notifiers and waiter share beside the means of waking that is
//! tried: counts, and orders to the notifiers.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A word in a cache line of its own, and in its neighbour's, which is fetched along.
#[repr(C, align(128))]
pub struct Word(pub AtomicU64);

impl std::ops::Deref for Word {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

/// All words begin as zero.
#[repr(C)]
pub struct Shared {
    /// Notifications begun: what they tell of is there.
    pub published: Word,
    /// Notifications whose call has returned.
    pub completed: Word,
    /// When the last of them returned, in ticks.
    pub last: Word,
    /// Notifications the waiter has seen.
    pub seen: Word,
    /// No further burst is to be begun.
    pub stop: Word,
    /// Notifiers that have stopped.
    pub stopped: Word,
    /// So many single notifications the first notifier was asked for, and has given.
    pub asked: Word,
    pub given: Word,
}

/// `N` words that are zero and that forked children share.
pub fn words<const N: usize>() -> Result<&'static [Word; N], String> {
    let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a mapping at no chosen address replaces nothing.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), size_of::<[Word; N]>(), flags.0, flags.1) };
    let at = at.map_err(|errno| format!("mmap: {errno}"))?;
    // SAFETY: mapped for as long as the process lives, aligned to a
    // page, and zero, which is a value of an atomic.
    Ok(unsafe { &*at.cast() })
}

impl Shared {
    pub fn new() -> Result<&'static Self, String> {
        const COUNT: usize = size_of::<Shared>() / size_of::<Word>();
        // SAFETY: `Shared` is that many words and nothing else.
        Ok(unsafe { &*std::ptr::from_ref(words::<COUNT>()?).cast() })
    }
}

/// What the notifications tell of, for means of waking that carry no count: a number that grows.
pub struct Mail<'a> {
    published: &'a AtomicU64,
    taken: Cell<u64>,
}

impl<'a> Mail<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self { published: &shared.published, taken: Cell::new(0) }
    }

    fn left(&self) -> u64 {
        self.published.load(Ordering::Acquire) - self.taken.get()
    }

    pub fn any(&self) -> bool {
        self.left() > 0
    }

    /// Takes up to `most`. Returns how many.
    pub fn take(&self, most: u64) -> u64 {
        let some = self.left().min(most);
        self.taken.set(self.taken.get() + some);
        some
    }

    /// Takes one to three, so that the next look finds what this one left.
    pub fn take_few(&self) -> u64 {
        self.take(1 + self.taken.get() % 3)
    }
}
