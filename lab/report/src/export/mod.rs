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

#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    pub about: &'static str,
    pub export: fn(&ResultFile, &mut dyn Write) -> io::Result<()>,
}

/// Every format. The one list to extend.
pub const ALL: [Format; 7] = [
    csv::CSV,
    csv::BINS,
    markdown::MARKDOWN,
    hdr_text::HDR_TEXT,
    hdr_log::HDR_LOG,
    classic::CLASSIC,
    prometheus::PROMETHEUS,
];

/// The format called `name`.
pub fn find(name: &str) -> Option<Format> {
    ALL.into_iter().find(|format| format.name == name)
}
