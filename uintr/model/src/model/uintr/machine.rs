// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps: what can happen next, and what it does. Sections are
//! those of the architecture reference.
//!
//! Everything a processor does by itself goes through [`crate::cpu`]; what is here is the local
//! APICs, the driver, the scheduler and the programs. Kernel work runs with interrupts off unless
//! its state says otherwise. Steps that touch only registers of one core with its interrupts off
//! are joined to the step before them, for nobody can look between.

use super::config::{Config, Patience, Resume, Sleep};
use super::hazard::Hazard;
use super::state::{
    At, Call, Core, Irq, NOTIFY, Place, Plug, Receiver, Send, State, TICK, Task, VECTORS, Wrong,
    table_register, upid_address,
};
use crate::cpu::{Cpu, Memory, PageFault, Rights, delivery, notification, xsave};
use crate::xstate::{MISC_UIF, UintrState};

/// One step of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A processor acknowledges one interrupt.
    Accept(u8, Irq),
    /// A processor acknowledges several messages of one vector that met in its local APIC.
    AcceptJoined(u8, Irq),
    /// Second half of notification processing.
    Take(u8),
    /// A processor delivers a user interrupt.
    Deliver(u8),
    /// A processor goes on: the next instruction of its task, or of its kernel.
    Run(u8),
    /// The scheduler of a processor chooses a receiver.
    PickReceiver(u8, u8),
    /// The scheduler of a processor chooses a sender.
    PickSender(u8, u8),
    /// The pool hands a dead receiver's descriptor to its next owner.
    Reuse(u8),
    /// The scheduler takes a processor away from its task.
    Preempt(u8),
    /// The scheduler's tick takes a processor away from who would never give it up, for a sender
    /// that waits for one: what a fair scheduler does sooner or later, and so no interference.
    Tick(u8, u8),
    /// The time-out of a sleeping receiver.
    TimeOut(u8),
    /// The task of a processor sleeps in some system call.
    Block(u8),
    /// A signal for the task of a processor.
    Signal(u8),
    /// The task of a processor runs a virtual CPU.
    EnterGuest(u8),
    /// The kernel needs the vector registers of a processor.
    Fpu(u8),
    /// Somebody writes what a receiver waits for beside its
    /// interrupts, and then wakes who is in the queue.
    Write(u8),
    /// A page of a receiver's handler's stack is taken away.
    TakePage(u8),
    /// It comes back.
    Page(u8),
    /// Who was taken off the list is woken.
    Wake(u8),
    /// The same by the interrupt of a processor, after the list's lock: the next that it has taken
    /// off.
    WakeNext(u8),
    /// A processor runs the irq_work that wakes a receiver after its own switch.
    Late(u8, u8),
    /// The task of a processor, on its way to user mode, runs the work by which it was woken.
    Work(u8),
    /// The time has come that a receiver's timer was set for.
    Due(u8),
    /// A processor takes the interrupt of a receiver's timer.
    Expire(u8, u8),
    /// It goes on with it.
    Timer(u8),
    /// A receiver closes a vector.
    Revoke(u8, u8),
    /// The driver's call that closes a vector returns: no CPU is in the middle of sending it.
    Retire(u8, u8),
    /// The task of a processor exits.
    Exit(u8),
    /// The kernel writes CR4 of a processor.
    WriteCr4(u8),
    /// A processor is about to go off-line: its sleepers are to be reached through the other.
    Close(u8),
    /// It is gone, with the messages that its APIC held.
    GoOffLine(u8),
    /// It is back.
    ComeBack(u8),
}

/// The user's stack, of which this model knows only whether a page is missing: frames go nowhere
/// and come back as zeros.
pub(super) struct Stack {
    pub(super) page_missing: bool,
}

impl Stack {
    fn access(&self, address: u64, write: bool) -> Result<u64, PageFault> {
        if self.page_missing { Err(PageFault { address, write, user: true }) } else { Ok(0) }
    }
}

impl Memory for Stack {
    fn read8(&mut self, address: u64, _: Rights) -> Result<u64, PageFault> {
        self.access(address, false)
    }
    fn write8(&mut self, address: u64, _: u64, _: Rights) -> Result<(), PageFault> {
        self.access(address, true).map(drop)
    }
    fn read16(&mut self, _: u64) -> Result<u128, PageFault> {
        Ok(0)
    }
    fn update16(&mut self, _: u64, _: &mut dyn FnMut(u128) -> Option<u128>) -> Result<(), PageFault> {
        Ok(())
    }
}

