// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole machine between two steps, small enough to be remembered by the million.

use crate::cpu::{ApicMode, Cpu};
use crate::upid::UpidValue;
use std::hash::{Hash, Hasher};

/// Processors, receivers, senders and user vectors in the largest configuration.
pub(super) const CPUS: usize = 2;
pub(super) const RECEIVERS: usize = 2;
pub(super) const SENDERS: usize = 2;
pub(super) const VECTORS: usize = 2;

/// What a receiver's timer sends.
pub(super) const TICK: usize = 1;

/// The two ordinary interrupt vectors.
pub(super) const NOTIFY: u8 = 0xEC;
pub(super) const KERNEL: u8 = 0xEB;

/// Which of the two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Irq {
    /// It notifies a running receiver.
    Notify,
    /// It tells the kernel about a sleeping one.
    Kernel,
}

impl Irq {
    pub(super) const ALL: [Self; 2] = [Self::Notify, Self::Kernel];

    pub(super) const fn vector(self) -> u8 {
        match self {
            Self::Notify => NOTIFY,
            Self::Kernel => KERNEL,
        }
    }
}

/// A thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Task {
    #[default]
    None,
    Receiver(u8),
    Sender(u8),
}

/// What a processor is doing. All kernel work except the two states
/// that say so runs with interrupts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// Halted, or choosing the next task.
    #[default]
    Idle,
    /// The running task's own instructions.
    User,
    /// Kernel, the way back to user mode after the wait call: NV and NDST.
    Arm,
    /// Kernel: SN := 0.
    Unsuppress,
    /// Kernel: look at PIR and ON.
    Recheck,
    /// Kernel, direct variant: ON was cleared, PIR is taken now.
    Collect,
    /// Kernel, in the wrong order of hazard H9: NDST after the last look at PIR and ON.
    Retarget,
    /// Kernel, in the wait call, interrupts on, nothing done yet. Where a wake-up has its real
    /// steps: in whatever call, about to say that it sleeps, and to look.
    WaitEntry,
    /// Kernel, there, interrupts on: it has looked, and calls the scheduler.
    Schedule,
    /// Kernel, on the way to a processor: a timer that runs on another is waited for, and what was
    /// due is found.
    CancelTimer,
    /// Kernel, in the wait call: on the list; look at PIR, ON and UIRR.
    WaitCheck,
    /// Kernel, on the way off the processor: saved, SN set, not yet on the list.
    ToSleep,
    /// Kernel work that uses vector registers, interrupts on.
    FpuSection,
    /// Kernel, on a processor that goes off-line: its sleepers name another; look at ON of each.
    LookAfterMove,
    /// Kernel, in the wait call with a descriptor, interrupts on: in the descriptor's queue; look
    /// at it (under H32: the other way round).
    LookAtDescriptor,
    /// Kernel, there: it runs no more once it calls the scheduler; look at what was triggered
    /// (under H33: the other way round).
    LookAtTriggered,
    /// Kernel: a page of the handler's stack was not there when the processor delivered.
    PageFault,
    /// Under H38: the thread runs a virtual CPU. Interrupts end that, and are the kernel's.
    Guest,
}

/// Where the interrupt of a timer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Ticking {
    #[default]
    No,
    /// PIR has the request; ON is looked at, and set, as SENDUIPI would.
    Notify,
    /// Of the thread that runs here: ON is set, and is to be cleared (under H40 PIR was taken
    /// before).
    Clear,
    /// ON was cleared, PIR is taken now (under H40 the other way round).
    Take,
    /// Of one that sleeps: ON is set, and whoever is on its list with ON is woken.
    Wake,
}

/// The call that a receiver is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Call {
    #[default]
    None,
    /// The wait call, whose sleep any wake-up ends.
    Wait,
    /// Another, which sleeps on unless there is what looks like a signal.
    Other,
}

/// Whether a processor takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Plug {
    #[default]
    OnLine,
    /// About to go: threads run there still, and what sleeps is reached through the other.
    Closed,
    /// Its APIC takes nothing, and what it held is lost.
    OffLine,
}

