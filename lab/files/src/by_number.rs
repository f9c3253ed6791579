// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of what this process has open, which whoever started it gave it.

use std::path::Path;

/// Whether `path` names a descriptor of this process by its number, as a shell's `<(…)` does.
pub(crate) fn is_by_number(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
        || ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
}
