// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of the kernel itself, by the same image and the same rings as those of processes: the
//! experiment's arm `kernel-task`.

use core::ptr;

use squall_scheduler::call::Refusal;
use squall_scheduler::image::hand_over;
use squall_scheduler::pool::{Part, Task};

use crate::frames::FRAME;
use crate::kernel::Kernel;
use crate::page_table::{mapped, physical};
use crate::register::read;
use crate::scheduler_image::{entries, here};

/// Level of the tasks.
const LEVEL: usize = 1;

/// What a task needs: the scheduler's view of it at the start of its frame, its stack at the end.
#[repr(C)]
struct KernelTask {
    task: Task,
    run: *mut Run,
    /// The task whose frame goes after this one's.
    after: *mut KernelTask,
}

/// What all tasks share.
struct Run {
    part: *mut Part,
    yields: usize,
    /// Hand-overs done.
    done: usize,
    /// Tasks whose frames can go.
    ended: *mut KernelTask,
}

/// What all tasks did together.
pub(crate) struct Done {
    /// As they counted.
    pub(crate) hand_overs: usize,
    pub(crate) instructions: usize,
}

/// `tasks` of them hand over `yields` times each.
pub(crate) fn run(kernel: &mut Kernel, tasks: usize, yields: usize) -> Result<Done, Refusal> {
    if tasks == 0 || tasks >= kernel.frames.left() {
        return Err(Refusal::Exhausted);
    }
    let part_frame = kernel.frames.take().ok_or(Refusal::Exhausted)?;
    let mut run = Run { part: mapped(part_frame), yields, done: 0, ended: ptr::null_mut() };
    // SAFETY: the frames are ours, and go when nothing runs in them any more.
    unsafe {
        Part::initialise(run.part);
        for _ in 0..tasks {
            let Some(frame) = kernel.frames.take() else { return Err(Refusal::Exhausted) };
            let task = mapped::<KernelTask>(frame);
            // The address to go on at lies below the stack pointer.
            let top = mapped::<usize>(frame + FRAME - 16);
            *top.sub(1) = body as *const () as usize;
            let stack_pointer = top as usize;
            task.write(KernelTask {
                task: Task { stack_pointer, ..Task::IDLE },
                run: &raw mut run,
                after: ptr::null_mut(),
            });
            (*run.part).insert(&raw mut (*task).task, LEVEL);
        }
        let yield_now = here(entries().yield_now);
        let begin = read!("instret");
        // Returns when only the executor, which is this function, is left.
        hand_over(yield_now, run.part);
        let instructions = read!("instret") - begin;
        while !run.ended.is_null() {
            let frame = physical(run.ended);
            run.ended = (*run.ended).after;
            kernel.frames.give_back(frame);
        }
        kernel.frames.give_back(part_frame);
        Ok(Done { hand_overs: run.done, instructions })
    }
}

/// What each task does. Its frame is where its stack is.
extern "C" fn body() -> ! {
    let on_the_stack = 0_u8;
    let me = ((&raw const on_the_stack).addr() & !(FRAME - 1)) as *mut KernelTask;
    let (yield_now, block) = (here(entries().yield_now), here(entries().block));
    // SAFETY: `run` outlives its tasks, of which one runs at a time.
    unsafe {
        let run = (*me).run;
        for _ in 0..(*run).yields {
            hand_over(yield_now, (*run).part);
            (*run).done += 1;
        }
        (*me).after = (*run).ended;
        (*run).ended = me;
        hand_over(block, (*run).part);
    }
    unreachable!("nobody wakes a task that ended")
}
