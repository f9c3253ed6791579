// SPDX-License-Identifier: MIT OR Apache-2.0
//! preadv2 and pwritev2 with RWF_HIPRI: the caller looks at the
//! device's queue, where the kernel still does that.

use super::sync::Call;
use super::{Engine, Explanation, Noticed};

pub(super) const ENGINE: Engine = Engine {
    name: "sync-hipri",
    explanation: Explanation {
        summary: "preadv2 and pwritev2 with RWF_HIPRI: one call a block that asks to be polled for",
        how: "As sync, with the flag RWF_HIPRI.",
        kernel: "Linux 4.4 to 5.19: the request goes to a queue without interrupts where the \
            driver has one, and the caller looks at it until it is done; io_poll_delay makes \
            it sleep first. Since Linux 6.0 the flag is a hint that synchronous calls ignore: \
            the request goes to a queue with an interrupt.",
        limits: "The call succeeds either way, so only the device's interrupts tell whether \
            anything was polled: here they are counted, and a trial in which they moved has no \
            figures.",
        sources: &[
            "preadv2(2) RWF_HIPRI",
            "Linux commit 9650b453a3d4, \"block: ignore RWF_HIPRI hint for sync dio\"",
            "Documentation/ABI/stable/sysfs-block, queue/io_poll_delay",
        ],
    },
    noticed: Noticed::ByPolling,
    kernel_thread: false,
    available: || Ok(()),
    open: |place| Ok(Box::new(Call { place, flags: libc::RWF_HIPRI })),
};
