// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other side of a comparison: a thread or a forked child that serves one block whenever it is
//! told to, and sleeps in between, so that the variant under measurement has the CPUs to itself.

use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

/// Where the partner runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In a thread of this process.
    Threads,
    /// In a forked child.
    Processes,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        })
    }
}

const WORDS: usize = 8;

/// An order, or a report. What the words mean is between the sides, but for the last order.
pub type Words = [u64; WORDS];

/// The last order. The end of the pipe would not do: partners that were forked later hold it open.
const END: Words = [u64::MAX; WORDS];

/// The partner as the first side sees it. Dropping it ends the partner and waits for that.
pub struct Partner {
    orders: OwnedFd,
    reports: OwnedFd,
    running: Running,
}

enum Running {
    Thread(Option<JoinHandle<()>>),
    Child(libc::pid_t),
}

/// The partner's own ends.
pub struct Desk {
    orders: OwnedFd,
    reports: OwnedFd,
}

impl Desk {
    /// The next order; `None` when there will be no more.
    pub fn order(&self) -> Option<Words> {
        get(&self.orders).filter(|words| *words != END)
    }

    /// Reports. Whether anybody reads it is found out at the next order.
    pub fn report(&self, words: Words) {
        let _ = put(&self.reports, words);
    }
}

impl Partner {
    /// Starts `serve`. A child that panics says so on standard error and ends.
    ///
    /// Start all children before there are threads of this program's own.
    pub fn start(place: Place, serve: impl FnOnce(Desk) + Send + 'static) -> Result<Self, String> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("pipe: {errno}"));
        let ((theirs, orders), (reports, report)) = (pipe()?, pipe()?);
        let desk = Desk { orders: theirs, reports: report };
        let running = match place {
            Place::Threads => Running::Thread(Some(thread::spawn(move || serve(desk)))),
            // SAFETY: the child runs `serve` alone and never returns; what threads a channel has of its own
            // in the parent sleep in the kernel and hold no lock.
            Place::Processes => match unsafe { libc::fork() } {
                -1 => return Err(format!("fork: {}", std::io::Error::last_os_error())),
                0 => {
                    // SAFETY: a plain call.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                    drop((orders, reports));
                    let ended = catch_unwind(AssertUnwindSafe(|| serve(desk)));
                    // SAFETY: nothing of this copy of the parent shall run.
                    unsafe { libc::_exit(if ended.is_ok() { 0 } else { 101 }) }
                }
                child => Running::Child(child),
            },
        };
        Ok(Self { orders, reports, running })
    }

    /// Tells it what to do next.
    pub fn order(&self, words: Words) -> Result<(), String> {
        put(&self.orders, words).map_err(|errno| format!("the partner takes no orders: {errno}"))
    }

    /// Waits for its report.
    pub fn report(&self) -> Result<Words, String> {
        get(&self.reports).ok_or_else(|| "the partner ended".to_owned())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = put(&self.orders, END);
        match &mut self.running {
            Running::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
            // SAFETY: our own child, waited for once.
            Running::Child(pid) => unsafe {
                libc::waitpid(*pid, std::ptr::null_mut(), 0);
            },
        }
    }
}

fn put(to: &OwnedFd, words: Words) -> rustix::io::Result<()> {
    let mut bytes = [0; WORDS * 8];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
    // Less than PIPE_BUF: all or nothing.
    rustix::io::write(to, &bytes).map(drop)
}

fn get(from: &OwnedFd) -> Option<Words> {
    let mut bytes = [0; WORDS * 8];
    if rustix::io::read(from, &mut bytes).ok()? != bytes.len() {
        return None;
    }
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_of_either_kind_answers_orders_and_ends_with_them() {
        for place in [Place::Threads, Place::Processes] {
            let partner = Partner::start(place, |desk| {
                while let Some(order) = desk.order() {
                    desk.report(order.map(|word| word + 1));
                }
            })
            .unwrap();
            for number in 0..3 {
                partner.order([number; WORDS]).unwrap();
                assert_eq!(partner.report(), Ok([number + 1; WORDS]));
            }
        }
    }

    /// The first waited for ever: the second had inherited the pipe over which its orders came.
    #[test]
    fn partners_end_in_whatever_order_they_are_dropped() {
        let start = || Partner::start(Place::Processes, |desk| while desk.order().is_some() {}).unwrap();
        let (first, second) = (start(), start());
        drop(first);
        drop(second);
    }

    #[test]
    fn a_partner_that_ends_is_noticed() {
        let partner = Partner::start(Place::Processes, |desk| assert!(desk.order().is_some())).unwrap();
        partner.order([0; WORDS]).unwrap();
        assert!(partner.report().is_err());
    }
}
