// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a service and a joiner may say of how they do it.

use crate::error::Failure;
use crate::users::{DOORBELL_USERS_SAME, doorbell_users, users};
use doorbell::rendezvous::Join;
use doorbell::service::ListenOptions;
use std::time::Duration;

/// How a service listens. doorbell_listen_options_init() fills it in; change what should differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_listen_options {
    /// The bytes of the ring in either direction, for each client: 65536. The longest message takes
    /// three eighths of it.
    pub capacity: u64,
    /// How many clients at most are there at once: 1024. Others are turned away.
    pub most_clients: u64,
    /// Whose processes may be clients: DOORBELL_USERS_SAME.
    pub users: doorbell_users,
    /// The rights of the socket file; those that follow from `users` if that is negative (-1): 0600
    /// for DOORBELL_USERS_SAME, else 0666.
    pub mode: i32,
    /// Zero.
    pub reserved: [u64; 4],
}

/// How a process joins a host, or connects to a service. doorbell_join_options_init() fills it in;
/// change what should differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_join_options {
    /// How many bytes of memory are taken from it: 1 GiB. DOORBELL_TOO_LARGE if it offers more.
    pub most_memory: u64,
    /// How many eventfds are taken from it: 252. DOORBELL_TOO_MANY if it offers more.
    pub most_eventfds: u32,
    /// How many nanoseconds a busy host is waited for: 30 seconds.
    pub patience: u64,
    /// Whose process it may be: DOORBELL_USERS_SAME. Of one over a
    /// socket or from a parent nothing is asked.
    pub host: doorbell_users,
    /// Zero.
    pub reserved: [u64; 4],
}

const SAME: doorbell_users = doorbell_users { kind: DOORBELL_USERS_SAME, count: 0, listed: std::ptr::null() };

/// # Safety
/// NULL, or valid for reads, as are the users in it: the header's contract.
pub(crate) unsafe fn listen_options(
    options: *const doorbell_listen_options,
) -> Result<ListenOptions, Failure> {
    // SAFETY: by contract.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(ListenOptions::default()) };
    let doorbell_listen_options { capacity, most_clients, users: who, mode, reserved } = *options;
    check_reserved(reserved, "doorbell_listen_options_init()")?;
    // SAFETY: by contract.
    let users = unsafe { users(&raw const who) }?;
    let most_clients = usize::try_from(most_clients).unwrap_or(usize::MAX);
    Ok(ListenOptions { capacity, users, mode: u32::try_from(mode).ok(), most_clients })
}

/// # Safety
/// As `listen_options`.
pub(crate) unsafe fn join_options(options: *const doorbell_join_options) -> Result<Join, Failure> {
    // SAFETY: by contract.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(Join::default()) };
    let doorbell_join_options { most_memory, most_eventfds, patience, host, reserved } = *options;
    check_reserved(reserved, "doorbell_join_options_init()")?;
    // SAFETY: by contract.
    let host = unsafe { users(&raw const host) }?;
    let join = Join::default().most_memory(most_memory).most_eventfds(most_eventfds).host(host);
    Ok(join.patience(Duration::from_nanos(patience)))
}

fn check_reserved(reserved: [u64; 4], init: &str) -> Result<(), Failure> {
    if reserved == [0; 4] {
        return Ok(());
    }
    Err(Failure::invalid(format!("options.reserved is not zero; {init} makes it so")))
}

/// Fills in the options of a service that says nothing. NULL is left alone.
// Cannot panic: copies constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_listen_options_init(options: *mut doorbell_listen_options) {
    let default = doorbell_listen_options {
        capacity: 64 << 10,
        most_clients: 1024,
        users: SAME,
        mode: -1,
        reserved: [0; 4],
    };
    // SAFETY: the header's contract.
    unsafe { crate::pointer::put_if_wanted(options, default) };
}

/// Fills in the options of a joiner that says nothing. NULL is left alone.
// Cannot panic: copies constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_join_options_init(options: *mut doorbell_join_options) {
    let default = doorbell_join_options {
        most_memory: doorbell::rendezvous::MOST_MEMORY,
        most_eventfds: doorbell::rendezvous::MOST_EVENTFDS,
        patience: JOIN_PATIENCE,
        host: SAME,
        reserved: [0; 4],
    };
    // SAFETY: the header's contract.
    unsafe { crate::pointer::put_if_wanted(options, default) };
}

#[expect(clippy::cast_possible_truncation, reason = "half a minute")]
const JOIN_PATIENCE: u64 = doorbell::rendezvous::socket::JOIN_PATIENCE.as_nanos() as u64;

#[cfg(test)]
mod tests {
    use super::{doorbell_join_options_init, doorbell_listen_options_init, join_options, listen_options};
    use doorbell::rendezvous::Join;
    use doorbell::service::ListenOptions;
    use std::mem::MaybeUninit;
    use std::ptr;

    #[test]
    fn options_that_were_filled_in_say_what_none_say() {
        let (mut listen, mut join) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both are filled in before they are read.
        unsafe {
            doorbell_listen_options_init(listen.as_mut_ptr());
            doorbell_join_options_init(join.as_mut_ptr());
            let (said, none) = (listen_options(listen.as_ptr()), listen_options(ptr::null()));
            let default = format!("{:?}", ListenOptions::default());
            assert_eq!(
                [said, none].map(|options| format!("{:?}", options.ok().unwrap())),
                [default.clone(), default]
            );
            let (said, none) = (join_options(join.as_ptr()), join_options(ptr::null()));
            let default = format!("{:?}", <Join>::default());
            assert_eq!(
                [said, none].map(|options| format!("{:?}", options.ok().unwrap())),
                [default.clone(), default]
            );
        }
    }
}
