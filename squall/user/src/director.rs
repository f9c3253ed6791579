// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first program: reads the command line, a word for each thing
//! to do, and does one after the other.
//!
//! | word | what it does |
//! |---|---|
//! | `SUBJECT:TASKS:TURNS` | runs an arm |
//! | `keep`, `flush` | what happens to translations when the address space changes |
//! | `tick:N` | lets the timer interrupt every N timebase ticks, as the document did; `tick:0` not at all |
//! | `hostile`, `hostile:N` | every misdeed, or the N-th |
//! | `slices` | one process yields before the end of each slice, to another that never does |
//! | `numbers` | uses up all numbers of spaces |
//! | `stale` | writes to mail whose other side ended while another with its number asks for some; with few numbers and several harts |
//! | `zombies:N` | a process makes as many children as it may, which end and are not waited for; with `spaces:N` |
//! | `late` | sleeps while another takes half the memory at once |
//! | `kills:ROUNDS:SEED` | ends processes at random moments, whatever they do |
//! | `soak:ROUNDS:SEED`, `soak:ROUNDS:SEED:L` | lets pairs of spaces spawn, wake, sleep and die at random, with no sleep longer than two to the power of L timebase ticks (29 if it is left out, 54 s) |
//! | `spaces:N`, `asid-bits:N` | the kernel's: see there |

use squall_scheduler::call::{Call, Executor};

use crate::arm::document::Queue;
use crate::arm::fork::Child;
use crate::arm::{across, call as control, document, fork, future, kernel_task, process, stackful};
use crate::kernel::{call, counters, exit, must, say, spawn, wait};
use crate::scheduler::take_part;
use crate::trial::{kills, late, numbers, slices, stale, zombies};
use crate::{hostile, program, worker};

/// The arms: the name on the command line, and what runs it.
const ARMS: &[(&str, Arm)] = &[
    ("call", Arm::Space(control::run)),
    ("future", Arm::Space(future::run)),
    ("stackful", Arm::Space(stackful::run::<0>)),
    ("stackful-keeping-12", Arm::Space(stackful::run::<12>)),
    ("process", Arm::Space(|tasks, turns| process::run::<{ process::BY_CALL }>("process", tasks, turns))),
    (
        "process-in-entry",
        Arm::Space(|tasks, turns| process::run::<{ process::IN_ENTRY }>("process-in-entry", tasks, turns)),
    ),
    (
        "process-kernel-stack",
        Arm::OnKernelStacks(|tasks, turns| {
            process::run::<{ process::BY_CALL }>("process-kernel-stack", tasks, turns)
        }),
    ),
    ("fork-copy", Arm::Space(|tasks, _| fork::run("fork-copy", tasks, Child::Copy))),
    ("fork-copy-on-write", Arm::Space(|tasks, _| fork::run("fork-copy-on-write", tasks, Child::CopyOnWrite))),
    (
        "fork-copy-kernel-stack",
        Arm::OnKernelStacks(|tasks, _| fork::run("fork-copy-kernel-stack", tasks, Child::Copy)),
    ),
    ("spawn", Arm::Space(|tasks, _| fork::run("spawn", tasks, Child::NewProgram))),
    ("life-future", Arm::Space(|tasks, _| future::lives(tasks))),
    (
        "document-coroutine",
        Arm::Space(|tasks, used| document::coroutines(tasks, used, Queue::Rotating, false)),
    ),
    (
        "document-coroutine-head",
        Arm::Space(|tasks, used| document::coroutines(tasks, used, Queue::Head, false)),
    ),
    ("document-life", Arm::Space(|tasks, used| document::coroutines(tasks, used, Queue::Rotating, true))),
    ("document-life-head", Arm::Space(|tasks, used| document::coroutines(tasks, used, Queue::Head, true))),
    ("kernel-task", Arm::Here(|tasks, turns, _| kernel_task::run(tasks, turns))),
    ("stackful-across", Arm::Across(across::STACKFUL)),
    ("stackful-across-keeping-12", Arm::Across(across::KEEPING)),
    ("stackful-across-3-spaces", Arm::Across(across::THREE)),
    ("future-across", Arm::Across(across::POLLED)),
    ("document-process", Arm::Here(|tasks, _, me| document::processes(tasks, Queue::Rotating, me))),
    ("document-process-head", Arm::Here(|tasks, _, me| document::processes(tasks, Queue::Head, me))),
];

