// SPDX-License-Identifier: MIT OR Apache-2.0
//! Space IDs are limited per process tree to three quarters of all, as memory is, zombies included.

use core::sync::atomic::Ordering::Relaxed;

use squall_scheduler::call::{Call, KILLED, Refusal};

use crate::arm::across;
use crate::hostile::company::MAKES_ZOMBIES;
use crate::hostile::start;
use crate::kernel::{call, exit, must, say, wait};
use crate::scheduler::{connect, connection, knock, knocks_of, take_part};

/// Forks children that end, until it is refused; says how many there were, and never waits for any.
pub(crate) fn make(parent: usize, me: usize) -> ! {
    take_part(0, 0);
    connect(parent);
    let mut made = 0;
    let refusal = loop {
        match call(Call::Fork, [1, 0, 0, 0]) {
            0 => exit(0),
            refusal if refusal < 0 => break refusal,
            _ => made += 1,
        }
    };
    let says = if refusal == Refusal::Exhausted as isize { made } else { 0 };
    connection(parent).scratch[0].store(says, Relaxed);
    knock(parent, me, 0);
    loop {
        call(Call::Park, [0; 4]);
    }
}

/// Twice, so that what the first had is seen to come back; with `numbers` space IDs. Runs in the
/// first space.
pub(crate) fn run(numbers: usize, me: usize) -> bool {
    for _ in 0..2 {
        let maker = start(MAKES_ZOMBIES, me);
        connect(maker);
        if knocks_of(maker, me).is_none() {
            return false;
        }
        let made = connection(maker).scratch[0].load(Relaxed) as usize;
        let others_go_on = across::run_beside(2, 1, me, &mut |_, _| {});
        must(Call::Kill, [maker, 0, 0, 0]);
        let ended = wait() == Some((maker, KILLED)) && wait().is_none();
        say!("{{\"zombies\":{made}}}");
        // Itself it has one, too.
        if made + 1 != numbers / 4 * 3 || !others_go_on || !ended {
            return false;
        }
    }
    true
}
