// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which machine, programs and interference a search covers.

use super::state::{RECEIVERS, SENDERS};
use crate::cpu::ApicMode;

/// How the kernel hands over what was posted while a receiver was away (§8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resume {
    /// The core sends itself the notification; microcode does the rest.
    SelfIpi,
    /// The kernel clears ON, takes PIR and adds it to UIRR.
    Direct,
}

/// What a receiver does when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Blocks in the wait call.
    Waits,
    /// Blocks in the wait call for a descriptor too, which somebody
    /// makes readable: the counterpart of pselect(2).
    WaitsWithDescriptor,
    /// Keeps running.
    Spins,
}

/// Where the kernel makes a receiver that sleeps reachable (§8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sleep {
    /// In the wait call, before it gives up its processor; other
    /// system calls are not left for a notification.
    InWait,
    /// On the way off the processor, in whatever system call: what `uintr/driver` does. A last look
    /// that finds something wakes the receiver again.
    AtSwitch,
}

/// What a wake-up by the driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// One step, which ends whatever call the receiver sleeps in.
    AtOnce,
    /// Its real ones: an irq_work after its own switch; in the wait call a wake-up as any other,
    /// in another call a work (task_work) that looks like a signal, ends the call, and lets it
    /// begin anew after the handler.
    InSteps,
    /// The same where the other call runs works itself and sleeps on, as io_uring_enter(2) does.
    InStepsRing,
}

/// What may be done to the tasks, at any moment and in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interference {
    /// Preemption at every step; which processor goes on with the
    /// task is open, so this includes migration.
    pub preempt: bool,
    /// A waiter's time-out fires.
    pub time_out: bool,
    /// A signal reaches a running receiver.
    pub signal: bool,
    /// The kernel uses vector registers on behalf of a running receiver.
    pub fpu: bool,
    /// A receiver closes one of its vectors.
    pub revoke: bool,
    /// A receiver exits, and its descriptor goes back to the pool.
    pub exit: bool,
    /// A running receiver with UIF open sleeps in a system call that is not the wait call.
    pub block: bool,
    /// A processor goes off-line and comes back. The other stays.
    pub hot_plug: bool,
    /// A page of a handler's stack is taken away; it comes back.
    pub page: bool,
    /// At most so many of these in one run; `None` for any number.
    pub limit: Option<u8>,
}

const NONE: Interference = Interference {
    preempt: false,
    time_out: false,
    signal: false,
    fpu: false,
    revoke: false,
    exit: false,
    block: false,
    hot_plug: false,
    page: false,
    limit: None,
};

/// One configuration: two processors and the tasks on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// What the configuration is about.
    pub name: &'static str,
    /// Number of receivers, 1 or 2.
    pub receivers: u8,
    /// Number of senders, 0 to 2.
    pub senders: u8,
    /// Posts per sender, 1 to 4. The posts of a sender alternate between receivers and between
    /// vectors, so that two senders with two posts each cover all pairs of receiver and vector.
    pub posts: u8,
    /// What the receivers do when idle.
    pub patience: Patience,
    /// How the kernel hands over.
    pub resume: Resume,
    /// Where a sleeper becomes reachable.
    pub sleep: Sleep,
    /// How it is woken.
    pub wake: Wake,
    /// Times that each receiver's timer sends, up to 3. With real wake-ups only.
    pub ticks: u8,
    /// Addressing of the local APICs.
    pub apic: ApicMode,
    /// Senders publish an item before each post, and handlers take all items.
    pub payload: bool,
    /// Each sender ends with one SENDUIPI after the end of its table, which must fault.
    pub probe: bool,
    /// What may come between.
    pub interference: Interference,
}

impl Config {
    /// The smallest interesting machine: one receiver that waits, one sender, no interference.
    pub(super) const SMALLEST: Self = Self {
        name: "",
        receivers: 1,
        senders: 1,
        posts: 1,
        patience: Patience::Waits,
        resume: Resume::SelfIpi,
        sleep: Sleep::InWait,
        wake: Wake::AtOnce,
        ticks: 0,
        apic: ApicMode::X2Apic,
        payload: false,
        probe: false,
        interference: NONE,
    };

    /// Two processors, two receivers, two senders, two vectors, with preemption at every step,
    /// migration, blocking and revocation.
    pub const FULL: Self = Self {
        name: "full",
        receivers: RECEIVERS as u8,
        senders: SENDERS as u8,
        posts: 2,
        interference: Interference { preempt: true, revoke: true, limit: Some(1), ..NONE },
        ..Self::SMALLEST
    };

