// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps in words, on the lanes of a chart.

use super::config::Waiter;
use super::state::{At, Irq, State, VECTORS, Work};
use super::steps::{Action, Polled};
use crate::model::chart::{Step, vectors};

const SENDER: usize = 0;
const CPU: usize = 2;
const RECEIVER: usize = 4;
const WAITER: usize = 5;

pub(super) fn lanes(polled: &Polled) -> Vec<String> {
    let waiter = |w: usize| match polled.waiter(w) {
        Some((Waiter::Reads, _)) => format!("read {}", w + 1),
        Some((Waiter::Polls, _)) => format!("poll {}", w + 1),
        Some((Waiter::Exclusive, _)) => format!("exclusive {}", w + 1),
        Some((Waiter::Told, _)) => format!("io_uring {}", w + 1),
        None => String::new(),
    };
    let mut lanes: Vec<String> =
        ["sender A", "sender B", "CPU 0", "CPU 1", "receiver"].map(str::to_owned).into();
    lanes.extend((0..2).map(waiter));
    lanes
}

pub(super) fn step(polled: &Polled, before: &State, action: Action, after: &State) -> Step {
    let cpu = |c: u8| CPU + usize::from(c);
    match action {
        Action::Send(s) => send(polled, before, s, after),
        Action::Accept(c) => Step::local(cpu(c), "kernel's vector: hard interrupt"),
        Action::Handle(c) => handle(before, c, after),
        Action::Work(c) => work(before, c, after),
        Action::Wait(w) => wait(polled, before, usize::from(w), after),
        Action::TimeOut(w) => Step::local(WAITER + usize::from(w), "time-out ends the wait"),
        Action::Close(c) => {
            let text = if before.to == after.to {
                "is to go off-line"
            } else {
                "is to go off-line: the UPID names the other"
            };
            Step::local(cpu(c), text)
        }
        Action::GoOffLine(c) => Step::local(cpu(c), "off-line: what its APIC held is lost"),
        Action::ComeBack(c) => Step::local(cpu(c), "on-line again"),
        Action::Throttle(c) => {
            Step::towards(cpu(c), RECEIVER, "interrupts have had their share: throttled, SN 1")
        }
        Action::Unthrottle(c) if after.sn => Step::towards(cpu(c), RECEIVER, "timer: takes PIR"),
        Action::Unthrottle(c) => Step::towards(cpu(c), RECEIVER, "timer: armed again, ON and SN 0"),
    }
}

fn send(polled: &Polled, before: &State, s: u8, after: &State) -> Step {
    let (lane, sender) = (SENDER + usize::from(s), &before.senders[usize::from(s)]);
    if sender.ipi_to != 0 {
        return Step::towards(lane, CPU + usize::from(sender.ipi_to) - 1, "interrupts");
    }
    let on = match (before.sn, before.on, after.on) {
        (true, _, _) => "SN set, no interrupt",
        (_, true, _) => "ON already set, no interrupt",
        _ => "ON 0→1",
    };
    Step::towards(lane, RECEIVER, format!("posts v{}: {on}", polled.config.destination(s, sender.sent)))
}

fn handle(before: &State, c: u8, after: &State) -> Step {
    let (i, lane) = (usize::from(c), CPU + usize::from(c));
    let (old, new) = (&before.cpus[i], &after.cpus[i]);
    let to_receiver = |text: String| Step::towards(lane, RECEIVER, text);
    match old.irq {
        Irq::Begun if new.irq == Irq::None => Step::local(lane, "handler: nothing on its list has ON"),
        Irq::Begun | Irq::Noticing if before.on && !after.on => to_receiver("handler: ON 0".to_owned()),
        Irq::Begun | Irq::Noticing => {
            to_receiver(format!("handler: takes {} from PIR, counts it", vectors(before.pir)))
        }
        Irq::Speaking => to_receiver("timer: armed again, ON and SN 0".to_owned()),
        Irq::Deciding if after.sn && !before.sn => to_receiver("handler: nobody is waiting, SN 1".to_owned()),
        Irq::Deciding => to_receiver("handler: stays armed".to_owned()),
        Irq::Noting => to_receiver(format!("handler: notes {} to be woken", vectors(old.bits))),
        Irq::Raising if new.raised && !old.raised => Step::local(lane, "handler: queues the work"),
        Irq::Raising => Step::local(lane, "handler: the work is queued already"),
        Irq::Waking | Irq::None => woken(before, lane, after, "handler"),
    }
}

fn woken(before: &State, lane: usize, after: &State, who: &str) -> Step {
    let woken = (0..before.waiters.len())
        .find(|&w| before.waiters[w].at == At::Asleep && after.waiters[w].at != At::Asleep);
    match woken {
        Some(w) => Step::towards(lane, WAITER + w, format!("{who}: wakes it")),
        None => Step::local(lane, format!("{who}: nobody sleeps in these queues")),
    }
}

fn work(before: &State, c: u8, after: &State) -> Step {
    let lane = CPU + usize::from(c);
    let frees = before.noted && !after.noted;
    match before.cpus[usize::from(c)].work {
        Work::None => Step::local(lane, "work begins"),
        Work::Begun | Work::Free if frees => Step::local(lane, "work: may be queued again"),
        Work::Begun | Work::Free => {
            Step::towards(lane, RECEIVER, format!("work: takes the note: {}", vectors(before.note)))
        }
        Work::Waking => woken(before, lane, after, "work"),
    }
}

fn wait(polled: &Polled, before: &State, w: usize, after: &State) -> Step {
    let (lane, waiter) = (WAITER + w, &before.waiters[w]);
    let vector = polled.waiter(w).map_or(0, |(_, vector)| vector);
    let taken =
        (0..VECTORS).find(|&v| after.read[v] > before.read[v]).map(|v| after.read[v] - before.read[v]);
    let text = match waiter.at {
        At::Out | At::Leave if after.waiters[w].at == At::Queueing => "takes the queue's lock".to_owned(),
        At::Out | At::Queued => format!("wants v{vector}"),
        At::Leave => "takes the queue's lock".to_owned(),
        At::Queueing => "in the queue".to_owned(),
        At::Arm if !before.armed => {
            return Step::towards(lane, RECEIVER, format!("arms: SN 0, NDST CPU {}", after.to));
        }
        At::Arm => "somebody has armed it".to_owned(),
        At::See | At::Take => {
            let seen = match taken {
                Some(1) => "reads 1 post".to_owned(),
                Some(n) => format!("reads {n} posts"),
                None if after.waiters[w].at == At::Sleep => "looks: nothing".to_owned(),
                None if waiter.at == At::See && before.readable(vector) => "looks: readable".to_owned(),
                None => "finds nothing".to_owned(),
            };
            return Step::towards(lane, RECEIVER, seen);
        }
        At::Sleep if waiter.woken => "was woken: does not sleep".to_owned(),
        At::Sleep | At::Asleep => "sleeps".to_owned(),
        At::Leaving => "out of the queue".to_owned(),
        At::Tell if waiter.tells => "wakes the others for the bit that it took".to_owned(),
        At::Tell => "goes on".to_owned(),
    };
    Step::local(lane, text)
}
