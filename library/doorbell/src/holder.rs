// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number by which a process takes ends of lanes and waiter slots.
//!
//! In memory that a process made or was given over a connection it is a number given with the
//! memory. In memory that processes of one program share without connections it says which process
//! it is, so that each can ask the kernel for the others' ends:
//!
//! | bits | what |
//! |---|---|
//! | 0 to 21 | the process's number, in the namespaces that the memory's directory names |
//! | 22 to 28 | when it began, modulo 127, in the kernel's ticks: of a number that is used again; 127 if unknown |
//! | 29 | set |

use crate::generation::{self, generation};
use crate::mapping::Mapping;
use doorbell_core::layout::MOST_HOLDERS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::read_to_string;
use std::sync::atomic::{AtomicU64, Ordering};

/// `PID_MAX_LIMIT` of linux/threads.h: numbers are below.
const MOST_PROCESSES: u32 = 1 << 22;
const BEGUN: u32 = 22;
const UNKNOWN: u32 = 127;
const IS_PROCESS: u32 = 1 << 29;
const _: () = assert!(IS_PROCESS | UNKNOWN << BEGUN | (MOST_PROCESSES - 1) == MOST_HOLDERS - 1);

/// How this process comes by its number in one memory.
#[derive(Debug)]
pub(crate) enum Holder {
    /// It was given one.
    Given(u32),
    /// By its own number, if it is in these namespaces.
    Process {
        namespace: u32,
        /// The number, after the generation to which it belongs: a forked child has another.
        known: AtomicU64,
    },
}

impl Holder {
    /// In memory whose directory names the namespaces `namespace`.
    pub(crate) fn process(namespace: u32) -> Self {
        Self::Process { namespace, known: AtomicU64::new(0) }
    }

    /// The number in `mapping`.
    pub(crate) fn number(&self, mapping: &Mapping) -> u32 {
        let (namespace, known) = match self {
            Self::Given(number) => return *number,
            Self::Process { namespace, known } => (*namespace, known),
        };
        let before = known.load(Ordering::Relaxed);
        if before != 0 && generation::is_current((before >> 32) as u32) {
            return before as u32;
        }
        // Who cannot be named there takes one that names nobody.
        let number = ours(namespace).unwrap_or_else(|| mapping.next_holder());
        let now = u64::from(generation()) << 32 | u64::from(number);
        match known.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => number,
            // Another thread was faster.
            Err(there) => there as u32,
        }
    }
}

/// What names the PID namespace of this process and its time namespace, by which the kernel shifts
/// when others began. `None` where there is no `/proc`, or that of another PID namespace.
pub(crate) fn namespace() -> Option<u32> {
    let seen: u32 = std::fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
    let number = |path| u32::try_from(stat(path).ok()?.st_ino).ok();
    // Before Linux 5.6 there is one time for all.
    let time = number("/proc/self/ns/time").unwrap_or(0);
    // The kernel gives the numbers of namespaces one after another:
    // those of two kinds must not cancel each other out.
    let both = number("/proc/self/ns/pid")? ^ time.rotate_left(16);
    Some(both).filter(|both| *both != 0 && seen == std::process::id())
}

/// The number of this process, if it is in `namespace`.
fn ours(namespace: u32) -> Option<u32> {
    let process = Some(std::process::id()).filter(|_| self::namespace() == Some(namespace))?;
    (process < MOST_PROCESSES)
        .then(|| IS_PROCESS | begun_modulo(process).unwrap_or(UNKNOWN) << BEGUN | process)
}

/// When `process` began, in the kernel's ticks.
pub(crate) fn begun(process: u32) -> Option<u64> {
    // The thread's and not the process's: an emulator (qemu's user
    // mode) makes that up for the process that looks at itself.
    let stat = read_to_string(format!("/proc/{process}/task/{process}/stat")).ok()?;
    // proc_pid_stat(5): the second field, in parentheses, may hold anything; the time is the 22nd.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The same, as far as it is told in a number.
fn begun_modulo(process: u32) -> Option<u32> {
    u32::try_from(begun(process)? % u64::from(UNKNOWN)).ok()
}

/// What the kernel says of the process that a number names.
#[derive(Debug)]
pub(crate) enum Process {
    /// It has ended.
    Ended,
    /// It lives, as far as it is told now, and this becomes readable when it ends.
    Lives(OwnedFd),
    /// The number names none, or the kernel cannot say (before Linux 5.3, or without descriptors).
    Unknown,
}

/// The process's number in `number`, if it names one.
pub(crate) fn process_of(number: u32) -> Option<u32> {
    (number & IS_PROCESS != 0 && number < MOST_HOLDERS).then_some(number & (MOST_PROCESSES - 1))
}

/// Asks for the process that `number` names in `namespace`: elsewhere
/// it would name another, or nobody.
pub(crate) fn look(number: u32, namespace: u32) -> Process {
    let Some(process) = process_of(number).filter(|_| self::namespace() == Some(namespace)) else {
        return Process::Unknown;
    };
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return Process::Unknown };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // No process; or a thread's number by now.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Process::Ended,
        Err(_) => return Process::Unknown,
    };
    let then = number >> BEGUN & UNKNOWN;
    // After it was opened: what has this number now is what was opened, or has ended since.
    let is_another = then != UNKNOWN && begun_modulo(process).is_some_and(|now| now != then);
    if is_another || has_ended(&pidfd) { Process::Ended } else { Process::Lives(pidfd) }
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)), Ok(1))
}

#[cfg(test)]
mod tests {
    use super::{BEGUN, IS_PROCESS, Process, UNKNOWN, look, namespace, ours, process_of};
    use std::process::Command;

    #[test]
    fn a_number_names_its_process_while_that_lives_and_no_other_that_has_its_number_later() {
        let here = namespace().unwrap();
        let number = ours(here).unwrap();
        assert_eq!(process_of(number), Some(std::process::id()));
        assert!(matches!(look(number, here), Process::Lives(_)));
        assert_eq!(ours(here + 1), None, "in another namespace it would name another");
        assert!(matches!(look(number, here + 1), Process::Unknown), "and there it is not asked for");
        // One that began at another time had the number before.
        let began = number >> BEGUN & UNKNOWN;
        let before = number & !(UNKNOWN << BEGUN) | ((began + 1) % UNKNOWN) << BEGUN;
        assert!(matches!(look(before, here), Process::Ended));
        // What does not know when it began is not doubted.
        assert!(matches!(look(number | UNKNOWN << BEGUN, here), Process::Lives(_)));
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let number = IS_PROCESS | UNKNOWN << BEGUN | child.id();
        assert!(matches!(look(number, here), Process::Lives(_)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(look(number, here), Process::Ended));
        assert!(matches!(look(7, here), Process::Unknown), "a number that was given names nobody");
    }
}
