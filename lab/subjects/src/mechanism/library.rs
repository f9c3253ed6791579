// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bells and channels of the library share as mechanisms.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use doorbell::channel::{Lanes, Receiver, Sender};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{Offer, Segment};
use doorbell::wait::Wait;
use doorbell::{Bell, Deadline, Tokens};

use super::user_interrupt::{ByHardware, probe, start};
use super::{Contexts, Fault, Link, Notifier, OpenError, Site, Unavailable, Waiter, Woken};

/// Memory for `offer`, which the sides inherit.
fn segment(site: &Site, offer: &Offer) -> Result<Arc<Segment>, OpenError> {
    let segment = match site.contexts() {
        Contexts::Threads => Segment::for_threads(offer),
        Contexts::Processes => Segment::for_children(offer),
    };
    segment.map(Arc::new).map_err(OpenError::of("doorbell::Segment"))
}

/// A bell whose waiter waits by `W`, and is woken by a user interrupt if it is `INTERRUPTED`.
pub(crate) struct BellLink<W, const INTERRUPTED: bool = false> {
    segment: Arc<Segment>,
    way: PhantomData<fn() -> W>,
}

pub(crate) struct BellWaiter<W>(Bell<W>);

pub(crate) struct BellNotifier(Bell);

impl<W: Wait + Default + 'static, const INTERRUPTED: bool> Link for BellLink<W, INTERRUPTED> {
    type Notifier = BellNotifier;
    type Waiter = BellWaiter<W>;

    fn available() -> Result<(), Unavailable> {
        if INTERRUPTED { probe::<ByHardware>() } else { Ok(()) }
    }

    fn open(site: &Site) -> Result<Self, OpenError> {
        let mut tokens = Tokens::Eventfds;
        if INTERRUPTED {
            start::<ByHardware>()?;
            tokens = Tokens::UserInterrupts;
        }
        let offer = Offer { bells: 1, eventfds: 1, tokens, ..Offer::default() };
        Ok(Self { segment: segment(site, &offer)?, way: PhantomData })
    }

    fn waiter(&self) -> Result<BellWaiter<W>, OpenError> {
        Ok(BellWaiter(self.segment.bell_waiting_by(0).expect("offered")))
    }

    fn notifier(&self) -> Result<BellNotifier, OpenError> {
        Ok(BellNotifier(self.segment.bell(0).expect("offered")))
    }
}

impl Notifier for BellNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.0.ring();
        Ok(())
    }
}

impl<W: Wait> Waiter for BellWaiter<W> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.wait().map(drop).map_err(Fault::of("doorbell::Bell::wait"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let rings = self.0.wait_timeout(timeout).map_err(Fault::of("doorbell::Bell::wait_timeout"))?;
        Ok(Woken::when(rings.is_some()))
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.0.try_wait().is_some())
    }
}

/// A channel whose receiver waits by `W`.
pub(crate) struct ChannelLink<W> {
    segment: Arc<Segment>,
    way: PhantomData<fn() -> W>,
}

pub(crate) struct ChannelWaiter<W: Wait>(Receiver<Trusted, W>);

/// The sending end. Never says that it leaves: the waiter goes on listening for what may be late.
pub(crate) struct ChannelNotifier<W: Wait>(ManuallyDrop<Sender<Trusted, W>>);

/// A ring large enough for bursts of eight-byte messages.
const RING: u64 = 1 << 16;

impl<W: Wait + Default + 'static> Link for ChannelLink<W> {
    type Notifier = ChannelNotifier<W>;
    type Waiter = ChannelWaiter<W>;

    fn open(site: &Site) -> Result<Self, OpenError> {
        let lanes = Lanes::new(1, 1, RING).expect("one small lane fits");
        // A trial has its own word of deaths, and a second thread makes calls on descriptors dearer.
        let offer = Offer { tells_deaths: false, ..Offer::of_lanes(lanes) };
        Ok(Self { segment: segment(site, &offer)?, way: PhantomData })
    }

    fn waiter(&self) -> Result<ChannelWaiter<W>, OpenError> {
        Receiver::at_waiting_by(&self.segment, 0)
            .map(ChannelWaiter)
            .map_err(OpenError::of("doorbell::channel::Receiver::at"))
    }

    fn notifier(&self) -> Result<ChannelNotifier<W>, OpenError> {
        let sender = Sender::at_waiting_by(&self.segment, 0)
            .map_err(OpenError::of("doorbell::channel::Sender::at"))?;
        Ok(ChannelNotifier(ManuallyDrop::new(sender)))
    }
}

impl<W: Wait> Notifier for ChannelNotifier<W> {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.0.send(&[0; 8]).map_err(Fault::of("doorbell::channel::Sender::send"))
    }
}

impl<W: Wait> Waiter for ChannelWaiter<W> {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.recv().map(drop).map_err(Fault::of("doorbell::channel::Receiver::recv"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Some(Deadline::after(timeout));
        let message =
            self.0.recv_deadline(deadline).map_err(Fault::of("doorbell::channel::Receiver::recv"))?;
        Ok(Woken::when(message.is_some()))
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        let message = self.0.try_recv().map_err(Fault::of("doorbell::channel::Receiver::try_recv"))?;
        Ok(message.is_some())
    }
}
