// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages of a receiver, one after another.

use super::error::RecvError;
use super::gather::{Gather, GatherError};
use super::receiver::Receiver;
use crate::peer::Trust;
use crate::wait::Wait;

/// Copies of the messages of a [`Receiver`], until the sender has
/// left or died. What else goes wrong is an item.
#[derive(Debug)]
pub struct Iter<'a, T: Trust, W: Wait>(&'a mut Receiver<T, W>);

impl<T: Trust, W: Wait> Receiver<T, W> {
    /// Copies of all messages from now on, until the sender has left
    /// or died. Waits while there is none.
    ///
    /// ```
    /// let (mut sender, mut receiver) = doorbell::channel(4096)?;
    /// sender.send(b"one")?;
    /// sender.send(b"two")?;
    /// drop(sender);
    /// assert_eq!(receiver.iter().collect::<Result<Vec<_>, _>>()?, [b"one", b"two"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&mut self) -> Iter<'_, T, W> {
        Iter(self)
    }

    /// The size of the ring in bytes: at least what was asked for. A message takes its length,
    /// rounded up to eight, and eight more.
    pub fn capacity(&self) -> u64 {
        self.reader.lane.capacity().get()
    }
}

impl<T: Trust, W: Wait> Iterator for Iter<'_, T, W> {
    type Item = Result<Vec<u8>, RecvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut message = Vec::new();
        match self.0.recv_into(&mut message) {
            Err(RecvError::Closed | RecvError::PeerGone(_)) => None,
            result => Some(result.map(|()| message)),
        }
    }
}

impl<'a, T: Trust, W: Wait> IntoIterator for &'a mut Receiver<T, W> {
    type Item = Result<Vec<u8>, RecvError>;
    type IntoIter = Iter<'a, T, W>;

    fn into_iter(self) -> Iter<'a, T, W> {
        self.iter()
    }
}

/// Copies of the messages of a [`Gather`] and the lanes they came by, until no sender is left. What
/// else goes wrong is an item.
#[derive(Debug)]
pub struct GatherIter<'a, T: Trust, W: Wait>(Option<&'a mut Gather<T, W>>);

impl<T: Trust, W: Wait> Gather<T, W> {
    /// Copies of all messages from now on, until no sender is left. Waits while there is none.
    pub fn iter(&mut self) -> GatherIter<'_, T, W> {
        GatherIter(Some(self))
    }
}

impl<T: Trust, W: Wait> Iterator for GatherIter<'_, T, W> {
    type Item = Result<(usize, Vec<u8>), GatherError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut message = Vec::new();
        let gather = self.0.as_mut()?;
        let received = gather.recv_into(&mut message);
        if received.is_err() && gather.is_over() {
            self.0 = None;
        }
        match received {
            Err(GatherError { error: RecvError::Closed, .. }) => None,
            result => Some(result.map(|lane| (lane, message))),
        }
    }
}

impl<'a, T: Trust, W: Wait> IntoIterator for &'a mut Gather<T, W> {
    type Item = Result<(usize, Vec<u8>), GatherError>;
    type IntoIter = GatherIter<'a, T, W>;

    fn into_iter(self) -> GatherIter<'a, T, W> {
        self.iter()
    }
}
