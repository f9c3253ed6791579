// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs, by number: what a new space is told to run.

/// Reads the command line and runs what it says.
pub(crate) const DIRECTOR: usize = 0;
/// An arm that needs a space of its own.
pub(crate) const ARM: usize = 1;
/// One of two spaces that hand over to each other.
pub(crate) const SIDE: usize = 2;
/// One of the two spaces of the document's process run.
pub(crate) const DOCUMENT_SIDE: usize = 3;
/// A process that means harm.
pub(crate) const HOSTILE: usize = 4;
/// A process that spawns, wakes and sleeps at random.
pub(crate) const WORKER: usize = 5;
/// Ends at once.
pub(crate) const ENDS: usize = 6;

/// The first space.
pub(crate) const FIRST: usize = 1;

/// The kernel's level of all spaces but the first.
pub(crate) const LEVEL: usize = 3;
