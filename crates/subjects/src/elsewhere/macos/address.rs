// SPDX-License-Identifier: MIT OR Apache-2.0
//! os_sync_wait_on_address: macOS's sleep on the value of a word.

use doorbell_harness::sync_wait_on_address::{AddressLink, available};

use super::{Explanation, Host, Mechanism, Notifiers, Unavailable};

/// The notifier stores and wakes, the waiter sleeps while the word holds what it saw last.
#[derive(Debug)]
pub struct SyncWaitOnAddress;

impl Mechanism for SyncWaitOnAddress {
    type Link = AddressLink;
    const NAME: &'static str = "sync-wait-on-address";
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "os_sync_wait_on_address on a word",
            how: "The notifier stores the next number in a word and calls os_sync_wake_by_address_any, always; the waiter calls \
                  os_sync_wait_on_address with the number it saw last, which sleeps only if the word still holds it.",
            kernel: "A hash table of addresses in the kernel (ulock), as for the futex of Linux.",
            limits: "Since macOS 14.4. Two notifications before the waiter looks are one. Never run here: type-checked only.",
            sources: &["os/os_sync_wait_on_address.h"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        let lacking =
            || Unavailable::because("this system has no os_sync_wait_on_address, which came with macOS 14.4");
        available().then_some(()).ok_or_else(lacking)
    }
}
