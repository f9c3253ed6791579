// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of times in picoseconds.
//!
//! SUMMARY: relative error at most 0.1 %, range 1 ps to 1 h, about
//! 350 KB whatever the number of samples.
//!
//! DETAILS: [`hdrhistogram`] with 3 significant digits keeps values below 2048 exactly and every
//! later power of two in 1024 buckets. An hour is 3.6e15 ps, 41 doublings above 2048, hence 43 ×
//! 1024 counters of 8 bytes. Picoseconds and not nanoseconds, because a cache-line hop is some 50
//! ns and one clock tick half a nanosecond: whole nanoseconds would show the grid of the unit
//! instead of the grid of the clock.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::LazyLock;

use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::encoded::Encoded;

pub use super::encoded::Counters;

/// The longest time that is told apart, one hour in picoseconds; longer ones count as this.
pub const LONGEST_PS: u64 = 3_600_000_000_000_000;
/// The shortest time that is told apart; shorter ones count as this.
pub(super) const SHORTEST_PS: u64 = 1;
/// Significant decimal digits.
pub(super) const DIGITS: u8 = 3;
/// Counters in a histogram: 2048 for the values below 2048, 1024 for
/// each of the 41 doublings up to an hour.
pub(super) const COUNTERS: usize = 2048 + 41 * 1024;

/// A histogram of times in picoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// None until something is recorded, where that may take a moment.
    inner: Option<Inner>,
}

type Inner = hdrhistogram::Histogram<u64>;

/// What has recorded nothing reads as this.
static EMPTY: LazyLock<Inner> = LazyLock::new(empty);

#[cold]
fn empty() -> Inner {
    let Ok(inner) = Inner::new_with_bounds(SHORTEST_PS, LONGEST_PS, DIGITS) else {
        unreachable!("the bounds are constants that satisfy the constructor")
    };
    inner
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.inner() == other.inner()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Why an encoded histogram is not one of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    #[error("the histogram is not base64: {0}")]
    Base64(String),
    /// Not an HdrHistogram V2, or cut.
    #[error("the histogram cannot be decoded: {0}")]
    Encoding(String),
    /// It asks for more than any histogram of ours has.
    #[error("the histogram claims {claimed} {what}; no histogram of this program has as many")]
    TooLarge {
        what: &'static str,
        /// How much, or how much had been seen when looking stopped.
        claimed: u64,
    },
}

impl Histogram {
    /// An empty histogram with all its memory touched, so that recording never faults.
    pub fn new() -> Self {
        let mut inner = empty();
        // Touch every counter once: the allocator hands out untouched zero pages.
        inner.record_n(1, 1).ok();
        inner.reset();
        Self { inner: Some(inner) }
    }

    /// An empty histogram that takes its memory when the first time
    /// comes, for what will hardly be recorded.
    pub fn untouched() -> Self {
        Self { inner: None }
    }

    #[inline]
    fn touched(&mut self) -> &mut Inner {
        self.inner.get_or_insert_with(empty)
    }

    #[inline]
    pub fn record(&mut self, ps: u64) {
        self.touched().saturating_record(ps.max(1));
    }

    /// Counts one time `count` times.
    pub fn record_many(&mut self, ps: u64, count: u64) {
        self.touched().saturating_record_n(ps.max(1), count);
    }

