// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the kernel's, in which nobody else can make a name.

use std::io::{self, Read};
use std::path::Path;

/// The longest that is read, bytes: beyond what any of them says.
const LONGEST: u64 = 16 << 20;

/// A path that is not the kernel's.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no file of the kernel's")]
pub struct NotTheKernels(String);

/// The text of a file below `/proc` or `/sys`. One that says what is
/// no text is read as far as it is.
pub fn kernel(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    if !path.starts_with("/proc") && !path.starts_with("/sys") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NotTheKernels(path.display().to_string())));
    }
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "nobody else can make a name there")]
    std::fs::File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
