// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest for people: its console is this terminal.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::hardware::Wires;
use crate::initramfs::archive;
use crate::process::{Group, Process};
use crate::run::{Guest, RunError, disk};

/// Between two looks whether the guest has ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Boots a guest whose order is interactive, and stays until it powers off. Its limits do not hold: people take their
/// time.
pub fn shell(guest: &Guest) -> Result<(), RunError> {
    guest.hardware.check()?;
    let initramfs = archive(&guest.contents)?;
    let disk = guest.hardware.nvme.is_some().then(disk).transpose()?;
    // Nobody reads the channel; what little the guest says there stays in the socket.
    let (_channel, channel_end) = UnixStream::pair()?;
    let wires = Wires {
        initramfs: initramfs.as_raw_fd(),
        channel: channel_end.as_raw_fd(),
        console: None,
        disk: disk.as_ref().map(AsRawFd::as_raw_fd),
    };
    let mut inherited = vec![wires.initramfs, wires.channel];
    inherited.extend(wires.disk);
    let kernel = guest.kernel.to_string_lossy();
    let mut command = Command::new(&guest.emulator.path);
    command.args(guest.hardware.arguments(guest.emulator, &kernel, false, &wires)).stderr(Stdio::inherit());
    let before = tcgetattr(io::stdin()).ok();
    let process = Process::start(&mut command, &inherited, Group::Terminal)
        .map_err(|cause| RunError::Start { path: guest.emulator.path.clone(), cause })?;
    while !process.ends_by(Instant::now() + LOOK_EVERY)? {}
    let status = process.end()?;
    if let Some(before) = before {
        // QEMU puts the terminal back itself, unless it was killed.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
    if status.success() {
        Ok(())
    } else {
        Err(RunError::Gone { status, said: Default::default(), tail: Default::default() })
    }
}
