// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps in words, on the lanes of a chart.

use super::config::{Resume, Sleep};
use super::machine::{Action, Machine};
use super::state::{At, Call, Irq, Place, Receive, Receiver, Send, State, TICK, Task, Ticking};
use crate::model::chart::{Step, vectors};

const SENDER: usize = 0;
const CPU: usize = 2;
const UPID: usize = 4;
const RECEIVER: usize = 6;

pub(super) fn lanes() -> Vec<String> {
    ["sender A", "sender B", "CPU 0", "CPU 1", "UPID 1", "UPID 2", "receiver 1", "receiver 2"]
        .map(str::to_owned)
        .to_vec()
}

fn irq(irq: Irq) -> &'static str {
    match irq {
        Irq::Notify => "notification 0xEC",
        Irq::Kernel => "kernel vector 0xEB",
    }
}

fn task(task: Task) -> String {
    match task {
        Task::None => "nobody".to_owned(),
        Task::Receiver(r) => format!("receiver {}", r + 1),
        Task::Sender(s) => format!("sender {}", if s == 0 { 'A' } else { 'B' }),
    }
}

pub(super) fn step(machine: &Machine, before: &State, action: Action, after: &State) -> Step {
    let [cpu, upid_of, receiver_of, sender_of] =
        [CPU, UPID, RECEIVER, SENDER].map(|first| move |which: u8| first + usize::from(which));
    let running = |core: u8| before.cores[usize::from(core)].running;
    let task_of = |core: u8| match running(core) {
        Task::None => cpu(core),
        Task::Receiver(r) => receiver_of(r),
        Task::Sender(s) => sender_of(s),
    };
    match action {
        Action::Accept(core, vector) | Action::AcceptJoined(core, vector) => {
            accept(before, core, vector, after)
        }
        Action::Take(core) => {
            let upid = usize::from(before.cores[usize::from(core)].upid).saturating_sub(1);
            let taken = vectors(before.receivers[upid].pir);
            Step::towards(cpu(core), UPID + upid, format!("takes {taken} from PIR into UIRR"))
        }
        Action::Deliver(core) if after.cores[usize::from(core)].at == At::PageFault => {
            Step::local(cpu(core), "delivers: page fault, the request stays pending")
        }
        Action::Deliver(core) => match running(core) {
            Task::Receiver(r) => {
                let v = after.receivers[usize::from(r)].handling - 1;
                Step::towards(cpu(core), receiver_of(r), format!("delivers v{v}, UIF 0"))
            }
            other => Step::local(cpu(core), format!("delivers into {}", task(other))),
        },
        Action::Run(core) => run(machine, before, core, after),
        Action::PickReceiver(core, r) => {
            let receiver = &before.receivers[usize::from(r)];
            let text = if receiver.registered() {
                let c = &after.cores[usize::from(core)];
                format!("switches in: UIRR {}, UIF {}", vectors(c.uirr), u8::from(c.uif))
            } else {
                "switches in".to_owned()
            };
            Step::towards(cpu(core), receiver_of(r), text)
        }
        Action::PickSender(core, s) => {
            let table = match (after.cores[usize::from(core)].table, before.senders[usize::from(s)].next) {
                (_, Send::Register) => "",
                (0, _) => ": TT is 0",
                (_, _) => ": TT restored",
            };
            Step::towards(cpu(core), sender_of(s), format!("switches in{table}"))
        }
        Action::Reuse(r) => Step::local(upid_of(r), "pool hands the descriptor to its next owner".to_owned()),
        Action::Preempt(core) => {
            Step::towards(cpu(core), task_of(core), format!("preempts {}", task(running(core))))
        }
        Action::Tick(core, s) => {
            let text = format!("the tick takes {} off, for one that waits", task(running(core)));
            Step::towards(cpu(core), sender_of(s), text)
        }
        Action::TimeOut(r) => Step::local(receiver_of(r), "time-out ends the wait"),
        Action::Block(core) => Step::local(task_of(core), "sleeps in a system call"),
        Action::Signal(core) => {
            let saved = u8::from(before.cores[usize::from(core)].uif);
            Step::towards(cpu(core), task_of(core), format!("signal: UIF {saved} kept, UIF 0"))
        }
        Action::Fpu(core) => Step::local(cpu(core), "kernel uses vector registers: XSAVES clears UINV"),
        Action::Write(r) if after.receivers[usize::from(r)].writes == 1 => {
            Step::local(receiver_of(r), "somebody writes: its descriptor is readable")
        }
        Action::Write(r) => {
            let woken =
                before.receivers[usize::from(r)].interruptible && before.receivers[usize::from(r)].listening;
            let whom = if woken { "the receiver is woken" } else { "nobody sleeps there" };
            Step::local(receiver_of(r), format!("the descriptor's queue is woken: {whom}"))
        }
        Action::TakePage(r) => Step::local(receiver_of(r), "a page of the handler's stack is gone"),
        Action::Page(r) => Step::local(receiver_of(r), "the page is there"),
        Action::Wake(r) => Step::local(receiver_of(r), "is woken"),
        Action::WakeNext(core) => {
            let r = before.cores[usize::from(core)].waking.trailing_zeros() as usize;
            Step::towards(cpu(core), RECEIVER + r, woken(before, r, after))
        }
        Action::Late(core, r) if before.receivers[usize::from(r)].late_done => {
            Step::local(cpu(core), "the irq_work can be queued again")
        }
        Action::Late(core, r) => {
            let r = usize::from(r);
            Step::towards(cpu(core), RECEIVER + r, format!("irq_work: {}", woken(before, r, after)))
        }
        Action::Work(core) => Step::local(task_of(core), "runs the work, on its way to user mode"),
        Action::Due(r) => Step::local(receiver_of(r), format!("its timer is due: v{TICK}")),
        Action::Expire(core, r) => {
            let text =
                if running(core) == Task::Receiver(r) { "which runs here" } else { "which is not here" };
            Step::towards(
                cpu(core),
                upid_of(r),
                format!("timer of receiver {}, {text}: v{TICK} into PIR", r + 1),
            )
        }
        Action::Timer(core) => timer(before, core, after),
        Action::Retire(r, v) => Step::local(receiver_of(r), format!("the call that revoked v{v} returns")),
        Action::Revoke(r, v) if machine.config.sleep == Sleep::AtSwitch => {
            Step::local(receiver_of(r), format!("revokes v{v}: its entries are not valid any more"))
        }
        Action::Revoke(r, v) => {
            let r = usize::from(r);
            let on = u8::from(after.receivers[r].on);
            Step::towards(RECEIVER + r, UPID + r, format!("closes v{v}: PIR bit cleared, ON {on}"))
        }
        Action::EnterGuest(core) => Step::local(task_of(core), "runs a virtual CPU"),
        Action::Exit(core) => Step::local(task_of(core), "exits"),
        Action::WriteCr4(core) => Step::local(cpu(core), "CR4 rewritten: UINTR 0"),
        Action::Close(core) => {
            Step::local(cpu(core), format!("is to go off-line: its sleepers' UPIDs name CPU {}", 1 - core))
        }
        Action::GoOffLine(core) => Step::local(cpu(core), "off-line: what its APIC held is lost"),
        Action::ComeBack(core) => Step::local(cpu(core), "on-line again"),
    }
}

