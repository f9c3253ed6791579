// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel promises beside what is measured, one file for each promise.

pub(crate) mod kills;
pub(crate) mod late;
pub(crate) mod numbers;
pub(crate) mod slices;
pub(crate) mod stale;
pub(crate) mod zombies;
