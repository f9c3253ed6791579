// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plan of a fan-out and the claims of the study of
//! semaphores call the same, whichever program measures.

/// The study, as plans name it.
pub const NAME: &str = "semaphores";

/// What its subjects are to the study.
pub const NAMED: &str = "named POSIX semaphores";
pub const SYSTEM_V: &str = "System V semaphores";
pub const DATAGRAM: &str = "datagrams";
pub const WINDOWS: &str = "semaphores of Windows";

/// The part that each fan-out plays in the claims.
pub const PARTS: [(&str, &str); 5] = [
    ("sem-posix-named", NAMED),
    ("sem-sysv", SYSTEM_V),
    ("sem-sysv-many", SYSTEM_V),
    ("unix-dgram", DATAGRAM),
    ("win-semaphore", WINDOWS),
];
