// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the waker of a stackless task points to.

use std::task::{RawWaker, RawWakerVTable, Waker};

use super::queue::Queue;

/// What a waker points to: the task's place in the queue. It lasts as long as the process, so a
/// waker needs no count of those who hold it.
pub(super) struct Node {
    queue: Queue,
    /// The task's number.
    pub(super) own: u32,
}

impl Node {
    /// Those of all tasks of `queue`.
    pub(super) fn of(queue: Queue, tasks: u32) -> &'static [Self] {
        (0..tasks).map(|own| Self { queue, own }).collect::<Vec<_>>().leak()
    }

    /// A waker that puts this task at the end of the queue.
    pub(super) fn waker(&'static self) -> Waker {
        // SAFETY: the functions of the table take a node that lasts for ever and is only read, from any
        // thread. Who wakes a task that stands in the queue breaks the queue's order, not memory;
        // the futures here wake themselves once a turn.
        unsafe { Waker::new(std::ptr::from_ref(self).cast(), &WAKES) }
    }
}

static WAKES: RawWakerVTable = RawWakerVTable::new(again, wake, wake, |_| {});

/// Another waker of the same task.
fn again(node: *const ()) -> RawWaker {
    RawWaker::new(node, &WAKES)
}

fn wake(node: *const ()) {
    // SAFETY: `Node::waker` put it there.
    let node = unsafe { &*node.cast::<Node>() };
    node.queue.push(node.own);
}
