// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that mean harm, one misdeed each, and what must come of it. While they run, an honest
//! pair of spaces hands over (`arm/across.rs`): its counts must come out right.

use squall_scheduler::call::{Call, FAULTED, KILLED, Refusal};
use squall_scheduler::image::{IMAGE, MAIL};

use crate::arm::across;
use crate::kernel::{call, counters, exit, must, say, spawn, wait};
use crate::program;
use crate::scheduler::{connect, knock};

mod calls;
pub(crate) mod company;
mod forever;
mod mail;
mod memory;
mod reach;
mod registers;

use calls::{alarms_at_the_end_of_time, alarms_of_the_dead, foreign_calls, print_much, strangers};
use company::{COPIER, WAITS_FOR_ITS_PARENT, YIELDS};
use forever::{never_yields, parks, yield_for_ever};
use mail::{kick_uninvited, read_mail_unasked, scribble_over_mail};
use memory::{all_memory, ask_on, fork_all};
use reach::{
    bad_pointers, floating_point, give_way_alone, jump_nowhere, lie_about_levels, overflow,
    point_into_the_kernel, privileged, read_kernel, run_data, scribble_and_give_way, stack_in_kernel,
    write_word,
};
use registers::look_in_registers;

/// What becomes of a misdeed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The kernel ends the process, for a trap of this cause.
    Killed(usize),
    /// The process is refused what it wants, sees so, and ends well.
    Refused,
    /// It never ends by itself; its parent ends it.
    Endless,
    /// The same, beside a process that copies pages all the time and wants as little to end.
    EndlessBesideCopier,
    /// It sleeps, and so do all others, among them one that waits for
    /// its parent's word. The parent is told, and ends it.
    AllSleep,
}
use Fate::{AllSleep, Endless, EndlessBesideCopier, Killed, Refused};

/// Causes of traps (RISC-V privileged specification, 4.1.8).
const ILLEGAL: usize = 2;
const FETCH: usize = 12;
const LOAD: usize = 13;
const STORE: usize = 15;

/// The misdeeds.
const MISDEEDS: &[(&str, Fate, fn())] = &[
    ("scribbles over its part of the pool, and gives way", Killed(LOAD), scribble_and_give_way),
    ("fills its part with pointers into the kernel, and yields", Killed(LOAD), point_into_the_kernel),
    ("says that all its levels are ready, and yields", Killed(LOAD), lie_about_levels),
    ("writes to the scheduler's code", Killed(STORE), || write_word(IMAGE)),
    ("writes to its own program", Killed(STORE), || write_word(0x10000)),
    ("writes to mail that it does not share", Killed(STORE), || write_word(MAIL + 7 * 4096)),
    ("writes to the kernel's memory", Killed(STORE), || write_word(0xffff_ffc0_8040_0000)),
    ("reads the kernel's memory", Killed(LOAD), read_kernel),
    ("jumps to where nothing is", Killed(FETCH), jump_nowhere),
    ("runs its data", Killed(FETCH), run_data),
    ("executes an instruction of the kernel's", Killed(ILLEGAL), privileged),
    ("uses a floating-point register", Killed(ILLEGAL), floating_point),
    ("moves its stack pointer into the kernel and makes a call", Refused, stack_in_kernel),
    (GIVES_WAY_ALONE, Killed(FETCH), give_way_alone),
    ("looks in its registers for what another process had in them", Refused, look_in_registers),
    ("overflows its stack", Killed(STORE), overflow),
    ("passes bad pointers to every call that takes one", Refused, bad_pointers),
    ("makes calls that there are none of, and calls of the first space", Refused, foreign_calls),
    ("touches spaces that are not its relatives", Refused, strangers),
    ("prints a megabyte at once", Refused, print_much),
    ("sets alarms for the end of time, and ends", Refused, alarms_at_the_end_of_time),
    ("sleeps, when its children set alarms and ended", AllSleep, alarms_of_the_dead),
    ("kicks a process that does not share mail with it", Refused, kick_uninvited),
    ("reads and writes mail that it did not ask for", Killed(STORE), read_mail_unasked),
    ("scribbles over the mail of an honest child that sleeps and wakes", Refused, scribble_over_mail),
    ("takes all memory", Refused, all_memory),
    ("takes all memory that it gets, and asks on", EndlessBesideCopier, ask_on),
    ("forks until it is refused", Refused, fork_all),
    ("never yields", Endless, never_yields),
    ("yields and does nothing else", Endless, || yield_for_ever(Call::Yield)),
    ("yields by the short way and does nothing else", Endless, || yield_for_ever(Call::YieldInEntry)),
    ("parks for ever", Endless, parks),
    ("parks, and nobody is left to wake it", AllSleep, parks),
];

