// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a working set without any switch: what is subtracted from
//! a switch with that working set.

use super::alone::alone;
use super::{Explanation, Form, Operation, PLAIN};
use doorbell_harness::side::fill;

pub(super) const OPERATION: Operation = Operation {
    name: "touch",
    form: Form::alone("set", 16),
    explanation: Explanation {
        summary: "writing a working set over and over, without a switch",
        how: "Fills --working-set bytes of memory in a loop, as each side of a switch with \
            that working set does.",
        kernel: "Nothing: the memory is mapped before.",
        limits: "One set in a loop stays as warm as the caches let it. Two sides that alternate \
            share the caches of one core: what that costs them is the difference to be seen.",
        sources: &["tsuna/contextswitch, timectxswws"],
    },
    open: |_, _| {
        alone(|side| {
            let (bytes, mut value) = (side.payload[0], 0_u8);
            Ok(move |count| {
                for _ in 0..count {
                    value = value.wrapping_add(1);
                    fill(bytes, value);
                }
                Ok(())
            })
        })
    },
    ..PLAIN
};