/// The machine's rules: a configuration, and perhaps a hazard.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub(super) config: Config,
    pub(super) hazard: Option<Hazard>,
}

impl Machine {
    pub(super) fn has(&self, hazard: Hazard) -> bool {
        self.hazard == Some(hazard)
    }

    pub(super) fn initial(&self) -> State {
        let mut state = State { budget: self.config.interference.limit.unwrap_or(0), ..State::default() };
        for core in &mut state.cores {
            core.cr4_uintr = true;
        }
        for receiver in state.receivers.iter_mut().skip(usize::from(self.config.receivers)) {
            receiver.place = Place::Exited;
        }
        for receiver in state.receivers.iter_mut().take(usize::from(self.config.receivers)) {
            receiver.ticks = self.config.ticks;
        }
        if self.with_descriptor() {
            state.receivers[0].writes = 2;
        }
        for sender in state.senders.iter_mut().skip(usize::from(self.config.senders)) {
            sender.place = Place::Exited;
        }
        state
    }

    pub(super) fn with_descriptor(&self) -> bool {
        self.config.patience == Patience::WaitsWithDescriptor
    }

    pub(super) fn cpu(&self, core: &Core) -> Cpu {
        let entries = self.config.entries();
        // Hazard H11: UITTSZ off by one.
        core.cpu(self.config.apic, if self.has(Hazard::H11) { entries } else { entries - 1 })
    }

    /// Applies a function of the CPU to a core.
    pub(super) fn on_cpu<R>(&self, core: &mut Core, event: impl FnOnce(&mut Cpu) -> R) -> R {
        let mut cpu = self.cpu(core);
        let result = event(&mut cpu);
        core.set_cpu(&cpu);
        result
    }

    pub(super) fn ndst(&self, core: usize) -> u16 {
        let id = core as u32;
        // Hazard H27: APIC ID not shifted in xAPIC mode.
        (if self.has(Hazard::H27) { id } else { self.config.apic.ndst(id) }) as u16
    }

    // ---- what it does
    // ---------------------------------------------------------------------------------------------

