// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misdeeds of those who take all there is.

use core::ptr::null_mut;

use squall_scheduler::call::Call;

use super::forever::parks;
use super::reach::write_word;
use super::refused;
use crate::kernel::{call, exit, grow, must, wait};
use crate::program;

pub(super) fn all_memory() {
    refused(Call::Grow, [usize::MAX, 0, 0, 0]);
    refused(Call::Grow, [1 << 40, 0, 0, 0]);
    let mut last = null_mut();
    while let Some(memory) = grow(1 << 20) {
        last = memory;
    }
    while let Some(memory) = grow(4096) {
        last = memory;
    }
    write_word(last.expose_provenance());
    refused(Call::Fork, [0; 4]);
    refused(Call::Spawn, [program::HOSTILE, 0, 0, 0]);
    refused(Call::Pool, [1 << 20, 0, 0, 0]);
}

pub(super) fn ask_on() {
    while grow(1 << 20).is_some() {}
    loop {
        grow(4096);
    }
}

pub(super) fn fork_all() {
    let mut children: usize = 0;
    loop {
        match call(Call::Fork, [0; 4]) {
            0 => parks(),
            child if child < 0 => break,
            _ => children += 1,
        }
        if children > 100_000 {
            exit(3);
        }
    }
    // Its children are the first space's to wait for, and end here:
    // they are numbered upwards from this one.
    let myself = must(Call::Myself, [0; 4]);
    let mut ended = 0;
    for number in (myself + 1..65536).chain(1..myself) {
        if ended == children {
            break;
        }
        ended += usize::from(call(Call::Kill, [number, 0, 0, 0]) >= 0);
    }
    while wait().is_some() {}
}
