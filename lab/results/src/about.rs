// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a name means that stands in a table, a result file or a
//! warning; `doorbell explain NAME` prints it.

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    pub name: &'static str,
    pub what: &'static str,
    /// How it is found.
    pub taken: &'static str,
    /// When it misleads, and what it does not show.
    pub misleads: &'static str,
}