    pub(super) fn step(&self, before: &State, action: Action) -> State {
        let mut state = *before;
        if Self::interferes(action) {
            state.budget = state.budget.saturating_sub(1);
        }
        match action {
            Action::Accept(core, irq) => {
                let c = &mut state.cores[usize::from(core)];
                if irq == Irq::Notify && c.self_ipi {
                    c.self_ipi = false;
                } else {
                    c.in_flight[irq as usize] -= 1;
                }
                self.accept(&mut state, usize::from(core), irq);
            }
            Action::AcceptJoined(core, irq) => {
                let c = &mut state.cores[usize::from(core)];
                c.self_ipi &= irq != Irq::Notify;
                c.in_flight[irq as usize] = 0;
                self.accept(&mut state, usize::from(core), irq);
            }
            Action::Take(core) => self.take(&mut state, usize::from(core)),
            Action::Deliver(core) => self.deliver(&mut state, usize::from(core)),
            Action::Run(core) => self.run(&mut state, usize::from(core)),
            Action::PickReceiver(core, r) => self.pick_receiver(&mut state, usize::from(core), r),
            Action::PickSender(core, s) => self.pick_sender(&mut state, usize::from(core), s),
            Action::Reuse(r) => self.hand_over(&mut state, usize::from(r)),
            Action::Preempt(core) => self.preempt(&mut state, usize::from(core)),
            Action::Tick(core, s) => {
                self.preempt(&mut state, usize::from(core));
                if state.wrong == Wrong::Nothing {
                    self.pick_sender(&mut state, usize::from(core), s);
                }
            }
            Action::TimeOut(r) if self.config.sleep == Sleep::AtSwitch => {
                // It is on the list until it has a processor.
                let receiver = &mut state.receivers[usize::from(r)];
                receiver.place = Place::Ready;
                if self.config.wakes_in_steps() {
                    (receiver.over, receiver.interruptible) = (true, false);
                }
            }
            Action::TimeOut(r) => self.wake(&mut state, 0, usize::from(r)),
            Action::Block(core) => {
                let c = &mut state.cores[usize::from(core)];
                c.at = At::WaitEntry;
                if let Task::Receiver(r) = c.running
                    && self.config.wakes_in_steps()
                {
                    state.receivers[usize::from(r)].call = Call::Other;
                }
            }
            Action::EnterGuest(core) => state.cores[usize::from(core)].at = At::Guest,
            Action::Signal(core) => self.signal(&mut state, usize::from(core)),
            Action::Fpu(core) => {
                // §3.2: XSAVES clears UINV. The image is not needed, for the registers stay valid.
                self.on_cpu(&mut state.cores[usize::from(core)], xsave::xsaves);
                state.cores[usize::from(core)].at = At::FpuSection;
            }
            Action::Write(r) => write(&mut state.receivers[usize::from(r)]),
            Action::TakePage(r) => state.receivers[usize::from(r)].page_missing = true,
            Action::Page(r) => {
                let receiver = &mut state.receivers[usize::from(r)];
                receiver.page_missing = false;
                if std::mem::take(&mut receiver.paging) && receiver.place == Place::Asleep {
                    receiver.place = Place::Ready;
                }
            }
            Action::Wake(r) => {
                let receiver = &mut state.receivers[usize::from(r)];
                (receiver.waking, receiver.interruptible) = (false, false);
                if receiver.place == Place::Asleep {
                    receiver.place = Place::Ready;
                }
            }
            Action::WakeNext(core) => {
                let c = &mut state.cores[usize::from(core)];
                let r = c.waking.trailing_zeros() as usize;
                c.waking &= c.waking - 1;
                self.wake_up(&mut state.receivers[r]);
            }
            Action::Late(core, r) => self.late(&mut state, usize::from(core), usize::from(r)),
            Action::Work(core) => {
                let Task::Receiver(r) = state.cores[usize::from(core)].running else {
                    unreachable!("works are receivers'")
                };
                let receiver = &mut state.receivers[usize::from(r)];
                (receiver.work, receiver.notified) = (false, false);
            }
            Action::Due(r) => {
                let receiver = &mut state.receivers[usize::from(r)];
                receiver.ticks -= 1;
                receiver.tick_due = true;
                receiver.due[TICK] = true;
            }
            Action::Expire(core, r) => self.expire(&mut state, usize::from(core), r),
            Action::Timer(core) => self.timer(&mut state, usize::from(core)),
            Action::Revoke(r, v) => self.revoke(&mut state, usize::from(r), usize::from(v)),
            Action::Retire(r, v) => state.receivers[usize::from(r)].retired[usize::from(v)] = true,
            Action::Exit(core) => self.exit(&mut state, usize::from(core)),
            Action::WriteCr4(core) => state.cores[usize::from(core)].cr4_uintr = false,
            Action::Close(core) => self.close(&mut state, usize::from(core)),
            Action::GoOffLine(core) => {
                let c = &mut state.cores[usize::from(core)];
                (c.plug, c.in_flight) = (Plug::OffLine, [0; 2]);
                // The kernel moves what timers are queued there.
                for receiver in state.receivers.iter_mut().filter(|r| r.timer == core + 1) {
                    receiver.timer = 2 - core;
                }
            }
            Action::ComeBack(core) => state.cores[usize::from(core)].plug = Plug::OnLine,
        }
        state
    }

    /// §6.4. The EOI is part of this step; nothing of the lower-priority vector can come between.
    pub(super) fn accept(&self, state: &mut State, core: usize, irq: Irq) {
        let cpu = self.cpu(&state.cores[core]);
        let in_guest = state.cores[core].at == At::Guest;
        if !in_guest && notification::identifies(&cpu, irq.vector()) {
            if let Some(receiver) = state.pointed_at(core) {
                receiver.on = false;
            }
            state.cores[core].taking = true;
            return;
        }
        // An ordinary interrupt. The handler of the notification vector only ends it.
        if irq == Irq::Kernel {
            let woken = |r: &Receiver| r.queued && r.on && r.ndst == self.ndst(core);
            self.wake_those(state, core, woken);
        }
        if state.cores[core].at == At::User {
            self.back_to_user(state, core);
        }
    }

    pub(super) fn take(&self, state: &mut State, core: usize) {
        let requests = state.pointed_at(core).map_or(0, |receiver| std::mem::take(&mut receiver.pir));
        let c = &mut state.cores[core];
        c.taking = false;
        self.on_cpu(c, |cpu| notification::absorb(cpu, requests.into()));
    }

