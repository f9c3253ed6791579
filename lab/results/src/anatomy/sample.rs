// SPDX-License-Identifier: MIT OR Apache-2.0
//! What wakes recorded on a machine of two CPUs left, for the tests of whatever shows it; a test of
//! `doorbell-harness`, which cut them, holds these files to what it makes.

use super::Anatomy;

fn read(json: &str) -> Anatomy {
    serde_json::from_str(json).expect("a file of this crate")
}

/// By a kernel that shows every mark.
pub fn whole() -> Anatomy {
    read(include_str!("sample/whole.json"))
}

/// By a kernel that tells of no switch.
pub fn no_switches() -> Anatomy {
    read(include_str!("sample/no-switches.json"))
}

/// By a kernel that tells of no interrupt sent.
pub fn no_interrupts() -> Anatomy {
    read(include_str!("sample/no-interrupts.json"))
}
