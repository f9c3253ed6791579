// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known mistakes, each a switch that puts it back into the protocol.

use super::config::Config;
use crate::model::hazard::hazards;

hazards! {
    "A mistake that was made, numbered as in §9 of the architecture reference.";

    H1(RUNNING): "UIF lost at a switch",
        "UIF belongs to the core and has no MSR; a saver that goes MSR by MSR misses it, and the \
         thread resumes elsewhere with the flag of whoever ran there",
        "save with XSAVES, or TESTUI on the way out and STUI or CLUI, one of them always, on the \
         way back: whoever ran there may have opened it";
    H2(RUNNING_DIRECT): "ON stays set",
        "the IPI was taken as an ordinary interrupt; the return path takes PIR but leaves ON, so \
         no later post sends an IPI",
        "on every return to user mode look at PIR and ON, and clear ON with what it stood for";
    H3(RUNNING_LIFE_CYCLE): "PIR cleared by another path, ON left set",
        "closing a vector clears its PIR bit only; the return path looks at PIR only; ON is stuck",
        "clear ON in the same atomic operation when PIR becomes zero, and test ON too";
    H4(WAITING): "wake-up consumed before the waiter blocks",
        "the handler runs between the look at the queue and the wait call; nothing is pending any \
         more when the waiter goes to sleep",
        "CLUI before the look; the kernel returns at once if a user interrupt is pending";
    H5(WAITING): "the wait call does not look again",
        "the post came before the waiter was on the list with the kernel's vector; ON is set, so \
         no second IPI comes, and only a time-out ends the wait",
        "enqueue, arm, barrier, look at PIR, ON and UIRR, and only then sleep";
    H6(RUNNING): "UINV is zero while the task runs",
        "XSAVES for the kernel's own use of vector registers cleared it, and the registers were \
         taken to be still valid; each notification is now an ordinary interrupt",
        "keep the intended vector with the task and write it on each return to user mode";
    H7(WAITING): "XRSTORS with UINV set",
        "the kernel arms the vector and then restores the state: #GP in the middle of a context switch",
        "UINV is zero until the state is restored";
    H8(SHARED): "TT not restored at a switch",
        "the sender resumes on a core that has no table, or somebody else's: SENDUIPI faults, or \
         posts to a stranger",
        "restore TT and UITTSZ at every switch, and load the null state for tasks that have none";
    H9(RUNNING): "SN cleared before NDST is right",
        "an IPI goes to the core the receiver has left and is an ordinary interrupt there, after \
         the last look at PIR and ON here",
        "UINV and NDST first, then SN, then a barrier, then the look at PIR and ON";
    H10(DIRECT): "UIRR overwritten",
        "what was taken from PIR is assigned to UIRR, and the vectors already pending there are gone",
        "always OR";
    H11(XAPIC): "UITTSZ off by one",
        "UITTSZ is the highest index, not the number of entries: one entry behind the table can be used",
        "entries minus one";
    H12(RUNNING): "UIF not kept across a signal",
        "it is cleared on entry to the signal handler and sigreturn does not bring it back",
        "keep it in the frame record, restore it at sigreturn";
    H13(LIFE_CYCLE): "UPID freed while entries name it",
        "a sender that has read its table entry writes sixteen bytes into memory that is no longer a UPID",
        "count references per entry, free after the last is gone and no SENDUIPI is under way";
    H14(LIFE_CYCLE): "stale post into a reused UPID",
        "the descriptor is handed to its next owner while a retiring sender is between reading its \
         entry and posting",
        "set SN, revoke entries, wait until no sender is under way, clear PIR and ON, and only \
         then hand it out";
    H15(WAITING): "UIRR dropped at a switch",
        "the saver keeps PIR only; what the core had already taken into UIRR is lost with the \
         core's registers",
        "UIRR is part of the context";
    H17(RUNNING): "CR4.UINTR lost",
        "CR4 is written without its shadow, or a core comes back on-line: notifications are \
         ordinary interrupts, SENDUIPI is an invalid opcode",
        "set it through the kernel's shadow, and again whenever a core comes up";
    H18(WAITING): "self-IPI taken for synchronous",
        "the wait call sends itself the notification and looks at UIRR in the next instruction; it \
         is still zero, and the waiter sleeps",
        "look at PIR and ON, not at what the self-IPI will do later";
    H19(PAYLOAD): "one item per interrupt",
        "two posts of one vector are one delivery; a handler that takes one item for each leaves the second",
        "treat it as a doorbell: drain the queue";
    H20(WAITING): "vector already in use",
        "the notification vector is also the timer's: the core takes the tick for a notification, \
         and the kernel never sees it",
        "allocate the vector, or borrow one whose handler tolerates spurious hits";
    H26(WAITING): "idle core not woken",
        "the sleeping receiver's UPID still names the notification vector and the idle core still \
         has UINV: the IPI is processed in HLT and wakes nobody",
        "the idle task has UINV zero, and sleeping receivers use the kernel's vector";
    H27(XAPIC): "APIC ID not shifted in xAPIC mode",
        "NDST holds the ID in bits 15:8; an unshifted ID addresses processor 0",
        "one function for it, tested in both modes";
    H29(PAYLOAD): "payload published after the post",
        "the handler runs before the item is visible, finds nothing, and no second interrupt comes",
        "release store of the payload, then SENDUIPI; acquire load in the handler";
    H30(DRIVER_HOT_PLUG): "sleeper moved off a CPU and not looked at",
        "its UPID names another CPU from then on, but ON is set already: the interrupt that was \
         sent before dies with the CPU that goes off-line",
        "name the other CPU, barrier, then look at ON of each that was moved";
    H31(DRIVER_DESCRIPTOR): "sleeps masked where nothing wakes it",
        "UIF is shut from the look on, so that no handler comes between, and the thread sleeps in \
         epoll_wait(2): whoever shut UIF is woken by no post",
        "a wait that takes the descriptor, and that a post ends although UIF is shut";
    H32(DRIVER_DESCRIPTOR): "looks at the descriptor before it is in its queue",
        "what is written between the look and the queue wakes nobody, and the receiver sleeps in front of it",
        "into the queue, then look";
    H33(DRIVER_DESCRIPTOR): "says that it sleeps behind its last look",
        "a write between the look and TASK_INTERRUPTIBLE wakes a thread that runs; then it goes to sleep",
        "TASK_INTERRUPTIBLE first, then look at what was triggered";
    H34(DRIVER_LIFE_CYCLE): "a revocation that waits for nobody",
        "a SENDUIPI that has read its entry posts behind the return of the call that made the entry invalid",
        "an interrupt to each CPU on which a process runs that was connected: none is taken within \
         the instruction";
    H35(DRIVER_SHARED): "the first sleeper is woken, and no other",
        "two sleepers are reached through one CPU, and their interrupts meet in its APIC: one is \
         taken for both",
        "look at ON of every one that is on that CPU's list";
    H36(DRIVER_STACK): "who waits for a page is woken",
        "a delivery meets a page of the handler's stack that is late; the request is pending yet, \
         so that each sleep for the page ends at once, and the processor spins",
        "leave alone who sleeps in a fault: no system call of it could end";
    H37(DRIVER_LIFE_CYCLE): "the last close is the end",
        "a thread ends its receiver by closing the descriptor, which a child has yet, between its \
         making and its exec; a post in between runs a handler with nothing behind it",
        "a call by which the thread ends it, whoever has descriptors";
    H38(DRIVER_RUNNING): "a receiver runs a virtual CPU",
        "a notification that comes while the guest runs ends that as any interrupt does, and is \
         the kernel's; UINV was right all the time, so that nobody looks at ON",
        "look at ON behind each VM exit; where nothing tells of one, no receiver runs a virtual CPU";
    H39(DRIVER_TIMER): "a timer takes for a thread that is not there",
        "its interrupt comes while the thread sleeps, takes PIR as for one that runs, and writes \
         UIRR of a CPU that has another",
        "take only if the thread runs on this CPU; else post, and wake it as WAKE does";
    H40(DRIVER_TIMER_RUNNING): "a timer takes PIR before it clears ON",
        "who posts between finds ON set and sends nothing; then ON is cleared, and its request stays in PIR",
        "ON first, as the CPU does it";
    H41(DRIVER_TIMER_RUNNING): "a timer on another CPU is not waited for",
        "the thread is woken and runs elsewhere while the interrupt that found it asleep sets ON: \
         it looks for a sleeper, finds none, and nobody tells the CPU that the thread has now",
        "on the way to a CPU wait until the timer's function is over, and only then arm";
    H42(DRIVER_TIMER_HOT_PLUG): "a timer wakes who is on its own CPU's list",
        "the CPU goes off-line, and the thread was moved to another's list; ON is set, and no \
         interrupt is sent",
        "wake from the list on which the thread is";
    H43(DRIVER_CALLS): "another call is woken as the wait call is",
        "a read or a poll finds neither what it waits for nor what looks like a signal, and sleeps \
         again; the request is pending yet, the look at the switch finds it, and so on for ever",
        "a work that looks like a signal ends the call; a plain wake-up is for the wait call alone";
    H44(DRIVER_CALLS): "an irq_work is free again behind its function",
        "the thread it woke runs on another CPU, and goes to sleep on a request once more: the \
         irq_work counts as queued, and has done its work",
        "free before its function begins, so that it can be queued again";
    H45(DRIVER_RING): "a work's bit is cleared on the way to user mode",
        "the call runs the work where it sleeps, finds nothing to be pending, and sleeps on with \
         the bit set: the next wake-up is left to a work that has run",
        "clear the bit first, then look";
    H46(DRIVER_RING): "a work that runs where the call sleeps does not end it",
        "the request is pending in the CPU, the call sleeps on; the look at the switch finds it, \
         wakes the thread by a work, and so on for ever",
        "if a request is pending, the work leaves what looks like a signal behind";
    H47(DRIVER_TIMER_RUNNING): "a timer is left queued when its thread ends",
        "its time comes behind the exit, and its interrupt goes by what is left of the thread",
        "the thread stops it, and waits for its function, before its part of the driver ends";
}

