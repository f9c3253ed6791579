// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose a number of a user is, as far as the kernel tells.
//!
//! In a user namespace the kernel shows all users that have no number there as one
//! (`/proc/sys/kernel/overflowuid`, 65534 as a rule, which is nobody's number too). Who is shown so
//! may be anybody, also where this process is shown so to itself.

use std::fs::read_to_string;

/// Is `uid` this process's user, and nobody else?
pub(crate) fn is_ours(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() && !may_be_anybody(uid)
}

/// Is `uid` what the kernel shows in place of users without a number
/// here, of whom there may be some?
pub(crate) fn may_be_anybody(uid: u32) -> bool {
    let shown = read_to_string("/proc/sys/kernel/overflowuid").ok();
    let shown = shown.and_then(|number| number.trim().parse().ok());
    // Without a word from the kernel, its default (linux/highuid.h).
    uid == shown.unwrap_or(65534) && !read_to_string("/proc/self/uid_map").is_ok_and(|map| has_all(&map))
}

/// Does a map of users (user_namespaces(7)) give each user a number?
fn has_all(map: &str) -> bool {
    let count = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    // All but -1, which is no user. Extents never overlap.
    map.lines().filter_map(count).sum::<u64>() >= u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{has_all, is_ours, may_be_anybody};

    #[test]
    fn only_where_each_user_has_a_number_is_the_one_for_users_without_a_users() {
        let whole = ["         0          0 4294967295\n", "0 0 1000\n1000 1000 4294966295\n"];
        assert!(whole.into_iter().all(has_all));
        for part in ["", "0 1000 1\n", "0 100000 65536\n", "0 0 4294967294\n", "nonsense"] {
            assert!(!has_all(part), "{part:?}");
        }
        let ours = rustix::process::geteuid().as_raw();
        assert!(!may_be_anybody(0) && is_ours(ours) && !is_ours(ours + 1));
    }
}
