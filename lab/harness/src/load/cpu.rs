// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic on several chains at once: keeps as many
//! execution units busy as one thread can, no memory.

use std::hint::black_box;

use super::LoadKind;

/// Steps of all chains in a slice; some 3 cycles each.
const STEPS: u32 = 100_000;

pub(super) const CPU: LoadKind = LoadKind {
    name: "cpu",
    about: "integer arithmetic, four chains at once; no memory",
    begin: || {
        let mut chains = [1_u64, 2, 3, 4];
        Ok(Box::new(move || {
            for _ in 0..STEPS {
                // Multiplier and increment of the 64-bit generator in Knuth's MMIX.
                chains = chains.map(|x| {
                    x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                });
            }
            black_box(chains);
            Ok(())
        }))
    },
};
