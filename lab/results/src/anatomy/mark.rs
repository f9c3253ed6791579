// SPDX-License-Identifier: MIT OR Apache-2.0
//! The marks that a wake-up passes on its way from the notifier to the waiter.

use serde::{Deserialize, Serialize};

/// A mark, in the order in which a wake-up passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The notifier's stamp, just before its call.
    Sent,
    /// The notifier has entered the kernel.
    Enters,
    /// The kernel has found the waiter and begins to wake it.
    #[serde(alias = "decided")]
    Issued,
    /// An interrupt is sent to the waiter's CPU.
    InterruptSent,
    /// The waiter's CPU takes an interrupt, or leaves its idle state, whichever is seen first.
    Taken,
    /// The waiter's CPU turns to the waiter.
    #[serde(alias = "switched-in")]
    ScheduledIn,
    /// The waiter's system call returns.
    UserMode,
    /// The waiter's stamp, its first instruction after its wait.
    Woke,
    /// The waiter has read the message.
    Read,
}

impl Mark {
    pub const ALL: [Self; 9] = [
        Self::Sent,
        Self::Enters,
        Self::Issued,
        Self::InterruptSent,
        Self::Taken,
        Self::ScheduledIn,
        Self::UserMode,
        Self::Woke,
        Self::Read,
    ];

    /// The name of the stage that ends at it.
    pub fn stage(self) -> &'static str {
        match self {
            Self::Sent => "notifier's stamp",
            Self::Enters => "notifier enters the kernel",
            Self::Issued => "wakeup issued",
            Self::InterruptSent => "interrupt sent",
            Self::Taken => "interrupt taken or idle left",
            Self::ScheduledIn => "scheduled in",
            Self::UserMode => "waiter back in user mode",
            Self::Woke => "waiter's first instruction",
            Self::Read => "message read",
        }
    }

    /// What has happened when it is passed.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Sent => "The notifier is about to make its call: the first stage begins here.",
            Self::Enters => "The stage ends when the notifier has entered the kernel.",
            Self::Issued => "The stage ends when the kernel has found the waiter and begins to wake it.",
            Self::InterruptSent => "The stage ends when an interrupt is sent to the waiter's CPU.",
            Self::Taken => {
                "The stage ends when the waiter's CPU takes an interrupt or leaves its idle state, \
                 whichever is seen first."
            }
            Self::ScheduledIn => {
                "The stage ends when the waiter's CPU turns to it: from where it was ready, this \
                 is the run-queue delay."
            }
            Self::UserMode => "The stage ends when the waiter's system call returns.",
            Self::Woke => "The stage ends with the waiter's first instruction after its wait.",
            Self::Read => "The stage ends when the waiter has read the message.",
        }
    }

    /// Where its time comes from.
    pub fn source(self) -> &'static str {
        match self {
            Self::Sent | Self::Woke | Self::Read => "the instrument's stamp",
            Self::Enters => "raw_syscalls:sys_enter of the notifier, the last before the waking",
            Self::Issued => "sched:sched_waking of the waiter",
            Self::InterruptSent => "ipi:ipi_send_cpu to the waiter's CPU",
            Self::Taken => {
                "irq_vectors:reschedule_entry, irq_vectors:call_function_single_entry or power:cpu_idle there"
            }
            Self::ScheduledIn => "sched:sched_switch to the waiter",
            Self::UserMode => "raw_syscalls:sys_exit of the waiter",
        }
    }
}