/// Hazards of the same list that are not faults of this protocol, with the reason.
pub const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "H16",
        "user stack not usable at delivery",
        "a fault inside one core's delivery: the CPU functions leave the interrupt pending, and a \
         unit test holds them to it; what the driver does with a page that is late is H36",
    ),
    (
        "H21",
        "handler during a user-level context switch",
        "the program's own stacks, not the kernel's protocol",
    ),
    (
        "H22",
        "alternate stack base for top",
        "the program's own stacks; delivery computes the frame, and a unit test holds it to it",
    ),
    ("H23", "nested delivery on an absolute stack", "the program's own stacks"),
    (
        "H24",
        "interrupt between STUI and return",
        "cannot happen with UIRET, which is one step here; only software replacements have the window",
    ),
    (
        "H25",
        "waiter scan under a spin lock in hard interrupt context",
        "a matter of lock types and latency; the scan here is one step",
    ),
    (
        "H28",
        "sender preempted between data and SENDUIPI",
        "covered by preemption at every step and shown harmless: late, not lost",
    ),
];

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, Hazard};
    use crate::model::Mistake;

    #[test]
    fn the_book_has_every_hazard_under_the_same_name() {
        let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/uintr-reference.md");
        let book = std::fs::read_to_string(book).unwrap();
        let here = Hazard::ALL.iter().map(|hazard| (hazard.entry().name, hazard.entry().title));
        for (number, title) in here.chain(ELSEWHERE.iter().map(|&(number, title, _)| (number, title))) {
            assert!(book.contains(&format!("\n| {number} | {title} |")), "{number} {title}");
        }
    }
}
