// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that are polled: Rust's futures, all of one type, as an executor of one program has them.

use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use squall_scheduler::pool::Task;

use crate::kernel::grow;
use crate::scheduler::{image, insert, part};

/// A future and its place in the ring.
#[repr(C)]
pub(crate) struct FutureTask<F> {
    task: Task,
    woken: bool,
    future: F,
}

static WAKER: RawWakerVTable = RawWakerVTable::new(|task| RawWaker::new(task, &WAKER), wake, wake, |_| {});

/// Marks the task: the executor, which is polling it, looks at the
/// mark. Nobody else has a task's waker here.
fn wake(task: *const ()) {
    // SAFETY: a waker's pointer is a task's, of whose future only the type is not known.
    unsafe { (*task.cast_mut().cast::<FutureTask<()>>()).woken = true };
}

/// Memory for `tasks` futures.
pub(crate) fn room<F>(tasks: usize) -> Option<*mut FutureTask<F>> {
    grow(tasks * size_of::<FutureTask<F>>()).map(<*mut u8>::cast)
}

/// Makes a future ready at `level`.
pub(crate) fn start<F: Future<Output = ()>>(place: *mut FutureTask<F>, level: usize, future: F) {
    // SAFETY: the place is from `room`, and free.
    unsafe {
        place.write(FutureTask { task: Task::IDLE, woken: false, future });
        insert(&raw mut (*place).task, level);
    }
}

/// Polls all futures, which are of the type of those at `_first`, in the order of their ring until
/// none is ready; how many were done.
pub(crate) fn run<F: Future<Output = ()>>(_first: *mut FutureTask<F>) -> usize {
    let mut done = 0;
    // SAFETY: only the address is taken.
    let executor = unsafe { &raw mut (*part()).executor };
    // SAFETY: the part is this space's own, and all tasks in it but the executor are of this type.
    unsafe {
        let mut next = (image().step)(part());
        while next != executor {
            let current = next.cast::<FutureTask<F>>();
            (*current).woken = false;
            let waker = Waker::from_raw(RawWaker::new(current.cast(), &WAKER));
            let poll = Pin::new_unchecked(&mut (*current).future).poll(&mut Context::from_waker(&waker));
            core::mem::forget(waker);
            next = match poll {
                Poll::Pending if (*current).woken => (image().step)(part()),
                Poll::Pending => (image().leave)(part()),
                Poll::Ready(()) => {
                    let next = (image().leave)(part());
                    ptr::drop_in_place(&raw mut (*current).future);
                    done += 1;
                    next
                }
            };
        }
    }
    done
}

/// Lets the other tasks of its level run once.
pub(crate) struct YieldNow {
    asked: bool,
}

pub(crate) fn yield_now() -> YieldNow {
    YieldNow { asked: false }
}

impl Future for YieldNow {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.asked {
            return Poll::Ready(());
        }
        self.asked = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
