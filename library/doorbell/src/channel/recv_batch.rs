// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several messages at once.

use super::error::RecvError;
use super::held::Held;
use super::receiver::Receiver;
use super::ring_reader::{RingReader, Run};
use crate::deadline::Deadline;
use crate::peer::Trust;
use crate::wait::Wait;
use std::marker::PhantomData;

/// The messages that are there, in order, each where it lies: several may be held at once. Room is
/// given back to the sender when the receiver is used the next time, in one piece; until then a
/// sender may be waiting for it. What is not taken out stays.
#[derive(Debug)]
pub struct RecvBatch<'a, T: Trust> {
    run: Run<'a>,
    trust: PhantomData<T>,
}

impl<'a, T: Trust> RecvBatch<'a, T> {
    fn new(reader: &'a mut RingReader) -> Self {
        Self { run: reader.run(), trust: PhantomData }
    }
}

impl<'a, T: Trust> Iterator for RecvBatch<'a, T> {
    type Item = Held<'a, T>;

    // A call would take as many instructions again as all that it does.
    #[inline(always)]
    fn next(&mut self) -> Option<Held<'a, T>> {
        let (lane, found) = self.run.next()?;
        Some(Held::new(lane, found))
    }
}

impl<T: Trust, W: Wait> Receiver<T, W> {
    /// All messages that are there, and those that come while they
    /// are gone through. Waits for the first.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// sender.send(b"one")?;
    /// sender.send(b"two")?;
    /// let both: Vec<_> = receiver.recv_batch()?.take(2).collect();
    /// assert_eq!(&*both[0], b"one");
    /// assert_eq!(&*both[1], b"two");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn recv_batch(&mut self) -> Result<RecvBatch<'_, T>, RecvError> {
        if !self.reader.poll_for_run()? {
            self.find_at_leisure()?;
        }
        Ok(RecvBatch::new(&mut self.reader))
    }

    /// As [`recv_batch`](Self::recv_batch), but waits no longer than until `deadline`; for ever if
    /// there is none. There is none in it if none came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn recv_batch_deadline(&mut self, deadline: Option<Deadline>) -> Result<RecvBatch<'_, T>, RecvError> {
        if !self.reader.poll_for_run()? {
            self.find(deadline)?;
        }
        Ok(RecvBatch::new(&mut self.reader))
    }

    /// As [`recv_batch`](Self::recv_batch), but does not wait: there may be none in it.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    #[inline]
    pub fn try_recv_batch(&mut self) -> Result<RecvBatch<'_, T>, RecvError> {
        self.reader.poll_for_run()?;
        Ok(RecvBatch::new(&mut self.reader))
    }

    /// How many messages are there now. It goes through them: for a look now and then.
    pub fn len(&self) -> usize {
        self.reader.count()
    }

    /// Is there no message now?
    pub fn is_empty(&self) -> bool {
        !self.reader.holds_message()
    }
}
