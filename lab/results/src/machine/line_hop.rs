// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a cache line moves between two CPUs.

use serde::{Deserialize, Serialize};

/// The hops that were seen between two CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineHop {
    /// The CPUs.
    pub cpus: [u32; 2],
    /// Half a round trip, nanoseconds: the mean of the fastest batch of fifty.
    pub fastest_ns: f64,
    /// The same of the middle batch; none in results that were written before it was kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub median_ns: Option<f64>,
}