    /// Forgets every time counted; the memory stays.
    pub fn clear(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.reset();
        }
    }

    /// Adds another histogram to this one.
    pub fn add(&mut self, other: &Self) {
        // Same bounds by construction, so nothing can be out of range.
        if let Some(other) = &other.inner {
            self.touched().add(other).ok();
        }
    }

    /// Adds what another histogram counted.
    pub fn add_counters(&mut self, other: &Counters) {
        for (ps, count) in &other.0 {
            self.touched().saturating_record_n(*ps, *count);
        }
    }

    pub fn count(&self) -> u64 {
        self.inner().len()
    }

    /// The time at quantile `q` of 0 to 1, picoseconds; 0 when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        super::rank::at(self.buckets(), q, self.count(), self.max())
    }

    pub fn min(&self) -> u64 {
        self.inner().min()
    }

    pub fn max(&self) -> u64 {
        self.inner().max()
    }

    pub fn mean(&self) -> f64 {
        self.inner().mean()
    }

    pub fn stdev(&self) -> f64 {
        self.inner().stdev()
    }

    /// Occupied buckets from short to long: middle value in picoseconds, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner().iter_recorded().map(|bucket| {
            (self.inner().median_equivalent(bucket.value_iterated_to()), bucket.count_at_value())
        })
    }

    /// The grid on which the samples lie, picoseconds, as the samples
    /// themselves show it; 0 if they show none.
    ///
    /// The grid is the least distance between neighbouring values, if the lower half of a thousand
    /// samples or more uses no more than a few values and all of them are whole numbers of
    /// steps apart. Fine values beyond some 1 % of the time, which is where the histogram's own
    /// buckets begin to look like one, are no grid.
    pub fn grid_ps(&self) -> f64 {
        const FEW: usize = 16;
        // As near as the histogram's own buckets: 0.1 % twice, and a picosecond for the rounding.
        let same = |a: f64, b: f64| b - a <= a * 0.002 + 2.0;
        if self.count() < 1000 {
            return 0.0;
        }
        let mut values: Vec<f64> = Vec::new();
        let mut seen = 0;
        for (ps, count) in self.buckets() {
            if !values.last().is_some_and(|last| same(*last, ps as f64)) {
                values.push(ps as f64);
            }
            seen += count;
            if values.len() > FEW {
                return 0.0;
            }
            if seen * 2 >= self.count() {
                break;
            }
        }
        let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let Some(step) = steps.iter().copied().min_by(f64::total_cmp) else {
            // A thousand times the same value: the clock did not move in between, or only by this.
            return values
                .first()
                .copied()
                .filter(|only| same(*only, self.quantile(0.99) as f64))
                .unwrap_or(0.0);
        };
        let whole = |distance: &f64| (distance / step - (distance / step).round()).abs() < 0.2;
        if steps.iter().all(whole) { step } else { 0.0 }
    }

    /// The HdrHistogram inside, for exporters of its own formats.
    pub fn inner(&self) -> &hdrhistogram::Histogram<u64> {
        self.inner.as_ref().unwrap_or(&EMPTY)
    }

    /// HdrHistogram V2, deflated, in base64: what its log format and plotters read.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(self.inner(), &mut bytes).ok();
        STANDARD.encode(bytes)
    }

    /// Decodes what [`Histogram::encode`] wrote, refusing anything
    /// that would need more memory than ours do.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let encoded = Encoded::inspect(text)?;
        let inner = Deserializer::new()
            .deserialize(&mut encoded.plain.as_slice())
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        Ok(Self { inner: Some(inner) })
    }

    /// The occupied counters of what [`Histogram::encode`] wrote,
    /// without the memory of a whole histogram.
    pub fn counters_of(text: &str) -> Result<Counters, HistogramError> {
        Encoded::inspect(text).map(|encoded| encoded.counters)
    }

    /// One sample in each bucket.
    #[cfg(any(test, feature = "sample"))]
    pub fn every_bucket() -> Self {
        let mut histogram = Self::new();
        let mut ps = 1;
        while ps <= LONGEST_PS {
            histogram.record(ps);
            ps = histogram.inner().next_non_equivalent(ps);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_counters_is_the_one_the_library_takes() {
        assert_eq!(Histogram::new().inner().distinct_values(), COUNTERS);
    }

    proptest::proptest! {
        #[test]
        fn what_was_encoded_comes_back_the_same(times in proptest::collection::vec(0..LONGEST_PS * 2, 0..200)) {
            let mut histogram = Histogram::new();
            times.iter().for_each(|ps| histogram.record(*ps));
            let text = histogram.encode();
            let counters = Histogram::counters_of(&text).unwrap();
            assert_eq!(counters.count(), times.len() as u64);
            assert_eq!(counters.iter().count(), histogram.buckets().count());
            let mut added = Histogram::new();
            added.add_counters(&counters);
            let figures = |histogram: &Histogram| [0.0, 0.5, 0.99, 1.0].map(|q| histogram.quantile(q));
            assert_eq!(added.buckets().collect::<Vec<_>>(), histogram.buckets().collect::<Vec<_>>());
            assert_eq!((figures(&added), added.min(), added.max()), (figures(&histogram), histogram.min(), histogram.max()));
            assert_eq!(Histogram::decode(&text), Ok(histogram));
        }
    }
}
