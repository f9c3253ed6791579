// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a side that takes turns with everything a plan has,
//! between the same two processes or threads.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::Place;
use super::course::{Course, Entry};
use super::resident::{Resident, Span};
use crate::bare;
use crate::control::{Control, Step};
use crate::in_turn::InTurn;
use crate::mechanism::{Fault, Link, Notifier, Waiter};
use crate::order::Bench;
use crate::role::Role;
use crate::side::{Side, SideError, SideReport, Times, pin};
use crate::site::Word;
use doorbell_machine::clock::Now;
use doorbell_machine::system;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::machine::cpu_list::CpuList;

#[derive(Debug)]
#[repr(C)]
pub(super) struct Words {
    /// Which configuration comes next; [`OVER`] after the last.
    pub(super) next: Word,
    /// In which configuration each side is, for the host.
    pub(super) now: [Word; 2],
}

// SAFETY: atomics only; all are valid at zero.
unsafe impl crate::arena::Zeroed for Words {}

/// What comes after the last slice.
pub(super) const OVER: u32 = u32::MAX;

/// After so long at the latest another class of configurations has its turn.
const TURN: Duration = Duration::from_millis(250);

/// A slice that is not recorded lasts this part of one that is: what a mechanism needs once, a
/// system call's first page and a file's first wake-up, comes with its first rounds.
const UNRECORDED: u64 = 3;

/// A slice that lasts for a long gap counts as so many when turns share their time.
const LONG: u64 = 4;

/// A slice has so many rounds where that takes no longer than [`LONGEST`] of its time: one that
/// another program held up is one of them.
const FEWEST: u32 = 16;
const LONGEST: u32 = 8;

/// What a side says when it is done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) sides: Vec<SideReport>,
    /// The place of the configuration in which it gave up, and why.
    pub(super) gave_up: Option<(u32, String)>,
}

/// One side of the bench.
pub(super) struct Life<'links> {
    role: Role,
    pub(super) clock: Clock,
    pub(super) words: &'static Words,
    /// Where the sides meet.
    pub(super) control: &'static Control,
    pub(super) members: Vec<Member<'links>>,
    pub(super) gate: (bare::Waiter, bare::Notifier),
    everywhere: Option<CpuList>,
    /// When nothing has another turn that had one.
    pub(super) ends: Ticks,
    /// The CPU it is kept on; none where it may run everywhere.
    kept_on: Option<u32>,
}

/// A configuration with this side's ends of it.
pub(super) struct Member<'links> {
    pub(super) side: Side,
    pub(super) resident: Box<dyn Resident + 'links>,
    error: Option<SideError>,
    /// What is still to be recorded.
    pub(super) left: Left,
    /// By which number another program knows it.
    pub(super) known: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub(super) time: Ticks,
    rounds: u64,
}

/// Of slices, ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    slice: Ticks,
    head: Ticks,
}

/// What a side that takes turns went wrong at: which member, and how.
pub(super) type Broken = (usize, SideError);

impl Left {
    fn none(self) -> bool {
        self.time == 0 || self.rounds == 0
    }
}

impl<'links> Member<'links> {
    pub(super) fn new(mut side: Side, resident: Box<dyn Resident + 'links>, known: u64) -> Self {
        side.times = Times::of_slices(side.role);
        side.received = vec![u8::MAX; side.configuration.size as usize];
        let until = side.configuration.until;
        let time = until.time_ns.map_or(Ticks::MAX, |ns| side.clock.ticks(Duration::from_nanos(ns)));
        let left = Left { time, rounds: until.count.unwrap_or(u64::MAX) };
        Self { side, resident, error: None, left, known }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.side.control.broken.load(Acquire) != 0
    }

    /// Notes what came of taking an end; with an error neither side uses the mechanism.
    pub(super) fn took(&mut self, taken: Result<(), SideError>) {
        if let Err(error) = taken {
            self.error = Some(error);
            self.side.control.broken.store(1, Release);
        }
    }
}

