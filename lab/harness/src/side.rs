// SPDX-License-Identifier: MIT OR Apache-2.0
//! One side of a trial: what its loop may use, and what it brings home.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Relaxed, Release};

use serde::{Deserialize, Serialize};

use super::bench::account::{Account, Seen};
use super::control::{Control, Step};
use super::counters::{Counters, Usage};
use super::journal::Journal;
use super::roles::Role;
use crate::mechanism::Fault;
use crate::scheduler::{self, Refused};
use crate::site::OpenError;
use crate::task;
use doorbell_machine::clock::Now;
use doorbell_machine::system;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::fanout::FanOut;
use doorbell_results::record::io::Io;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Figure, Histogram, Series, SideCounters, Tally};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SideError {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{call} failed: {cause}; {cure}")]
    Setup { call: &'static str, cause: String, cure: &'static str },
}

#[derive(Debug)]
pub struct Side {
    pub clock: Clock,
    pub configuration: Configuration,
    pub control: &'static Control,
    /// Message bytes there and back; each of the configuration's size.
    pub payload: [&'static [AtomicU8]; 2],
    /// Where this side reads messages to.
    pub received: Vec<u8>,
    pub role: Role,
    pub times: Times,
    pub tally: Tally,
    /// Counters at the start of the measured window.
    pub before: Option<Counters>,
    pub reading_ns: u64,
    pub counters: SideCounters,
    pub figures: Vec<Figure>,
    /// Where the stamps of single wakes go, where they are to be joined with the kernel's events.
    pub journal: Option<Journal>,
    /// What the device and the kernel counted while blocks were transferred.
    pub io: Option<Io>,
    /// What is counted over slices.
    pub(crate) account: Account,
}

/// One histogram per quantity a role takes; made before the loop so
/// that nothing is allocated inside.
#[derive(Debug, Default)]
pub struct Times {
    pub round_trip: Histogram,
    pub wake: Histogram,
    pub response: Histogram,
    pub notify: Histogram,
    pub around_wait: Histogram,
    pub operation: Histogram,
    pub hand_off: Histogram,
    pub create: Histogram,
    pub reap: Histogram,
    pub life: Histogram,
    pub transfer: Histogram,
}

impl Times {
    /// With the memory of what `role` times in slices, and of nothing else, already there.
    pub(crate) fn of_slices(role: Role) -> Self {
        let of =
            |roles: &[Role]| if roles.contains(&role) { Histogram::new() } else { Histogram::untouched() };
        Self {
            round_trip: of(&[Role::Initiate]),
            notify: of(&[Role::Initiate, Role::Emit]),
            around_wait: of(&[Role::Initiate, Role::Absorb]),
            wake: of(&[Role::Absorb]),
            ..Self::untouched()
        }
    }

    /// Without memory, for a side that has not begun.
    fn untouched() -> Self {
        let none = Histogram::untouched;
        Self {
            round_trip: none(),
            wake: none(),
            response: none(),
            notify: none(),
            around_wait: none(),
            operation: none(),
            hand_off: none(),
            create: none(),
            reap: none(),
            life: none(),
            transfer: none(),
        }
    }

    /// Each with what it is of, at the side of `role`.
    fn each(&mut self, role: Role) -> [(Quantity, &mut Histogram); 11] {
        let wake = if role == Role::Initiate { Quantity::WakeBack } else { Quantity::Wake };
        [
            (Quantity::RoundTrip, &mut self.round_trip),
            (wake, &mut self.wake),
            (Quantity::Response, &mut self.response),
            (Quantity::Notify, &mut self.notify),
            (Quantity::AroundWait, &mut self.around_wait),
            (Quantity::Operation, &mut self.operation),
            (Quantity::HandOff, &mut self.hand_off),
            (Quantity::Create, &mut self.create),
            (Quantity::Reap, &mut self.reap),
            (Quantity::Life, &mut self.life),
            (Quantity::Transfer, &mut self.transfer),
        ]
    }

