// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured, as the build that measured it knew it: everything that is read off a result
//! asks here, and no list of names.

use serde::{Deserialize, Serialize};

/// What a subject is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Subject {
    /// A means of notification between two sides.
    Mechanism(Notification),
    /// One notifier and many receivers.
    FanOut {
        /// Whether all receivers wait on one object, so that nobody is owed a notification.
        shared: bool,
        /// What each receiver is notified by.
        notification: Notification,
    },
    /// An operation of the kernel or the CPU.
    Operation {
        /// Whether both sides take part; else one repeats it alone.
        two_sided: bool,
        /// What one operation is: `call`, `fault`, `round`, …
        unit: String,
    },
    /// Tasks that hand over to one another.
    Tasks {
        /// What they are to the kernel.
        made_of: MadeOf,
        /// What is timed of them.
        measured: Measured,
        /// Whether a task sleeps while others have their turns, so that each hand-off is at least
        /// one switch of the kernel's.
        sleeps: bool,
    },
    /// A way to transfer a block and to wait for it.
    IoEngine {
        /// How a completion is noticed.
        noticed: Noticed,
        /// Whether a thread of the kernel works for it beside the waiter.
        kernel_thread: bool,
    },
    /// Nothing is known of it: another tool measured it, or the
    /// program that was to measure it does not have it.
    #[default]
    Unknown,
}

impl Subject {
    pub fn notification(&self) -> Option<&Notification> {
        match self {
            Self::Mechanism(notification) | Self::FanOut { notification, .. } => Some(notification),
            _ => None,
        }
    }

    /// Whether it is the harness alone, with nothing to measure in it.
    pub fn is_harness(&self) -> bool {
        match self {
            Self::IoEngine { noticed, .. } => *noticed == Noticed::Nothing,
            _ => self.notification().is_some_and(|notification| notification.waits == Waits::Nothing),
        }
    }

    /// How the completion of a transfer is noticed, if blocks are transferred.
    pub fn noticed(&self) -> Option<Noticed> {
        match self {
            Self::IoEngine { noticed, .. } => Some(*noticed),
            _ => None,
        }
    }
}

/// What the two sides are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Contexts {
    /// Two processes that share memory and descriptors.
    #[default]
    Processes,
    /// Two threads of one process.
    Threads,
}

/// How a mechanism notifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notification {
    /// How its waiter waits.
    pub waits: Waits,
    /// Whether two notifications before a wait are one wake-up (eventfd value, futex word, pending
    /// signal), and not two (pipe bytes, semaphore counts, datagrams).
    pub coalesces: bool,
    /// Whether a notification may be dropped on its way.
    pub drops: bool,
    /// Whether the waiting end is a descriptor that `poll` and `epoll` take together with others.
    pub descriptor: bool,
    /// Whether giving up a wait after some time is part of the waiting call.
    pub timed: bool,
    /// How many notifiers one waiter may have.
    pub notifiers: Notifiers,
    /// What a notification can bring along.
    pub carries: Carries,
    /// Whether it joins two processes.
    pub processes: bool,
    /// Whether it joins two threads of one process.
    pub threads: bool,
}

impl Notification {
    pub fn joins(&self, contexts: Contexts) -> bool {
        match contexts {
            Contexts::Processes => self.processes,
            Contexts::Threads => self.threads,
        }
    }
}

/// What kind of waiting a mechanism does; decides which checks apply to its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// The waiter leaves its CPU: a wait that never slept is implausible.
    Blocks,
    /// The waiter keeps its CPU (spin, `umwait`).
    Spins,
    /// The waiter stays runnable but gives way (`sched_yield`).
    Yields,
    /// The waiter keeps its CPU as long as that pays, then leaves it: neither sleeping nor not
    /// sleeping is implausible.
    Adapts,
    /// Nothing is waited for: the harness itself.
    Nothing,
}

/// How many notifiers one waiter may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Notifiers {
    /// One: what it writes would hide what another writes.
    One,
    /// Any number, none of which knows of the others.
    Several,
}

/// What a notification brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Carries {
    /// Nothing but itself.
    Nothing,
    /// A number of the notifier's choice.
    Word,
    /// A message of bytes.
    Message,
}

/// How a completion is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Noticed {
    /// The device interrupts and the waiter, asleep, is woken.
    ByInterrupt,
    /// Somebody looks at the device's completion queue; the device does not interrupt.
    ByPolling,
    /// Nothing is transferred: the harness itself.
    Nothing,
}

/// What is timed of a kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// Handing over from task to task, and making and reaping them beside it.
    HandOffs,
    /// Making a task, running it once, and reaping it.
    Lives,
}

/// What tasks of a kind are to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MadeOf {
    /// Nothing: code of one thread.
    Code,
    /// A thread each, in one address space.
    Threads,
    /// A process each, with an address space of its own.
    Processes,
}
