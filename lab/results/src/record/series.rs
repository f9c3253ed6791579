// SPDX-License-Identifier: MIT OR Apache-2.0
//! One measured quantity of one trial: its histogram and what follows from it.

use serde::{Deserialize, Serialize};

use super::histogram::{Counters, Histogram, HistogramError};
use super::populations::{Population, populations};
use super::within_grid::within_grid;

/// What was timed. The definition is printed wherever the figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// From just before the initiator's notification to its first
    /// instruction after the answer's wake-up.
    RoundTrip,
    /// From just before the notifier's call to the waiter's first instruction after its wait.
    Wake,
    /// As `Wake`, on the way back of a ping-pong.
    WakeBack,
    /// From just before the first post of a fan-out's round to the first instruction of the
    /// receiver that woke first.
    FirstWake,
    /// As `FirstWake`, to the receiver that woke in the middle (of an
    /// even number, the earlier of the two).
    MedianWake,
    /// As `FirstWake`, to the receiver that woke last: what a design
    /// feels that must reach everybody.
    LastWake,
    /// From the time a notification was due, in an open loop, to the
    /// waiter's first instruction after its wait.
    Response,
    /// The time the notifier spends in its call.
    Notify,
    /// The time the notifier of a fan-out takes to post to all receivers, once.
    NotifyRound,
    /// The time the waiter spends in its wait, whatever it waits for.
    AroundWait,
    /// One operation of a batch: a system call, a fault, a switch.
    Operation,
    /// One hand-off from task to task: a stretch of turns divided by their number.
    HandOff,
    /// Making a task until it stands ready: the time for all divided by their number.
    Create,
    /// Reaping a task that has had its turns: the time for all divided by their number.
    Reap,
    /// A task made, run once and reaped: the time for all divided by their number.
    Life,
    /// One block to or from a device: from just before the call or the submission to the first
    /// instruction after its completion was seen.
    Transfer,
}

impl Quantity {
    pub const ALL: [Self; 16] = [
        Self::RoundTrip,
        Self::Wake,
        Self::WakeBack,
        Self::FirstWake,
        Self::MedianWake,
        Self::LastWake,
        Self::Response,
        Self::Notify,
        Self::NotifyRound,
        Self::AroundWait,
        Self::Operation,
        Self::HandOff,
        Self::Create,
        Self::Reap,
        Self::Life,
        Self::Transfer,
    ];

    /// The name, as result files and tables spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round-trip",
            Self::Wake => "wake",
            Self::WakeBack => "wake-back",
            Self::FirstWake => "first-wake",
            Self::MedianWake => "median-wake",
            Self::LastWake => "last-wake",
            Self::Response => "response",
            Self::Notify => "notify",
            Self::NotifyRound => "notify-round",
            Self::AroundWait => "around-wait",
            Self::Operation => "operation",
            Self::HandOff => "hand-off",
            Self::Create => "create",
            Self::Reap => "reap",
            Self::Life => "life",
            Self::Transfer => "transfer",
        }
    }

    /// Whether it is from one side to another.
    pub fn is_one_way(self) -> bool {
        use Quantity::{FirstWake, LastWake, MedianWake, Response, Wake, WakeBack};
        matches!(self, Wake | WakeBack | FirstWake | MedianWake | LastWake | Response)
    }

    /// Whether a time of it is one between two readings of the clock that is shared out over many,
    /// so that the clock's steps are too.
    pub fn is_shared_out(self) -> bool {
        matches!(self, Self::Operation | Self::HandOff | Self::Create | Self::Reap | Self::Life)
    }

    /// The definition, as printed beside the figure.
    pub fn definition(self) -> &'static str {
        match self {
            Self::RoundTrip => {
                "from just before the initiator's call to its first instruction after the answer's wake-up"
            }
            Self::Wake => {
                "from just before the notifier's call to the waiter's first instruction after its wait"
            }
            Self::WakeBack => "as wake, for the answering direction",
            Self::FirstWake => {
                "from just before the first post of a round to the first instruction of the \
                 receiver that woke first"
            }
            Self::MedianWake => {
                "from just before the first post of a round to the first instruction of the \
                 receiver that woke in the middle"
            }
            Self::LastWake => {
                "from just before the first post of a round to the first instruction of the \
                 receiver that woke last"
            }
            Self::Response => {
                "from the moment the notification was due to the waiter's first instruction after its wait"
            }
            Self::Notify => "the time the notifier spends in its call",
            Self::NotifyRound => "the time the notifier of a fan-out takes to post to every receiver, once",
            Self::AroundWait => "the time the waiter spends in its wait, whatever it waits for",
            Self::Operation => "one operation, from a timed batch divided by its size",
            Self::HandOff => {
                "one turn of a task and the passing on of control to the next, from a timed \
                 stretch of at least 256 turns where there are so many"
            }
            Self::Create => "making a task until it stands ready, from the time for all of them",
            Self::Reap => "reaping a task that has had its turns, from the time for all of them",
            Self::Life => "a task made, run once and reaped, from the time for all of them",
            Self::Transfer => {
                "one block to or from a device, from just before the call or submission to the \
                 first instruction after its completion was seen"
            }
        }
    }
}

