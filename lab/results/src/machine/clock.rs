// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a trial: the processor's own counter where the kernel
//! itself goes by it, else the monotonic clock.
//!
//! Times are ticks of a counter, differences are picoseconds in integers. No absolute time is ever
//! a floating-point number: added up in a `double`, today's epoch leaves a grid of 256 ns.

use std::time::Duration;

/// Which counter is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The time-stamp counter of an x86 processor.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
    /// The virtual count of ARM's generic timer, `CNTVCT_EL0`.
    Cntvct,
    /// The `time` counter of a RISC-V processor.
    Rdtime,
}

impl Source {
    /// Whether Linux can stamp its events by it: by no counter but that of x86.
    pub fn stamps_events(self) -> bool {
        matches!(self, Self::Tsc | Self::Monotonic)
    }
}

/// A calibrated clock, the same for all processes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clock {
    /// Which counter is read.
    pub source: Source,
    /// Picoseconds per tick, as a binary fraction: `ps = ticks * ps_per_tick_q32 >> 32`.
    pub ps_per_tick_q32: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::MONOTONIC
    }
}

/// A reading, in ticks since some moment in the past.
pub type Ticks = u64;

impl Clock {
    /// The monotonic clock; needs no calibration, a tick is a nanosecond.
    pub const MONOTONIC: Self = Self { source: Source::Monotonic, ps_per_tick_q32: 1000 << 32 };

    /// A difference of readings in picoseconds.
    #[inline(always)]
    pub fn ps(self, ticks: Ticks) -> u64 {
        ((u128::from(ticks) * u128::from(self.ps_per_tick_q32)) >> 32) as u64
    }

    /// A time of some picoseconds in ticks, rounded down.
    pub fn ticks_of_ps(self, ps: u64) -> Ticks {
        u64::try_from((u128::from(ps) << 32) / u128::from(self.ps_per_tick_q32)).unwrap_or(u64::MAX)
    }

    /// A duration in ticks, rounded down.
    pub fn ticks(self, duration: Duration) -> Ticks {
        let ps = duration.as_nanos() * 1000;
        u64::try_from((ps << 32) / u128::from(self.ps_per_tick_q32)).unwrap_or(u64::MAX)
    }
}