/// One logical processor and its local APIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Core {
    pub(super) at: At,
    pub(super) plug: Plug,
    pub(super) running: Task,
    pub(super) cr4_uintr: bool,
    pub(super) uif: bool,
    pub(super) uirr: u8,
    /// UINV is the notification vector, not zero.
    pub(super) armed: bool,
    /// In the middle of notification processing: ON is cleared, PIR not yet taken.
    pub(super) taking: bool,
    /// Receiver whose UPID the core points at, plus one.
    pub(super) upid: u8,
    /// Sender whose table the core points at, plus one.
    pub(super) table: u8,
    /// In the interrupt of a timer, and whose it is.
    pub(super) ticking: Ticking,
    pub(super) ticked: u8,
    /// In an interrupt that has taken these off the list, one bit each, and wakes them after its
    /// lock.
    pub(super) waking: u8,
    /// The local APIC holds a notification that this core sent to
    /// itself. It is accepted before the next instruction.
    pub(super) self_ipi: bool,
    /// By [`Irq`]: messages on their way, or held by the local APIC. How long each takes is open,
    /// so these two need not be told apart: one that arrived and is held is like one that
    /// arrives when it can be accepted. Several that are held together are accepted as one.
    pub(super) in_flight: [u8; 2],
}

/// Where a task's context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Saved, waiting for a processor.
    #[default]
    Ready,
    /// On a processor.
    Running,
    /// Saved, waiting for a wake-up.
    Asleep,
    /// Gone.
    Exited,
}

/// What the receiver's program does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Receive {
    /// System call: become a receiver.
    #[default]
    Register,
    /// STUI.
    Open,
    /// Compute; then CLUI.
    Compute,
    /// Look whether the handler has run since the last look.
    Look,
    /// System call: wait.
    Wait,
}

/// A receiver: its thread, its UPID, and what its program has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Receiver {
    pub(super) place: Place,
    /// When picked, goes on inside the wait call instead of returning to user mode.
    pub(super) in_wait: bool,
    pub(super) saved_uif: bool,
    pub(super) saved_uirr: u8,
    pub(super) next: Receive,
    /// On the wait list.
    pub(super) queued: bool,
    /// A page of the handler's stack is not there.
    pub(super) page_missing: bool,
    /// It sleeps until that page comes.
    pub(super) paging: bool,
    /// Under H37: its program has ended it, and nothing is behind its handler.
    pub(super) handler_gone: bool,
    /// Taken off the list, or never left on it, and about to be
    /// woken: the driver wakes after the list's lock.
    pub(super) waking: bool,
    /// Of the descriptor it waits for as well: writes to come, twice,
    /// less one where its queue is yet to be woken.
    pub(super) writes: u8,
    /// There is something in it.
    pub(super) readable: bool,
    /// In its queue.
    pub(super) listening: bool,
    /// Its queue was woken since the receiver last went to look.
    pub(super) triggered: bool,
    /// TASK_INTERRUPTIBLE: it sleeps once it calls the scheduler, unless it is woken before.
    pub(super) interruptible: bool,
    pub(super) call: Call,
    /// What it waits for in that call has come, or its time-out.
    pub(super) over: bool,
    /// A work has ended its call, which begins anew after the handler.
    pub(super) restart: bool,
    /// Its processor was taken away, though it may have said that it sleeps.
    pub(super) preempted: bool,
    /// The bit of its work is set: who would queue it leaves it to the work that is under way.
    pub(super) work: bool,
    /// That work is queued, which looks like a signal.
    pub(super) notified: bool,
    /// Processor on which the irq_work is queued that wakes it after its own switch, plus one.
    pub(super) late: u8,
    /// Under H44: that has woken it, and is not free yet.
    pub(super) late_done: bool,
    /// Times that its timer has to send yet.
    pub(super) ticks: u8,
    /// The time has come, and was not sent yet.
    pub(super) tick_due: bool,
    /// Processor on which the timer is queued, plus one.
    pub(super) timer: u8,
    /// The handler ran, and the program has not looked since.
    pub(super) flag: bool,
    /// Vector whose handler is running, plus one.
    pub(super) handling: u8,
    /// In a signal handler; the value UIF had before, plus one.
    pub(super) signal: u8,
    /// By vector: posted and not delivered since.
    pub(super) due: [bool; VECTORS],
    /// By vector: items published and not taken.
    pub(super) items: [u8; VECTORS],
    /// By vector: the receiver has closed it, so that no entry is valid.
    pub(super) revoked: [bool; VECTORS],
    /// By vector: the driver has told so, and nothing is sent any more.
    pub(super) retired: [bool; VECTORS],
    pub(super) on: bool,
    pub(super) sn: bool,
    /// NV is the kernel's vector, not the notification vector.
    pub(super) nv_kernel: bool,
    /// As stored in the UPID.
    pub(super) ndst: u16,
    pub(super) pir: u8,
    /// The UPID's memory was given back while its owner is gone.
    pub(super) freed: bool,
    /// The UPID has passed to another owner.
    pub(super) second_life: bool,
}

