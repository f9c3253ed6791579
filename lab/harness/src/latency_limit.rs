// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the kernel to keep wake-up latency below a limit, for as long as the value lives.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where the kernel is asked (Documentation/power/pm_qos_interface.rst).
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit in force; it ends when the file is closed, also by the death of the process.
#[derive(Debug)]
pub struct LatencyLimit {
    _held: File,
}

impl LatencyLimit {
    /// Asks for `limit_us`, and looks whether the kernel took it.
    pub fn hold(limit_us: u32) -> io::Result<Self> {
        Self::hold_at(Path::new(DEVICE), limit_us)
    }

    #[expect(clippy::disallowed_methods, reason = "a device of the kernel's")]
    fn hold_at(device: &Path, limit_us: u32) -> io::Result<Self> {
        let wanted = i32::try_from(limit_us).map_err(io::Error::other)?;
        let mut held = OpenOptions::new().read(true).write(true).open(device)?;
        held.write_all(&wanted.to_ne_bytes())?;
        // The device gives the lowest of all limits asked for.
        let mut in_force = [0; 4];
        held.read_exact_at(&mut in_force, 0)?;
        let in_force = i32::from_ne_bytes(in_force);
        if in_force > wanted {
            return Err(io::Error::other(format!("{wanted} us asked for, {in_force} us in force")));
        }
        Ok(Self { _held: held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_held_only_if_it_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cpu_dma_latency");
        std::fs::write(&device, 2_000_000_000_i32.to_ne_bytes()).unwrap();
        LatencyLimit::hold_at(&device, 0).unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), 0_i32.to_ne_bytes());
        assert!(LatencyLimit::hold_at(&folder.path().join("missing"), 0).is_err());
        // What takes everything and gives nothing back holds nothing.
        assert!(LatencyLimit::hold_at(Path::new("/dev/null"), 0).is_err());
    }
}
