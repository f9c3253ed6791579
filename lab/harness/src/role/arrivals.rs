// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a wake of a one-way waiter was for: which messages it brings, told from their numbers.

use doorbell_results::record::Tally;

/// Messages by number, as far as the waiter knows them.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub(super) seen: u64,
    /// Notifications that may still come for messages already seen, when a wait ran out or by one
    /// wake with those before them: no new wakes.
    owed: u64,
}

/// What the notifier has sent, as the waiter finds it when it looks after a wake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) last: u64,
    /// The last message that was sent before the waiter woke.
    pub(super) before_wake: u64,
    pub(super) over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Messages from the first number to the second.
    Messages(u64, u64),
    /// Nothing new: counted, and to be waited again.
    Nothing,
    Over,
}

impl Arrivals {
    /// A notification woke the waiter.
    ///
    /// `number` is what the notification carries. Where it carries none, notifications that count
    /// come one for each message and in their order, and those that merge stand for all that
    /// was sent before the wake.
    #[inline]
    pub(super) fn notified(
        &mut self,
        coalesces: bool,
        number: Option<u32>,
        sent: Sent,
        tally: &mut Tally,
    ) -> Arrival {
        if let Some(number) = number {
            // Far fewer than 2^31 messages are under way, so the low half tells which one it is.
            let ahead = number.wrapping_sub(self.seen as u32).cast_signed();
            let number = self.seen.saturating_add_signed(ahead.into());
            return match number {
                // Only the notification that says it is over has a number that was never published.
                _ if number > sent.last && sent.over => Arrival::Over,
                _ if ahead > 0 => Arrival::Messages(number, number),
                _ if self.takes_owed() => Arrival::Nothing,
                _ => {
                    tally.duplicate += 1;
                    Arrival::Nothing
                }
            };
        }
        if !coalesces && self.takes_owed() {
            return Arrival::Nothing;
        }
        let first = self.seen + 1;
        // A message sent after the wake did not cause it. Where no other can have, the clocks are out of
        // step, and the record is to show it.
        let caused = sent.before_wake >= first || (self.owed == 0 && sent.last >= first);
        if caused && !coalesces {
            return Arrival::Messages(first, first);
        }
        if caused {
            let last = sent.before_wake.max(first);
            // The last one's own notification may have merged into this wake, or may be still to come. One
            // that came already makes the next spurious wake pass for it.
            self.owed = self.owed.max(u64::from(last > first));
            return Arrival::Messages(first, last);
        }
        // Its own notification follows.
        let more = sent.last >= first;
        if sent.over && !more {
            return Arrival::Over;
        }
        if !self.takes_owed() {
            tally.spurious += 1;
        }
        Arrival::Nothing
    }

    /// The last `messages` seen were seen only because a wait ran
    /// out: their notifications may still come.
    #[inline]
    pub(super) fn late(&mut self, coalesces: bool, messages: u64, tally: &mut Tally) {
        tally.late += messages;
        self.owed = if !coalesces { self.owed + messages } else { 1 };
    }

    #[inline]
    fn takes_owed(&mut self) -> bool {
        let owed = self.owed > 0;
        self.owed -= u64::from(owed);
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages up to `last`, all of them sent before the wake.
    fn sent(last: u64, over: bool) -> Sent {
        Sent { last, before_wake: last, over }
    }

    /// Plays the notifications that carry `numbers` to a waiter, all ten messages being out.
    fn numbered(numbers: &[u32]) -> (Vec<Arrival>, Tally) {
        let (mut arrivals, mut tally) = (Arrivals::default(), Tally::default());
        let mut brought = Vec::new();
        for &number in numbers {
            let arrival = arrivals.notified(false, Some(number), sent(10, true), &mut tally);
            if let Arrival::Messages(_, last) = arrival {
                arrivals.seen = last;
            }
            brought.push(arrival);
        }
        (brought, tally)
    }

    /// A dropped datagram once made every later one stand for the message before its own.
    #[test]
    fn a_number_names_its_own_message_whatever_was_dropped_before_it() {
        let (brought, tally) = numbered(&[1, 2, 5, 9, 11]);
        let alone = |number| Arrival::Messages(number, number);
        assert_eq!(brought, [alone(1), alone(2), alone(5), alone(9), Arrival::Over]);
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn a_number_that_comes_twice_or_too_late_is_a_duplicate() {
        let (brought, tally) = numbered(&[3, 3, 2, 4]);
        assert_eq!(brought[1..3], [Arrival::Nothing, Arrival::Nothing]);
        assert_eq!(brought[3], Arrival::Messages(4, 4));
        assert_eq!((tally.duplicate, tally.spurious), (2, 0));
    }

    #[test]
    fn numbers_go_on_where_they_run_over() {
        let (mut arrivals, mut tally) = (Arrivals { seen: u64::from(u32::MAX), owed: 0 }, Tally::default());
        let next = arrivals.notified(false, Some(0), sent(1 << 32, false), &mut tally);
        assert_eq!(next, Arrival::Messages(1 << 32, 1 << 32));
    }

    #[test]
    fn without_numbers_what_counts_brings_one_message_and_what_merges_all() {
        for (coalesces, last) in [(false, 1), (true, 3)] {
            let (mut arrivals, mut tally) = (Arrivals::default(), Tally::default());
            assert_eq!(
                arrivals.notified(coalesces, None, sent(3, false), &mut tally),
                Arrival::Messages(1, last)
            );
        }
    }

    #[test]
    fn a_wake_with_nothing_behind_it_is_spurious_and_the_last_one_is_the_end() {
        for coalesces in [false, true] {
            let (mut arrivals, mut tally) = (Arrivals { seen: 3, owed: 0 }, Tally::default());
            assert_eq!(arrivals.notified(coalesces, None, sent(3, false), &mut tally), Arrival::Nothing);
            assert_eq!(tally.spurious, 1);
            assert_eq!(arrivals.notified(coalesces, None, sent(3, true), &mut tally), Arrival::Over);
        }
    }

    #[test]
    fn the_notification_of_a_message_that_was_late_is_no_wake_of_its_own() {
        for coalesces in [false, true] {
            let (mut arrivals, mut tally) = (Arrivals { seen: 4, owed: 0 }, Tally::default());
            arrivals.late(coalesces, 1, &mut tally);
            assert_eq!(arrivals.notified(coalesces, None, sent(4, false), &mut tally), Arrival::Nothing);
            assert_eq!((tally.late, tally.spurious), (1, 0));
            assert_eq!(arrivals.notified(coalesces, None, sent(4, false), &mut tally), Arrival::Nothing);
            assert_eq!(tally.spurious, 1);
        }
    }
}
