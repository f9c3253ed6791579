// SPDX-License-Identifier: MIT OR Apache-2.0
//! With whose processes memory is shared.

use super::RendezvousError;
use crate::peer::Peer;
use crate::user::{is_ours, may_be_anybody};
use std::fmt;
use std::sync::Arc;

/// With whose processes this one shares memory. Asked of the kernel's word about the peer, before
/// anything is sent to it and before anything it sent is looked at.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Users {
    /// This process's own user, and root, who can do as it likes with our memory in any case.
    ///
    /// In a user namespace that does not know all users, those that it does not know have one
    /// number together, 65534 as a rule. A process of that number may be anybody's, and is not
    /// let in: not by this, though this process have the number too, nor by `Listed`.
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
    /// [`RendezvousError::OtherUser`] or
    /// [`RendezvousError::UnknownUser`] if `peer` is none of them.
    pub(super) fn check(&self, peer: &Peer) -> Result<(), RendezvousError> {
        let admitted = match self {
            Self::Chosen(admits) => admits(peer),
            _ => self.has(peer.uid()),
        };
        if admitted { Ok(()) } else { Err(Self::refusal(peer.uid())) }
    }

    /// What is said of the user `uid`, who is none of them.
    pub(super) fn refusal(uid: u32) -> RendezvousError {
        match may_be_anybody(uid) {
            true => RendezvousError::UnknownUser { uid },
            false => RendezvousError::OtherUser { uid },
        }
    }

    /// Is the user `uid` among them, as far as that can be said without a process?
    pub(super) fn has(&self, uid: u32) -> bool {
        match self {
            Self::Same => is_ours(uid) || (uid == 0 && !may_be_anybody(uid)),
            Self::Listed(users) => users.contains(&uid) && !may_be_anybody(uid),
            Self::Anyone => true,
            Self::Chosen(_) => false,
        }
    }

    /// The rights that the socket file gets if nothing else is said:
    /// a process that may not write there cannot connect.
    pub fn mode(&self) -> u32 {
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
