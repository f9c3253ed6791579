// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a side does in slices, by pattern.

use crate::bench::resident::Resident;
use crate::mechanism::{Fault, Mechanism};
use crate::role::Role;
use crate::side::{Side, SideError};

mod one_way;
mod ping_pong;

/// The ends of `role` for a side that comes back to `links` slice by
/// slice; none where the bench does not fit.
pub(crate) fn resident<'links, M: Mechanism>(
    links: &'links [M::Link],
    role: Role,
    side: &Side,
) -> Option<Box<dyn Resident + 'links>> {
    if !crate::bench::fits(&side.configuration, Some(&M::NOTIFICATION)) {
        return None;
    }
    match links {
        [there, back] => Some(Box::new(ping_pong::PingPong::<M>::new(there, back, role, side))),
        [there] => Some(Box::new(one_way::OneWay::<M>::new(there, side))),
        _ => None,
    }
}

/// Where each answers each, both sides count alike.
fn miscounted(rounds: u64, answers: u64) -> SideError {
    Fault::new("a slice", format!("{answers} answers to {rounds} notifications")).into()
}

/// Ends that were not taken cannot be used: a mistake of this
/// program, told as one of the mechanism.
fn not_taken() -> SideError {
    Fault::new("a slice", "its ends were not taken").into()
}
