// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every mechanism behind a descriptor shares: a token is
//! written at one end and read at the other.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, dup, read, retry_on_intr, write};
use rustix::net::{RecvFlags, recv};

use super::deadline::{Deadline, relative};
use super::{Fault, Link, Notifier, OpenError, Site, Unavailable, Waiter, Woken};

/// A pair of descriptors through which tokens travel one way.
pub(crate) trait Descriptors: Send + Sync + 'static {
    /// Bytes of a token, at most eight.
    const TOKEN: usize = 1;
    /// Whether the reading end is a socket, which can be asked with `MSG_DONTWAIT`.
    const SOCKET: bool = false;
    /// Whether a token is its number, least significant byte first; four bytes then hold it.
    const NUMBERED: bool = false;
    fn open() -> Result<Ends, OpenError>;
}

/// The longest token: an eventfd's sum.
pub(super) const LONGEST: usize = 8;

/// A token and room after it.
type Token = [u8; LONGEST];

pub(crate) struct Ends {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

/// An end that waits for tokens, in a way of its own.
pub(crate) trait Reads: Waiter + Sized + 'static {
    /// Takes `fd` over, in the waiter's own process or thread.
    fn of(fd: OwnedFd) -> Result<Self, OpenError>;
    /// Whether it can wait as long as one wants, and no longer.
    fn probe(&self) -> Result<(), Unavailable> {
        Ok(())
    }
}

/// Both ends, before the sides part.
pub(crate) struct DescriptorLink<D, R = Reader<D>> {
    ends: Ends,
    kinds: PhantomData<fn() -> (D, R)>,
}

/// The end that writes tokens.
pub(crate) struct Writer<D> {
    fd: OwnedFd,
    count: u32,
    kind: PhantomData<D>,
}

/// The end that reads tokens.
pub(crate) struct Reader<D> {
    fd: OwnedFd,
    token: Token,
    kind: PhantomData<D>,
}

impl<D: Descriptors, R: Reads> Link for DescriptorLink<D, R> {
    type Notifier = Writer<D>;
    type Waiter = R;
    fn available() -> Result<(), Unavailable> {
        R::of(D::open()?.read)?.probe()
    }
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self { ends: D::open()?, kinds: PhantomData })
    }
    fn waiter(&self) -> Result<R, OpenError> {
        R::of(again(&self.ends.read)?)
    }
    fn notifier(&self) -> Result<Writer<D>, OpenError> {
        again(&self.ends.write).map(Writer::new)
    }
}

/// A second descriptor of the same open file, for a side to own.
pub(super) fn again(fd: &OwnedFd) -> Result<OwnedFd, OpenError> {
    dup(fd).map_err(OpenError::of("dup"))
}

impl<D: Descriptors> Writer<D> {
    /// Writes to `fd`.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, count: 0, kind: PhantomData }
    }
}

impl<D: Descriptors> Notifier for Writer<D> {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.count = self.count.wrapping_add(1);
        // An eventfd adds the whole number to its sum; to all others
        // that are not numbered a byte is a byte.
        let token: Token =
            if D::NUMBERED { u64::from(self.count).to_le_bytes() } else { 1_u64.to_ne_bytes() };
        retry_on_intr(|| write(&self.fd, &token[..D::TOKEN])).map(drop).map_err(Fault::of("write"))
    }
}

impl<D: Descriptors> Reader<D> {
    /// Reads from `fd`.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, token: [0; LONGEST], kind: PhantomData }
    }
}

impl<D: Descriptors> Reads for Reader<D> {
    fn of(fd: OwnedFd) -> Result<Self, OpenError> {
        Ok(Self::new(fd))
    }
}

impl<D: Descriptors> Waiter for Reader<D> {
    const IN_A_SET: bool = true;
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.token = take_token::<D>(&self.fd)?;
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        if !readable(&self.fd, timeout)? {
            return Ok(Woken::TimedOut);
        }
        self.wait()?;
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        if D::SOCKET {
            let token = look::<D>(&self.fd)?;
            self.token = token.unwrap_or(self.token);
            return Ok(token.is_some());
        }
        let ready = readable(&self.fd, Duration::ZERO)?;
        if ready {
            self.wait()?;
        }
        Ok(ready)
    }

    #[inline]
    fn number(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.token;
        D::NUMBERED.then(|| u32::from_le_bytes([a, b, c, d]))
    }
}

/// Reads one token, waiting for it where `fd` blocks.
#[inline]
pub(super) fn take_token<D: Descriptors>(fd: &OwnedFd) -> Result<Token, Fault> {
    let mut token = [0; LONGEST];
    match retry_on_intr(|| read(fd, &mut token[..D::TOKEN])) {
        Ok(0) => Err(closed("read")),
        Ok(_) => Ok(token),
        Err(error) => Err(Fault::new("read", error)),
    }
}

/// Takes a token from a socket if there is one.
#[inline]
fn look<D: Descriptors>(fd: &OwnedFd) -> Result<Option<Token>, Fault> {
    let mut token = [0; LONGEST];
    match retry_on_intr(|| recv(fd, &mut token[..D::TOKEN], RecvFlags::DONTWAIT)) {
        Ok((0, _)) => Err(closed("recv(MSG_DONTWAIT)")),
        Ok(_) => Ok(Some(token)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(Fault::new("recv(MSG_DONTWAIT)", error)),
    }
}

fn closed(call: &'static str) -> Fault {
    Fault::new(call, "the other side has closed its end")
}

/// Waits with `ppoll(2)` until `fd` can be read; false when the time ran out.
#[inline]
pub(super) fn readable(fd: impl AsFd, timeout: Duration) -> Result<bool, Fault> {
    let deadline = Deadline::after(timeout);
    let mut rest = timeout;
    loop {
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&relative(rest))) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => rest = deadline.rest().unwrap_or_default(),
            Err(error) => return Err(Fault::new("ppoll", error)),
        }
    }
}
