// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic on several chains at once: keeps as many
//! execution units busy as one thread can, no memory.

use std::hint::black_box;
use std::io;

use super::{LoadKind, Work};

#[derive(Debug)]
pub(super) struct Cpu;

/// Steps of all chains in a slice; some 3 cycles each.
const STEPS: u32 = 100_000;

struct Chains([u64; 4]);

impl LoadKind for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }
    fn about(&self) -> &'static str {
        "integer arithmetic, four chains at once; no memory"
    }
    fn begin(&self) -> io::Result<Box<dyn Work>> {
        Ok(Box::new(Chains([1, 2, 3, 4])))
    }
}

impl Work for Chains {
    fn slice(&mut self) -> io::Result<()> {
        for _ in 0..STEPS {
            // Multiplier and increment of the 64-bit generator in Knuth's MMIX.
            self.0 = self
                .0
                .map(|x| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        }
        black_box(self.0);
        Ok(())
    }
}
