// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receiver, processors, waiters and senders between two steps.

pub(super) const WAITERS: usize = 2;
pub(super) const SENDERS: usize = 2;
pub(super) const VECTORS: usize = 2;

/// Where a waiting thread is. Each waiter has a processor of its own; with [`At::Arm`] to
/// [`At::See`] its interrupts are off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// User code: about to wait.
    #[default]
    Out,
    /// Has the queue's lock.
    Queueing,
    /// In the queue.
    Queued,
    /// The vector is wanted; the receiver may be at rest.
    Arm,
    /// Has the receiver's lock; looks, or takes.
    See,
    /// Found nothing: about to sleep, unless it was woken since it queued.
    Sleep,
    Asleep,
    /// Found something, or gave up: about to leave the queue.
    Leave,
    /// Has the queue's lock, to leave.
    Leaving,
    /// Out of the queue, or in it for good: reads without blocking.
    Take,
    /// Took a bit from PIR: wakes the queue.
    Tell,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WaiterState {
    pub(super) at: At,
    pub(super) queued: bool,
    /// Woken since it last went to look.
    pub(super) woken: bool,
    /// Posted to its vector, and neither was it woken nor has it looked since.
    pub(super) due: bool,
    /// What it found before it leaves the queue.
    pub(super) found: bool,
    /// Goes on to [`At::Tell`] when it is out of the queue.
    pub(super) tells: bool,
}

/// Moments of SENDUIPI: the locked update, then the interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SenderState {
    pub(super) sent: u8,
    /// Processor to interrupt, plus one.
    pub(super) ipi_to: u8,
}

/// The handler of the kernel's vector on a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Irq {
    #[default]
    None,
    /// Acknowledged; wants the receiver's lock.
    Begun,
    /// Has the lock and has cleared ON (under P4: has taken PIR).
    Noticing,
    /// Has counted; may put the receiver to rest.
    Deciding,
    /// Notes which queues to wake.
    Noting,
    /// Queues the work.
    Raising,
    /// Under P5: wakes the queues itself.
    Waking,
    /// Under P14: the timer has looked, and clears SN.
    Speaking,
}

/// The work that wakes, of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Work {
    #[default]
    None,
    /// Has the receiver in hand, which may not be queued again yet.
    Begun,
    /// It may (under P8: has taken the note instead).
    Free,
    /// Wakes these queues.
    Waking,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cpu {
    /// Interrupts under way to it.
    pub(super) in_flight: u8,
    pub(super) irq: Irq,
    /// Vectors the handler has in hand.
    pub(super) bits: u8,
    /// Under P9: nobody was queued when it began.
    pub(super) nobody: bool,
    /// Work is queued here.
    pub(super) raised: bool,
    pub(super) work: Work,
    /// Vectors the work has in hand.
    pub(super) waking: u8,
    /// Takes no sleepers any more.
    pub(super) closed: bool,
    pub(super) off_line: bool,
}

/// Who has the receiver's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    #[default]
    Nobody,
    Waiter(u8),
    Irq(u8),
}

/// The system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) on: bool,
    pub(super) sn: bool,
    /// NDST.
    pub(super) to: u8,
    pub(super) pir: u8,
    /// On a processor's list.
    pub(super) armed: bool,
    /// Armed, and silent until a timer looks: SN is set.
    pub(super) throttled: bool,
    /// Under P15: the timer does not run.
    pub(super) timer_lost: bool,
    /// Vectors that somebody may be waiting for.
    pub(super) wanted: u8,
    pub(super) counts: [u8; VECTORS],
    pub(super) lock: Holder,
    /// By vector: the waiter that has the queue's lock, plus one.
    pub(super) queue_lock: [u8; VECTORS],
    /// Vectors whose queue is to be woken.
    pub(super) note: u8,
    /// The receiver is with some processor's work.
    pub(super) noted: bool,
    pub(super) cpus: [Cpu; 2],
    pub(super) waiters: [WaiterState; WAITERS],
    pub(super) senders: [SenderState; SENDERS],
    pub(super) posted: [u8; VECTORS],
    pub(super) read: [u8; VECTORS],
    pub(super) budget: u8,
}

impl State {
    /// SENDUIPI's locked update; whether it interrupts. Posts that meet are one.
    pub(super) fn post(&mut self, vector: u8) -> bool {
        self.posted[usize::from(vector)] += 1 - (self.pir >> vector & 1);
        self.pir |= 1 << vector;
        let interrupts = !self.sn && !self.on;
        self.on |= interrupts;
        interrupts
    }

    pub(super) fn readable(&self, vector: u8) -> bool {
        self.counts[usize::from(vector)] > 0 || self.pir >> vector & 1 == 1
    }

    pub(super) fn read_twice(&self) -> bool {
        (0..VECTORS).any(|v| self.read[v] + self.counts[v] + (self.pir >> v & 1) > self.posted[v])
    }
}
