// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why something is not written to.

use std::io;

/// Why a file is not written although the system would open it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// What lies there belongs to another user, who may have put it
    /// there to have something else written.
    #[error("{path} is {what} of another user (number {owner}), and is not used; name another path")]
    Planted {
        /// Where it lies.
        path: String,
        /// What it is.
        what: &'static str,
        /// Whose it is.
        owner: u32,
    },
    /// More links than anybody follows.
    #[error("more than {0} links lead from one to the next")]
    Links(u32),
}

impl NotWritten {
    /// Whether `error` is that something was planted.
    pub fn is_why(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}
