// SPDX-License-Identifier: MIT OR Apache-2.0
//! A futex whose notifier has no fence: the waiter has one run where
//! the notifier is, by `membarrier(2)`.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::compiler_fence;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use super::deadline::relative;
use super::watched_word::{WordNotifier, WordReader, WordWaiter};
use super::{Explanation, Fault, Link, Mechanism, Notifier, Notifiers, OpenError, Site, Unavailable, Word};

pub(crate) struct FutexMembarrier;

pub(crate) struct FutexMembarrierLink {
    word: &'static Word,
    asleep: &'static Word,
}

/// The only writer of the word.
pub(crate) struct UnfencedNotifier {
    word: WordNotifier,
    asleep: &'static Word,
}

/// The sleeper, with the value it saw last.
pub(crate) struct FencingWaiter {
    word: WordReader,
    asleep: &'static Word,
}

impl Mechanism for FutexMembarrier {
    type Link = FutexMembarrierLink;
    const NAME: &'static str = "futex-membarrier";
    const COALESCES: bool = true;
    const USUAL: bool = false;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "futex that is woken only if somebody sleeps, the fence for that paid by the \
            sleeper (membarrier)",
        how: "The notifier stores the next number, looks at a flag, and calls FUTEX_WAKE only \
            where it is set: no fence, no locked instruction. The waiter sets the flag, calls \
            membarrier, looks at the word once more and sleeps with FUTEX_WAIT. Either the \
            notifier's look comes after its processor ran the fence and sees the flag, or its \
            store came before and the waiter's look sees the number.",
        kernel: "membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) interrupts every processor that \
            runs a process registered for it, and returns once all have run a fence; who does \
            not run passed one when it was switched away from. Wake and wait are the futex's.",
        limits: "Kernel 4.16. The notifier's process must be registered (it is, here). Every \
            sleep costs an interrupt of other processors, so it pays only where notifications \
            are many and sleeps are few. Two notifications before the waiter looks are one. \
            The timed wait is FUTEX_WAIT's own.",
        sources: &[
            "membarrier(2)",
            "Linux kernel/sched/membarrier.c",
            "P. McKenney, Is Parallel Programming Hard, 15.5",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        let known = membarrier_query();
        let both = [MembarrierCommand::GlobalExpedited, MembarrierCommand::RegisterGlobalExpedited];
        if both.into_iter().all(|command| known.contains_command(command)) {
            return Ok(());
        }
        Err(Unavailable::because(
            "membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) is not there (kernel 4.16 brought it), or \
             a sandbox refuses it",
        ))
    }
}

impl Link for FutexMembarrierLink {
    type Notifier = UnfencedNotifier;
    type Waiter = FencingWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self { word: site.word()?, asleep: site.word()? })
    }
    fn waiter(&self) -> Result<FencingWaiter, OpenError> {
        Ok(FencingWaiter { word: WordReader::new(self.word), asleep: self.asleep })
    }
    fn notifier(&self) -> Result<UnfencedNotifier, OpenError> {
        // Before the first notification: without it no fence is run here.
        membarrier(MembarrierCommand::RegisterGlobalExpedited)
            .map_err(OpenError::of("membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)"))?;
        Ok(UnfencedNotifier { word: WordNotifier::new(self.word), asleep: self.asleep })
    }
}

impl Notifier for UnfencedNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let word = self.word.ring();
        // The compiler keeps the order; the processor's is the
        // waiter's business: pairs with the membarrier there.
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        if self.asleep.load(Relaxed) != 0 {
            futex::wake(word, Flags::empty(), 1).map_err(Fault::of("futex(FUTEX_WAKE)"))?;
        }
        Ok(())
    }
}

impl WordWaiter for FencingWaiter {
    #[inline]
    fn word(&mut self) -> &mut WordReader {
        &mut self.word
    }
    #[inline]
    fn between_looks(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        self.asleep.store(1, Relaxed);
        // A full fence here too. Pairs with the notifier's store and look, in whose midst it is run there.
        membarrier(MembarrierCommand::GlobalExpedited)
            .map_err(Fault::of("membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)"))?;
        let slept = if self.word.word.load(Acquire) == self.word.seen {
            let timeout = timeout.map(relative);
            futex::wait(self.word.word, Flags::empty(), self.word.seen, timeout.as_ref())
        } else {
            Ok(())
        };
        self.asleep.store(0, Relaxed);
        match slept {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(error) => Err(Fault::new("futex(FUTEX_WAIT)", error)),
        }
    }
}