    pub(super) fn deliver(&self, state: &mut State, core: usize) {
        let page_missing = matches!(state.cores[core].running, Task::Receiver(r)
            if state.receivers[usize::from(r)].page_missing);
        let before = state.cores[core];
        let delivered =
            self.on_cpu(&mut state.cores[core], |cpu| delivery::deliver(cpu, &mut Stack { page_missing }));
        let Ok(vector) = delivered else {
            // What a fault leaves is what was: the request is pending yet, and the flag open.
            debug_assert!(page_missing && state.cores[core] == before);
            state.cores[core].at = At::PageFault;
            return;
        };
        if let Task::Receiver(r) = state.cores[core].running {
            let receiver = &mut state.receivers[usize::from(r)];
            receiver.handling = vector + 1;
            receiver.due[usize::from(vector)] = false;
            if receiver.handler_gone {
                state.wrong = Wrong::HandlerGone;
            }
        }
    }

    pub(super) fn run(&self, state: &mut State, core: usize) {
        match (state.cores[core].at, state.cores[core].running) {
            (At::User, Task::Receiver(r)) => self.receive(state, core, usize::from(r)),
            (At::User, Task::Sender(s)) => self.send(state, core, usize::from(s)),
            (At::FpuSection, _) => self.back_to_user(state, core),
            (At::Guest, _) => state.cores[core].at = At::User,
            (At::LookAfterMove, _) => {
                state.cores[core].at = At::Idle;
                // Hazard H30: sleeper moved off a CPU and not looked at.
                if !self.has(Hazard::H30) {
                    let there = self.ndst(1 - core);
                    self.wake_those(state, core, |receiver| {
                        receiver.queued && receiver.on && receiver.ndst == there
                    });
                }
            }
            (at, Task::Receiver(r)) => self.kernel(state, core, usize::from(r), at),
            (_, _) => unreachable!("the kernel's other paths are those of receivers"),
        }
    }

    /// The way back to a receiver's user mode from an interrupt, a signal or a system call that
    /// left its UPID alone. NV and NDST are right and SN is clear already, so of §8.5 only UINV and
    /// the last look remain to be done. The driver is not there on that way: it has UINV right as
    /// long as the thread runs, and whoever takes something looks himself.
    pub(super) fn back_to_user(&self, state: &mut State, core: usize) {
        let c = &mut state.cores[core];
        if self.config.sleep == Sleep::AtSwitch {
            c.at = At::User;
            return;
        }
        let Task::Receiver(r) = c.running else { return };
        if state.receivers[usize::from(r)].registered() {
            // Hazard H6: UINV is zero while the task runs.
            c.armed |= !self.has(Hazard::H6);
            c.at = At::Recheck;
        }
    }

