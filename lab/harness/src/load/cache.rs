// SPDX-License-Identifier: MIT OR Apache-2.0
//! A random walk through as much memory as a second-level cache
//! holds: evicts what a woken task would have found there.

use std::hint::black_box;

use super::LoadKind;

/// Lines of 64 bytes: 2 MiB, a large second-level cache of today.
const LINES: usize = 32_768;
/// Steps in a slice; some 15 cycles each.
const STEPS: usize = 20_000;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    next: u32,
    visits: u32,
}

pub(super) const CACHE: LoadKind = LoadKind {
    name: "cache",
    about: "a random walk that writes 2 MiB of cache lines",
    begin: || {
        // One cycle through all lines (Sattolo's shuffle), so that the walk meets every line.
        let mut lines: Vec<Line> = (0..LINES as u32).map(|next| Line { next, visits: 0 }).collect();
        let mut random = fastrand::Rng::with_seed(1);
        for index in (1..LINES).rev() {
            let other = random.usize(..index);
            let next = lines[index].next;
            lines[index].next = lines[other].next;
            lines[other].next = next;
        }
        let mut at = 0;
        Ok(Box::new(move || {
            for _ in 0..STEPS {
                let line = &mut lines[at];
                line.visits = line.visits.wrapping_add(1);
                at = line.next as usize;
            }
            black_box(at);
            Ok(())
        }))
    },
};
