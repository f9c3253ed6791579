// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies through memory that no cache holds: uses up the memory's bandwidth.

use std::hint::black_box;

use super::LoadKind;

/// Bytes of each of the two buffers: together more than most third-level caches give one core.
const BYTES: usize = 32 << 20;
/// Bytes copied in a slice: a tenth of a millisecond at 10 GB/s.
const SLICE: usize = 1 << 20;

pub(super) const COPY_MEMORY: LoadKind = LoadKind {
    name: "memory",
    about: "copies through 64 MiB: memory bandwidth",
    begin: || {
        // Not zero: a zeroed buffer would be one page of the kernel's, over and over.
        let (from, mut to, mut at) = (vec![1_u8; BYTES], vec![2_u8; BYTES], 0);
        Ok(Box::new(move || {
            let part = at..at + SLICE;
            to[part.clone()].copy_from_slice(&from[part]);
            black_box(&mut to);
            at = (at + SLICE) % BYTES;
            Ok(())
        }))
    },
};
