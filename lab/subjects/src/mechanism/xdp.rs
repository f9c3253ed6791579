// SPDX-License-Identifier: MIT OR Apache-2.0
//! AF_XDP over a veth pair: a frame goes from one side's ring to the
//! other's, past the kernel's network stack.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::deadline::Deadline;
use super::descriptor::{again, readable};
use super::redirect::Redirect;
use super::udp_veth::of_a_pair;
use super::xsk::{Receiver, Sender, fresh};
use super::{
    Carries, Explanation, Fault, Link, Mechanism, Notifier, Notifiers, OpenError, Site, Unavailable, Waiter,
    Woken, veth,
};

pub(crate) struct Xdp;

/// A socket in each namespace, not yet an end: the memory of an end
/// is that of the process that registers it.
pub(crate) struct XdpLink {
    receives: OwnedFd,
    receiving_device: u32,
    redirect: Redirect,
    sends: OwnedFd,
    sending_device: u32,
    /// Whether the notifier's end was taken: a socket has one memory, of one process.
    taken: AtomicBool,
}

/// The end that sends frames.
pub(crate) struct FrameSender {
    sender: Sender,
    count: u32,
}

/// The end that waits for frames.
pub(crate) struct FrameWaiter {
    receiver: Receiver,
    number: u32,
}

impl XdpLink {
    fn fresh() -> Result<Self, OpenError> {
        let ((receives, receiving_device, redirect), (sends, sending_device)) = veth::between(
            |device| Ok((fresh()?, device, Redirect::on(device)?)),
            |device| Ok((fresh()?, device)),
        )?;
        Ok(Self {
            receives,
            receiving_device,
            redirect,
            sends,
            sending_device,
            taken: AtomicBool::new(false),
        })
    }
}

impl Mechanism for Xdp {
    type Link = XdpLink;
    const NAME: &'static str = "xdp";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const DESCRIPTOR: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "AF_XDP over a veth pair: frames from ring to ring, waited for with poll(2)",
        how: "A veth pair joins two namespaces, both made for the link. Either side has an \
            AF_XDP socket on its end, with memory and rings of its own. The notifier writes a \
            frame with its number, puts it into its ring and calls sendto(2); the waiter looks \
            into its ring, and sleeps in poll(2) while that is empty. With `--wait spin` it \
            only looks, in user mode.",
        kernel: "sendto copies the frame into a packet and gives it to the device (copy mode: a \
            veth end cannot send from a program's memory). The receiving end's NAPI instance, in \
            the softirq of the notifier's CPU, runs a program of 14 instructions, which hands \
            frames of one kind (88b5) to the waiter's socket. The frame is copied into the \
            waiter's memory, its ring advanced, and the sleeper woken. No protocol sees it.",
        limits: concat!(
            of_a_pair!(),
            "Also CAP_NET_RAW for the sockets and CAP_BPF for the program (Linux 5.9: bpf links \
             for XDP). One notifier a link. 512 frames may wait; further ones are dropped, and \
             counted as lost by their numbers. On a network card whose driver copies nothing the \
             cost is another: what is measured is the path of copies. The timed wait is ppoll(2)'s."
        ),
        sources: &[
            "bpf(2), veth(4)",
            "Linux Documentation/networking/af_xdp.rst",
            "Linux net/xdp/xsk.c, xsk_generic_xmit and xsk_rcv; drivers/net/veth.c, veth_xdp_rcv",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        let link = XdpLink::fresh()?;
        // Each step can be refused by itself.
        link.waiter()?;
        link.notifier()?;
        Ok(())
    }
}

impl Link for XdpLink {
    type Notifier = FrameSender;
    type Waiter = FrameWaiter;
    fn open(_: &Site) -> Result<Self, OpenError> {
        Self::fresh()
    }
    fn waiter(&self) -> Result<FrameWaiter, OpenError> {
        let receiver = Receiver::of(again(&self.receives)?, self.receiving_device)?;
        self.redirect.to(&self.receives)?;
        Ok(FrameWaiter { receiver, number: 0 })
    }
    fn notifier(&self) -> Result<FrameSender, OpenError> {
        if self.taken.swap(true, Relaxed) {
            return Err(OpenError::HasNotifier);
        }
        let sender = Sender::of(again(&self.sends)?, self.sending_device)?;
        Ok(FrameSender { sender, count: 0 })
    }
}

impl Notifier for FrameSender {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.count = self.count.wrapping_add(1);
        self.sender.send(self.count)
    }
}

impl Waiter for FrameWaiter {
    const IN_A_SET: bool = true;
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receiver.descriptor())
    }

    /// No frame is slept through: poll(2) queues the sleeper before it
    /// looks into the ring, and the kernel advances the ring before it
    /// looks for sleepers (net/xdp/xsk.c, xsk_poll and xsk_flush).
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.poll()? {
            match poll(&mut [PollFd::from_borrowed_fd(self.receiver.descriptor(), PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("poll", error)),
            }
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        while !self.poll()? {
            if !readable(self.receiver.descriptor(), deadline.rest().unwrap_or_default())? {
                return Ok(Woken::TimedOut);
            }
        }
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        let came = self.receiver.take()?;
        self.number = came.unwrap_or(self.number);
        Ok(came.is_some())
    }

    #[inline]
    fn number(&self) -> Option<u32> {
        Some(self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::thread;

    use super::*;
    use crate::mechanism::xsk::WAITING;

    #[test]
    fn frames_beyond_those_that_may_wait_are_dropped_and_the_numbers_of_the_next_tell_how_many() {
        if let Err(lack) = Xdp::available() {
            return doorbell_skipped::skip(lack);
        }
        let link = XdpLink::fresh().unwrap();
        let (mut waiter, mut notifier) = (link.waiter().unwrap(), link.notifier().unwrap());
        for _ in 0..WAITING + 100 {
            notifier.notify().unwrap();
        }
        for number in 1..=WAITING {
            assert_eq!(waiter.wait_for(Duration::from_secs(30)).unwrap(), Woken::Notified);
            assert_eq!(waiter.number(), Some(number));
        }
        assert!(!waiter.poll().unwrap());
        // Every chunk is back at its place: as many may wait again.
        for _ in 0..WAITING {
            notifier.notify().unwrap();
        }
        for number in WAITING + 101..=2 * WAITING + 100 {
            assert_eq!(waiter.wait_for(Duration::from_secs(30)).unwrap(), Woken::Notified);
            assert_eq!(waiter.number(), Some(number));
        }
    }

    #[test]
    fn a_sleeper_misses_no_frame_of_a_notifier_that_waits_for_its_answers() {
        const FRAMES: u32 = 20_000;
        if let Err(lack) = Xdp::available() {
            return doorbell_skipped::skip(lack);
        }
        let link = XdpLink::fresh().unwrap();
        let mut waiter = link.waiter().unwrap();
        let seen = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut notifier = link.notifier().unwrap();
                for before in 0..FRAMES {
                    while seen.load(SeqCst) != before {
                        thread::yield_now();
                    }
                    notifier.notify().unwrap();
                }
            });
            for number in 1..=FRAMES {
                assert_eq!(waiter.wait_for(Duration::from_secs(30)).unwrap(), Woken::Notified);
                assert_eq!(waiter.number(), Some(number));
                seen.store(number, SeqCst);
            }
        });
    }
}
