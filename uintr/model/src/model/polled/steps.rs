// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps, what must hold between them, and what is left undone at rest.

use super::config::{Config, Waiter};
use super::hazard::Hazard;
use super::state::{At, Holder, Irq, SENDERS, State, VECTORS, WAITERS, Work};
use super::{DEADLOCK, SLEEPS, STUCK, UNREACHABLE, UNTOLD};
use crate::model::Property;

/// One step of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The handler of the kernel's vector goes on.
    Handle(u8),
    /// A waiting thread goes on.
    Wait(u8),
    /// The work that wakes goes on.
    Work(u8),
    /// A processor acknowledges the kernel's vector; several that met are one.
    Accept(u8),
    /// The next moment of a SENDUIPI.
    Send(u8),
    /// A sleeper gives up.
    TimeOut(u8),
    /// A processor is about to go: what was reached through it is reached through the other.
    Close(u8),
    /// It is gone, with the interrupts that were under way to it.
    GoOffLine(u8),
    /// It is back.
    ComeBack(u8),
    /// Interrupts had their share of the processor: what is armed there is throttled.
    Throttle(u8),
    /// The timer of a processor's throttled arms them again, and looks.
    Unthrottle(u8),
}

/// The rules: a configuration, and perhaps a hazard.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    pub(super) config: Config,
    pub(super) hazard: Option<Hazard>,
}

impl Polled {
    pub(super) fn has(&self, hazard: Hazard) -> bool {
        self.hazard == Some(hazard)
    }

    pub(super) fn waiter(&self, w: usize) -> Option<(Waiter, u8)> {
        self.config.waiters[w]
    }

    pub(super) fn initial(&self) -> State {
        State { sn: true, budget: self.config.limit, ..State::default() }
    }

    // ---- what is possible
    // -----------------------------------------------------------------------------------------