impl Receiver {
    pub(super) fn registered(&self) -> bool {
        self.next != Receive::Register
    }

    /// It has a UPID, and its thread has not ended.
    pub(super) fn alive(&self) -> bool {
        self.registered() && self.place != Place::Exited
    }

    pub(super) fn upid(&self) -> UpidValue {
        UpidValue::new(if self.nv_kernel { KERNEL } else { NOTIFY }, u32::from(self.ndst))
            .with_on(self.on)
            .with_sn(self.sn)
            .with_pir(u64::from(self.pir))
    }

    pub(super) fn set_upid(&mut self, upid: UpidValue) {
        self.on = upid.on();
        self.sn = upid.sn();
        self.nv_kernel = upid.nv() == KERNEL;
        self.ndst = upid.ndst() as u16;
        self.pir = upid.pir as u8;
    }
}

/// What the sender's program does next. `Fetch`, `Post` and `Notify`
/// are the three moments of one SENDUIPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Send {
    /// System call: become a sender.
    #[default]
    Register,
    /// Make the item visible to the receiver.
    Publish,
    /// Read the table entry.
    Fetch,
    /// Set PIR, and ON if this post notifies.
    Post,
    /// Hand the IPI to the APIC.
    Notify,
    /// A program error on purpose: SENDUIPI with the first index after the table.
    Probe,
}

/// A sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) place: Place,
    /// Saved TT names its own table.
    pub(super) saved_table: bool,
    pub(super) next: Send,
    /// Sends done.
    pub(super) sent: u8,
    /// The entry that is being used belongs to a UPID of before its change of owner.
    pub(super) stale: bool,
    /// The IPI to send: processor plus one, and vector.
    pub(super) ipi_to: u8,
    pub(super) ipi_kernel: bool,
}

/// What went wrong, latched by the step that did it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Wrong {
    #[default]
    Nothing,
    RestoreFault,
    SendInvalid,
    SendStranger,
    SendFreed,
    SendReused,
    SendRevoked,
    HandlerGone,
    TableOverread,
    TickSwallowed,
    TimerFreed,
}

/// The machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub(super) cores: [Core; CPUS],
    pub(super) receivers: [Receiver; RECEIVERS],
    pub(super) senders: [Sender; SENDERS],
    /// Interference that may still come.
    pub(super) budget: u8,
    pub(super) wrong: Wrong,
}

/// Base addresses of the structures in the model's memory.
const UPIDS: u64 = 0x1000;
const TABLES: u64 = 0x10_0000;

pub(super) const fn upid_address(upid: u8) -> u64 {
    if upid == 0 { 0 } else { UPIDS + 64 * (upid as u64 - 1) }
}

pub(super) const fn table_register(table: u8) -> u64 {
    if table == 0 { 0 } else { (TABLES + 4096 * (table as u64 - 1)) | 1 }
}

pub(super) const fn upid_at(address: u64) -> u8 {
    if address == 0 { 0 } else { ((address - UPIDS) / 64 + 1) as u8 }
}

pub(super) const fn table_at(register: u64) -> u8 {
    if register & 1 == 0 { 0 } else { ((register - TABLES) / 4096 + 1) as u8 }
}

impl Core {
    /// This core as [`crate::cpu`] sees it.
    pub(super) fn cpu(&self, apic: ApicMode, uitt_size: u32) -> Cpu {
        Cpu {
            cr4_uintr: self.cr4_uintr,
            cpl: if self.at == At::User { 3 } else { 0 },
            apic,
            uirr: u64::from(self.uirr),
            uif: self.uif,
            handler: 0x40_0000,
            stack_adjust: 128,
            rsp: 0x8000,
            uinv: if self.armed { NOTIFY } else { 0 },
            uitt_size,
            upid_address: upid_address(self.upid),
            tt: table_register(self.table),
            ..Cpu::user_mode()
        }
    }

    /// Takes over what an event changed.
    pub(super) fn set_cpu(&mut self, cpu: &Cpu) {
        self.uirr = cpu.uirr as u8;
        self.uif = cpu.uif;
        self.armed = cpu.uinv != 0;
        self.upid = upid_at(cpu.upid_address);
        self.table = table_at(cpu.tt);
    }
}

/// Writes small fields side by side into a few words; the state is
/// hashed and compared in this form.
struct Packer {
    words: [u64; 4],
    bit: u32,
}