impl<'links> Life<'links> {
    /// The side of `role`; `gate` holds the bare links there and back.
    pub(super) fn new(
        role: Role,
        words: &'static Words,
        control: &'static Control,
        gate: &[bare::Link; 2],
        members: Vec<Member<'links>>,
    ) -> Result<Self, SideError> {
        let [there, back] = gate;
        let (out, home) = if role == Role::Initiate { (there, back) } else { (back, there) };
        let clock = members.first().map_or(Clock::MONOTONIC, |member| member.side.clock);
        let gate = (home.waiter()?, out.notifier()?);
        let everywhere = system::affinity();
        Ok(Self { role, clock, words, control, members, gate, everywhere, ends: Ticks::MAX, kept_on: None })
    }

    pub(super) fn live(mut self, turns: Vec<Vec<usize>>, bench: &Bench, in_turn: Option<InTurn>) -> Told {
        let mut gave_up = None;
        let reading_ns = crate::usage::Usage::reading_ns();
        for member in &mut self.members {
            member.side.reading_ns = reading_ns;
            member.side.announce_task();
            member.side.step(Step::Meets, 0);
            let taken = member.resident.take_waiter();
            member.took(taken);
        }
        self.control.meet(2, 1);
        for member in self.members.iter_mut().filter(|member| !member.is_broken()) {
            let taken = member.resident.take_notifier();
            member.took(taken);
        }
        self.control.meet(2, 2);
        let played = match (self.role, in_turn) {
            (Role::Initiate, None) => self.initiate(turns, bench),
            (Role::Initiate, Some(in_turn)) => self.initiate_in_turn(turns, bench, in_turn),
            (_, None) => self.respond(),
            (_, Some(_)) => self.respond_in_turn(),
        };
        if let Err((member, error)) = played {
            gave_up = Some((member as u32, error.to_string()));
        }
        for member in &mut self.members {
            member.side.step(Step::Reports, 0);
            member.side.settle_account();
        }
        let report = |member: &mut Member| member.side.report(member.error.as_ref());
        Told { sides: self.members.iter_mut().map(report).collect(), gave_up }
    }

    /// Goes where the configuration of `member` is measured.
    pub(super) fn go(&mut self, member: usize) -> Result<(), SideError> {
        self.words.now[self.role.index()].store(member as u32, Release);
        let cpus = self.members[member].side.configuration.placement.cpus;
        let cpu = cpus.map(|cpus| cpus[self.role.index()]);
        if cpu != self.kept_on {
            match (cpu, &self.everywhere) {
                (Some(cpu), _) => pin(cpu)?,
                (None, Some(everywhere)) => super::unpin(everywhere)?,
                (None, None) => {}
            }
            self.kept_on = cpu;
        }
        Ok(())
    }

    /// The way through all turns, which begins now.
    pub(super) fn begin(&mut self, turns: Vec<Vec<usize>>, bench: &Bench) -> (Course, Lengths) {
        let (clock, cut) = (self.clock, bench.cut);
        let ticks = |ns: u64| clock.ticks(Duration::from_nanos(ns));
        self.ends = bench.time_ns.map_or(Ticks::MAX, |ns| clock.now().saturating_add(ticks(ns)));
        let slice = ticks(cut.slice_ns);
        let lengths = self.lengths(&turns, bench);
        let course = Course::new(turns, bench.seed, ticks(cut.washout_ns), lengths);
        (course, Lengths { slice, head: ticks(cut.head_ns).min(slice) })
    }

    /// A slice of `member` but for its last round.
    pub(super) fn play(&mut self, member: usize, at: Option<Place>, lengths: Lengths) -> Result<(), Broken> {
        let here = |error| (member, error);
        self.go(member).map_err(here)?;
        let Lengths { slice, head } = lengths;
        let Member { side, resident, left, .. } = &mut self.members[member];
        let span = Span {
            head: if at.is_some() { head } else { slice / UNRECORDED },
            recorded: at.map(|_| (slice - head).min(left.time)),
            longest: slice.saturating_mul(LONGEST.into()),
            fewest: FEWEST,
            most: left.rounds,
        };
        side.account.at = at.unwrap_or(Place { turn: 0, place: 0 });
        let begun = self.clock.now();
        let rounds = resident.run(side, &span).map_err(here)?;
        if at.is_some() {
            let took = self.clock.now().saturating_sub(begun).saturating_sub(head);
            left.time = left.time.saturating_sub(took);
            left.rounds = left.rounds.saturating_sub(rounds.into());
        }
        Ok(())
    }