    /// The kernel's ways out of a receiver, back to it, and through the wait call (§8.5, §8.6).
    fn kernel(&self, state: &mut State, core: usize, r: usize, at: At) {
        let ndst = self.ndst(core);
        // Who goes to sleep on a processor that is about to go is reached through the other.
        let list = if state.cores[core].plug == Plug::Closed { self.ndst(1 - core) } else { ndst };
        let (c, receiver) = (&mut state.cores[core], &mut state.receivers[r]);
        c.at = match at {
            At::Arm => {
                c.armed |= !self.has(Hazard::H6);
                receiver.nv_kernel = false;
                // Hazard H9: SN cleared before NDST is right.
                if !self.has(Hazard::H9) {
                    receiver.ndst = ndst;
                }
                At::Unsuppress
            }
            At::Unsuppress => {
                receiver.sn = false;
                At::Recheck
            }
            At::Recheck => {
                let back = match receiver.call {
                    // Where it was in its call: with its state as it is, and a look to come if
                    // somebody has woken it.
                    _ if self.has(Hazard::H9) => At::Retarget,
                    Call::None => At::User,
                    _ if receiver.interruptible => At::Schedule,
                    _ => At::WaitEntry,
                };
                match self.config.resume {
                    Resume::SelfIpi => {
                        // Hazard H3: PIR cleared by another path, ON left set.
                        if receiver.pir != 0 || receiver.on && !self.has(Hazard::H3) {
                            c.self_ipi = true;
                        }
                        back
                    }
                    // Hazard H2: ON stays set.
                    Resume::Direct if self.has(Hazard::H2) => {
                        if receiver.pir != 0 {
                            At::Collect
                        } else {
                            back
                        }
                    }
                    Resume::Direct if receiver.pir != 0 || receiver.on => {
                        receiver.on = false;
                        At::Collect
                    }
                    Resume::Direct => back,
                }
            }
            At::Collect => {
                let requests = std::mem::take(&mut receiver.pir);
                // Hazard H10: UIRR overwritten.
                c.uirr = if self.has(Hazard::H10) { requests } else { c.uirr | requests };
                At::Recheck
            }
            At::Retarget => {
                receiver.ndst = ndst;
                At::User
            }
            At::CancelTimer => {
                receiver.find_due(core);
                At::Unsuppress
            }
            At::WaitEntry if self.config.wakes_in_steps() => return self.look(state, core, r),
            At::Schedule if !receiver.interruptible || receiver.notified => {
                receiver.interruptible = false;
                At::WaitEntry
            }
            At::Schedule => {
                self.save(c, receiver);
                receiver.sn = true;
                At::ToSleep
            }
            At::WaitEntry if self.with_descriptor() => {
                receiver.triggered = false;
                receiver.listening = true;
                // Hazard H32: looks at the descriptor before it is in its queue.
                if self.has(Hazard::H32) && receiver.readable {
                    return self.return_readable(state, core, r);
                }
                // Under H32 the look is over, and the queue comes in a step of its own.
                receiver.listening = !self.has(Hazard::H32);
                At::LookAtDescriptor
            }
            At::LookAtDescriptor => {
                receiver.listening = true;
                if receiver.readable && !self.has(Hazard::H32) {
                    return self.return_readable(state, core, r);
                }
                // Hazard H33: says that it sleeps behind its last look.
                receiver.interruptible = !self.has(Hazard::H33);
                if self.has(Hazard::H33) && receiver.triggered {
                    c.at = At::WaitEntry;
                    return;
                }
                At::LookAtTriggered
            }
            At::LookAtTriggered if receiver.triggered && !self.has(Hazard::H33) => {
                receiver.interruptible = false;
                At::WaitEntry
            }
            At::PageFault if !receiver.page_missing => return self.back_to_user(state, core),
            At::PageFault => {
                self.save(c, receiver);
                receiver.sn = true;
                receiver.paging = true;
                // Hazard H36: who waits for a page is woken.
                if self.has(Hazard::H36) {
                    c.at = At::ToSleep;
                    return;
                }
                receiver.place = Place::Asleep;
                c.running = Task::None;
                At::Idle
            }
            At::LookAtTriggered | At::WaitEntry if self.config.sleep == Sleep::AtSwitch => {
                // Hazard H33: says that it sleeps behind its last look.
                receiver.interruptible |= self.with_descriptor() && self.has(Hazard::H33);
                self.save(c, receiver);
                receiver.sn = true;
                At::ToSleep
            }
            // Hazard H31: sleeps masked where nothing wakes it.
            At::ToSleep if self.has(Hazard::H31) => {
                receiver.place = Place::Asleep;
                c.running = Task::None;
                At::Idle
            }
            At::WaitEntry | At::ToSleep => {
                receiver.queued = true;
                // Hazard H26: idle core not woken.
                receiver.nv_kernel = !self.has(Hazard::H26);
                receiver.ndst = list;
                receiver.sn = false;
                At::WaitCheck
            }
            At::WaitCheck if self.config.wakes_in_steps() => {
                let nothing = receiver.pir == 0 && !receiver.on && receiver.saved_uirr == 0;
                if !nothing {
                    (receiver.queued, receiver.sn) = (false, true);
                    if receiver.late == 0 {
                        receiver.late = core as u8 + 1;
                    }
                }
                // Who was woken on its way, or has only lost its processor, goes on when it gets
                // one.
                let asleep = receiver.interruptible && !receiver.preempted;
                receiver.place = if asleep { Place::Asleep } else { Place::Ready };
                c.running = Task::None;
                At::Idle
            }
            At::WaitCheck if self.config.sleep == Sleep::AtSwitch => {
                let nothing = receiver.pir == 0 && !receiver.on && receiver.saved_uirr == 0;
                if self.with_descriptor() && !receiver.interruptible {
                    // Woken on its way; who is on the list gets off it when it has a processor.
                    (receiver.place, receiver.in_wait) = (Place::Ready, true);
                } else if nothing || self.has(Hazard::H5) {
                    // Hazard H5: the wait call does not look again.
                    receiver.place = Place::Asleep;
                } else {
                    // Its processor is given away already: an interrupt to itself wakes it after
                    // that.
                    (receiver.queued, receiver.sn, receiver.waking) = (false, true, true);
                    receiver.place = Place::Asleep;
                }
                c.running = Task::None;
                At::Idle
            }
            At::WaitCheck => {
                let posted = receiver.pir != 0 || receiver.on;
                let busy = match self.hazard {
                    Some(Hazard::H5) => false,
                    // Hazard H18: self-IPI taken for synchronous.
                    Some(Hazard::H18) => {
                        c.self_ipi |= posted;
                        c.uirr != 0
                    }
                    _ => posted || c.uirr != 0,
                };
                if busy {
                    receiver.queued = false;
                    receiver.sn = true;
                    At::Arm
                } else {
                    receiver.place = Place::Asleep;
                    return self.switch_out(state, core);
                }
            }
            At::Idle | At::User | At::FpuSection | At::Guest | At::LookAfterMove | At::LookAtTriggered => {
                unreachable!("handled by the caller")
            }
        };
    }

