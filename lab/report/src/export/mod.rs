// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats in which a result leaves for other tools, one file each.

pub mod classic;
pub mod csv;
pub mod hdr_log;
pub mod hdr_text;
pub mod markdown;
pub mod prometheus;

use std::io::{self, Write};

use doorbell_results::record::ResultFile;

pub trait Export: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()>;
}

/// Every format. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static dyn Export] {
    &[
        &csv::Csv,
        &csv::Bins,
        &markdown::Markdown,
        &hdr_text::HdrText,
        &hdr_log::HdrLog,
        &classic::Classic,
        &prometheus::Prometheus,
    ]
}

/// The format called `name`.
pub fn find(name: &str) -> Option<&'static dyn Export> {
    all().iter().copied().find(|format| format.name() == name)
}
