// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies through memory that no cache holds: uses up the memory's bandwidth.

use std::hint::black_box;
use std::io;

use super::{LoadKind, Work};

#[derive(Debug)]
pub(super) struct CopyMemory;

/// Bytes of each of the two buffers: together more than most third-level caches give one core.
const BYTES: usize = 32 << 20;
/// Bytes copied in a slice: a tenth of a millisecond at 10 GB/s.
const SLICE: usize = 1 << 20;

struct Copies {
    from: Vec<u8>,
    to: Vec<u8>,
    at: usize,
}

impl LoadKind for CopyMemory {
    fn name(&self) -> &'static str {
        "memory"
    }
    fn about(&self) -> &'static str {
        "copies through 64 MiB: memory bandwidth"
    }
    fn begin(&self) -> io::Result<Box<dyn Work>> {
        // Not zero: a zeroed buffer would be one page of the kernel's, over and over.
        Ok(Box::new(Copies { from: vec![1; BYTES], to: vec![2; BYTES], at: 0 }))
    }
}

impl Work for Copies {
    fn slice(&mut self) -> io::Result<()> {
        let part = self.at..self.at + SLICE;
        self.to[part.clone()].copy_from_slice(&self.from[part]);
        black_box(&mut self.to);
        self.at = (self.at + SLICE) % BYTES;
        Ok(())
    }
}
