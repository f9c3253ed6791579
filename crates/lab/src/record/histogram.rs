// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of times in picoseconds.
//!
//! SUMMARY: relative error at most 0.1 %, range 1 ps to 1 h, about 350 KB whatever the number of samples.
//!
//! DETAILS: [`hdrhistogram`] with 3 significant digits keeps values below 2048 exactly and every later power of two in
//! 1024 buckets. An hour is 3.6e15 ps, 41 doublings above 2048, hence 43 × 1024 counters of 8 bytes. Picoseconds and not
//! nanoseconds, because a cache-line hop is some 50 ns and one clock tick half a nanosecond: whole nanoseconds would
//! show the grid of the unit instead of the grid of the clock.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The longest time that is told apart, one hour in picoseconds; longer ones count as this.
pub const LONGEST_PS: u64 = 3_600_000_000_000_000;

/// A histogram of times in picoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Why an encoded histogram is not one of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// Not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(String),
    /// Not an HdrHistogram V2, or cut.
    #[error("the histogram cannot be decoded: {0}")]
    Encoding(String),
    /// Its header asks for more memory than any histogram of ours has.
    #[error(
        "the histogram claims {claimed} bytes or a range up to {highest}; ours never exceed one hour in picoseconds"
    )]
    TooLarge {
        /// Bytes it claims.
        claimed: u64,
        /// Its highest trackable value.
        highest: u64,
    },
}

impl Histogram {
    /// An empty histogram with all its memory touched, so that recording never faults.
    pub fn new() -> Self {
        let Ok(mut inner) = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_PS, 3) else {
            unreachable!("the bounds are constants that satisfy the constructor")
        };
        // Touch every counter once: the allocator hands out untouched zero pages.
        inner.record_n(1, 1).ok();
        inner.reset();
        Self { inner }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ps: u64) {
        self.inner.saturating_record(ps.max(1));
    }

    /// Forgets every time counted; the memory stays.
    pub fn clear(&mut self) {
        self.inner.reset();
    }

    /// Adds another histogram to this one.
    pub fn add(&mut self, other: &Self) {
        // Same bounds by construction, so nothing can be out of range.
        self.inner.add(&other.inner).ok();
    }

    /// Number of times counted.
    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// The time at quantile `q` of 0 to 1, picoseconds; 0 when empty.
    pub fn quantile(&self, q: f64) -> u64 {
        self.inner.value_at_quantile(q)
    }

    /// Shortest time, picoseconds.
    pub fn min(&self) -> u64 {
        self.inner.min()
    }

    /// Longest time, picoseconds.
    pub fn max(&self) -> u64 {
        self.inner.max()
    }

    /// Mean, picoseconds.
    pub fn mean(&self) -> f64 {
        self.inner.mean()
    }

    /// Standard deviation, picoseconds.
    pub fn stdev(&self) -> f64 {
        self.inner.stdev()
    }

    /// Occupied buckets from short to long: middle value in picoseconds, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner
            .iter_recorded()
            .map(|bucket| (self.inner.median_equivalent(bucket.value_iterated_to()), bucket.count_at_value()))
    }

    /// The HdrHistogram inside, for exporters of its own formats.
    pub fn inner(&self) -> &hdrhistogram::Histogram<u64> {
        &self.inner
    }

    /// HdrHistogram V2, deflated, in base64: what its log format and plotters read.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.inner, &mut bytes).ok();
        STANDARD.encode(bytes)
    }

    /// Decodes what [`Histogram::encode`] wrote, refusing anything that would need more memory than ours do.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text).map_err(|error| HistogramError::Base64(error.to_string()))?;
        let decoded: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut std::io::Cursor::new(bytes))
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        let mut own = Self::new();
        own.inner.add(&decoded).map_err(|_| HistogramError::TooLarge {
            claimed: decoded.buckets().into(),
            highest: decoded.max(),
        })?;
        Ok(own)
    }
}