    /// One receiver that blocks, two senders, any number of
    /// preemptions, time-outs and kernel FPU sections.
    pub const BLOCKING: Self = Self {
        name: "blocking",
        senders: 2,
        posts: 1,
        interference: Interference { preempt: true, time_out: true, fpu: true, ..NONE },
        ..Self::SMALLEST
    };

    /// The same with one sender, for the shortest charts.
    pub const WAITING: Self = Self { name: "waiting", senders: 1, ..Self::BLOCKING };

    /// One receiver that never blocks, one sender, signals, FPU sections.
    pub const RUNNING: Self = Self {
        name: "running",
        patience: Patience::Spins,
        posts: 2,
        interference: Interference { preempt: true, signal: true, fpu: true, ..NONE },
        ..Self::SMALLEST
    };

    /// The kernel takes PIR itself on the way back to user mode.
    pub const DIRECT: Self = Self { name: "direct", resume: Resume::Direct, ..Self::BLOCKING };

    /// The same for a receiver that never blocks.
    pub const RUNNING_DIRECT: Self =
        Self { name: "running, direct", resume: Resume::Direct, ..Self::RUNNING };

    /// 8-bit APIC IDs.
    pub const XAPIC: Self = Self {
        name: "xapic",
        apic: ApicMode::XApic,
        probe: true,
        interference: Interference { preempt: true, ..NONE },
        ..Self::SMALLEST
    };

    /// An item goes into a queue before each post.
    pub const PAYLOAD: Self = Self {
        name: "payload",
        posts: 3,
        payload: true,
        interference: Interference { preempt: true, ..NONE },
        ..Self::SMALLEST
    };

    /// Receivers close vectors, exit, and leave their descriptor to the next.
    pub const LIFE_CYCLE: Self = Self {
        name: "life cycle",
        senders: 2,
        posts: 1,
        interference: Interference { preempt: true, revoke: true, exit: true, ..NONE },
        ..Self::SMALLEST
    };

    /// The same for a receiver that never blocks.
    pub const RUNNING_LIFE_CYCLE: Self =
        Self { name: "running, life cycle", patience: Patience::Spins, ..Self::LIFE_CYCLE };

    /// Two receivers that take turns on the processors.
    pub const SHARED: Self = Self {
        name: "shared",
        receivers: 2,
        posts: 1,
        interference: Interference { preempt: true, ..NONE },
        ..Self::SMALLEST
    };

    /// The driver: a receiver sleeps anywhere, and is made reachable on its way off the processor.
    pub const DRIVER: Self = Self {
        name: "driver",
        resume: Resume::Direct,
        sleep: Sleep::AtSwitch,
        interference: Interference { preempt: true, time_out: true, block: true, ..NONE },
        senders: 2,
        posts: 1,
        ..Self::SMALLEST
    };

    /// The same with one sender, more posts and signals.
    pub const DRIVER_RUNNING: Self = Self {
        name: "driver, running",
        patience: Patience::Spins,
        senders: 1,
        posts: 2,
        interference: Interference { signal: true, ..Self::DRIVER.interference },
        ..Self::DRIVER
    };

    /// The same with vectors that are closed, and exit.
    pub const DRIVER_LIFE_CYCLE: Self = Self {
        name: "driver, life cycle",
        interference: Interference { revoke: true, exit: true, ..Self::DRIVER.interference },
        ..Self::DRIVER
    };

    /// The same with processors that go off-line and come back.
    pub const DRIVER_HOT_PLUG: Self = Self {
        name: "driver, hot-plug",
        interference: Interference { hot_plug: true, ..Self::DRIVER.interference },
        ..Self::DRIVER
    };

    /// The same receiver where it waits, with its flag shut, for a descriptor as well.
    pub const DRIVER_DESCRIPTOR: Self = Self {
        name: "driver, descriptor",
        patience: Patience::WaitsWithDescriptor,
        interference: Interference { block: false, ..Self::DRIVER.interference },
        senders: 1,
        ..Self::DRIVER
    };

    /// The same where a page of the handler's stack may be late, as userfaultfd(2) has it.
    pub const DRIVER_STACK: Self = Self {
        name: "driver, stack",
        interference: Interference { page: true, block: false, ..Self::DRIVER.interference },
        senders: 1,
        posts: 2,
        ..Self::DRIVER
    };

    /// Two receivers on one list of the driver's, whose interrupts
    /// meet, and one's notifications the other's UPID.
    pub const DRIVER_SHARED: Self = Self {
        name: "driver, shared",
        receivers: 2,
        interference: Interference { limit: Some(2), ..Self::DRIVER.interference },
        ..Self::DRIVER
    };

