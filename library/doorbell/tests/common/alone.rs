// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test in a process of its own, where no other test opens and closes files, or has functions called.

/// Runs `test`, which is the whole of the test called `name`, in a process of its own.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "DOORBELL_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let status = alone.args([name, "--exact", "--nocapture"]).env(ALONE, "1").status().unwrap();
    assert!(status.success(), "it says above why");
}
