// SPDX-License-Identifier: MIT OR Apache-2.0
//! From whom this process has a segment.

use crate::error::HungUp;
use crate::holder::Holder;
use crate::mapping::Mapping;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock, Weak};

/// The connection to a peer, as those see it who only keep it.
pub(crate) trait Hold: Debug + Send + Sync {
    /// Was it made by this process, and not by one that this was forked from?
    fn is_ours(&self) -> bool;
}

/// How this process came by a segment: whom it has it from, if it did
/// not make it, and as whom it takes what is in it.
#[derive(Debug)]
pub(crate) struct Origin {
    hold: OnceLock<Weak<dyn Hold>>,
    holder: Holder,
}

impl Origin {
    pub(crate) fn new(holder: Holder) -> Self {
        Self { hold: OnceLock::new(), holder }
    }

    /// The segment was joined over `hold`. The first time counts.
    pub(crate) fn set(&self, hold: Weak<dyn Hold>) {
        let _ = self.hold.set(hold);
    }

    /// What this process writes in `mapping` where it takes a waiter slot or an end.
    pub(crate) fn holder(&self, mapping: &Mapping) -> u32 {
        self.holder.number(mapping)
    }

    /// In which namespaces that says which process it is, if it does.
    pub(crate) fn namespace(&self) -> Option<u32> {
        match self.holder {
            Holder::Process { namespace, .. } => Some(namespace),
            Holder::Given(_) => None,
        }
    }

    /// What has to be kept for as long as anything is held by this process's
    /// number on the segment. Fails if we joined it and have hung up since,
    /// or are the forked child of the process that joined: to the segment's
    /// maker what we hold would be a dead process's, to be given to others.
    pub(crate) fn hold(&self) -> Result<Option<Arc<dyn Hold>>, HungUp> {
        let Some(hold) = self.hold.get() else { return Ok(None) };
        Ok(Some(hold.upgrade().filter(|hold| hold.is_ours()).ok_or(HungUp)?))
    }
}
