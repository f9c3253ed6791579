// SPDX-License-Identifier: MIT OR Apache-2.0
//! From whom this process has a segment.

use crate::error::HungUp;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};

/// The connection to a peer, as those see it who only keep it.
pub(crate) trait Hold: Debug + Send + Sync {
    /// Was it made by this process, and not by one that this was forked from?
    fn is_ours(&self) -> bool;
}

/// The hold to whom this process has a segment from, if it did not make it.
#[derive(Debug, Default)]
pub(crate) struct Origin(OnceLock<Weak<dyn Hold>>);

impl Origin {
    /// The segment was joined over `hold`. The first time counts.
    pub(crate) fn set(&self, hold: Weak<dyn Hold>) {
        let _ = self.0.set(hold);
    }

    /// What has to be kept for as long as anything is held by this process's number on the segment. Fails if we joined it and
    /// have hung up since, or are the forked child of the process that joined: to the segment's maker what we hold would be
    /// a dead process's, to be given to others.
    pub(crate) fn hold(&self) -> Result<Option<Arc<dyn Hold>>, HungUp> {
        let Some(hold) = self.0.get() else { return Ok(None) };
        Ok(Some(hold.upgrade().filter(|hold| hold.is_ours()).ok_or(HungUp)?))
    }
}
