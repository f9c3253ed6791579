// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of time: one stated unit per table and per axis, never mixed.

pub use doorbell_results::written::{Unit, plain, time, time_ns};
use doorbell_results::written::{grouped, in_unit, three_digits};

/// One unit for a whole table, in which every figure has three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub unit: Unit,
}

impl Scale {
    /// The unit in which the middle one of `typical_ps` reads best.
    pub fn for_ps(typical_ps: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = typical_ps.into_iter().filter(|ps| *ps > 0.0 && ps.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self { unit: values.get(values.len() / 2).map_or(Unit::Nanoseconds, |middle| Unit::of(*middle)) }
    }

    /// `ps` in this unit, without its sign: three digits, but never finer than a tenth of a
    /// nanosecond nor three decimals, for no clock here tells less apart.
    pub fn show(self, ps: f64) -> String {
        let finest = if self.unit == Unit::Nanoseconds { 1 } else { 3 };
        three_digits(ps / self.unit.ps(), finest)
    }

    /// The same of nanoseconds.
    pub fn show_ns(self, ns: f64) -> String {
        self.show(ns * 1e3)
    }

    /// Picoseconds, and a dash where nothing is known.
    pub fn known(self, ps: Option<f64>) -> String {
        ps.map_or_else(|| "-".to_owned(), |ps| self.show(ps))
    }
}

/// Times that stand in one sentence, all in one unit, each with three significant digits: that of
/// the shortest, or the next in which the longest has no five digits.
pub fn alike<const N: usize>(ps: [f64; N]) -> [String; N] {
    let unit = common(&ps);
    ps.map(|ps| in_unit(ps, unit))
}

/// The same of any number of times.
pub fn all_alike(ps: &[f64]) -> Vec<String> {
    let unit = common(ps);
    ps.iter().map(|ps| in_unit(*ps, unit)).collect()
}

fn common(ps: &[f64]) -> Unit {
    let known = || ps.iter().copied().filter(|ps| *ps > 0.0 && ps.is_finite());
    let shortest = known().reduce(f64::min).map_or(Unit::Nanoseconds, Unit::of);
    let longest = known().fold(0.0, f64::max);
    let fits = |unit: &Unit| *unit >= shortest && longest / unit.ps() < 1e4;
    [Unit::Nanoseconds, Unit::Microseconds, Unit::Milliseconds]
        .into_iter()
        .find(fits)
        .unwrap_or(Unit::Seconds)
}

/// A count, its digits in groups of three.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_unit_of_its_middle_and_each_figure_has_three_digits() {
        let scale = Scale::for_ps([30e3, 8.3e6, 31e6]);
        assert_eq!(scale, Scale { unit: Unit::Microseconds });
        let shown =
            [52e3, 8.3124e6, 99.96e6, 5_127_331e3, 999.6e6, 9.996e6, -8.3124e6].map(|ps| scale.show(ps));
        assert_eq!(shown, ["0.052", "8.31", "100", "5,130", "1,000", "10.0", "-8.31"]);
        let scale = Scale::for_ps([25.2e3, 120e3, 300e3]);
        assert_eq!([25.24e3, 120.4e3].map(|ps| scale.show(ps)), ["25.2", "120"]);
        assert_eq!(Scale::for_ps([]), Scale { unit: Unit::Nanoseconds });
    }

    #[test]
    fn a_lone_time_carries_its_unit_and_three_digits() {
        assert_eq!(time(10e6), "10 µs");
        assert_eq!(time(8.312e6), "8.31 µs");
        assert_eq!(time(52.34e3), "52.3 ns");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(100e9), "100 ms");
        assert_eq!(time(3.6e15), "3,600 s");
    }

    /// "447 ns while the waiter is awake, 1.69 µs to wake it."
    #[test]
    fn times_of_one_sentence_have_one_unit() {
        assert_eq!(alike([447e3, 1.69e6]), ["447 ns", "1,690 ns"]);
        assert_eq!(alike([6.09e6, 71e6]), ["6.09 µs", "71 µs"]);
        assert_eq!(alike([55e3, 34e6]), ["0.055 µs", "34 µs"]);
        assert_eq!(alike([352e3, 4.88e9]), ["0.352 µs", "4,880 µs"]);
        assert_eq!(alike([0.0, 34e6]), ["0 µs", "34 µs"]);
        assert_eq!(alike([0.0]), ["0 ns"]);
        assert_eq!(all_alike(&[4.2e3, 1.69e6, 2.31e6]), ["4.2 ns", "1,690 ns", "2,310 ns"]);
    }

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(10_000_000), "10,000,000");
    }
}
