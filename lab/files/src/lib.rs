// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes files in folders where other users may have a hand in them.
//!
//! A name in such a folder may lead anywhere: through a link to a file of ours that is then
//! overwritten, to a FIFO that waits for ever to be opened, to a device that acts when it is. So
//! files that a user names, or that lie where others may write, are opened here alone, and clippy
//! refuses the standard library's ways elsewhere (`clippy.toml`).

mod by_number;
mod folder;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod held;
mod kernel;
mod not_written;
mod read;
mod write;

pub use folder::{folder, resolved};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use held::Held;
pub use kernel::{NotTheKernels, kernel};
pub use not_written::NotWritten;
pub use read::{MARKS, NotRead, bytes, open, text};
#[cfg(unix)]
pub use write::own;
pub use write::{create_new, put, replace, try_out, unforeseen};
