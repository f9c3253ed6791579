// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control group had used up its quota.

use super::{Cause, took, whole};

pub(super) const CAUSE: Cause = Cause {
    name: "throttling",
    cure: "raise or lift the CPU limit of the container (cpu.max, `docker run --cpus`)",
    find: |wake| {
        let meanwhile = wake.meanwhile.as_ref()?;
        let periods = meanwhile.throttled_periods.filter(|periods| *periods > 0)?;
        let ns = meanwhile.throttled_ns?;
        let (from, to) = whole(wake);
        Some((
            ns.saturating_mul(1000).min(to.abs_diff(from)),
            format!(
                "nr_throttled went up by {periods} and the control group stood still for {} in the {} before it was caught",
                took(ns.saturating_mul(1000)),
                took(meanwhile.window_ns.saturating_mul(1000))
            ),
        ))
    },
};