/// Times of one quantity: the summary for readers, the histogram for tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// Samples.
    pub count: u64,
    /// Shortest, nanoseconds.
    pub min_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: f64,
    /// 90th percentile, nanoseconds.
    pub p90_ns: f64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: f64,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: f64,
    /// Longest, nanoseconds.
    pub max_ns: f64,
    /// Mean, nanoseconds.
    pub mean_ns: f64,
    /// Standard deviation, nanoseconds.
    pub stdev_ns: f64,
    /// The groups into which the samples fall, from short to long;
    /// empty unless there are at least two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<Population>,
    /// Every bucket: HdrHistogram V2, deflated, base64, values in picoseconds.
    pub histogram: String,
}

impl Series {
    /// Its percentiles as they are within the steps of a clock of `grid_ps`; nothing changes where
    /// those are too fine to matter.
    pub fn refine(&mut self, grid_ps: f64) {
        if grid_ps <= 0.0 || self.p50_ns * 1000.0 > grid_ps * 1000.0 {
            return;
        }
        let Ok(histogram) = self.decode() else { return };
        let buckets: Vec<(u64, u64)> = histogram.buckets().collect();
        let figures = [
            (&mut self.p50_ns, 0.5),
            (&mut self.p90_ns, 0.9),
            (&mut self.p99_ns, 0.99),
            (&mut self.p999_ns, 0.999),
        ];
        for (figure, q) in figures {
            if let Some(ps) = within_grid(&buckets, q, grid_ps) {
                *figure = (ps / 1000.0).clamp(self.min_ns, self.max_ns);
            }
        }
    }

    pub fn counters(&self) -> Result<Counters, HistogramError> {
        Histogram::counters_of(&self.histogram)
    }

    pub fn decode(&self) -> Result<Histogram, HistogramError> {
        Histogram::decode(&self.histogram)
    }
}

impl From<&Histogram> for Series {
    fn from(histogram: &Histogram) -> Self {
        let ns = |ps: u64| ps as f64 / 1000.0;
        Self {
            count: histogram.count(),
            min_ns: ns(histogram.min()),
            p50_ns: ns(histogram.quantile(0.5)),
            p90_ns: ns(histogram.quantile(0.9)),
            p99_ns: ns(histogram.quantile(0.99)),
            p999_ns: ns(histogram.quantile(0.999)),
            max_ns: ns(histogram.max()),
            mean_ns: histogram.mean() / 1000.0,
            stdev_ns: histogram.stdev() / 1000.0,
            populations: populations(histogram),
            histogram: histogram.encode(),
        }
    }
}
