// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other process: this test program again, started with a role, which its test `child` plays.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const ROLE: &str = "DOORBELL_TEST_ROLE";
/// Longer than any of these tests takes on the slowest machine: running into it is a hang.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

pub(crate) fn me_as(role: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(ROLE, role).stdout(Stdio::null());
    command
}

/// A child process that is killed and reaped when dropped.
pub(crate) struct Other(pub(crate) Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
