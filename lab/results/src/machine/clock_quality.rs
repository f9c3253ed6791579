// SPDX-License-Identifier: MIT OR Apache-2.0
//! How good the clock of a run is: its grid, its own cost, how far it
//! differs between cores, how fast it drifts.

use serde::{Deserialize, Serialize};

/// What was found about a clock.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClockQuality {
    /// The grid that readings lie on, picoseconds: no difference below it means anything.
    pub grid_ps: u64,
    /// Shortest time that lay between two successive readings,
    /// picoseconds, without those that read the same.
    pub smallest_step_ps: u64,
    /// Steps between successive readings, the most frequent first, eight at most.
    pub steps: Vec<Step>,
    /// Cost of one reading, picoseconds: the median of batches.
    pub cost_ps: u64,
    /// How far the clock ran from `CLOCK_MONOTONIC_RAW`, parts per million; positive is fast.
    pub drift_ppm: Option<f64>,
    /// How far the drift may be off, parts per million, from the width of its readings.
    pub drift_resolution_ppm: Option<f64>,
    /// Difference of the clock between CPUs, one pair of each relation the machine has.
    pub skews: Vec<Skew>,
}

/// A time between two successive readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Step {
    /// The step, picoseconds.
    pub ps: u64,
    /// How often it was seen.
    pub count: u64,
}

/// How far the clock of one CPU is ahead of another's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Skew {
    /// The CPUs.
    pub cpus: [u32; 2],
    /// How far the second is ahead, nanoseconds.
    pub offset_ns: f64,
    /// The truth lies within the offset plus or minus this, nanoseconds.
    pub bound_ns: f64,
}

impl Skew {
    /// The greatest error that a time measured from one of the CPUs
    /// to the other can have, nanoseconds.
    pub fn worst_ns(&self) -> f64 {
        self.offset_ns.abs() + self.bound_ns
    }
}

impl ClockQuality {
    /// The greatest error by skew over all pairs looked at, nanoseconds.
    pub fn worst_skew_ns(&self) -> Option<f64> {
        self.skews.iter().map(Skew::worst_ns).reduce(f64::max)
    }
}
