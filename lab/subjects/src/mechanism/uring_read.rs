// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read through io_uring: the tokens of a pair of
//! descriptors, by a read that is under way while the waiter waits.

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use io_uring::{opcode, types};

use super::descriptor::{Descriptors, Ends, LONGEST, Writer, again};
use super::uring::{self, Ring, outcome};
use super::{Fault, Link, OpenError, Site, Unavailable, Waiter, Woken};
use doorbell_harness::arena::Zeroed;

/// Descriptors whose tokens a ring reads.
pub(crate) trait ReadByRing: Descriptors {
    /// What the ring is told beyond its making.
    fn prepare(_: &Ring) -> Result<(), OpenError> {
        Ok(())
    }
}

/// Both ends, and where a token is read to.
pub(crate) struct ReadLink<D> {
    ends: Ends,
    /// Written by the kernel; in memory that is never given back, as a read under way demands.
    token: &'static Token,
    kind: PhantomData<D>,
}

/// A token as a read brings it, on cache lines of its own: the other
/// direction's is written on the other side's core.
#[repr(C, align(128))]
struct Token(AtomicU64);

// SAFETY: a padded `AtomicU64`, valid at zero.
unsafe impl Zeroed for Token {}

/// The end that waits for completions.
pub(crate) struct ReadWaiter<D> {
    ring: Ring,
    fd: OwnedFd,
    token: &'static Token,
    /// The token that was read last.
    last: [u8; LONGEST],
    /// Whether a read is under way: one that a timed wait or a look left serves the next.
    reading: bool,
    kind: PhantomData<D>,
}

impl<D: ReadByRing> ReadLink<D> {
    pub(super) fn of(ends: Ends, site: &Site) -> Result<Self, OpenError> {
        Ok(Self { ends, token: site.place()?, kind: PhantomData })
    }
}

impl<D: ReadByRing> Link for ReadLink<D> {
    type Notifier = Writer<D>;
    type Waiter = ReadWaiter<D>;
    fn available() -> Result<(), Unavailable> {
        uring::probe(opcode::Read::CODE, "IORING_OP_READ", "5.6")?;
        D::prepare(&Ring::new()?)?;
        D::open()?;
        Ok(())
    }
    fn open(site: &Site) -> Result<Self, OpenError> {
        Self::of(D::open()?, site)
    }
    fn waiter(&self) -> Result<ReadWaiter<D>, OpenError> {
        let ring = Ring::new()?;
        D::prepare(&ring)?;
        Ok(ReadWaiter {
            ring,
            fd: again(&self.ends.read)?,
            token: self.token,
            last: [0; LONGEST],
            reading: false,
            kind: PhantomData,
        })
    }
    fn notifier(&self) -> Result<Writer<D>, OpenError> {
        again(&self.ends.write).map(Writer::new)
    }
}

impl<D: ReadByRing> ReadWaiter<D> {
    /// Queues a read unless one is under way.
    #[inline]
    fn queue_read(&mut self) -> Result<(), Fault> {
        if !self.reading {
            let fd = types::Fd(self.fd.as_raw_fd());
            let read = opcode::Read::new(fd, self.token.0.as_ptr().cast(), D::TOKEN as u32).build();
            // SAFETY: the buffer is never given back and longer than
            // any token, and the descriptor is checked by the kernel.
            unsafe { self.ring.push(&read) }?;
            self.reading = true;
        }
        Ok(())
    }

    /// What a completion, if there was one, means.
    #[inline]
    fn completed(&mut self, result: Option<i32>) -> Result<bool, Fault> {
        let Some(result) = result else { return Ok(false) };
        self.reading = false;
        if outcome(result).map_err(Fault::of("IORING_OP_READ"))? == 0 {
            return Err(Fault::new("IORING_OP_READ", "the other side has closed its end"));
        }
        // Relaxed: the kernel wrote it before it posted the completion, which was acquired.
        self.last = self.token.0.load(Relaxed).to_ne_bytes();
        Ok(true)
    }
}

impl<D: ReadByRing> Waiter for ReadWaiter<D> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.queue_read()?;
        let result = self.ring.wait(None)?;
        self.completed(result).map(drop)
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.queue_read()?;
        let result = self.ring.wait(Some(timeout))?;
        self.completed(result).map(Woken::when)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        if !self.reading {
            self.queue_read()?;
            self.ring.submit()?;
        }
        let result = self.ring.look()?;
        self.completed(result)
    }

    #[inline]
    fn number(&self) -> Option<u32> {
        D::NUMBERED.then(|| u32::from_le_bytes([self.last[0], self.last[1], self.last[2], self.last[3]]))
    }
}
