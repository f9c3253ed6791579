// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest is to do: written by the host into the initramfs,
//! read by the guest's first process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the order lies in the guest.
pub const ORDER: &str = "/run/doorbell/order.json";

/// The guest's copy of the program that ordered it.
pub const PROGRAM: &str = "/doorbell";

/// What the guest is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment of the command, beside what the guest sets itself.
    pub environment: Vec<(String, String)>,
    /// The folder it runs in, made if need be.
    pub folder: PathBuf,
    /// Files to bring home if the command leaves them, by absolute path.
    pub bring: Vec<PathBuf>,
    /// The size of the terminal that standard output stands for, if it is one.
    pub stdout: Option<TerminalSize>,
    /// Likewise standard error.
    pub stderr: Option<TerminalSize>,
    /// Whether the command talks to the console instead of the channel.
    pub interactive: bool,
}

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}
