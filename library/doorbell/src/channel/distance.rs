// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a receiver from running at its sender's heels.
//!
//! A receiver that takes each message as soon as it is there takes away the cache line in which the
//! sender is about to write the next, and both pay for its way there and back at every message. One
//! that falls behind for a moment finds many in lines that nobody writes any more. So in a stream
//! it pauses when it has found nothing, and then looks again.
//!
//! Whether there is a stream it finds out by trying: a pause after which several messages lay is
//! followed by another the next time, one after which there were none or few is not repeated
//! before a while, which doubles each time. A receiver whose every answer is waited for thus pauses
//! at one message in thousands.

use std::hint::spin_loop;

/// About as long as it takes a fast sender to fill ten lines. More takes no less time a message,
/// and is later; half as much takes more.
const PAUSES: u32 = 32;
/// A pause pays if so many messages, or two and so many bytes, lay after it: one alone may be an
/// answer, however long it is.
const MESSAGES: u64 = 4;
const BYTES: u64 = 2048;
/// Looks that find nothing after something, from one trial to the next.
const SHORTEST: u32 = 4;
const LONGEST: u32 = 1 << 12;

/// What a receiver knows of the stream it is in.
#[derive(Debug)]
pub(super) struct Distance {
    /// Up to where it had received when it last found nothing.
    since: u64,
    /// The size of the first record after the pause then; `None` if there was no pause.
    behind: Option<u64>,
    /// So many looks are let go by before the next trial.
    left: u32,
    interval: u32,
}

impl Distance {
    pub(super) fn new(head: u64) -> Self {
        Self { since: head, behind: None, left: SHORTEST, interval: SHORTEST }
    }

    /// Nothing was found at `head`. Pauses if that pays, and says whether it did.
    pub(super) fn keep(&mut self, head: u64) -> bool {
        let run = head.wrapping_sub(self.since);
        let least = |size: u64| BYTES.clamp(size.saturating_mul(2), size.saturating_mul(MESSAGES));
        let paid = self.behind.take().map(|size| run >= least(size));
        if run == 0 && paid.is_none() {
            return false;
        }
        self.since = head;
        match paid {
            Some(true) => self.interval = SHORTEST,
            Some(false) => {
                self.interval = (self.interval * 2).min(LONGEST);
                self.left = self.interval;
                return false;
            }
            None if self.left > 0 => {
                self.left -= 1;
                return false;
            }
            None => {}
        }
        (0..PAUSES).for_each(|_| spin_loop());
        self.behind = Some(u64::MAX);
        true
    }

    /// Was there a pause when nothing was found last?
    #[cfg(test)]
    pub(super) fn has_paused(&self) -> bool {
        self.behind.is_some()
    }

    /// After the pause there was a record of `size` bytes.
    pub(super) fn found(&mut self, size: u64) {
        self.behind = Some(size);
    }
}

#[cfg(test)]
mod tests {
    use super::{Distance, LONGEST};

    /// Runs `looks` looks that find nothing, before each of which `messages` of 16 bytes were
    /// received. Returns how many paused.
    fn pauses(distance: &mut Distance, head: &mut u64, looks: u32, messages: u64) -> u32 {
        pauses_of(16, distance, head, looks, messages)
    }

    fn pauses_of(size: u64, distance: &mut Distance, head: &mut u64, looks: u32, messages: u64) -> u32 {
        (0..looks)
            .filter(|_| {
                *head += size * messages;
                let paused = distance.keep(*head);
                if paused && messages > 0 {
                    distance.found(size);
                }
                paused
            })
            .count() as u32
    }

    /// Each answer of more than 4 KiB was taken for a stream, and
    /// paused for; batches of 16 values of 64 bytes for none.
    #[test]
    fn a_long_answer_is_no_stream_and_a_few_batches_are_one() {
        for (size, messages, pausing) in
            [(8200, 1, false), (1 << 20, 1, false), (1032, 2, true), (8200, 2, true)]
        {
            let (mut distance, mut head) = (Distance::new(0), 0);
            let paused = pauses_of(size, &mut distance, &mut head, 1000, messages);
            assert_eq!(paused > 990, pausing, "{paused} of 1000 looks paused, at {messages} of {size} bytes");
            assert!(pausing || paused < 25);
        }
    }

    #[test]
    fn a_receiver_in_a_stream_pauses_nearly_every_time_and_one_that_answers_each_message_hardly_ever() {
        let (mut distance, mut head) = (Distance::new(0), 0);
        assert!(pauses(&mut distance, &mut head, 1000, 10) > 990);
        assert!(pauses(&mut distance, &mut head, 10 * LONGEST, 1) < 25);
        assert!(
            pauses(&mut distance, &mut head, 10 * LONGEST, 10) > 8 * LONGEST,
            "it finds back to the stream"
        );
    }

    #[test]
    fn one_that_looks_again_and_again_while_nothing_comes_does_not_pause() {
        let (mut distance, mut head) = (Distance::new(0), 0);
        pauses(&mut distance, &mut head, 100, 10);
        assert!(pauses(&mut distance, &mut head, 10_000, 0) <= 1);
    }
}
