// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misdeeds of those who never end by themselves.

use squall_scheduler::call::Call;

use crate::kernel::{call, exit};
use crate::scheduler::{Mail, take_mail, take_part};

pub(super) fn never_yields() {
    loop {
        core::hint::spin_loop();
    }
}

pub(super) fn yield_for_ever(way: Call) {
    loop {
        call(way, [0; 4]);
    }
}

pub(super) fn parks() {
    if !take_part(1, 0) {
        // Among many forked ones: there is no memory left.
        exit(2);
    }
    parks_on();
}

/// Parks again after every mail, for ever; needs its part of the pool.
pub(super) fn parks_on() {
    loop {
        take_mail();
        Mail { me: 0, others: [0; 2], count: 0 }.sleep();
    }
}
