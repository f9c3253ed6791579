// SPDX-License-Identifier: MIT OR Apache-2.0
//! WaitOnAddress: Windows' sleep on the value of a word.

use doorbell_harness::wait_on_address::AddressLink;

use super::{Explanation, Host, Mechanism, Notifiers, Unavailable};

/// The notifier stores and wakes, the waiter sleeps while the word holds what it saw last.
#[derive(Debug)]
pub struct WaitOnAddress;

impl Mechanism for WaitOnAddress {
    type Link = AddressLink;
    const NAME: &'static str = "wait-on-address";
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "WaitOnAddress on a word (threads only)",
            how: "The notifier stores the next number in a word and calls WakeByAddressSingle, always; the waiter calls WaitOnAddress with the \
                  number it saw last, which sleeps only if the word still holds it.",
            kernel: "A table of waiters lies in the process's own memory; who finds one enters the kernel to make its thread ready, and who \
                     sleeps enters it to wait for that. A wake-up that finds nobody never leaves user mode.",
            limits: "Threads of one process. Two notifications before the waiter looks are one. It may return without a reason, and the waiter \
                     looks again. The timed wait counts milliseconds.",
            sources: &["WaitOnAddress, WakeByAddressSingle (Win32 API, Synchronization), since Windows 8"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        Ok(())
    }
}
