// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side without a host, for the tests of what sides run.

use doorbell_results::machine::clock::Clock;
use doorbell_results::record::sample;

use crate::arena::Arena;
use crate::control::Control;
use crate::roles::Role;
use crate::side::Side;

/// A responder that may run on `cpus`, with messages of `size` bytes, by the monotonic clock.
pub fn side(cpus: Option<[u32; 2]>, size: usize) -> Side {
    let arena = Arena::map(size_of::<Control>() + 2 * size + 8192).unwrap();
    let mut configuration = sample::configuration("futex");
    configuration.placement.cpus = cpus;
    configuration.size = size as u32;
    let control = Control::place(arena).unwrap();
    let payload = [arena.bytes(size).unwrap(), arena.bytes(size).unwrap()];
    Side {
        received: vec![u8::MAX; size],
        ..Side::new(Role::Respond, Clock::MONOTONIC, configuration, control, payload)
    }
}