    /// The wait call returns because the descriptor can be read; the
    /// program reads it before it looks again.
    fn return_readable(&self, state: &mut State, core: usize, r: usize) {
        let receiver = &mut state.receivers[r];
        (receiver.listening, receiver.readable, receiver.interruptible) = (false, false, false);
        // What a switch in does, where the receiver came to this processor in the middle of the call.
        state.cores[core].at = At::Arm;
    }

    /// The way out (§8.5): SN unless the receiver is on the wait list, XSAVES, then the null state.
    pub(super) fn switch_out(&self, state: &mut State, core: usize) {
        let c = &mut state.cores[core];
        let unsaved = *c;
        let image = self.on_cpu(c, xsave::xsaves);
        match c.running {
            Task::Receiver(r) => {
                let receiver = &mut state.receivers[usize::from(r)];
                if receiver.registered() && !receiver.queued {
                    receiver.sn = true;
                }
                receiver.saved_uif = image.uif();
                // Hazard H15: UIRR dropped at a switch.
                receiver.saved_uirr = if self.has(Hazard::H15) { 0 } else { image.uirr as u8 };
                // Hazard H26: idle core not woken.
                if receiver.place == Place::Asleep && self.has(Hazard::H26) {
                    // "The idle loop has no user-interrupt state, so there is nothing to switch."
                    *c = Core { running: Task::None, at: At::Idle, ..unsaved };
                    return;
                }
                if receiver.place != Place::Asleep {
                    receiver.place = Place::Ready;
                }
            }
            Task::Sender(s) => {
                let sender = &mut state.senders[usize::from(s)];
                sender.saved_table = image.tt != 0;
                sender.place = Place::Ready;
            }
            Task::None => unreachable!("only a running task is switched out"),
        }
        self.load_null(c);
    }

    /// A receiver's state out of the registers, which are left null.
    fn save(&self, c: &mut Core, receiver: &mut Receiver) {
        let image = self.on_cpu(c, xsave::xsaves);
        receiver.saved_uif = image.uif();
        // Hazard H15: UIRR dropped at a switch.
        receiver.saved_uirr = if self.has(Hazard::H15) { 0 } else { image.uirr as u8 };
        let running = c.running;
        self.load_null(c);
        c.running = running;
    }

    /// The state of tasks that have none, so that nothing of the task before leaks.
    pub(super) fn load_null(&self, c: &mut Core) {
        let (uif, table) = (c.uif, c.table);
        c.armed = false;
        self.on_cpu(c, xsave::xrstors_initial).expect("UINV is zero");
        // Hazard H1: UIF lost at a switch.
        if self.has(Hazard::H1) {
            c.uif = uif;
        }
        // Hazard H8: TT not restored at a switch.
        if self.has(Hazard::H8) {
            c.table = table;
        }
        c.running = Task::None;
        c.at = At::Idle;
    }