const GIVES_WAY_ALONE: &str = "gives way without a part of the pool";

/// All misdeeds, one after the other, beside an honest pair; or the
/// one of this number, from 1 on. The first space's.
pub(crate) fn run(which: usize, me: usize) -> bool {
    // Without slices a process that never yields would have its hart for good. Several harts may run by
    // the host's clock, where a slice passes while the host runs others: thousands of processes
    // would get nothing done in shorter ones than 2 ms.
    let slice = if counters().harts == 1 { SLICE } else { 10 * SLICE };
    must(Call::Tick, [slice, 0, 0, 0]);
    if !across::run_beside(20, 5, me, &mut |_, _| {}) {
        return false;
    }
    let mut clean = counters();
    for (index, (what, fate, _)) in MISDEEDS.iter().enumerate() {
        if which != 0 && which != index + 1 {
            continue;
        }
        let number = start(index, 0);
        let company = match fate {
            EndlessBesideCopier => Some(start(COPIER, 0)),
            AllSleep => Some(start(WAITS_FOR_ITS_PARENT, 0)),
            _ => None,
        };
        // Children of its own come to the first space, too, if it leaves any.
        let mut ended = None;
        let mut honest = across::run_beside(20, 50, me, &mut |child, code| {
            if child == number {
                ended = Some(code);
            }
        });
        if *fate == AllSleep {
            honest &= call(Call::Wait, [0; 4]) == Refusal::AllSleep as isize;
        }
        let wanted = match fate {
            Killed(cause) => FAULTED - cause,
            Refused => 0,
            Endless | EndlessBesideCopier | AllSleep => {
                must(Call::Kill, [number, 0, 0, 0]);
                KILLED
            }
        };
        if let Some(company) = company {
            // Refused if it has ended already.
            honest &= match fate {
                AllSleep => {
                    connect(company);
                    knock(company, me, 0);
                    true
                }
                _ => call(Call::Kill, [company, 0, 0, 0]) >= 0,
            };
        }
        while let Some((child, code)) = wait() {
            if child == number {
                ended = Some(code);
            } else if Some(child) == company {
                honest &= *fate != AllSleep || code == 0;
            }
        }
        let now = counters();
        let left = now.frames_used.abs_diff(clean.frames_used);
        if ended != Some(wanted) || !honest || now.spaces != 1 || left > 1 {
            say!(
                "a process that {what}: ended with {ended:x?}, not {wanted:x?}; honest others {honest}; {left} frames left"
            );
            return false;
        }
        // One more at most: spaces have ever greater numbers, and 512
        // of them need one more page for the tables of mail.
        clean = now;
        say!("{{\"hostile\":\"{what}\"}}");
    }
    which != 0 || give_way_on_kernel_stacks()
}

/// Timebase ticks of a slice.
pub(crate) const SLICE: usize = 2_000;

/// A process that does a misdeed, or keeps one company.
pub(crate) fn start(what: usize, word: usize) -> usize {
    spawn(program::HOSTILE, [what, word], program::LEVEL)
}

/// Processes with kernel stacks, which have no executor, call `GiveWay`: at once, or after they
/// have called `Yield`; among others that do the latter.
fn give_way_on_kernel_stacks() -> bool {
    let Some(index) = MISDEEDS.iter().position(|(what, _, _)| *what == GIVES_WAY_ALONE) else { return false };
    must(Call::KernelStacks, [1, 0, 0, 0]);
    let alone = [(); 2].map(|()| [start(YIELDS, 10), start(YIELDS, 0), start(index, 0)]);
    let went_well = (0..6).all(|_| {
        wait().is_some_and(|(number, code)| {
            let honest = alone.iter().any(|numbers| numbers[1] == number);
            code == if honest { 0 } else { FAULTED - FETCH }
        })
    });
    must(Call::KernelStacks, [0; 4]);
    say!("{{\"hostile\":\"{GIVES_WAY_ALONE}, on a kernel stack\"}}");
    went_well
}

/// The program [`program::HOSTILE`].
pub(crate) fn misbehave(index: usize, word: usize, me: usize, parent: usize) -> ! {
    match MISDEEDS.get(index) {
        Some((_, _, misdeed)) => misdeed(),
        None => company::keep(index, word, me, parent),
    }
    exit(0)
}

/// That a call was refused; ends the process as a failure if not.
pub(super) fn refused(what: Call, arguments: [usize; 4]) {
    let answer = call(what, arguments);
    if answer >= 0 {
        say!("{what:?} {arguments:x?} was not refused: {answer}");
        exit(3);
    }
}
