// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which this process is of those that were forked one from another, and whether anything happened
//! in it that every end must look at.
//!
//! Both are one word, for which an end asks by one load. It lies on pages of its own,
//! which the kernel empties in every child (`MADV_WIPEONFORK`, Linux 4.14) however it
//! was made: by `fork`, by `_Fork`, which runs no handlers, by a bare `clone`. An end's
//! copy of the word is never 0, so that it finds itself in another process. A handler
//! of `fork` changes the word too: older kernels refuse the advice, and emulators may
//! say yes and do nothing. There a child made without handlers is told apart by its
//! process number alone, for which an end asks only where it has to look closer.
//!
//! A child that shares its parent's memory (`vfork`, `CLONE_VM`) has
//! no copies, and nothing to tell apart.

use rustix::mm::{Advice, madvise};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Whole pages, whatever the size of one is: 4 KiB on x86, up to 64 KiB elsewhere.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "x86"), repr(C, align(4096)))]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "x86")), repr(C, align(65536)))]
struct Page(AtomicU64);

/// In its high half the generation, from 1 on; in its low half a
/// count of what is new. 0: this process has not begun.
static PAGE: Page = Page(AtomicU64::new(0));

/// The last generation of the line from the first process of this program to this one. A child's
/// copy goes on from there.
static LAST: AtomicU32 = AtomicU32::new(0);

/// How much has happened so far that every end must look at: the death of a peer, and that this is
/// a forked child by now. An end compares it with what it last looked at, once a call: one load of
/// a word that hardly ever changes.
#[inline(always)]
pub(crate) fn news() -> u64 {
    // Acquire: pairs with `tell_news`; what the news is of was written before.
    PAGE.0.load(Ordering::Acquire)
}

/// As `news`, to be kept: never 0.
pub(crate) fn news_to_keep() -> u64 {
    match news() {
        0 => begin(),
        word => word,
    }
}

/// Makes every end in this process look whether its peer died.
pub(crate) fn tell_news() {
    news_to_keep();
    let told = |word: u64| Some(word & !u64::from(u32::MAX) | u64::from((word as u32).wrapping_add(1)));
    // Never fails: `told` always has a value.
    let _ = PAGE.0.fetch_update(Ordering::Release, Ordering::Relaxed, told);
}

/// Tells a process from the one that it was forked from, whatever their numbers.
pub(crate) fn generation() -> u32 {
    (news_to_keep() >> 32) as u32
}

/// Is it this process's generation? One load.
#[inline(always)]
pub(crate) fn is_current(generation: u32) -> bool {
    (news() >> 32) as u32 == generation
}

#[cold]
fn begin() -> u64 {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    // All of it before the word: whatever child is made since somebody has it finds another.
    if !REGISTERED.load(Ordering::Acquire) {
        // Two threads may do it at once: then a fork counts twice. Fails only without memory.
        // SAFETY: the handler touches two atomics.
        let registered = unsafe { libc::pthread_atfork(None, None, Some(forked)) } == 0;
        REGISTERED.store(registered, Ordering::Release);
    }
    let at = (&raw const PAGE).cast_mut().cast();
    // SAFETY: the pages are this value's alone, and nothing changes in this process.
    // Refused by kernels before 4.14: then there is the handler.
    let _ = unsafe { madvise(at, size_of::<Page>(), Advice::LinuxWipeOnFork) };
    let word = next();
    // Another thread may have been faster.
    PAGE.0.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire).err().unwrap_or(word)
}

/// The word of a process that begins.
fn next() -> u64 {
    u64::from(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)) << 32
}

/// In a child of `fork`, also one whose page was emptied: what counts is that it is another.
unsafe extern "C" fn forked() {
    PAGE.0.store(next(), Ordering::Release);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{generation, is_current, news, news_to_keep, tell_news};

    /// Runs `run` in a child that `make` makes, and says whether it
    /// came to true. A hang ends after a minute.
    pub(crate) fn in_a_child(make: fn() -> i64, run: impl FnOnce() -> bool) -> bool {
        let child = make();
        if child == 0 {
            // SAFETY: no precondition.
            unsafe { libc::alarm(60) };
            let status = i32::from(!run());
            // SAFETY: no precondition.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: a child of ours, and a valid place for its status.
        assert_eq!(i64::from(unsafe { libc::waitpid(child as i32, &raw mut status, 0) }), child);
        status == 0
    }

    pub(crate) fn by_fork() -> i64 {
        // SAFETY: the child runs what its test gives it, which takes
        // no lock of another kind than those under test, and exits.
        i64::from(unsafe { libc::fork() })
    }

    /// Without handlers, as `_Fork` too.
    fn by_clone() -> i64 {
        // SAFETY: as above; without `CLONE_VM` it is a fork.
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }
    }

    /// The ways that are told apart here. Not without handlers where the kernel, or an emulator,
    /// leaves pages as they are.
    fn ways() -> Vec<fn() -> i64> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: fresh memory of this function's own, larger than a page.
        let at = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(std::ptr::null_mut(), 1 << 16, rights, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, 1 << 16, libc::MADV_WIPEONFORK);
            at.cast::<u64>()
        };
        // SAFETY: as above; nobody else has it.
        unsafe { at.write_volatile(1) };
        // SAFETY: as above, in the child's copy.
        if in_a_child(by_clone, || unsafe { at.read_volatile() } == 0) {
            return vec![by_fork, by_clone];
        }
        doorbell_skipped::skip(
            "no page is emptied in a child here (before Linux 4.14, and in qemu's user mode)",
        );
        vec![by_fork]
    }

    /// A process that is number 1 of its container may have a child that is number 1 of another.
    #[test]
    fn a_child_is_of_another_generation_than_its_parent_and_so_is_its_child() {
        for make in ways() {
            let ours = generation();
            assert!(in_a_child(make, || {
                let at_once = is_current(ours);
                let childs = generation();
                let differs = !at_once && childs != ours && is_current(childs);
                differs && in_a_child(make, || ![ours, childs].contains(&generation()))
            }));
            assert_eq!(generation(), ours);
        }
    }

    #[test]
    fn to_be_a_child_and_a_death_are_news_and_nothing_else_is() {
        for make in ways() {
            let kept = news_to_keep();
            let generation = generation();
            tell_news();
            assert_ne!(news(), kept);
            assert!(is_current(generation), "a death makes no other process of this one");
            let kept = news();
            assert!(in_a_child(make, || {
                let was_news = news() != kept;
                // Both what a copy kept, and what is kept from now on.
                let ours = news_to_keep();
                was_news && ours != kept && news() == ours
            }));
        }
    }
}
