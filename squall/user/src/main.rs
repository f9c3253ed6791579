// SPDX-License-Identifier: MIT OR Apache-2.0
//! Squall's user programs, all in one file: the kernel tells a new
//! space by number which one it is (`program.rs`).
#![no_std]
#![no_main]

mod arm;
mod director;
mod future;
mod hostile;
mod kernel;
mod program;
mod record;
mod scheduler;
mod stackful;
mod trial;
mod worker;

use squall_scheduler::call::Call;

/// Where every space begins, on its first stack.
#[unsafe(no_mangle)]
extern "C" fn _start(which: usize, first: usize, second: usize) -> ! {
    let me = kernel::must(Call::Myself, [0; 4]);
    match which {
        program::DIRECTOR => director::run(me),
        program::ARM => director::arm(first, second),
        program::SIDE => arm::across::side(first, second, me, program::FIRST),
        program::DOCUMENT_SIDE => arm::document::side(first, second, me, program::FIRST),
        program::HOSTILE => hostile::misbehave(first, second, me, program::FIRST),
        program::ENDS => kernel::exit(0),
        program::WORKER => worker::run(first, second, me, program::FIRST),
        _ => kernel::exit(2),
    }
}