    pub(super) fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for c in 0..2u8 {
            if self.handles(state, usize::from(c)) {
                actions.push(Action::Handle(c));
            }
        }
        for w in 0..WAITERS as u8 {
            if self.goes_on(state, usize::from(w)) {
                actions.push(Action::Wait(w));
            }
        }
        for c in 0..2u8 {
            let cpu = &state.cpus[usize::from(c)];
            let open = |bits: u8| (0..VECTORS).all(|v| bits >> v & 1 == 0 || state.queue_lock[v] == 0);
            // Outside hard interrupts, so after a handler; a queue's lock it can wait for.
            let idle = cpu.irq == Irq::None && !self.masked(state, usize::from(c));
            if idle
                && match cpu.work {
                    Work::None => cpu.raised,
                    Work::Waking => open(cpu.waking),
                    Work::Begun | Work::Free => true,
                }
            {
                actions.push(Action::Work(c));
            }
            if idle && cpu.in_flight > 0 && !cpu.off_line {
                actions.push(Action::Accept(c));
            }
            let timer = state.throttled && state.to == c && !state.timer_lost;
            if idle && timer && state.lock == Holder::Nobody {
                actions.push(Action::Unthrottle(c));
            }
        }
        for s in 0..self.config.senders {
            let sender = &state.senders[usize::from(s)];
            if sender.ipi_to != 0 || sender.sent < self.config.posts {
                actions.push(Action::Send(s));
            }
        }
        if state.budget == 0 {
            return;
        }
        for w in 0..WAITERS as u8 {
            if self.config.time_out && state.waiters[usize::from(w)].at == At::Asleep {
                actions.push(Action::TimeOut(w));
            }
        }
        let on_a_list = state.armed && !state.throttled && state.lock == Holder::Nobody;
        if self.config.throttles
            && on_a_list
            && state.cpus[usize::from(state.to)].irq == Irq::None
            && !self.masked(state, usize::from(state.to))
        {
            actions.push(Action::Throttle(state.to));
        }
        for c in 0..2u8 {
            let (cpu, other) = (&state.cpus[usize::from(c)], &state.cpus[usize::from(1 - c)]);
            if !self.config.hot_plug || other.closed || state.lock != Holder::Nobody {
                continue;
            }
            // Threads and work are moved off it, which is not what is looked at here.
            let empty = cpu.irq == Irq::None && cpu.work == Work::None && !cpu.raised;
            match (cpu.closed, cpu.off_line) {
                (false, _) => actions.push(Action::Close(c)),
                (true, false) if empty => actions.push(Action::GoOffLine(c)),
                (true, false) => {}
                (true, true) => actions.push(Action::ComeBack(c)),
            }
        }
    }

    /// Whether the thread on a processor has its interrupts off.
    fn masked(&self, state: &State, c: usize) -> bool {
        matches!(state.waiters[c].at, At::Arm | At::See)
    }

    fn handles(&self, state: &State, c: usize) -> bool {
        let cpu = &state.cpus[c];
        match cpu.irq {
            Irq::None => false,
            Irq::Begun => state.lock == Holder::Nobody,
            Irq::Waking => (0..VECTORS).all(|v| cpu.bits >> v & 1 == 0 || state.queue_lock[v] == 0),
            _ => true,
        }
    }

    fn goes_on(&self, state: &State, w: usize) -> bool {
        let Some((_, vector)) = self.waiter(w) else { return false };
        // A handler on its processor comes first.
        if state.cpus[w].irq != Irq::None {
            return false;
        }
        let queue_free = state.queue_lock[usize::from(vector)] == 0;
        let free = state.lock == Holder::Nobody;
        match state.waiters[w].at {
            At::Asleep => false,
            // Hazard P1: looks before it queues.
            At::Out if self.has(Hazard::P1) => free,
            At::Out | At::Leave | At::Tell => queue_free,
            At::Queued | At::Take => free,
            At::Arm => free || state.lock == Holder::Waiter(w as u8),
            At::Queueing | At::See | At::Sleep | At::Leaving => true,
        }
    }

    // ---- what it does
    // ---------------------------------------------------------------------------------------------

    pub(super) fn step(&self, before: &State, action: Action) -> State {
        let mut state = *before;
        match action {
            Action::Handle(c) => self.handle(&mut state, usize::from(c)),
            Action::Wait(w) => self.wait(&mut state, usize::from(w)),
            Action::Work(c) => self.work(&mut state, usize::from(c)),
            Action::Accept(c) => {
                let nobody = !state.waiters.iter().any(|waiter| waiter.queued);
                let cpu = &mut state.cpus[usize::from(c)];
                (cpu.in_flight, cpu.irq) = (0, Irq::Begun);
                // Hazard P9: decides to rest without the lock.
                cpu.nobody = self.has(Hazard::P9) && nobody;
            }
            Action::Send(s) => self.send(&mut state, usize::from(s)),
            Action::TimeOut(w) => {
                state.budget -= 1;
                let waiter = &mut state.waiters[usize::from(w)];
                (waiter.at, waiter.found) = (At::Leave, false);
            }
            Action::Close(c) => {
                state.budget -= 1;
                state.cpus[usize::from(c)].closed = true;
                if state.armed && state.to == c {
                    state.to = 1 - c;
                    // The look after the move is the handler's.
                    // Hazard P10: nobody looks at those moved off a processor.
                    if !self.has(Hazard::P10) {
                        state.cpus[usize::from(1 - c)].in_flight = 1;
                    }
                    // Hazard P15: no timer for those moved off a processor.
                    state.timer_lost = state.throttled && self.has(Hazard::P15);
                }
            }
            Action::GoOffLine(c) => {
                state.budget -= 1;
                let cpu = &mut state.cpus[usize::from(c)];
                (cpu.off_line, cpu.in_flight) = (true, 0);
            }
            Action::ComeBack(c) => {
                state.budget -= 1;
                let cpu = &mut state.cpus[usize::from(c)];
                (cpu.closed, cpu.off_line) = (false, false);
            }
            Action::Throttle(_) => {
                state.budget -= 1;
                (state.throttled, state.sn) = (true, true);
            }
            Action::Unthrottle(c) => self.unthrottle(&mut state, usize::from(c)),
        }
        state
    }

    /// The timer clears SN, and then looks as the handler does, under the same lock.
    pub(super) fn unthrottle(&self, state: &mut State, c: usize) {
        state.lock = Holder::Irq(c as u8);
        state.throttled = false;
        // Hazard P14: the timer looks, and then arms again.
        if self.has(Hazard::P14) {
            state.cpus[c].bits = std::mem::take(&mut state.pir);
            state.cpus[c].irq = Irq::Speaking;
            return;
        }
        (state.on, state.sn) = (false, false);
        // Hazard P13: a throttled receiver is armed again, and nobody looks.
        state.cpus[c].irq = if self.has(Hazard::P13) { Irq::Deciding } else { Irq::Noticing };
    }

    fn send(&self, state: &mut State, s: usize) {
        let sender = &mut state.senders[s];
        if sender.ipi_to != 0 {
            let cpu = &mut state.cpus[usize::from(sender.ipi_to) - 1];
            if !cpu.off_line {
                // They are told apart by nothing, and accepted together.
                cpu.in_flight = 1;
            }
            sender.ipi_to = 0;
            return;
        }
        let vector = self.config.destination(s as u8, sender.sent);
        sender.sent += 1;
        if state.post(vector) {
            state.senders[s].ipi_to = state.to + 1;
        }
        for (w, waiter) in state.waiters.iter_mut().enumerate() {
            waiter.due |= waiter.queued && self.waiter(w).is_some_and(|(_, own)| own == vector);
        }
    }

    /// The handler of the kernel's vector: notices, under the
    /// receiver's lock, and has the queues woken.
    pub(super) fn handle(&self, state: &mut State, c: usize) {
        // Hazard P4: PIR taken before ON is cleared.
        let early = self.has(Hazard::P4);
        match state.cpus[c].irq {
            Irq::Begun => {
                // It looks at its own list only, and the throttled are on another.
                if !state.armed || state.throttled || usize::from(state.to) != c || !state.on {
                    state.cpus[c].irq = Irq::None;
                    return;
                }
                state.lock = Holder::Irq(c as u8);
                if early {
                    state.cpus[c].bits = std::mem::take(&mut state.pir);
                } else {
                    state.on = false;
                }
                state.cpus[c].irq = Irq::Noticing;
            }
            Irq::Noticing => {
                if early {
                    state.on = false;
                } else {
                    state.cpus[c].bits = std::mem::take(&mut state.pir);
                }
                self.count(state, c);
                state.cpus[c].irq = Irq::Deciding;
            }
            Irq::Speaking => {
                (state.on, state.sn) = (false, false);
                self.count(state, c);
                state.cpus[c].irq = Irq::Deciding;
            }
            Irq::Deciding => {
                if state.wanted == 0 {
                    (state.sn, state.armed) = (true, false);
                }
                state.lock = Holder::Nobody;
                state.cpus[c].irq = match state.cpus[c].bits {
                    0 => Irq::None,
                    // Hazard P5: wakes in the interrupt.
                    _ if self.has(Hazard::P5) => Irq::Waking,
                    _ => Irq::Noting,
                };
            }
            Irq::Noting => {
                state.note |= std::mem::take(&mut state.cpus[c].bits);
                state.cpus[c].irq = Irq::Raising;
            }
            Irq::Raising => {
                if !std::mem::replace(&mut state.noted, true) {
                    state.cpus[c].raised = true;
                }
                state.cpus[c].irq = Irq::None;
            }
            Irq::Waking => {
                let bits = std::mem::take(&mut state.cpus[c].bits);
                self.wake(state, bits, None);
                state.cpus[c].irq = Irq::None;
            }
            Irq::None => unreachable!("the step was offered"),
        }
    }

    /// Counts what a handler has in hand, and leaves it those vectors whose queue is to be woken.
    fn count(&self, state: &mut State, c: usize) {
        let queued = |state: &State, v: usize| {
            (0..WAITERS).any(|w| {
                state.waiters[w].queued && self.waiter(w).is_some_and(|(_, own)| usize::from(own) == v)
            })
        };
        let bits = state.cpus[c].bits;
        for v in (0..VECTORS).filter(|v| bits >> v & 1 == 1) {
            state.counts[v] += 1;
            // Hazard P9: decides to rest without the lock.
            let nobody = if self.has(Hazard::P9) { state.cpus[c].nobody } else { !queued(state, v) };
            if nobody {
                state.cpus[c].bits &= !(1 << v);
            }
            // Hazard P7: rests after each wake-up, until somebody looks.
            if nobody || self.has(Hazard::P7) {
                state.wanted &= !(1 << v);
            }
        }
    }

    fn work(&self, state: &mut State, c: usize) {
        // Hazard P8: takes what is to be woken before it may be queued again.
        let early = self.has(Hazard::P8);
        match state.cpus[c].work {
            Work::None => {
                state.cpus[c].raised = false;
                state.cpus[c].work = Work::Begun;
            }
            Work::Begun => {
                if early {
                    state.cpus[c].waking = std::mem::take(&mut state.note);
                } else {
                    state.noted = false;
                }
                state.cpus[c].work = Work::Free;
            }
            Work::Free => {
                if early {
                    state.noted = false;
                } else {
                    state.cpus[c].waking = std::mem::take(&mut state.note);
                }
                state.cpus[c].work = Work::Waking;
            }
            Work::Waking => {
                let bits = std::mem::take(&mut state.cpus[c].waking);
                self.wake(state, bits, None);
                state.cpus[c].work = Work::None;
            }
        }
    }

    /// Wakes everybody in these vectors' queues, of those who are to
    /// be woken alone the first that sleeps.
    fn wake(&self, state: &mut State, bits: u8, but: Option<usize>) {
        let mut alone = [false; VECTORS];
        for w in (0..WAITERS).filter(|&w| Some(w) != but) {
            let Some((kind, vector)) = self.waiter(w) else { continue };
            let waiter = &mut state.waiters[w];
            if bits >> vector & 1 == 0 || !waiter.queued {
                continue;
            }
            if kind == Waiter::Exclusive && std::mem::replace(&mut alone[usize::from(vector)], true) {
                continue;
            }
            (waiter.woken, waiter.due) = (true, false);
            // Who reads leaves the queue by being woken.
            waiter.queued &= kind != Waiter::Reads;
            if waiter.at == At::Asleep {
                waiter.at = At::Sleep;
                // Somebody who is awake already takes no other's place.
            } else if kind == Waiter::Exclusive {
                alone[usize::from(vector)] = false;
            }
        }
    }

    pub(super) fn wait(&self, state: &mut State, w: usize) {
        let (kind, vector) = self.waiter(w).expect("the step was offered");
        let (v, bit, me) = (usize::from(vector), 1 << vector, Holder::Waiter(w as u8));
        let for_good = matches!(kind, Waiter::Exclusive | Waiter::Told);
        // Hazard P1: looks before it queues.
        let early = self.has(Hazard::P1) && !state.waiters[w].queued;
        let next = match state.waiters[w].at {
            At::Out if early => {
                self.want(state, w, bit);
                return;
            }
            At::Out | At::Leave => {
                state.queue_lock[v] = w as u8 + 1;
                if state.waiters[w].at == At::Out { At::Queueing } else { At::Leaving }
            }
            At::Queueing => {
                state.queue_lock[v] = 0;
                let waiter = &mut state.waiters[w];
                (waiter.queued, waiter.woken) = (true, false);
                if self.has(Hazard::P1) { At::Sleep } else { At::Queued }
            }
            At::Queued => {
                self.want(state, w, bit);
                return;
            }
            At::Arm => {
                // The receiver's lock was let go to take the list's first; somebody may have been faster.
                state.lock = me;
                if !state.armed {
                    state.armed = true;
                    state.to = if state.cpus[w].closed { 1 - w as u8 } else { w as u8 };
                    state.sn = false;
                    // Hazard P3: arming leaves ON set.
                    state.on &= self.has(Hazard::P3);
                }
                At::See
            }
            At::See => {
                state.lock = Holder::Nobody;
                let found = match kind {
                    Waiter::Reads => self.take(state, w, vector),
                    // Hazard P2: looks before it arms.
                    _ if self.has(Hazard::P2) => state.waiters[w].found,
                    _ => {
                        let found = state.readable(vector);
                        // Hazard P6: a look takes the bit from PIR.
                        if self.has(Hazard::P6) && state.counts[v] == 0 && state.pir & bit != 0 {
                            state.pir &= !bit;
                            state.counts[v] += 1;
                        }
                        found
                    }
                };
                let waiter = &mut state.waiters[w];
                waiter.due &= !found;
                match (found, kind) {
                    (true, Waiter::Exclusive) => At::Take,
                    // Out of the queue already: it was woken in between.
                    (true, Waiter::Reads | Waiter::Polls) if waiter.queued => {
                        waiter.found = true;
                        At::Leave
                    }
                    (true, Waiter::Reads) => At::Tell,
                    (true, Waiter::Polls) => At::Take,
                    (true, Waiter::Told) => At::Sleep,
                    (false, _) if early => {
                        state.queue_lock[v] = w as u8 + 1;
                        At::Queueing
                    }
                    (false, _) => At::Sleep,
                }
            }
            At::Sleep => {
                if std::mem::take(&mut state.waiters[w].woken) {
                    match kind {
                        Waiter::Told => At::Sleep,
                        Waiter::Reads => At::Out,
                        Waiter::Polls | Waiter::Exclusive => At::Queued,
                    }
                } else {
                    At::Asleep
                }
            }
            At::Leaving => {
                state.queue_lock[v] = 0;
                let waiter = &mut state.waiters[w];
                waiter.queued = false;
                match kind {
                    _ if !waiter.found => At::Out,
                    Waiter::Reads => At::Tell,
                    _ => At::Take,
                }
            }
            At::Take => {
                self.take(state, w, vector);
                At::Tell
            }
            At::Tell => {
                // Hazard P12: a read takes a bit and tells nobody.
                if std::mem::take(&mut state.waiters[w].tells) && !self.has(Hazard::P12) {
                    self.wake(state, bit, Some(w));
                }
                if for_good { At::Queued } else { At::Out }
            }
            At::Asleep => unreachable!("the step was offered"),
        };
        state.waiters[w].at = next;
    }

    /// Somebody may have to wait for this vector: onto a list, unless it is on one.
    fn want(&self, state: &mut State, w: usize, bit: u8) {
        state.wanted |= bit;
        // Hazard P2: looks before it arms.
        if self.has(Hazard::P2) {
            state.waiters[w].found = self.waiter(w).is_some_and(|(_, vector)| state.readable(vector));
        }
        if state.armed {
            state.lock = Holder::Waiter(w as u8);
            state.waiters[w].at = At::See;
        } else {
            state.waiters[w].at = At::Arm;
        }
    }

    /// A read, with the receiver's lock: what was counted, and the own bit of PIR.
    fn take(&self, state: &mut State, w: usize, vector: u8) -> bool {
        let (v, bit) = (usize::from(vector), 1u8 << vector);
        // Hazard P11: a read takes all of PIR.
        if self.has(Hazard::P11) {
            for other in (0..VECTORS).filter(|other| state.pir >> other & 1 == 1) {
                state.counts[other] += 1;
            }
            state.pir = 0;
        }
        // A semaphore's read leaves the bit where there is a count,
        // so that nothing is left in between that nobody was told of.
        let counted = if self.config.semaphore { state.counts[v].min(1) } else { state.counts[v] };
        let picked = u8::from(state.pir & bit != 0 && !(self.config.semaphore && counted == 1));
        state.counts[v] -= counted;
        state.pir &= !(bit * picked);
        state.waiters[w].tells = picked == 1;
        let taken = counted + picked;
        state.read[v] += taken;
        state.waiters[w].due &= taken == 0;
        taken > 0
    }

    // ---- what must hold
    // -------------------------------------------------------------------------------------------

    pub(super) fn broken_invariant(&self, state: &State) -> Option<Property> {
        // Armed is on a list and not suppressed, unless it is
        // throttled; all change together under the lock.
        let speaking = state.cpus.iter().any(|cpu| cpu.irq == Irq::Speaking);
        ((state.armed && !state.throttled) == state.sn && !speaking).then_some(UNREACHABLE)
    }

    pub(super) fn undone(&self, state: &State) -> Option<Property> {
        if state.cpus.iter().any(|cpu| cpu.irq == Irq::Waking) {
            return Some(DEADLOCK);
        }
        for w in 0..WAITERS {
            let (Some((kind, vector)), waiter) = (self.waiter(w), &state.waiters[w]) else { continue };
            if waiter.at != At::Asleep {
                continue;
            }
            let readable = state.readable(vector);
            if kind != Waiter::Told && readable {
                return Some(SLEEPS);
            }
            if kind == Waiter::Told && waiter.due {
                return Some(UNTOLD);
            }
            let lost = state.cpus[usize::from(state.to)].off_line;
            if !state.armed || state.throttled || state.on || lost || state.wanted >> vector & 1 == 0 {
                return Some(UNREACHABLE);
            }
        }
        let sending = (0..SENDERS.min(self.config.senders.into()))
            .any(|s| state.senders[s].sent < self.config.posts || state.senders[s].ipi_to != 0);
        let waiting = (0..WAITERS).any(|w| self.waiter(w).is_some() && state.waiters[w].at != At::Asleep);
        (sending || waiting).then_some(STUCK)
    }
}
