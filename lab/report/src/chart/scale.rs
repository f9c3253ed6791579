// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scales: from values to places, and the ticks along them.

use crate::unit::time;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    /// Its text; empty for a mark without one.
    pub label: String,
}

/// What a scale reaches to at most: far beyond every time (3e10 years in picoseconds are 1e30) and
/// far inside what powers of ten can be taken of. A file from elsewhere may hold any number.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1e30;

/// Equal ratios are equal distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Log {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Log {
    /// Over the positive ones of `values`, widened to the next round
    /// figures, drawn from `start` to `end`.
    pub(super) fn over(values: impl IntoIterator<Item = f64>, start: f64, end: f64) -> Self {
        let (low, high) = values
            .into_iter()
            .filter(|value| value.is_finite() && *value > 0.0)
            .map(|value| value.clamp(LEAST, MOST))
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (value.min(low), value.max(high)));
        let (low, high) = if low.is_finite() { (low, high) } else { (1e3, 1e6) };
        let (low, high) = (round_down(low), round_up(high));
        // A single value still needs a scale around it.
        let high = if high / low < 2.0 { low * 2.0 } else { high };
        Self { low, high, start, end }
    }

    /// The place of `value`, held inside the scale.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        self.start + share * (self.end - self.start)
    }

    /// Marks at round figures, in picoseconds, with unit; fewer where there is no room.
    pub(super) fn time_ticks(&self) -> Vec<Tick> {
        self.ticks(time)
    }

    pub(super) fn ticks(&self, show: impl Fn(f64) -> String) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let room = (self.end - self.start).abs() / decades.max(0.1);
        // A label wants some 52 units of its own; a decade shows as many of 1, 2, 5 as it has room for.
        let labelled: &[f64] = match room {
            room if room >= 260.0 => &[1.0, 2.0, 5.0],
            room if room >= 150.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let every = if room < 50.0 { (50.0 / room).ceil() as i32 } else { 1 };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let mut ticks = Vec::new();
        for decade in first..=last {
            for step in 1..10 {
                let value = f64::from(step) * 10_f64.powi(decade);
                if value < self.low * 0.9999 || value > self.high * 1.0001 {
                    continue;
                }
                let shown = labelled.contains(&f64::from(step)) && decade.rem_euclid(every) == 0;
                if shown || room >= 130.0 {
                    let label = if shown { show(value) } else { String::new() };
                    ticks.push(Tick { at: self.at(value), label });
                }
            }
        }
        ticks
    }
}

/// The next of 1, 2, 5 and their tenfolds at or below.
fn round_down(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|step| step * decade).find(|round| *round <= value).unwrap_or(decade)
}

/// The next of 1, 2, 5 and their tenfolds at or above.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|step| step * decade)
        .find(|round| *round >= value)
        .unwrap_or(10.0 * decade)
}

/// Equal differences are equal distances, from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Linear {
    high: f64,
    start: f64,
    end: f64,
}

impl Linear {
    /// From 0 to `high`, drawn from `start` to `end`.
    pub(super) fn new(high: f64, start: f64, end: f64) -> Self {
        Self { high: if high > 0.0 && high.is_finite() { high } else { 1.0 }, start, end }
    }

    /// The place of `value`, held inside the scale.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.start + value.clamp(0.0, self.high) / self.high * (self.end - self.start)
    }

    /// About five marks at round figures.
    pub(super) fn ticks(&self, show: impl Fn(f64) -> String) -> Vec<Tick> {
        let step = round_up(self.high / 6.0);
        (0..=10)
            .map(|number| f64::from(number) * step)
            .filter(|value| *value <= self.high * 1.0001)
            .map(|value| Tick { at: self.at(value), label: show(value) })
            .collect()
    }
}

/// Quantiles by the share of samples above them: each further nine is as wide as the one before, so
/// that the tail has as much room as the body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Nines {
    most: f64,
    start: f64,
    end: f64,
}

impl Nines {
    /// As far as `count` samples can tell: to one in `count`.
    pub(super) fn new(count: u64, start: f64, end: f64) -> Self {
        Self { most: (count.max(10) as f64).log10(), start, end }
    }

    /// The place of quantile `q` of 0 to 1; 1 itself lies at the end.
    pub(super) fn at(&self, q: f64) -> f64 {
        let nines = if q >= 1.0 { self.most } else { -(1.0 - q.max(0.0)).log10() };
        self.start + nines.clamp(0.0, self.most) / self.most * (self.end - self.start)
    }

    /// Marks at the median and at each nine.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut ticks = vec![
            Tick { at: self.at(0.0), label: "0".to_owned() },
            Tick { at: self.at(0.5), label: "50".to_owned() },
        ];
        for nines in 1..=self.most.floor() as i32 {
            let q = 1.0 - 10_f64.powi(-nines);
            let decimals = usize::try_from(nines - 2).unwrap_or(0);
            ticks.push(Tick { at: self.at(q), label: format!("{:.decimals$}", q * 100.0) });
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_axis_is_widened_to_round_figures_and_labels_them() {
        let scale = Log::over([3.1e6, 42e6], 0.0, 600.0);
        assert_eq!((scale.low, scale.high), (2e6, 50e6));
        let labels: Vec<String> =
            scale.time_ticks().into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect();
        assert_eq!(labels, ["2 µs", "5 µs", "10 µs", "20 µs", "50 µs"]);
        assert!((scale.at(10e6) - 300.0).abs() < 1.0);
        assert_eq!(scale.at(0.0), 0.0, "values outside are held inside");
    }

    #[test]
    fn one_value_or_none_still_makes_a_scale() {
        for values in [vec![], vec![5e3], vec![f64::NAN, 0.0, -1.0]] {
            let scale = Log::over(values, 0.0, 100.0);
            assert!(scale.high / scale.low >= 2.0);
            assert!(scale.at(5e3).is_finite());
            assert!(!scale.time_ticks().is_empty());
        }
    }

    #[test]
    fn each_nine_is_as_wide_as_the_next() {
        let scale = Nines::new(1_000_000, 0.0, 600.0);
        assert!((scale.at(0.9) - 100.0).abs() < 1e-6);
        assert!((scale.at(0.999) - 300.0).abs() < 1e-6);
        assert_eq!(scale.at(1.0), 600.0);
        let labels: Vec<String> = scale.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"]);
    }

    #[test]
    fn many_decades_keep_their_labels_apart() {
        let scale = Log::over([1.0, 3.6e15], 0.0, 300.0);
        let labels = scale.time_ticks().into_iter().filter(|tick| !tick.label.is_empty()).count();
        assert!(labels <= 7, "{labels} labels in 300 units");
    }
}
