// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a GPU: spinning as long as that pays on this machine, then sleeping.
//!
//! `cuStreamSynchronize` spins a whole core or sleeps, by a switch of the context; [`Waiter`] does
//! the one as long as it pays and then the other, learns which from its own waits, and takes a
//! deadline. [`Events`] is a descriptor for epoll behind which any number of events
//! stand; `AsyncWaiter` (feature `tokio`) is a task's.
//!
//! The context in which a waiter first slept must outlive it. A forked child can use none of its
//! parent's: CUDA's rule, and these are bound by it.
//!
//! Events are those of the driver, which the CUDA runtime's are too: a `cudaEvent_t`, the
//! `cuda_event` of a `torch.cuda.Event`, the `ptr` of CuPy's.
//!
//! ```
//! # fn until(recorded: *mut std::ffi::c_void) -> Result<(), doorbell::gpu::GpuError> {
//! use doorbell::gpu::{Event, Waiter};
//!
//! let mut waiter = Waiter::new()?;
//! // SAFETY: the program keeps the event while it is waited for.
//! let event = unsafe { Event::from_raw(recorded) };
//! waiter.wait(&event, None)?;
//! # Ok(())
//! # }
//! ```

mod alarm;
#[cfg(feature = "tokio")]
mod asynchronous;
pub mod driver;
mod error;
mod events;
mod waiter;

#[cfg(feature = "tokio")]
pub use asynchronous::AsyncWaiter;
pub use error::GpuError;
pub use events::{Done, Events};
pub use waiter::{Counts, Spin, Waiter, measure_sleep_cost, sleep_cost};

use driver::Handle;
use std::marker::PhantomData;

/// An event of the GPU's driver, which somebody keeps for as long as this is there.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    raw: Handle,
    kept: PhantomData<&'a ()>,
}

// SAFETY: the driver's functions may be called from any thread.
unsafe impl Send for Event<'_> {}
// SAFETY: as above; the handle is only copied.
unsafe impl Sync for Event<'_> {}

impl Event<'_> {
    /// The event `raw`, a `CUevent` or `cudaEvent_t`.
    ///
    /// # Safety
    /// It must be an event of the driver that this process has
    /// opened, and stay alive for as long as what is made here.
    pub unsafe fn from_raw(raw: Handle) -> Self {
        Self { raw, kept: PhantomData }
    }

    fn raw(self) -> Handle {
        self.raw
    }
}
