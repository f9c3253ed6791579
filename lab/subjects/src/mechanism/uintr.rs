// SPDX-License-Identifier: MIT OR Apache-2.0
//! SENDUIPI to a thread that runs: its handler interrupts it.

use std::time::Duration;

use user_interrupts::Receiver;

use super::deadline::Deadline;
use super::user_interrupt::{ByHardware, InterruptLink, Interruption};
use super::{Explanation, Fault, Mechanism, Waiter, Waits, Woken};

pub(crate) struct Uintr;

/// The end that runs, and is interrupted.
pub(crate) struct Running(Receiver);

impl Mechanism for Uintr {
    type Link = InterruptLink<Self, ByHardware>;
    const NAME: &'static str = "uintr";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "SENDUIPI to a receiver that runs (Intel user interrupts)",
        how: "The notifier's SENDUIPI sets a bit in the receiver's descriptor and, unless a \
            notification is under way, sends an interrupt to the CPU where the receiver runs. \
            There the handler runs between two of its instructions and notes the vector in \
            memory of the thread's own, at which the waiter looks without pause.",
        kernel: "Nothing, while both run: the CPU takes the interrupt without the kernel. A \
            receiver that was preempted is only posted to, and finds the bit when the driver \
            gives it its CPU again.",
        limits: "The waiter keeps its CPU. It looks at memory that only its own handler \
            writes, and could as well do other work: what is timed is the interrupt, and a \
            waiter that looked at shared memory would see a store sooner. A vector is one bit: \
            what is sent twice before it is taken is one. 64 vectors, 256 connections of a \
            process. Needs the CPU (Sapphire Rapids and later) and a driver, uintr/driver here.",
        sources: &[
            "Intel SDM vol. 3A, User Interrupts; vol. 2, SENDUIPI, UIRET",
            "uintr/driver/README.md; uintr/driver/include/linux/uintr.h",
        ],
    };
}

impl Interruption for Uintr {
    type Waiter = Running;
    fn begin(receiver: Receiver) -> Running {
        receiver.unmask();
        Running(receiver)
    }
}

impl Waiter for Running {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while self.0.take() == 0 {
            std::hint::spin_loop();
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        while self.0.take() == 0 {
            if deadline.rest().is_none() {
                return Ok(Woken::TimedOut);
            }
            std::hint::spin_loop();
        }
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.0.take() != 0)
    }
}
