// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a round of a slice takes, without the few that something else held up.

/// So many stretches of rounds are kept.
const STRETCHES: usize = 256;

/// The times of a slice's rounds: of each by itself, and of a slice of more rounds than
/// [`STRETCHES`] those of stretches of two, four and so on.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The sum of each stretch, picoseconds.
    stretches: Vec<u64>,
    /// Rounds of a stretch, and those of the one under way with their sum.
    each: u32,
    under_way: u32,
    sum_ps: u64,
    count: u32,
}

impl Rounds {
    /// Of none; takes the memory that it needs.
    pub(crate) fn begin(&mut self) {
        self.stretches.reserve(STRETCHES);
        self.stretches.clear();
        (self.each, self.under_way, self.sum_ps, self.count) = (1, 0, 0, 0);
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, ps: u64) {
        self.count += 1;
        self.under_way += 1;
        self.sum_ps += ps;
        if self.under_way >= self.each {
            self.keep();
        }
    }

    fn keep(&mut self) {
        if self.stretches.len() == STRETCHES {
            for place in 0..STRETCHES / 2 {
                self.stretches[place] = self.stretches[2 * place] + self.stretches[2 * place + 1];
            }
            self.stretches.truncate(STRETCHES / 2);
            self.each *= 2;
            // What was to be kept is now the first half of a stretch.
            return;
        }
        self.stretches.push(self.sum_ps);
        (self.under_way, self.sum_ps) = (0, 0);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The mean round of the middle half of the stretches, picoseconds; 0 of none. A stretch that
    /// is not full is left out.
    pub(crate) fn middle_ps(&mut self) -> f64 {
        let count = self.stretches.len();
        if count == 0 {
            return 0.0;
        }
        self.stretches.sort_unstable();
        let middle = &self.stretches[count / 4..count - count / 4];
        middle.iter().map(|sum| *sum as f64).sum::<f64>() / middle.len() as f64 / f64::from(self.each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rounds: impl IntoIterator<Item = u64>) -> Rounds {
        let mut all = Rounds::default();
        all.begin();
        rounds.into_iter().for_each(|ps| all.add(ps));
        all
    }

    #[test]
    fn what_held_up_a_tenth_of_the_rounds_is_in_no_figure_however_many_rounds_there_are() {
        for count in [16, 255, 256, 257, 1000, 30_000] {
            let mut rounds = of((0..count).map(|round| 4000 + round % 3 - 1));
            assert_eq!(rounds.count(), count as u32);
            assert!((rounds.middle_ps() - 4000.0).abs() < 0.6, "{count}: {}", rounds.middle_ps());
            let mut held_up = of((0..count).map(|round| if round * 10 < count { 900_000 } else { 4000 }));
            let few = held_up.middle_ps();
            assert!((few - 4000.0).abs() < 1.0, "{count}: {few}");
        }
    }

    #[test]
    fn no_rounds_take_nothing_and_one_takes_what_it_took() {
        assert_eq!((of([]).middle_ps(), of([]).count()), (0.0, 0));
        assert_eq!(of([5000]).middle_ps(), 5000.0);
    }

    #[test]
    fn a_slice_that_is_begun_anew_has_forgotten_the_last() {
        let mut rounds = of((0..1000).map(|_| 9000));
        rounds.begin();
        rounds.add(1000);
        assert_eq!((rounds.middle_ps(), rounds.count()), (1000.0, 1));
    }
}
