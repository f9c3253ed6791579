// SPDX-License-Identifier: MIT OR Apache-2.0
//! With whose processes memory is shared, as C says it.

use crate::error::Failure;
use doorbell::rendezvous::Users;

/// This process's own user, and root.
pub const DOORBELL_USERS_SAME: u32 = 0;
/// Anybody whom the rights of the socket file let through.
pub const DOORBELL_USERS_ANYONE: u32 = 1;
/// Those of `listed` alone: root is not among them unless it is there.
pub const DOORBELL_USERS_LISTED: u32 = 2;

/// With whose processes memory is shared. All zero is DOORBELL_USERS_SAME.
///
/// The kernel shows users that have no number in this user namespace as one, 65534 as a rule. They
/// may be anybody, and are none of DOORBELL_USERS_SAME nor of `listed`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_users {
    /// DOORBELL_USERS_SAME, or another.
    pub kind: u32,
    /// How many numbers `listed` has.
    pub count: u32,
    /// Numbers of users; read during the call. NULL if there are none.
    pub listed: *const u32,
}

/// # Safety
/// NULL, which is DOORBELL_USERS_SAME, or valid for reads, as is
/// `listed` for `count` numbers: the header's contract.
pub(crate) unsafe fn users(users: *const doorbell_users) -> Result<Users, Failure> {
    // SAFETY: by contract.
    let Some(users) = (unsafe { users.as_ref() }) else { return Ok(Users::Same) };
    match users.kind {
        DOORBELL_USERS_SAME => Ok(Users::Same),
        DOORBELL_USERS_ANYONE => Ok(Users::Anyone),
        DOORBELL_USERS_LISTED if users.count == 0 => Ok(Users::Listed([].into())),
        DOORBELL_USERS_LISTED if users.listed.is_null() => Err(Failure::null("users.listed")),
        DOORBELL_USERS_LISTED => {
            // SAFETY: by contract.
            let listed = unsafe { std::slice::from_raw_parts(users.listed, users.count as usize) };
            Ok(Users::Listed(listed.into()))
        }
        kind => Err(Failure::invalid(format!("{kind} is no kind of users; the header has them"))),
    }
}
