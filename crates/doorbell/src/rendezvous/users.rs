// SPDX-License-Identifier: MIT OR Apache-2.0
//! With whose processes memory is shared.

use super::RendezvousError;
use crate::peer::Peer;
use std::fmt;
use std::sync::Arc;

/// With whose processes this one shares memory. Asked of the kernel's word about the peer, before anything is sent to it and
/// before anything it sent is looked at.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Users {
    /// This process's own user, and root, who can do as it likes with our memory in any case.
    #[default]
    Same,
    /// These users, by number. Root is not among them unless it is named.
    Listed(Arc<[u32]>),
    /// Anybody whom the rights of the path let through.
    Anyone,
    /// Whom this function says.
    Chosen(Arc<dyn Fn(&Peer) -> bool + Send + Sync>),
}

impl Users {
    /// # Errors
    /// [`RendezvousError::OtherUser`] if `peer` is none of them.
    pub(super) fn check(&self, peer: &Peer) -> Result<(), RendezvousError> {
        let admitted = match self {
            Self::Chosen(admits) => admits(peer),
            _ => self.has(peer.uid()),
        };
        if admitted { Ok(()) } else { Err(RendezvousError::OtherUser { uid: peer.uid() }) }
    }

    /// Is the user `uid` among them, as far as that can be said without a process?
    pub(super) fn has(&self, uid: u32) -> bool {
        match self {
            Self::Same => uid == 0 || uid == rustix::process::geteuid().as_raw(),
            Self::Listed(users) => users.contains(&uid),
            Self::Anyone => true,
            Self::Chosen(_) => false,
        }
    }

    /// The rights that the socket file gets if nothing else is said: a process that may not write there cannot connect.
    pub(crate) fn mode(&self) -> u32 {
        match self {
            Self::Same => 0o600,
            _ => 0o666,
        }
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("Same"),
            Self::Listed(users) => f.debug_tuple("Listed").field(users).finish(),
            Self::Anyone => f.write_str("Anyone"),
            Self::Chosen(_) => f.write_str("Chosen(..)"),
        }
    }
}
