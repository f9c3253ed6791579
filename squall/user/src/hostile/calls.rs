// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misdeeds by calls that are not meant to be made so.

use core::arch::asm;

use squall_scheduler::call::{Call, Refusal};

use super::company::SETS_AN_ALARM;
use super::forever::parks_on;
use super::{refused, start};
use crate::kernel::{exit, grow, must};
use crate::program;
use crate::scheduler::{connect, knocks_of, take_part};

pub(super) fn foreign_calls() {
    for what in [Call::Tick, Call::KeepTranslations, Call::KernelTasks, Call::Stop] {
        refused(what, [1, 1, 1, 1]);
    }
    for number in [Call::Stop as usize + 1, 1000, usize::MAX] {
        let mut answer = number as isize;
        // SAFETY: there is no such call.
        unsafe { asm!("ecall", in("a7") number, inlateout("a0") answer) };
        if answer != Refusal::NoSuchCall as isize {
            exit(3);
        }
    }
    refused(Call::Pool, [usize::MAX / 8, 0, 0, 0]);
    refused(Call::Pool, [1 << 40, 0, 0, 0]);
    refused(Call::Pool, [4, 99, 0, 0]);
    refused(Call::Spawn, [0, 0, 0, 8]);
    refused(Call::Park, [0; 4]);
    must(Call::Pool, [4, 0, 0, 0]);
    refused(Call::Pool, [4, 0, 0, 0]);
}

pub(super) fn strangers() {
    for number in [0, 5000, 65535, 65536, usize::MAX] {
        refused(Call::Kick, [number, 0, 0, 0]);
        refused(Call::Kill, [number, 0, 0, 0]);
        refused(Call::Connect, [number, 0, 0, 0]);
    }
    // The parent may be talked to, and not ended.
    refused(Call::Kill, [program::FIRST, 0, 0, 0]);
    let myself = must(Call::Myself, [0; 4]);
    refused(Call::Kill, [myself, 0, 0, 0]);
    refused(Call::Connect, [myself, 0, 0, 0]);
}

pub(super) fn print_much() {
    const MEGABYTE: usize = 1 << 20;
    let Some(memory) = grow(MEGABYTE) else { exit(2) };
    // SAFETY: memory that was asked for.
    unsafe {
        memory.write_bytes(b' ', MEGABYTE);
        memory.add(4095).write(b'\n');
    }
    exit(if must(Call::Print, [memory.expose_provenance(), MEGABYTE, 0, 0]) == 4096 { 0 } else { 3 })
}

pub(super) fn alarms_at_the_end_of_time() {
    for _ in 0..3 {
        must(Call::Alarm, [usize::MAX, 0, 0, 0]);
    }
}

/// What a process set an alarm for is forgotten with it, whether it ends or is ended: no alarm is
/// left that could wake anybody.
pub(super) fn alarms_of_the_dead() {
    let me = must(Call::Myself, [0; 4]);
    take_part(0, 0);
    start(SETS_AN_ALARM, 0);
    let parked = start(SETS_AN_ALARM, me);
    connect(parked);
    if knocks_of(parked, me).is_none() {
        exit(3);
    }
    must(Call::Kill, [parked, 0, 0, 0]);
    // Not waited for: what the kernel keeps of the two stays as it was.
    parks_on();
}