    pub fn clear(&mut self) {
        self.each(Role::Absorb).into_iter().for_each(|(_, times)| times.clear());
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideReport {
    /// Its series; only quantities with samples.
    pub series: BTreeMap<Quantity, Series>,
    pub tally: Tally,
    pub counters: SideCounters,
    pub figures: Vec<Figure>,
    /// Each round and each receiver, from the notifier of a fan-out.
    #[serde(default)]
    pub fanout: Option<FanOut>,
    /// What the device and the kernel counted, from the side that transferred.
    #[serde(default)]
    pub io: Option<Io>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Seen>,
    pub error: Option<String>,
}

pub(crate) fn pin(cpu: u32) -> Result<(), SideError> {
    system::pin(cpu).map_err(|error| SideError::Setup {
        call: "sched_setaffinity",
        cause: format!("CPU {cpu}: {error}"),
        cure: "choose CPUs that are online and inside this process's affinity mask (`taskset -p $$`)",
    })
}

impl Side {
    /// A side that is about to begin, without a journal.
    pub fn new(
        role: Role,
        clock: Clock,
        configuration: Configuration,
        control: &'static Control,
        payload: [&'static [AtomicU8]; 2],
    ) -> Self {
        Self {
            clock,
            configuration,
            control,
            payload,
            received: Vec::new(),
            role,
            times: Times::untouched(),
            tally: Tally::default(),
            before: None,
            reading_ns: 0,
            counters: SideCounters::default(),
            figures: Vec::new(),
            journal: None,
            io: None,
            account: Account::default(),
        }
    }

    /// Its whole life: settles, does `act`, which is its part, and makes its report.
    pub(crate) fn run_role(
        mut self,
        act: impl FnOnce(Role, &mut Self) -> Result<(), SideError>,
    ) -> SideReport {
        // Made here and not in the host: memory inherited through fork is copied page by page at the first
        // write, which would be a page fault inside the measured window.
        self.times = Times::default();
        self.received = vec![u8::MAX; self.configuration.size as usize];
        let settled = self.settle();
        if let (Ok(()), Some(journal)) = (&settled, &self.journal) {
            journal.await_traced();
        }
        let error = settled.and_then(|()| act(self.role, &mut self)).err();
        // After a failure the other side may wait for this one for
        // ever; the report tells the host, which ends it.
        self.step(Step::Reports, 0);
        self.report(error.as_ref())
    }

    /// Says what it does now; a plain store to its own cache line.
    #[inline(always)]
    pub fn step(&self, step: Step, sequence: u64) {
        let progress = &self.control.progress[self.role.index()];
        progress.sequence.store(sequence, Relaxed);
        progress.step.store(step as u32, Relaxed);
    }

    /// Whether the user asked for an early end. The word stays in this core's cache until then.
    #[inline(always)]
    pub fn interrupted(&self) -> bool {
        self.control.interrupted.load(Relaxed) != 0
    }

    pub fn settle(&mut self) -> Result<(), SideError> {
        if let Some(cpus) = self.configuration.placement.cpus {
            let cpu = cpus[self.role.index()];
            pin(cpu)?;
        }
        scheduler::enter(self.configuration.scheduler, &self.configuration.placement).map_err(
            |Refused { call, cause, cure }| SideError::Setup { call, cause: cause.to_string(), cure },
        )?;
        self.reading_ns = Usage::reading_ns();
        self.announce_task();
        Ok(())
    }

    pub(crate) fn announce_task(&self) {
        self.control.progress[self.role.index()].task.store(task::number(), Release);
    }

    /// Opens the measured window: everything before it is warm-up.
    pub fn open_window(&mut self) -> Ticks {
        self.before = Some(Counters::read());
        self.clock.now_awake()
    }

    pub fn close_window(&mut self, opened: Ticks) {
        let open = self.clock.now().saturating_sub(opened);
        let window = self.clock.ps(open) / 1000;
        if let Some(before) = self.before.take() {
            self.counters = Counters::read().since(&before, self.role.name(), window);
        }
    }

    /// Drops what was taken in a warm-up that the user cut short after `rounds` rounds.
    pub fn forget_warmup(&mut self, rounds: u64) {
        self.times.clear();
        self.tally = Tally { warmup: rounds, ..Tally::default() };
    }

    /// Whether both sides run on one CPU: pinned to it, or left to a
    /// scheduler that has no other for them.
    pub fn shares_core(&self) -> bool {
        match self.configuration.placement.cpus {
            Some([first, second]) => first == second,
            None => system::affinity().is_some_and(|cpus| cpus.len() == 1),
        }
    }

    /// Writes a message of the configuration's size, every byte of it `sequence`'s low byte.
    ///
    /// Invariant of the messages: one is written only after the one before was read or no longer
    /// can be, and before it is notified; it is read only after its notification.
    #[inline]
    pub fn write_payload(&self, direction: usize, sequence: u64) {
        fill(self.payload[direction], sequence as u8);
    }

    /// Reads a message of the configuration's size into memory of this side's own.
    #[inline]
    pub fn read_payload(&mut self, direction: usize) {
        let message = self.payload[direction];
        if message.is_empty() {
            return;
        }
        // SAFETY: both are `message.len()` bytes long and apart: `received` is this side's own. By the
        // invariant of the messages nobody writes this one now.
        // JUSTIFICATION: byte-wise atomic loads are many times slower than the copy a program would make.
        unsafe {
            std::ptr::copy_nonoverlapping(
                message.as_ptr().cast::<u8>(),
                self.received.as_mut_ptr(),
                message.len().min(self.received.len()),
            );
        }
        // What is never looked at would not be copied.
        std::hint::black_box(&mut self.received);
    }

    pub fn report(&mut self, error: Option<&SideError>) -> SideReport {
        let series = self.times.each(self.role);
        SideReport {
            series: series
                .into_iter()
                .filter(|(_, histogram)| histogram.count() > 0)
                .map(|(quantity, histogram)| (quantity, Series::from(&*histogram)))
                .collect(),
            tally: self.tally,
            counters: self.counters.clone(),
            figures: self.figures.clone(),
            fanout: None,
            io: self.io.clone(),
            slices: self.account.slices.clone(),
            error: error.map(ToString::to_string),
        }
    }
}

/// Writes `value` over `bytes` as fast as the CPU can, as `memset` does.
#[inline(always)]
pub fn fill(bytes: &[AtomicU8], value: u8) {
    if bytes.is_empty() {
        return;
    }
    let base: *mut u8 = bytes.as_ptr().cast_mut().cast();
    // SAFETY: the bytes are the trial's own shared memory and may be written (they are atomics). No
    // other side touches them now: a working set is one side's own, or handed over between them,
    // and for messages see `write_payload`. JUSTIFICATION: byte-wise atomic stores are many times
    // slower than the memset whose cost is to be measured.
    unsafe { std::ptr::write_bytes(base, value, bytes.len()) };
    // Keeps the writes from being merged with those of the next round.
    std::hint::black_box(base);
}

#[cfg(test)]
mod tests {
    use crate::fake_side::side;

    /// Sides that nobody pinned, on a machine with one CPU or under `taskset -c 0`, once spun
    /// through each other's time.
    #[test]
    fn sides_share_a_core_where_they_are_pinned_to_it_or_have_no_other() {
        assert!(side(Some([1, 1]), 0).shares_core());
        assert!(!side(Some([0, 1]), 0).shares_core());
        let unpinned = || side(None, 0).shares_core();
        std::thread::spawn(move || {
            let mut mask = rustix::thread::sched_getaffinity(None).unwrap();
            assert_eq!(unpinned(), mask.count() == 1);
            let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| mask.is_set(*cpu)).unwrap();
            mask.clear();
            mask.set(first);
            rustix::thread::sched_setaffinity(None, &mask).unwrap();
            assert!(unpinned());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_message_is_read_whole_into_memory_of_the_readers_own() {
        for size in [0, 1, 4096, 10_000] {
            let mut side = side(None, size);
            for sequence in [1, 2, 300] {
                side.write_payload(0, sequence);
                side.read_payload(0);
                assert!(side.received.iter().all(|byte| *byte == sequence as u8), "{size} bytes");
            }
            side.read_payload(1);
            assert!(side.received.iter().all(|byte| *byte == 0), "the other direction's message is another");
        }
    }
}
