// SPDX-License-Identifier: MIT OR Apache-2.0
//! Square roots, the load of the semaphore study: a long chain of the
//! slowest common instruction, no memory.

use std::hint::black_box;

use super::LoadKind;

/// Some 20 cycles each: 20,000 are a tenth of a millisecond.
const ROOTS: u32 = 20_000;

pub(super) const SQRT: LoadKind = LoadKind {
    name: "sqrt",
    about: "square roots, one after the other; no memory",
    begin: || {
        let mut root = 2.0_f64;
        Ok(Box::new(move || {
            for _ in 0..ROOTS {
                root = black_box(root + 3.0).sqrt();
            }
            Ok(())
        }))
    },
};
