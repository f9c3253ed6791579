// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the mechanisms made of user interrupts share, whatever those are made of: how the notifier
//! comes to the waiter's vector, and whether there are any here.

use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use user_interrupts::{Backend, Receiver, Sender};

use super::{Fault, Link, Notifier, OpenError, Site, Unavailable, Waiter};

/// What user interrupts are made of. A trial's host takes it for
/// good, and the sides inherit the choice.
pub(crate) trait Means: Send + Sync + 'static {
    const BACKEND: Backend;
    /// What has them, for those who do not.
    const CURE: &'static str;
}

/// SENDUIPI.
pub(crate) struct ByHardware;

impl Means for ByHardware {
    const BACKEND: Backend = Backend::Hardware;
    const CURE: &'static str = "a CPU with user interrupts and the driver of uintr/driver have it; \
        `doorbell vm run --accel uintr --driver` has both";
}

/// The same calls, by signals, shared memory and sockets.
pub(crate) struct BySignals;

impl Means for BySignals {
    const BACKEND: Backend = Backend::Signals;
    const CURE: &'static str = "Linux 5.16 and later have what it needs";
}

/// A way of being interrupted: what the waiter's thread does until it is.
pub(crate) trait Interruption: Send + Sync + 'static {
    type Waiter: Waiter;
    /// Begins with a receiver that is masked.
    fn begin(receiver: Receiver) -> Self::Waiter;
}

/// Through `given` the waiter passes its vector's descriptor, which
/// stays there: each notifier peeks.
pub(crate) struct InterruptLink<I, M> {
    give: OwnedFd,
    given: OwnedFd,
    kinds: PhantomData<(I, M)>,
}

/// The end that sends.
pub(crate) struct Interrupter(Sender);

impl Interrupter {
    /// By what `vector` stands for.
    pub(super) fn of(vector: &impl AsFd) -> Result<Self, OpenError> {
        Sender::connect(vector).map(Self).map_err(OpenError::of("uintr_register_sender"))
    }
}

impl Notifier for Interrupter {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.0.send();
        Ok(())
    }
}

/// Has this process have them by `M`, or none.
pub(super) fn start<M: Means>() -> Result<(), OpenError> {
    user_interrupts::start(&[M::BACKEND]).map(drop).map_err(OpenError::of("uintr_start"))
}

/// Whether this machine has them by `M`. Nothing is chosen: the command asks for all.
pub(super) fn probe<M: Means>() -> Result<(), Unavailable> {
    let lacking = |error: user_interrupts::StartError| Unavailable::because(format!("{error}; {}", M::CURE));
    user_interrupts::can_start(&[M::BACKEND]).map(drop).map_err(lacking)
}

/// The one vector that is sent.
const VECTOR: u8 = 0;

impl<I: Interruption, M: Means> Link for InterruptLink<I, M> {
    type Notifier = Interrupter;
    type Waiter = I::Waiter;
    fn available() -> Result<(), Unavailable> {
        probe::<M>()
    }
    fn open(_: &Site) -> Result<Self, OpenError> {
        start::<M>()?;
        let (give, given) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(OpenError::of("socketpair"))?;
        Ok(Self { give, given, kinds: PhantomData })
    }
    fn waiter(&self) -> Result<I::Waiter, OpenError> {
        let receiver = Receiver::counting().map_err(OpenError::of("uintr_register_handler"))?;
        let vector = receiver.vector(VECTOR).map_err(OpenError::of("uintr_create_fd"))?;
        pass(&self.give, &vector)?;
        Ok(I::begin(receiver))
    }
    fn notifier(&self) -> Result<Interrupter, OpenError> {
        Interrupter::of(&passed(&self.given)?)
    }
}

fn pass(socket: &OwnedFd, vector: &OwnedFd) -> Result<(), OpenError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [vector.as_fd()];
    // The space is for one descriptor.
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[VECTOR])], &mut ancillary, SendFlags::empty())
        .map(drop)
        .map_err(OpenError::of("sendmsg"))
}

/// A copy of what was passed, which stays where it is.
fn passed(socket: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    // The waiter was there first: it is not waited for.
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)
        .map_err(OpenError::of("recvmsg(MSG_PEEK)"))?;
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    descriptors
        .next()
        .ok_or_else(|| OpenError::call("recvmsg(MSG_PEEK)", "the vector's descriptor did not come along"))
}