    fn initiate(&mut self, turns: Vec<Vec<usize>>, bench: &Bench) -> Result<(), Broken> {
        let (mut course, lengths) = self.begin(turns, bench);
        let mut entry = self.choose(&mut course);
        self.write_next(entry);
        // What comes first is written, and then read: where nobody
        // answers what comes first, what comes second would be.
        self.control.meet(2, 3);
        self.control.meet(2, 4);
        while let Some(Entry { member, at }) = entry {
            self.play(member, at, lengths)?;
            entry = self.choose(&mut course);
            self.write_next(entry);
            let Member { side, resident, .. } = &mut self.members[member];
            resident.part(side).map_err(|error| (member, error))?;
            if resident.is_lonely() {
                self.gate
                    .1
                    .notify()
                    .and_then(|()| self.gate.0.wait())
                    .map_err(|fault| (member, fault.into()))?;
            }
        }
        Ok(())
    }

    /// How long each turn is: what all have together is shared out by
    /// how long one pass over a turn takes.
    fn lengths(&self, turns: &[Vec<usize>], bench: &Bench) -> Vec<Ticks> {
        let slice = |member: &usize| {
            let gap_ns = self.members[*member].side.configuration.pattern.gap_ns();
            (2 * gap_ns).clamp(bench.cut.slice_ns, LONG * bench.cut.slice_ns)
        };
        let passes: Vec<u64> = turns.iter().map(|turn| turn.iter().map(slice).sum()).collect();
        let all: u64 = passes.iter().sum();
        let washouts = bench.cut.washout_ns * turns.len() as u64;
        let length = |pass: &u64| {
            let share = bench.time_ns.map_or(u64::MAX, |time_ns| {
                (time_ns.saturating_sub(washouts) as f64 * *pass as f64 / all.max(1) as f64) as u64
            });
            self.clock.ticks(TURN.min(Duration::from_nanos(share)))
        };
        passes.iter().map(length).collect()
    }

    pub(super) fn choose(&self, course: &mut Course) -> Option<Entry> {
        if self.members.iter().any(|member| member.side.interrupted()) {
            return None;
        }
        let now = self.clock.now();
        let open = |one: usize| {
            let open = |member: &Member| {
                let late = now >= self.ends && !member.side.account.slices.is_empty();
                !late && !member.left.none() && !member.is_broken()
            };
            self.members.get(one).is_some_and(open)
        };
        course.next(now, open)
    }

    pub(super) fn write_next(&self, entry: Option<Entry>) {
        let next = entry.map_or(OVER, |entry| u32::try_from(entry.member).unwrap_or(OVER));
        // Pairs with the Acquire loads of the other side.
        self.words.next.store(next, Release);
    }

    fn respond(&mut self) -> Result<(), Broken> {
        self.control.meet(2, 3);
        let mut next = self.words.next.load(Acquire);
        self.control.meet(2, 4);
        while next != OVER {
            let member = next as usize;
            let here = |error| (member, error);
            if member >= self.members.len() {
                return Err((0, Fault::new("a slice", format!("{next} is none of them")).into()));
            }
            self.go(member).map_err(here)?;
            let Member { side, resident, .. } = &mut self.members[member];
            next = if resident.is_lonely() {
                self.gate.0.wait().map_err(|fault| (member, fault.into()))?;
                // Before the answer, after which the other side may write down what comes after that.
                let next = self.words.next.load(Acquire);
                self.gate.1.notify().map_err(|fault| (member, fault.into()))?;
                next
            } else {
                resident.answer(side, &self.words.next).map_err(here)?
            };
        }
        Ok(())
    }
}
