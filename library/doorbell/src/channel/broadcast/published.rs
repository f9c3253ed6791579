// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of a broadcast that are read where they lie.

use super::log::LogMemory;
use super::subscriber::{NextInPlace, Subscriber};
use crate::channel::RecvError;
use crate::deadline::Deadline;
use crate::peer::{Trust, Trusted};
use crate::wait::Wait;
use doorbell_core::channel::broadcast::Here;
use std::fmt;
use std::marker::PhantomData;

/// A message in the publisher's log, where it lies. Several may be held at once, until the
/// subscriber is used the next time.
///
/// The log is the publisher's to write, whom the subscriber cannot stop: what
/// has been read is good only if the message [is intact](Self::is_intact)
/// afterwards. A publisher that [holds back](super::WhenSlow::HoldBack) for this
/// subscriber leaves alone what is held, as long as the subscription lasts.
pub struct Published<'a, T: Trust> {
    log: &'a LogMemory,
    here: Here,
    trust: PhantomData<T>,
}

impl<'a, T: Trust> Published<'a, T> {
    /// Its length in bytes. Copied once: the peer cannot change it.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty message is a message")]
    pub fn len(&self) -> usize {
        // At most the size of the log, which is mapped.
        self.here.length() as usize
    }

    /// How many messages were missed directly before it.
    pub fn lost(&self) -> u64 {
        self.here.lost()
    }

    /// Was nothing overwritten of what was read of it before this call?
    #[inline]
    pub fn is_intact(&self) -> bool {
        self.here.is_intact(self.log)
    }

    /// A copy. `None` if the message was overwritten.
    pub fn to_vec(&self) -> Option<Vec<u8>> {
        let mut copy = vec![0; self.len()];
        self.copy_to(&mut copy).map(|_| copy)
    }

    /// Copies the first bytes, as many as there are and fit. Returns how many; `None` if the
    /// message was overwritten, and what is in `to` is nothing.
    pub fn copy_to(&self, to: &mut [u8]) -> Option<usize> {
        let fitting = to.len().min(self.len());
        self.log.read(self.here.payload(), &mut to[..fitting]);
        self.is_intact().then_some(fitting)
    }

    /// Where the message lies, for [`len`](Self::len) bytes, while the subscriber is borrowed.
    ///
    /// The publisher may be writing there at this moment. Read with volatile or atomic accesses,
    /// and believe it only if the message [is intact](Self::is_intact) afterwards.
    pub fn as_ptr(&self) -> *const u8 {
        self.log.at(self.here.payload())
    }
}

impl<'a> Published<'a, Trusted> {
    /// Its bytes, without a copy.
    ///
    /// # Safety
    /// The subscriber was admitted with [`WhenSlow::HoldBack`](super::WhenSlow::HoldBack), and the
    /// publisher has not taken it for gone.
    pub unsafe fn bytes(&self) -> &'a [u8] {
        // SAFETY: a message lies in the log in one piece (`Here`). A publisher that holds back writes there
        // only when the subscriber has said that it is beyond, for which it must be used, of which
        // 'a is a borrow. That it holds back is the caller's word; that it follows the protocol,
        // the word of whoever trusts it.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }
}

impl<T: Trust> fmt::Debug for Published<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("here", &self.here).finish_non_exhaustive()
    }
}

/// The messages that are there, in order, each where it lies. A publisher that holds back may be
/// waiting for the room of those that were taken out, until the subscriber is used the next time.
/// What is not taken out stays.
#[derive(Debug)]
pub struct PublishedBatch<'a, T: Trust> {
    /// Found already.
    first: Option<Here>,
    log: &'a LogMemory,
    next: NextInPlace<'a>,
    trust: PhantomData<T>,
}

impl<'a, T: Trust> Iterator for PublishedBatch<'a, T> {
    type Item = Published<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<Published<'a, T>> {
        let here = self.first.take().or_else(|| self.next.next(self.log))?;
        Some(Published { log: self.log, here, trust: PhantomData })
    }
}

impl<T: Trust, W: Wait> Subscriber<T, W> {
    /// All messages that are there, and those that come while they are gone through, without a
    /// copy. Waits for the first.
    ///
    /// ```
    /// use doorbell::channel::broadcast::{Publisher, Subscriber, WhenSlow};
    /// use doorbell::peer::Trusted;
    ///
    /// let mut publisher: Publisher = Publisher::new(4096)?;
    /// let mut subscriber: Subscriber<Trusted> = publisher.subscribe(WhenSlow::HoldBack)?;
    /// publisher.publish(b"one")?;
    /// publisher.publish(b"two")?;
    /// let both: Vec<_> = subscriber.recv_batch()?.take(2).collect();
    /// assert_eq!(both[1].to_vec().as_deref(), Some(&b"two"[..]));
    /// // SAFETY: it was admitted with `HoldBack`, here, and lives.
    /// assert_eq!(unsafe { both[0].bytes() }, b"one");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_batch(&mut self) -> Result<PublishedBatch<'_, T>, RecvError> {
        loop {
            // Only `Null` gives up without a deadline.
            if let Some(first) = self.next_until(None, Self::find)? {
                return Ok(self.batch(Some(first)));
            }
        }
    }

    /// As [`recv_batch`](Self::recv_batch), but waits no longer than until `deadline`; for ever if
    /// there is none. There is none in it if none came.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_batch_deadline(
        &mut self,
        deadline: Option<Deadline>,
    ) -> Result<PublishedBatch<'_, T>, RecvError> {
        let first = self.next_until(deadline, Self::find)?;
        Ok(self.batch(first))
    }

    /// As [`recv_batch`](Self::recv_batch), but does not wait: there may be none in it.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn try_recv_batch(&mut self) -> Result<PublishedBatch<'_, T>, RecvError> {
        let first = self.try_next(&mut Self::find)?;
        Ok(self.batch(first))
    }

    fn batch(&mut self, first: Option<Here>) -> PublishedBatch<'_, T> {
        let (log, next) = self.in_place();
        PublishedBatch { first, log, next, trust: PhantomData }
    }
}