/// What a wake-up does, in the words of the thread's call.
fn woken(before: &State, r: usize, after: &State) -> &'static str {
    let (old, new) = (&before.receivers[r], &after.receivers[r]);
    match (new.notified && !old.notified, old.place == Place::Asleep && new.place == Place::Ready) {
        (true, true) => "is woken by a work",
        (true, false) => "a work is queued",
        (false, true) => "is woken",
        (false, false) if old.work && !old.notified => "left to the work, which has run",
        (false, false) if old.work => "left to the work that is queued",
        (false, false) => "does not sleep",
    }
}

fn timer(before: &State, core: u8, after: &State) -> Step {
    let c = usize::from(core);
    let (old, r) = (&before.cores[c], usize::from(before.cores[c].ticked));
    let text = match old.ticking {
        Ticking::No => unreachable!("no timer's interrupt"),
        Ticking::Notify if after.receivers[r].on && !before.receivers[r].on => "timer: ON 0→1".to_owned(),
        Ticking::Notify if before.receivers[r].on => "timer: ON is set already".to_owned(),
        Ticking::Notify => "timer: SN is set".to_owned(),
        Ticking::Clear => "timer: ON 0".to_owned(),
        Ticking::Take => {
            format!("timer: takes {} from PIR into UIRR here", vectors(before.receivers[r].pir))
        }
        Ticking::Wake if after.cores[c].waking != 0 => "timer: takes it off its list".to_owned(),
        Ticking::Wake => "timer: finds nobody to wake".to_owned(),
    };
    Step::towards(CPU + c, UPID + r, text)
}

