// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machine this is: read once, stored in every result.

pub mod clock;
