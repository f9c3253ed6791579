// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of a side whose program takes turns with another one, slice by slice.
//!
//! HOW: between two slices of its own both sides sleep, at a bare futex each,
//! whatever they measure: the side that notifies first until it is its
//! program's turn, the other until that one has chosen. One of the two
//! programs chooses what comes; then each has a slice of it, in random order.

use std::sync::atomic::Ordering::Acquire;

use super::account::Place;
use super::course::Entry;
use super::life::{Broken, Life, Member, OVER};
use crate::control::Step;
use crate::in_turn::{Chosen, Ended, InTurn};
use crate::mechanism::{Fault, Notifier, Waiter};
use crate::order::Bench;
use doorbell_results::machine::clock::Ticks;

impl Life<'_> {
    pub(super) fn initiate_in_turn(
        &mut self,
        turns: Vec<Vec<usize>>,
        bench: &Bench,
        in_turn: InTurn,
    ) -> Result<(), Broken> {
        let played = self.slices_in_turn(turns, bench, in_turn);
        self.write_next(None);
        self.gate.1.notify().map_err(|fault| (0, fault.into()))?;
        played
    }

    fn slices_in_turn(
        &mut self,
        turns: Vec<Vec<usize>>,
        bench: &Bench,
        in_turn: InTurn,
    ) -> Result<(), Broken> {
        let about = bench.in_turn.as_ref().map_or(0, |section| section.about);
        let mut looked = 0;
        // Looks up once more while the side sleeps, which whoever watches it sees; whether it goes on.
        let mut look_up = |life: &Self| {
            looked += 1;
            let now = life.words.now[0].load(Acquire) as usize;
            life.members.get(now).is_none_or(|member| {
                member.side.step(Step::AwaitsTurn, looked);
                !member.side.interrupted()
            })
        };
        in_turn.can(self.members.iter().filter(|member| !member.is_broken()).map(|member| member.known));
        // Before they meet: after that the next one may have been chosen.
        let mut number = in_turn.chosen().number;
        match in_turn.meet(about, &mut || look_up(self)) {
            Ok(()) => {}
            Err(Ended::Differ) => return Err((0, Fault::new("a slice", Ended::Differ).into())),
            Err(_) => return Ok(()),
        }
        let others = in_turn.other_can();
        for member in self.members.iter_mut().filter(|member| !others.contains(&member.known)) {
            let lacks = Fault::new("a slice", "the program that it takes turns with cannot measure it");
            member.took(Err(lacks.into()));
        }
        if bench.time_ns.is_some() {
            // Then a pair of sides ends by the clock.
            self.members.iter_mut().for_each(|member| member.left.time = Ticks::MAX);
        }
        let (mut course, lengths) = self.begin(turns, bench);
        let mut random = fastrand::Rng::with_seed(bench.seed);
        while in_turn.await_turn(&mut || look_up(self)).is_ok() {
            if !in_turn.chooses() {
                let chosen = in_turn.chosen();
                if chosen.number != number {
                    number = chosen.number;
                    // Who is told of the end keeps the turn.
                    let Some(known) = chosen.member else { break };
                    if let Some(member) = self.members.iter().position(|member| member.known == known) {
                        self.slice(member, chosen.at, lengths)?;
                    }
                }
                in_turn.pass();
                continue;
            }
            number = number.wrapping_add(1);
            let Some(Entry { member, at }) = self.choose(&mut course) else {
                in_turn.choose(Chosen { number, member: None, at: None });
                in_turn.pass();
                break;
            };
            let is_first = random.bool();
            let placed = |second: bool| {
                at.map(|Place { turn, place }| Place { turn, place: 2 * place + u32::from(second) })
            };
            let known = self.members[member].known;
            in_turn.choose(Chosen { number, member: Some(known), at: placed(is_first) });
            if !is_first {
                in_turn.pass();
                if in_turn.await_turn(&mut || look_up(self)).is_err() {
                    break;
                }
            }
            self.slice(member, placed(!is_first), lengths)?;
            if is_first {
                in_turn.pass();
            }
        }
        Ok(())
    }

    /// A whole slice of `member`, after which both sides sleep.
    fn slice(
        &mut self,
        member: usize,
        at: Option<Place>,
        lengths: super::life::Lengths,
    ) -> Result<(), Broken> {
        let here = |fault: Fault| (member, fault.into());
        self.write_next(Some(Entry { member, at }));
        self.gate.1.notify().map_err(here)?;
        self.play(member, at, lengths)?;
        let Member { side, resident, .. } = &mut self.members[member];
        resident.part(side).map_err(|error| (member, error))?;
        if resident.is_lonely() {
            self.gate.0.wait().map_err(here)?;
        }
        Ok(())
    }

    pub(super) fn respond_in_turn(&mut self) -> Result<(), Broken> {
        let mut last = 0;
        loop {
            self.gate.0.wait().map_err(|fault| (last, fault.into()))?;
            // Pairs with the Release store in `write_next`.
            let next = self.words.next.load(Acquire);
            if next == OVER {
                return Ok(());
            }
            let member = next as usize;
            if member >= self.members.len() {
                return Err((0, Fault::new("a slice", format!("{next} is none of them")).into()));
            }
            last = member;
            self.go(member).map_err(|error| (member, error))?;
            let Member { side, resident, .. } = &mut self.members[member];
            if resident.is_lonely() {
                self.gate.1.notify().map_err(|fault| (member, fault.into()))?;
            } else {
                resident.answer(side, &self.words.next).map_err(|error| (member, error))?;
            }
        }
    }
}
