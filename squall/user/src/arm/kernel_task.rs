// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stackful tasks of the kernel itself, by the same image at the kernel's address.

use squall_scheduler::call::Call;

use crate::kernel::call;
use crate::record::{INSTRUCTIONS, Reading, Record};

/// Called by the first space, which alone may ask for it.
pub(crate) fn run(tasks: usize, turns: usize) -> bool {
    let begin = Reading::begin();
    let mut instructions = 0_u64;
    let done = call(Call::KernelTasks, [tasks, turns, (&raw mut instructions).expose_provenance(), 0]);
    let end = Reading::end();
    if done < 0 {
        return false;
    }
    let record = Record { bytes: 4096, ..Record::of("kernel-task", tasks, turns, done as usize) };
    // As the kernel counted between two points of its own.
    let mut counted = begin.until(&end);
    counted[INSTRUCTIONS] = instructions;
    record.print(counted);
    true
}
