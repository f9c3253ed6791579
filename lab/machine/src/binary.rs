// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which build of this program measured.

use std::fs::File;
use std::io;

use sha2::{Digest, Sha256};

/// SHA-256 of the program file that is running, in hexadecimal;
/// `None` where `/proc/self/exe` is hidden.
pub fn sha256() -> Option<String> {
    let mut hasher = Sha256::new();
    #[expect(clippy::disallowed_methods, reason = "this very program, even if another has its name by now")]
    io::copy(&mut File::open("/proc/self/exe").ok()?, &mut hasher).ok()?;
    Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
