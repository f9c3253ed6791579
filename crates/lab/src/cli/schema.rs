// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell schema`.

use std::io::Write;

use super::common::Exit;

/// Prints the JSON Schema of result files.
pub fn run() -> anyhow::Result<Exit> {
    std::io::stdout().write_all(crate::record::schema::schema().as_bytes())?;
    Ok(Exit::Done)
}
