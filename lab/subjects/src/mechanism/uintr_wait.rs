// SPDX-License-Identifier: MIT OR Apache-2.0
//! SENDUIPI to a thread that sleeps in the driver until one comes.

use std::io::ErrorKind;
use std::time::Duration;

use user_interrupts::{Pending, Receiver};

use super::deadline::Deadline;
use super::user_interrupt::{ByHardware, InterruptLink, Interruption};
use super::{Explanation, Fault, Mechanism, Waiter, Woken};

pub(crate) struct UintrWait;

/// The end that sleeps. It is masked but for the moment in which it takes what is pending.
pub(crate) struct Sleeping(Receiver);

impl Mechanism for UintrWait {
    type Link = InterruptLink<Self, ByHardware>;
    const NAME: &'static str = "uintr-wait";
    const COALESCES: bool = true;

    const EXPLANATION: Explanation = Explanation {
        summary: "SENDUIPI to a receiver that sleeps in UINTR_WAIT",
        how: "The waiter keeps its interrupts masked (CLUI), opens the mask for a moment \
            (STUI), in which its handler notes what is pending, and, if nothing was, sleeps in \
            UINTR_WAIT, an ioctl of the driver's. The notifier sends with SENDUIPI, always.",
        kernel: "The driver lets a sleeper's notifications go to an ordinary vector of the CPU \
            it slept on: that interrupt enters the kernel, finds the sleeper on the CPU's list \
            and wakes it as any sleeper is woken. The notifier makes no system call; the \
            wake-up costs the scheduler what it costs whoever rings.",
        limits: "A blocked receiver costs a wake-up by the scheduler, whatever rings. The \
            interrupt goes to the CPU where the receiver slept, whoever runs there by then. A \
            vector is one bit. The timed wait is UINTR_WAIT's own deadline; a signal ends it, \
            and it is entered again.",
        sources: &[
            "uintr/driver/README.md; uintr/driver/include/linux/uintr.h, UINTR_WAIT",
            "Intel SDM vol. 3A, User Interrupts",
            "A. Lutomirski, T. Gleixner on uintr_wait, linux-kernel, September 2021",
        ],
    };
}

impl Interruption for UintrWait {
    type Waiter = Sleeping;
    fn begin(receiver: Receiver) -> Sleeping {
        Sleeping(receiver)
    }
}

impl Sleeping {
    /// Lets the handler run for what is pending, and says whether there was something.
    #[inline]
    fn take(&self) -> bool {
        self.0.unmask();
        self.0.mask();
        self.0.take() != 0
    }

    #[inline]
    fn sleep(&self, timeout: Option<Duration>) -> Result<Pending, Fault> {
        match self.0.wait(timeout) {
            // Another signal's handler ran: the caller looks, and sleeps again.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Pending::Interrupt),
            ended => ended.map_err(Fault::of("uintr_wait_until")),
        }
    }
}

impl Waiter for Sleeping {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take() {
            self.sleep(None)?;
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        while !self.take() {
            let Some(rest) = deadline.rest() else { return Ok(Woken::TimedOut) };
            // What came with the last moment is still pending, and is not taken by who timed out.
            if self.sleep(Some(rest))? == Pending::TimedOut {
                return Ok(Woken::TimedOut);
            }
        }
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.take())
    }
}
