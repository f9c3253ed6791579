// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a team saw that had no CPU with user interrupts, emulated one (QEMU, Linux RFC v1, July
//! 2023) and kept a diary; and which hazard explains it.

/// How sure the explanation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// The diary's own log shows the steps of the hazard.
    Shown,
    /// The hazard produces what was seen; the log does not settle it.
    Fits,
    /// No wake-up was lost.
    Unrelated,
}

/// One entry of the diary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symptom {
    /// What was seen.
    pub seen: &'static str,
    /// Names of the hazards that explain it, the main one first.
    pub hazards: &'static [&'static str],
    /// How sure that is.
    pub certainty: Certainty,
    /// How.
    pub explanation: &'static str,
}

const fn row(
    seen: &'static str,
    hazards: &'static [&'static str],
    certainty: Certainty,
    explanation: &'static str,
) -> Symptom {
    Symptom { seen, hazards, certainty, explanation }
}

use Certainty::{Fits, Shown, Unrelated};

/// The diary, in its order.
pub const SYMPTOMS: &[Symptom] = &[
    row(
        "one send a second; after a while the receiver never answers again, and the emulator \
         prints \"uif zero\" two thousand times",
        &["H1", "H6"],
        Shown,
        "the receiver had moved to another core; UIF stayed behind, for neither kernel nor \
         emulator saved it. The self-IPI was raised again at each return to user mode",
    ),
    row(
        "STUI in both threads, two cores: the cure that seemed to work",
        &["H1"],
        Shown,
        "with UIF set on every core the receiver may move where it likes; nothing was saved all the same",
    ),
    row(
        "\"do not go to handler\": PIR is found zero on every self-IPI, again and again",
        &["H10"],
        Fits,
        "the emulator moved PIR into UIRR by assignment, in two places, and asked PIR instead of \
         UIRR whether there was anything to deliver",
    ),
    row(
        "\"wait upid status: 1\", \"going to sleep\", then \"ifsend: 0\": silence",
        &["H5", "H2"],
        Shown,
        "ON was set when the waiter went to sleep; nobody looked; the next post saw ON and sent no IPI",
    ),
    row(
        "the emulator is changed to send the IPI at every post",
        &["H2"],
        Shown,
        "an IPI per post hides that ON is stuck, and gives up coalescing",
    ),
    row(
        "the test program deadlocks: the flag can be seen a little before the reader waits",
        &["H4"],
        Shown,
        "interrupt first, wait call after: the handler has run, and nothing is left to end the wait",
    ),
    row(
        "1 s between sends works, 10 to 100 ms does not",
        &["H4", "H5"],
        Fits,
        "at one second the reader is always asleep before the next send; the shorter the gap, the \
         more sends meet it on its way to sleep",
    ),
    row(
        "woken, taken off the wait list, and blocked again at once: its only chance was gone",
        &["H5"],
        Shown,
        "the wake-up came between the list and the sleep, and no look at PIR and ON followed",
    ),
    row(
        "kept on the wait list until it leaves by itself: the workaround",
        &["H5"],
        Shown,
        "a later post can wake it again; the one that was missed is late by that much",
    ),
    row(
        "the wait call never returns; upstream adds a time-out of 100 us",
        &["H5", "H2"],
        Shown,
        "the time-out ends the sleep that the missing look allowed",
    ),
    row(
        "2000 to 2500 messages a second at 100 us, 4667 at 2500 us, 3751 at 10 000 us",
        &["H5"],
        Fits,
        "a short time-out wakes in vain most of the time; a long one makes every lost wake-up cost \
         its full length",
    ),
    row(
        "while the receiver runs, suppress; while it is switched out, allow: three edits",
        &["H9"],
        Fits,
        "SN turned round: a running receiver is never told, and posts reach it only when it next \
         blocks. No wake-up is lost only as long as it does block",
    ),
    row(
        "the event file: second use, null pointer",
        &[],
        Unrelated,
        "the state of the list in the kernel module",
    ),
    row(
        "epoll_wait returns at once, ON is never cleared, the next send is suppressed",
        &["H2", "H3"],
        Shown,
        "the kernel's vector was taken, so no microcode cleared ON, and the path that found the \
         file ready did not either",
    ),
    row(
        "ON is cleared by software in epoll_wait; a send just before it is lost",
        &["H4", "H5"],
        Shown,
        "clearing ON without a look at PIR behind it throws the announcement away",
    ),
    row(
        "after the sender has changed cores: UITT address 0, UPID address 0",
        &["H8"],
        Shown,
        "MSR TT was not restored on the core it moved to, and the emulator walked a table at \
         address zero instead of raising an exception",
    ),
    row(
        "the notification vector is reset to zero: \"ifsend: 1, nv: 0\"",
        &["H8"],
        Shown,
        "it was not reset: the UPID read through the zero table is all zeros",
    ),
    row(
        "TT is compared and rewritten at each return to user mode: it works",
        &["H8"],
        Shown,
        "which is the fix, made on one of the paths",
    ),
    row("the guest does not boot", &[], Unrelated, "an if without braces"),
    row(
        "undefined reference to __divdf3",
        &[],
        Unrelated,
        "a handler's compiler flags on code that uses floating point",
    ),
    row(
        "the user-interrupt loop hangs without a printf or a delay in it",
        &["H4", "H5"],
        Fits,
        "the printf let the reader fall asleep before the next send",
    ),
    row(
        "the reader is not yet in epoll_wait when the notification comes; delays do not cure it",
        &["H4", "E4"],
        Fits,
        "no delay is long enough for a scheduler; arm, look again, then sleep",
    ),
    row(
        "clearing the flag right behind the wait cures the loss of step",
        &["E1", "B3"],
        Fits,
        "consume first, then re-arm: the other order eats the next announcement",
    ),
    row(
        "some reads of the eventfd fail and are left out of the statistics",
        &["E1"],
        Fits,
        "the token had been read already; a read in vain, not a lost message",
    ),
];
