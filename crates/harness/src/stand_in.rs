// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side without a host, for the tests of what sides run.

use doorbell_results::machine::clock::Clock;
use doorbell_results::record::{SideCounters, Tally, sample};

use crate::arena::Arena;
use crate::control::Control;
use crate::part::Role;
use crate::side::{Side, Times};

/// A responder that may run on `cpus`, with messages of `size` bytes, by the monotonic clock.
pub fn side(cpus: Option<[u32; 2]>, size: usize) -> Side {
    let arena = Arena::map(size_of::<Control>() + 2 * size + 8192).unwrap();
    let mut configuration = sample::configuration("futex");
    configuration.placement.cpus = cpus;
    configuration.size = size as u32;
    Side {
        clock: Clock::MONOTONIC,
        configuration,
        control: Control::place(arena).unwrap(),
        payload: [arena.bytes(size).unwrap(), arena.bytes(size).unwrap()],
        received: vec![u8::MAX; size],
        role: Role::Respond,
        times: Times::default(),
        tally: Tally::default(),
        before: None,
        left_out: 0,
        reading_ns: 0,
        reference_lines: None,
        reference: None,
        work: None,
        counters: SideCounters::default(),
        figures: Vec::new(),
        journal: None,
        io: None,
    }
}