    fn restore(&self, state: &mut State, core: usize, image: &UintrState) {
        let c = &mut state.cores[core];
        let (uif, table) = (c.uif, c.table);
        // What an idle core was left with under H26 is overwritten here.
        // Hazard H7: XRSTORS with UINV set.
        c.armed = self.has(Hazard::H7) && image.upid_address != 0;
        if self.on_cpu(c, |cpu| xsave::xrstors(cpu, image)).is_err() {
            state.wrong = Wrong::RestoreFault;
        }
        // Hazard H1: UIF lost at a switch.
        if self.has(Hazard::H1) {
            c.uif = uif;
        }
        // Hazard H8: TT not restored at a switch.
        if self.has(Hazard::H8) {
            c.table = table;
        }
    }

    pub(super) fn pick_receiver(&self, state: &mut State, core: usize, r: u8) {
        let ndst = self.ndst(core);
        let receiver = &mut state.receivers[usize::from(r)];
        receiver.place = Place::Running;
        if receiver.queued {
            // Something else than the kernel's vector woke it.
            (receiver.queued, receiver.sn) = (false, true);
        }
        let at = match (receiver.in_wait, receiver.registered()) {
            (true, _) => At::WaitEntry,
            (false, true) if self.config.ticks > 0 => At::CancelTimer,
            (false, true) => At::Unsuppress,
            (false, false) => At::User,
        };
        receiver.interruptible &= self.config.wakes_in_steps();
        receiver.preempted = false;
        receiver.listening &= receiver.in_wait;
        receiver.paging = false;
        receiver.in_wait = false;
        let arms = matches!(at, At::Unsuppress | At::CancelTimer);
        if arms {
            receiver.nv_kernel = false;
            // Hazard H9: SN cleared before NDST is right.
            if !self.has(Hazard::H9) {
                receiver.ndst = ndst;
            }
        }
        // UINV of the image is never used: a second XSAVES would have made it zero (H6).
        let image = UintrState {
            handler: 0x40_0000,
            stack_adjust: 128,
            misc: if receiver.saved_uif { MISC_UIF } else { 0 },
            upid_address: if receiver.registered() { upid_address(r + 1) } else { 0 },
            uirr: receiver.saved_uirr.into(),
            tt: 0,
        };
        self.restore(state, core, &image);
        let c = &mut state.cores[core];
        c.running = Task::Receiver(r);
        c.at = at;
        c.armed |= arms;
    }

    fn pick_sender(&self, state: &mut State, core: usize, s: u8) {
        let sender = &mut state.senders[usize::from(s)];
        sender.place = Place::Running;
        let tt = if sender.saved_table { table_register(s + 1) } else { 0 };
        self.restore(state, core, &UintrState { tt, ..UintrState::default() });
        state.cores[core].running = Task::Sender(s);
        state.cores[core].at = At::User;
    }

    fn preempt(&self, state: &mut State, core: usize) {
        // Hazard H20: vector already in use.
        if self.has(Hazard::H20) && state.cores[core].armed {
            // The tick has the notification's vector, so microcode takes it.
            debug_assert!(notification::identifies(&self.cpu(&state.cores[core]), NOTIFY));
            state.wrong = Wrong::TickSwallowed;
            return;
        }
        if let Task::Receiver(r) = state.cores[core].running {
            let (c, receiver) = (&mut state.cores[core], &mut state.receivers[usize::from(r)]);
            if !self.config.wakes_in_steps() {
                receiver.in_wait = matches!(c.at, At::WaitEntry | At::LookAtDescriptor);
            } else if c.at == At::Schedule && receiver.interruptible && !receiver.notified {
                // It has said that it sleeps: the driver cannot tell it from one that does.
                self.save(c, receiver);
                (receiver.sn, receiver.preempted) = (true, true);
                c.at = At::ToSleep;
                return;
            }
            // Its timer is not queued while it is off its processor and cannot be reached.
            receiver.timer = 0;
        }
        self.switch_out(state, core);
    }

    /// Signal entry (§8.8): UIF goes into the frame record and is
    /// cleared. Then the ordinary way back to user mode.
    fn signal(&self, state: &mut State, core: usize) {
        let c = &mut state.cores[core];
        let Task::Receiver(r) = c.running else { return };
        state.receivers[usize::from(r)].signal = 1 + u8::from(c.uif);
        c.uif = false;
        self.back_to_user(state, core);
    }