fn accept(before: &State, core: u8, vector: Irq, after: &State) -> Step {
    let (c, lane) = (usize::from(core), CPU + usize::from(core));
    if after.cores[c].taking {
        let upid = usize::from(before.cores[c].upid).saturating_sub(1);
        return Step::towards(lane, UPID + upid, "recognises the notification: ON 0");
    }
    let name = irq(vector);
    let woken =
        (0..before.receivers.len()).find(|&r| before.receivers[r].queued && !after.receivers[r].queued);
    match (vector, woken) {
        (Irq::Kernel, Some(r)) => {
            Step::towards(lane, RECEIVER + r, format!("{name}: wakes receiver {}", r + 1))
        }
        (Irq::Kernel, None) => Step::local(lane, format!("{name}: nobody to wake")),
        (Irq::Notify, _) => Step::local(lane, format!("{name} is an ordinary interrupt here: EOI")),
    }
}

fn run(machine: &Machine, before: &State, core: u8, after: &State) -> Step {
    let c = usize::from(core);
    let (lane, at) = (CPU + c, before.cores[c].at);
    match (at, before.cores[c].running) {
        (At::User, Task::Receiver(r)) => receive(before, usize::from(r), c, after),
        (At::User, Task::Sender(s)) => send(machine, before, usize::from(s), after),
        (At::Guest, _) => Step::local(lane, "the guest is left"),
        (At::LookAfterMove, _) => Step::local(lane, "kernel: looks at ON of those moved, and wakes them"),
        (_, Task::Receiver(r)) => kernel(machine, before, usize::from(r), c, after),
        _ => Step::local(lane, "kernel"),
    }
}

fn kernel(machine: &Machine, before: &State, r: usize, c: usize, after: &State) -> Step {
    let (lane, upid) = (CPU + c, UPID + r);
    let (old, new): (&Receiver, &Receiver) = (&before.receivers[r], &after.receivers[r]);
    let looked = format!("PIR {}, ON {}", vectors(old.pir), u8::from(old.on));
    let to_upid = |text: String| Step::towards(lane, upid, text);
    match before.cores[c].at {
        At::Arm => {
            let uinv = if after.cores[c].armed { "0xEC" } else { "0" };
            let ndst = if new.ndst == old.ndst { String::new() } else { format!(", NDST CPU {c}") };
            to_upid(format!("kernel: UINV {uinv}, NV 0xEC{ndst}"))
        }
        At::Unsuppress => to_upid("kernel: SN 0".to_owned()),
        At::Recheck => {
            let then = match (after.cores[c].at, machine.config.resume) {
                (At::Collect, _) if new.on => "PIR is due",
                (At::Collect, _) => "clears ON",
                (_, Resume::SelfIpi) if after.cores[c].self_ipi && !before.cores[c].self_ipi => "self-IPI",
                _ => "back to user",
            };
            to_upid(format!("kernel sees {looked}: {then}"))
        }
        At::Collect => to_upid(format!(
            "kernel: {} from PIR, UIRR now {}",
            vectors(old.pir),
            vectors(after.cores[c].uirr)
        )),
        At::PageFault => Step::local(lane, "kernel: waits for the page"),
        At::CancelTimer if new.pir != old.pir => {
            to_upid(format!("kernel: the timer is due: v{TICK} into PIR"))
        }
        At::CancelTimer => {
            Step::local(lane, "kernel: the timer's function is not under way, and it is queued here")
        }
        At::Schedule if after.cores[c].at == At::ToSleep => to_upid("switches out to sleep: SN 1".to_owned()),
        At::Schedule => Step::local(lane, "kernel: was woken, does not sleep"),
        At::WaitEntry if machine.config.wakes_in_steps() => {
            let text = match (new.call, new.interruptible) {
                (Call::None, _) if new.restart => "kernel: a work ends the call, which is to begin anew",
                (Call::None, _) => "kernel: the call returns",
                (_, true) => "kernel: is to sleep, and finds nothing in its call",
                (_, false) => "kernel: the call runs the work, and goes on",
            };
            Step::local(lane, text)
        }
        At::Retarget => to_upid(format!("kernel: NDST CPU {c}, too late")),
        At::FpuSection => Step::local(lane, "kernel: done with the vector registers"),
        At::WaitEntry if machine.with_descriptor() => Step::local(
            lane,
            if new.listening {
                "kernel: in the descriptor's queue"
            } else {
                "kernel looks at the descriptor"
            },
        ),
        At::LookAtDescriptor => {
            let then = if new.interruptible || after.cores[c].at == At::LookAtTriggered {
                "nothing to read"
            } else {
                "can be read"
            };
            Step::local(lane, format!("kernel, descriptor: {then}"))
        }
        At::LookAtTriggered if old.triggered => Step::local(lane, "kernel: triggered, looks again"),
        At::LookAtTriggered => to_upid("switches out to sleep: SN 1".to_owned()),
        At::ToSleep if !new.queued => to_upid("UIF is shut: sleeps, SN stays 1".to_owned()),
        At::WaitEntry if machine.config.sleep == Sleep::AtSwitch => {
            to_upid("switches out to sleep: SN 1".to_owned())
        }
        At::WaitEntry | At::ToSleep => {
            let nv = if new.nv_kernel { "0xEB" } else { "0xEC" };
            to_upid(format!("kernel: on the wait list, NV {nv}, SN 0"))
        }
        At::WaitCheck => {
            let uirr = vectors(match machine.config.sleep {
                Sleep::InWait => before.cores[c].uirr,
                Sleep::AtSwitch => old.saved_uirr,
            });
            let asleep = new.place == Place::Asleep && !new.waking && new.queued;
            let then = if asleep { "sleeps" } else { "does not sleep" };
            let text = match machine.hazard {
                // Hazard H5: the wait call does not look again.
                Some(super::Hazard::H5) => format!("kernel does not look ({looked}): sleeps"),
                // Hazard H18: self-IPI taken for synchronous.
                Some(super::Hazard::H18) => format!("kernel: self-IPI, looks at UIRR ({uirr}): {then}"),
                _ => format!("kernel sees {looked}, UIRR {uirr}: {then}"),
            };
            to_upid(text)
        }
        At::Idle | At::User | At::LookAfterMove | At::Guest => Step::local(lane, "kernel"),
    }
}

