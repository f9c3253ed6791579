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

/// The text of a file below `/proc` or `/sys`; bytes that are not UTF-8 become U+FFFD.
pub fn kernel(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    if !is_the_kernels(path) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NotTheKernels(path.display().to_string())));
    }
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "nobody else can make a name there")]
    std::fs::File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a path is below `/proc` or `/sys`, and leads out of neither: by a step up, or by what a
/// process has open, runs, or takes for the root (proc_pid_root(5)).
fn is_the_kernels(path: &Path) -> bool {
    const LEAD_OUT: [&str; 7] = ["..", "root", "cwd", "exe", "fd", "map_files", "ns"];
    let leads_out = path.iter().any(|name| LEAD_OUT.iter().any(|out| name == *out));
    (path.starts_with("/proc") || path.starts_with("/sys")) && !leads_out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once a path by way of a process's root, where anybody may have made the file, was read.
    #[test]
    fn what_leads_out_of_the_kernels_files_is_refused() {
        for path in ["/etc/passwd", "/proc/../etc/passwd", "/proc/self/root/etc/passwd", "/proc/self/fd/0"] {
            assert_eq!(kernel(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        for path in ["/proc/self/stat", "/proc/self/task/7/comm", "/sys/devices/system/cpu/online"] {
            assert!(is_the_kernels(Path::new(path)), "{path}");
        }
    }
}