    /// Closing a vector (§8.8): no entry names it any more, and what was posted is forgotten.
    fn revoke(&self, state: &mut State, r: usize, v: usize) {
        let receiver = &mut state.receivers[r];
        receiver.revoked[v] = true;
        if self.config.sleep == Sleep::AtSwitch {
            // What was sent before is still delivered; Action::Retire is the end of it.
            return;
        }
        receiver.due[v] = false;
        // One 16-byte update: PIR and, if nothing is left in it, ON.
        receiver.pir &= !(1 << v);
        // Hazard H3: PIR cleared by another path, ON left set.
        if receiver.pir == 0 && !self.has(Hazard::H3) {
            receiver.on = false;
        }
    }

    /// Exit of the running receiver (§8.8): UINV, SN, entries, then its references.
    fn exit(&self, state: &mut State, core: usize) {
        let Task::Receiver(r) = state.cores[core].running else { return };
        let receiver = &mut state.receivers[usize::from(r)];
        // Hazard H37: the last close is the end.
        if self.has(Hazard::H37) {
            receiver.handler_gone = true;
            return;
        }
        receiver.sn = true;
        receiver.place = Place::Exited;
        receiver.due = [false; VECTORS];
        receiver.items = [0; VECTORS];
        receiver.revoked = [true; VECTORS];
        receiver.flag = false;
        // Hazard H47: a timer is left queued when its thread ends.
        receiver.stop_timer(self.has(Hazard::H47));
        // Hazard H13: UPID freed while entries name it.
        receiver.freed = self.has(Hazard::H13);
        self.load_null(&mut state.cores[core]);
    }

    /// A processor's list is given up: those on it are to be reached
    /// through the other, whatever was sent before.
    fn close(&self, state: &mut State, core: usize) {
        let (here, there) = (self.ndst(core), self.ndst(1 - core));
        for receiver in state.receivers.iter_mut().filter(|receiver| receiver.queued && receiver.ndst == here)
        {
            receiver.ndst = there;
        }
        let c = &mut state.cores[core];
        (c.plug, c.at) = (Plug::Closed, At::LookAfterMove);
    }

    /// Off the wait list, with SN set until the way back to user mode
    /// clears it; ON and PIR stay for that way to find.
    pub(super) fn wake(&self, state: &mut State, core: usize, r: usize) {
        let receiver = &mut state.receivers[r];
        receiver.queued = false;
        receiver.sn = true;
        if self.config.wakes_in_steps() {
            state.cores[core].waking |= 1 << r;
            return;
        }
        match (receiver.place, self.config.sleep) {
            (Place::Asleep, Sleep::AtSwitch) => receiver.waking = true,
            (Place::Asleep, Sleep::InWait) => receiver.place = Place::Ready,
            _ => {}
        }
    }

    /// Those on a list of which that holds, by the interrupt of this processor.
    fn wake_those(&self, state: &mut State, core: usize, woken: impl Fn(&Receiver) -> bool) {
        for r in 0..state.receivers.len() {
            if woken(&state.receivers[r]) {
                self.wake(state, core, r);
                // Hazard H35: the first sleeper is woken, and no other.
                if self.has(Hazard::H35) {
                    return;
                }
            }
        }
    }

    /// The descriptor's next owner starts from a clean one.
    fn hand_over(&self, state: &mut State, r: usize) {
        for s in 0..state.senders.len() {
            let sender = &mut state.senders[s];
            sender.stale |= sender.next == Send::Post && self.target(s, sender.sent).0 == r;
        }
        let revoked = [true; VECTORS];
        state.receivers[r] = Receiver { second_life: true, revoked, ..Default::default() };
    }
}

/// Two steps: there is something to read; who is in the queue is woken.
fn write(receiver: &mut Receiver) {
    receiver.writes -= 1;
    if receiver.writes == 1 {
        receiver.readable = true;
        return;
    }
    if receiver.listening {
        receiver.triggered = true;
        if receiver.interruptible && receiver.place == Place::Asleep {
            // On the list until it has a processor, where it looks again.
            (receiver.place, receiver.in_wait) = (Place::Ready, true);
        }
        receiver.interruptible = false;
    }
}

impl State {
    /// The receiver whose UPID a core points at.
    fn pointed_at(&mut self, core: usize) -> Option<&mut Receiver> {
        let upid = usize::from(self.cores[core].upid);
        upid.checked_sub(1).map(|r| &mut self.receivers[r])
    }
}