#[derive(Clone, Copy)]
enum Arm {
    /// In a space of its own, which is new.
    Space(fn(usize, usize) -> bool),
    /// The same, with a kernel stack for it and each of its children.
    OnKernelStacks(fn(usize, usize) -> bool),
    /// By the first space, which makes others for it.
    Here(fn(usize, usize, usize) -> bool),
    /// From space to space, by a kind of task.
    Across(usize),
}

/// Does what the command line says, and stops the machine: with 0 if
/// all went well, with 2 if a word is not understood.
pub(crate) fn run(me: usize) -> ! {
    let mut line = [0_u8; 8192];
    let length = must(Call::CommandLine, [(&raw mut line).expose_provenance(), line.len(), 0, 0]);
    let text = core::str::from_utf8(&line[..length]).unwrap_or("").trim_end_matches('\0');
    if counters().harts == 1 {
        // Nothing but what is measured. On several harts there are slices: nothing is measured there.
        must(Call::Tick, [0; 4]);
    }
    assert!(take_part(0, Executor::Stackful as usize), "no memory for the first space's part");
    let status = match text.split_ascii_whitespace().try_for_each(|word| carry_out(word, me)) {
        Ok(()) => 0,
        Err(status) => status,
    };
    say!("{{\"end\":{status}}}");
    call(Call::Stop, [status, 0, 0, 0]);
    exit(status)
}

fn carry_out(word: &str, me: usize) -> Result<(), usize> {
    let mut parts = word.split(':');
    let name = parts.next().unwrap_or("");
    let mut number = || parts.next().map_or(Some(0), |digits| digits.parse::<usize>().ok());
    let (Some(tasks), Some(turns)) = (number(), number()) else { return Err(not_understood(word)) };
    match name {
        "keep" => well(call(Call::KeepTranslations, [1, 0, 0, 0]) == 0)?,
        "flush" => {
            must(Call::KeepTranslations, [0, 0, 0, 0]);
        }
        "tick" => {
            must(Call::Tick, [tasks, 1, 0, 0]);
        }
        "soak" => {
            let longest = number().filter(|longest| *longest > 0).unwrap_or(29).min(40);
            well(worker::soak(tasks, turns, longest, me))?;
        }
        // The kernel has read them.
        "spaces" | "asid-bits" => {}
        "slices" => slices::run(),
        "numbers" => well(numbers::run(me))?,
        "stale" => well(stale::run(me))?,
        "zombies" => well(zombies::run(tasks, me))?,
        "late" => well(late::run(me))?,
        "kills" => well(kills::run(tasks, turns, me))?,
        "hostile" => well(hostile::run(tasks, me))?,
        _ => {
            let found = ARMS.iter().position(|(arm, _)| *arm == name).filter(|_| tasks > 0);
            let Some(index) = found else { return Err(not_understood(word)) };
            let went_well = match ARMS[index].1 {
                Arm::Here(run) => run(tasks, turns, me),
                Arm::Across(kind) => across::run(ARMS[index].0, tasks, turns, kind, me),
                arm => {
                    must(Call::KernelStacks, [usize::from(matches!(arm, Arm::OnKernelStacks(_))), 0, 0, 0]);
                    spawn(program::ARM, [index, tasks << 32 | turns], program::LEVEL);
                    let went_well = wait().is_some_and(|(_, code)| code == 0);
                    must(Call::KernelStacks, [0; 4]);
                    went_well
                }
            };
            if !went_well {
                say!("{{\"failed\":\"{word}\"}}");
                return Err(1);
            }
        }
    }
    Ok(())
}

/// The status of the machine where something did not go well.
fn well(went_well: bool) -> Result<(), usize> {
    if went_well { Ok(()) } else { Err(1) }
}

fn not_understood(word: &str) -> usize {
    say!("{{\"not_understood\":\"{word}\"}}");
    2
}

/// The program [`program::ARM`].
pub(crate) fn arm(index: usize, size: usize) -> ! {
    let (tasks, turns) = (size >> 32, size & u32::MAX as usize);
    match ARMS.get(index) {
        Some((_, Arm::Space(run) | Arm::OnKernelStacks(run))) => exit(usize::from(!run(tasks, turns))),
        _ => exit(2),
    }
}
