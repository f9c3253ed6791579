// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `doorbell`.
fn main() {}
