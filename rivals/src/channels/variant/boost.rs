// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boost.Interprocess message_queue, through a shim in C++.

use crate::channels::link::Link;

#[cfg(boost)]
mod queue {
    use super::super::depth;
    use crate::channels::idle::poll;
    use crate::channels::link::{End, Link, Place, link};
    use std::ffi::{CString, c_char, c_void};

    // Each is a call of the C++ class. `send` and `receive` return 0
    // if there was no room or no message.
    unsafe extern "C" {
        fn boost_queue_create(name: *const c_char, most: usize, size: usize) -> *mut c_void;
        fn boost_queue_close(queue: *mut c_void);
        fn boost_queue_send(queue: *mut c_void, from: *const u8, size: usize, waits: bool) -> i32;
        fn boost_queue_receive(queue: *mut c_void, to: *mut u8, size: usize, waits: bool) -> i32;
    }

    /// A queue that has no name any more, as this process sees it.
    /// What both sides use lies in the mapping, mutex and conditions
    /// too, so that a forked child has its own view of the same queue.
    #[derive(Clone, Copy)]
    struct Queue(*mut c_void);

    // SAFETY: the C++ object may be used from any thread.
    unsafe impl Send for Queue {}

    impl Queue {
        fn new<const S: usize>(direction: &str) -> Result<Self, String> {
            let name = format!("doorbell-rivals-{}-{S}-{direction}", std::process::id());
            let name = CString::new(name).expect("no zero");
            // SAFETY: a valid name; null means that the constructor threw.
            let queue = unsafe { boost_queue_create(name.as_ptr(), depth(S), S) };
            if queue.is_null() {
                Err("the constructor of message_queue threw".to_owned())
            } else {
                Ok(Self(queue))
            }
        }
    }

    struct Ends<const S: usize> {
        out: Queue,
        back: Queue,
        buffer: Box<[u8; S]>,
        waits: bool,
    }

    impl<const S: usize> Ends<S> {
        fn new(out: Queue, back: Queue, waits: bool) -> Self {
            Self { out, back, buffer: vec![0; S].try_into().expect("S bytes"), waits }
        }
    }

    impl<const S: usize> End<S> for Ends<S> {
        fn send(&mut self, message: &[u8; S]) {
            // SAFETY: a live queue and S bytes.
            poll(|| {
                unsafe { boost_queue_send(self.out.0, message.as_ptr(), S, self.waits) == 1 }.then_some(())
            });
        }
        fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
            let to = self.buffer.as_mut_ptr();
            // SAFETY: a live queue of messages of at most S bytes, and room for one.
            poll(|| unsafe { boost_queue_receive(self.back.0, to, S, self.waits) == 1 }.then_some(()));
            read(&self.buffer);
        }
    }

    impl<const S: usize> Drop for Ends<S> {
        fn drop(&mut self) {
            for queue in [self.out, self.back] {
                // SAFETY: made by `boost_queue_create`; this process has no other `Ends` of it.
                unsafe { boost_queue_close(queue.0) };
            }
        }
    }

    pub fn open<const S: usize>(waits: bool) -> Result<Box<dyn Link>, String> {
        let (there, back) = (Queue::new::<S>("there")?, Queue::new::<S>("back")?);
        link::<S, _, _>(
            Place::Processes,
            move || Ends::<S>::new(there, back, waits),
            move || Ends::<S>::new(back, there, waits),
        )
    }
}

#[cfg(not(boost))]
mod queue {
    use crate::channels::link::Link;

    pub fn open<const S: usize>(_: bool) -> Result<Box<dyn Link>, String> {
        Err("built without the headers of Boost.Interprocess (libboost-dev)".to_owned())
    }
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    queue::open::<S>(false)
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    queue::open::<S>(true)
}
