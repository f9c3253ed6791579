// SPDX-License-Identifier: MIT OR Apache-2.0
//! Square roots, the load of the semaphore study: a long chain of the
//! slowest common instruction, no memory.

use std::hint::black_box;
use std::io;

use super::{LoadKind, Work};

#[derive(Debug)]
pub(super) struct Sqrt;

/// A chain of roots. Some 20 cycles each: 20,000 are a tenth of a millisecond.
const ROOTS: u32 = 20_000;

struct Chain(f64);

impl LoadKind for Sqrt {
    fn name(&self) -> &'static str {
        "sqrt"
    }
    fn about(&self) -> &'static str {
        "square roots, one after the other; no memory"
    }
    fn begin(&self) -> io::Result<Box<dyn Work>> {
        Ok(Box::new(Chain(2.0)))
    }
}

impl Work for Chain {
    fn slice(&mut self) -> io::Result<()> {
        for _ in 0..ROOTS {
            self.0 = black_box(self.0 + 3.0).sqrt();
        }
        Ok(())
    }
}
