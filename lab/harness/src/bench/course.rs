// SPDX-License-Identifier: MIT OR Apache-2.0
//! In what order configurations take turns: a random order of turns, and within a turn random
//! passes over its configurations.

use super::account::Place;
use doorbell_results::machine::clock::Ticks;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) member: usize,
    /// Where it stands; none where it is not recorded.
    pub(super) at: Option<Place>,
}

#[derive(Debug)]
pub(super) struct Course {
    turns: Vec<Vec<usize>>,
    random: fastrand::Rng,
    /// Not recorded at the begin of a turn, ticks.
    washout: Ticks,
    /// After how many ticks of each another turn comes.
    lengths: Vec<Ticks>,
    /// Turns that come before this one again.
    order: Vec<usize>,
    turn: usize,
    pass: Vec<usize>,
    number: u32,
    place: u32,
    records_from: Ticks,
    ends: Ticks,
    /// Whether a pass has begun that is recorded.
    recorded: bool,
    /// Those that have had a slice that was not recorded.
    warm: Vec<bool>,
}

impl Course {
    pub(super) fn new(turns: Vec<Vec<usize>>, seed: u64, washout: Ticks, lengths: Vec<Ticks>) -> Self {
        let members = turns.iter().flatten().max().map_or(0, |last| last + 1);
        Self {
            turns,
            random: fastrand::Rng::with_seed(seed),
            washout,
            lengths,
            order: Vec::new(),
            turn: 0,
            pass: Vec::new(),
            number: 0,
            place: 0,
            records_from: 0,
            ends: 0,
            recorded: true,
            warm: vec![false; members],
        }
    }

    /// What comes at `now` of those that are `open`; none once nobody is.
    pub(super) fn next(&mut self, now: Ticks, open: impl Fn(usize) -> bool) -> Option<Entry> {
        loop {
            while let Some(member) = self.pass.pop() {
                if open(member) {
                    return Some(self.entry(now, member));
                }
            }
            // However short a turn is, each has had one slice that is recorded: nobody would come to an end.
            if (now >= self.ends && self.recorded) || !self.fill(now, &open) {
                self.begin(now, &open)?;
            }
        }
    }

    fn entry(&mut self, now: Ticks, member: usize) -> Entry {
        let warm = std::mem::replace(&mut self.warm[member], true);
        if now < self.records_from || !warm {
            return Entry { member, at: None };
        }
        let at = Place { turn: self.number, place: self.place };
        self.place += 1;
        Entry { member, at: Some(at) }
    }

    /// One more pass over the turn's configurations; false if none is open.
    fn fill(&mut self, now: Ticks, open: impl Fn(usize) -> bool) -> bool {
        self.recorded |= now >= self.records_from;
        self.pass =
            self.turns.get(self.turn).into_iter().flatten().copied().filter(|one| open(*one)).collect();
        self.random.shuffle(&mut self.pass);
        !self.pass.is_empty()
    }

    /// The next turn in which one is open.
    fn begin(&mut self, now: Ticks, open: impl Fn(usize) -> bool) -> Option<()> {
        if self.order.is_empty() {
            let has_open = |turn: &usize| self.turns[*turn].iter().any(|one| open(*one));
            self.order = (0..self.turns.len()).filter(has_open).collect();
            self.random.shuffle(&mut self.order);
        }
        self.turn = self.order.pop()?;
        // Where there is but one turn nothing has to be washed out again.
        let again = self.number > 0 && self.turns.len() == 1;
        self.number += 1;
        self.place = 0;
        self.records_from = if again { now } else { now.saturating_add(self.washout) };
        self.ends = self.records_from.saturating_add(self.lengths[self.turn]);
        self.recorded = false;
        self.fill(now, open);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries up to tick `until` of a course in which each takes a tick.
    fn entries(turns: &[&[usize]], until: Ticks, open: impl Fn(usize) -> bool) -> Vec<Entry> {
        let mut course =
            Course::new(turns.iter().map(|turn| turn.to_vec()).collect(), 7, 10, vec![100; turns.len()]);
        (0..until).map_while(|now| course.next(now, &open)).collect()
    }

    #[test]
    fn within_a_turn_each_configuration_comes_once_before_any_comes_again() {
        let entries = entries(&[&[0, 1, 2]], 90, |_| true);
        for pass in entries.chunks(3) {
            let mut members: Vec<usize> = pass.iter().map(|entry| entry.member).collect();
            members.sort_unstable();
            assert_eq!(members, [0, 1, 2]);
        }
        assert!(entries.chunks(3).any(|pass| pass[0].member != entries[0].member), "the order is random");
    }

    #[test]
    fn a_turn_begins_with_what_is_not_recorded_and_counts_places_from_there() {
        let entries = entries(&[&[0, 1], &[2]], 330, |_| true);
        for turn in [&entries[..110], &entries[110..220]] {
            assert!(turn[..10].iter().all(|entry| entry.at.is_none()));
            let places: Vec<u32> = turn.iter().filter_map(|entry| entry.at.map(|at| at.place)).collect();
            assert_eq!(places, (0..100).collect::<Vec<u32>>());
            let class = |entry: &Entry| entry.member == 2;
            assert!(turn.iter().all(|entry| class(entry) == class(&turn[0])), "classes do not mix");
        }
        assert!(entries[0].member == 2 || entries[110].member == 2);
    }

    #[test]
    fn a_turn_shorter_than_what_it_washes_out_still_has_a_pass_that_is_recorded() {
        let turns = vec![vec![0, 1], vec![2]];
        let mut course = Course::new(turns, 7, 10, vec![0; 2]);
        let entries: Vec<Entry> = (0..60).map_while(|now| course.next(now, |_| true)).collect();
        for member in 0..3 {
            assert!(entries.iter().any(|entry| entry.member == member && entry.at.is_some()), "{entries:?}");
        }
    }

    #[test]
    fn who_is_done_comes_no_more_and_the_course_ends_with_the_last() {
        assert!(entries(&[&[0, 1], &[2]], 500, |one| one != 1).iter().all(|entry| entry.member != 1));
        assert_eq!(entries(&[&[0, 1], &[2]], 500, |_| false), []);
        assert_eq!(entries(&[], 500, |_| true), []);
    }
}
