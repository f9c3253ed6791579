// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's trace events: an instance of the trace buffer of
//! one's own, and its pages read as they are.
//!
//! Nothing here interprets a wake-up of ours; that is `anatomy`. Those of a program of the user's
//! are told apart in `program`. The buffers are read raw (`trace_pipe_raw`) by the layout the
//! kernel itself publishes in `format` files: text would cost the kernel ten times as long to write
//! as the events cost to record.

pub mod bpf;
pub mod event;
pub mod format;
pub mod instance;
pub mod program;
pub mod ring;
pub mod tracefs;

pub use instance::Instance;
pub use tracefs::{TraceError, Tracefs};