    /// The same with vectors that are revoked, and exit.
    pub const DRIVER_SHARED_LIFE_CYCLE: Self = Self {
        name: "driver, shared, life cycle",
        interference: Interference {
            revoke: true,
            exit: true,
            limit: Some(1),
            ..Self::DRIVER_SHARED.interference
        },
        ..Self::DRIVER_SHARED
    };

    /// The same with processors that go off-line and come back.
    pub const DRIVER_SHARED_HOT_PLUG: Self = Self {
        name: "driver, shared, hot-plug",
        interference: Interference { hot_plug: true, ..Self::DRIVER_SHARED.interference },
        ..Self::DRIVER_SHARED
    };

    /// Two that never block, and have both processors until a tick takes one away for who waits.
    pub const DRIVER_SHARED_RUNNING: Self = Self {
        name: "driver, shared, running",
        patience: Patience::Spins,
        interference: Interference { signal: true, ..Self::DRIVER_SHARED.interference },
        ..Self::DRIVER_SHARED
    };

    /// Two that wait with their flag shut, one of them for a descriptor as well.
    pub const DRIVER_SHARED_DESCRIPTOR: Self = Self {
        name: "driver, shared, descriptor",
        interference: Interference { limit: Some(1), ..Self::DRIVER_DESCRIPTOR.interference },
        receivers: 2,
        posts: 2,
        ..Self::DRIVER_DESCRIPTOR
    };

    /// Two whose handlers' stacks have pages that may be late.
    pub const DRIVER_SHARED_STACK: Self = Self {
        name: "driver, shared, stack",
        interference: Interference { limit: Some(1), ..Self::DRIVER_STACK.interference },
        receivers: 2,
        senders: 2,
        posts: 1,
        ..Self::DRIVER_STACK
    };

    /// A wake-up in its real steps: one that waits and sleeps in another call too, with its
    /// processor taken away at any moment, and so many wake-ups under way as the driver may have.
    pub const DRIVER_CALLS: Self =
        Self { name: "driver, calls", wake: Wake::InSteps, senders: 1, posts: 2, ..Self::DRIVER };

    /// The same where the other call runs works itself.
    pub const DRIVER_RING: Self =
        Self { name: "driver, ring", wake: Wake::InStepsRing, ..Self::DRIVER_CALLS };

    /// Two receivers, who are taken off one list, and woken one after the other.
    pub const DRIVER_SHARED_CALLS: Self = Self {
        name: "driver, shared, calls",
        wake: Wake::InSteps,
        senders: 1,
        posts: 2,
        interference: Interference { limit: Some(1), ..Self::DRIVER_SHARED.interference },
        ..Self::DRIVER_SHARED
    };

    /// A receiver with a timer, and one who sends to it besides.
    pub const DRIVER_TIMER: Self = Self { name: "driver, timer", posts: 1, ticks: 1, ..Self::DRIVER_CALLS };

    /// The same for one that never waits, so that no sleep makes good what its processor was not
    /// told, and that may exit.
    pub const DRIVER_TIMER_RUNNING: Self = Self {
        name: "driver, timer, running",
        patience: Patience::Spins,
        interference: Interference { exit: true, ..Self::DRIVER_TIMER.interference },
        ..Self::DRIVER_TIMER
    };

    /// The same with processors that go off-line and come back.
    pub const DRIVER_TIMER_HOT_PLUG: Self = Self {
        name: "driver, timer, hot-plug",
        interference: Interference { hot_plug: true, limit: Some(2), ..Self::DRIVER.interference },
        ..Self::DRIVER_TIMER
    };

    /// Two receivers with a timer each, which find each other's threads on their processors; nobody
    /// else sends.
    pub const DRIVER_SHARED_TIMER: Self =
        Self { name: "driver, shared, timer", senders: 0, ticks: 1, ..Self::DRIVER_SHARED_CALLS };

    /// Receiver and vector of a sender's n-th post.
    pub(super) const fn destination(&self, sender: u8, post: u8) -> (u8, u8) {
        if self.receivers == 1 {
            (0, (sender + post) % 2)
        } else {
            ((sender + post) % 2, (post / 2 % 2) ^ (post % 2))
        }
    }

    /// Entries of each sender's table.
    pub(super) const fn entries(&self) -> u32 {
        self.receivers as u32 * 2
    }

    /// Whether a wake-up has its real steps.
    pub(super) fn wakes_in_steps(&self) -> bool {
        self.wake != Wake::AtOnce
    }

    /// Whether exchanging both receivers and both senders gives the same machine.
    pub(super) const fn tasks_exchangeable(&self) -> bool {
        self.receivers == 2 && self.senders != 1
    }
}