impl Packer {
    fn put(&mut self, value: impl Into<u64>, bits: u32) {
        let value = value.into();
        debug_assert!(value < 1 << bits, "{value} does not fit into {bits} bits");
        let (word, shift) = ((self.bit / 64) as usize, self.bit % 64);
        self.words[word] |= value << shift;
        if shift + bits > 64 {
            self.words[word + 1] |= value >> (64 - shift);
        }
        self.bit += bits;
    }

    fn put_all<const N: usize>(&mut self, values: [impl Into<u64>; N], bits: u32) {
        for value in values {
            self.put(value, bits);
        }
    }
}

impl State {
    /// All of it in 32 bytes; equal exactly if the states are.
    pub(super) fn packed(&self) -> [u64; 4] {
        let mut p = Packer { words: [0; 4], bit: 0 };
        for c in &self.cores {
            p.put(c.at as u8, 5);
            p.put(c.ticking as u8, 3);
            p.put(c.ticked, 1);
            p.put(c.waking, 2);
            p.put(c.plug as u8, 2);
            p.put(
                match c.running {
                    Task::None => 0,
                    Task::Receiver(r) => 2 + r,
                    Task::Sender(s) => 4 + s,
                },
                3,
            );
            p.put_all([c.cr4_uintr, c.uif, c.armed, c.taking], 1);
            p.put_all([c.uirr, c.upid, c.table], 2);
            p.put(c.self_ipi, 1);
            p.put_all(c.in_flight, 3);
        }
        for r in &self.receivers {
            p.put(r.place as u8, 2);
            p.put_all([r.in_wait, r.saved_uif, r.queued, r.flag], 1);
            p.put(r.writes, 2);
            p.put_all([r.readable, r.listening, r.triggered, r.interruptible], 1);
            p.put_all([r.saved_uirr, r.handling, r.signal], 2);
            p.put(r.next as u8, 3);
            p.put_all(r.due, 1);
            p.put_all(r.items, 2);
            p.put_all(r.revoked, 1);
            p.put_all(r.retired, 1);
            p.put_all([r.waking, r.page_missing, r.paging, r.handler_gone], 1);
            p.put_all([r.on, r.sn, r.nv_kernel, r.freed, r.second_life], 1);
            p.put(r.call as u8, 2);
            p.put_all([r.over, r.restart, r.preempted, r.work, r.notified, r.late_done, r.tick_due], 1);
            p.put_all([r.late, r.ticks, r.timer], 2);
            p.put(r.ndst, 9);
            p.put(r.pir, 2);
        }
        for s in &self.senders {
            p.put(s.place as u8, 2);
            p.put_all([s.saved_table, s.stale, s.ipi_kernel], 1);
            p.put(s.next as u8, 3);
            p.put(s.sent, 3);
            p.put(s.ipi_to, 2);
        }
        p.put(self.budget, 4);
        p.put(self.wrong as u8, 4);
        p.words
    }

    /// Exchanges the two processors.
    pub(super) fn cpus_exchanged(&self, apic: ApicMode) -> Self {
        let mut other = *self;
        other.cores.swap(0, 1);
        for receiver in &mut other.receivers {
            let id = apic.destination(u32::from(receiver.ndst));
            receiver.ndst = apic.ndst(1 - id) as u16;
            for on in [&mut receiver.late, &mut receiver.timer] {
                if *on != 0 {
                    *on = 3 - *on;
                }
            }
        }
        for sender in &mut other.senders {
            if sender.ipi_to != 0 {
                sender.ipi_to = 3 - sender.ipi_to;
            }
        }
        other
    }

    /// Exchanges the two receivers and the two senders at once, which
    /// maps the senders' programs onto each other.
    pub(super) fn tasks_exchanged(&self) -> Self {
        let mut other = *self;
        other.receivers.swap(0, 1);
        other.senders.swap(0, 1);
        for core in &mut other.cores {
            core.running = match core.running {
                Task::None => Task::None,
                Task::Receiver(r) => Task::Receiver(1 - r),
                Task::Sender(s) => Task::Sender(1 - s),
            };
            if core.upid != 0 {
                core.upid = 3 - core.upid;
            }
            if core.table != 0 {
                core.table = 3 - core.table;
            }
            core.waking = core.waking >> 1 | core.waking << 1 & 2;
            if core.ticking != Ticking::No {
                core.ticked = 1 - core.ticked;
            }
        }
        other
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for word in self.packed() {
            hasher.write_u64(word);
        }
    }
}