fn receive(before: &State, r: usize, c: usize, after: &State) -> Step {
    let receiver = &before.receivers[r];
    let lane = RECEIVER + r;
    let text = if receiver.signal != 0 {
        format!("sigreturn: UIF {}", u8::from(after.cores[c].uif))
    } else if receiver.handling != 0 {
        "handler runs, UIRET: UIF 1".to_owned()
    } else {
        match receiver.next {
            _ if receiver.restart => return Step::towards(lane, CPU + c, "the call begins anew"),
            Receive::Register => {
                return Step::towards(lane, UPID + r, format!("registers: UINV 0xEC, NDST CPU {c}"));
            }
            Receive::Open => "STUI".to_owned(),
            Receive::Compute if after.cores[c].uif != before.cores[c].uif => "CLUI".to_owned(),
            Receive::Compute => "goes to look for work".to_owned(),
            Receive::Look if receiver.flag => "looks: handler has run, has work".to_owned(),
            Receive::Look => "looks: nothing to do".to_owned(),
            Receive::Wait => return Step::towards(lane, CPU + c, "calls wait"),
        }
    };
    Step::local(lane, text)
}

fn send(machine: &Machine, before: &State, s: usize, after: &State) -> Step {
    let lane = SENDER + s;
    let sender = &before.senders[s];
    let (r, v) = machine.target(s, sender.sent.min(machine.config.posts - 1));
    match sender.next {
        Send::Register => Step::local(lane, "registers: TT, UITTSZ"),
        Send::Publish => Step::towards(lane, RECEIVER + r, format!("publishes an item for v{v}")),
        Send::Fetch if after.senders[s].next == Send::Post => {
            Step::local(lane, format!("SENDUIPI v{v}: reads its entry"))
        }
        Send::Fetch => Step::local(lane, format!("SENDUIPI v{v}: faults")),
        Send::Post => {
            let (old, new) = (&before.receivers[r], &after.receivers[r]);
            let on = match (old.on, new.on, old.sn) {
                (false, true, _) => "ON 0→1",
                (_, _, true) => "SN set, no IPI",
                _ => "ON already set, no IPI",
            };
            Step::towards(lane, UPID + r, format!("posts v{v}: {on}"))
        }
        Send::Notify => {
            let to = usize::from(sender.ipi_to) - 1;
            let vector = irq(if sender.ipi_kernel { Irq::Kernel } else { Irq::Notify });
            Step::towards(lane, CPU + to, format!("IPI {vector}"))
        }
        Send::Probe => Step::local(lane, "SENDUIPI behind its table"),
    }
}
