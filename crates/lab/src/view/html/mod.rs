// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one page that needs nothing but itself.
//!
//! Everything a reader needs is text and SVG in the page; the script adds only comfort (hiding arms, links to an arm,
//! copying). The page forbids itself every connection by its content security policy, and names the digests of its own
//! style and script there, so that nothing smuggled in by a result file could run.

mod anatomy;
pub(super) mod groups;
mod page;
mod sections;
mod tables;

use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::record::ResultFile;
use page::Page;

/// One result with the name it goes by in the report.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its own name, or that of its file.
    pub name: String,
    /// The result.
    pub result: ResultFile,
}

/// The page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No result was given.
    #[error("a report needs at least one result file")]
    Nothing,
    /// A result could not be put into the page's data.
    #[error("the results cannot be written as JSON: {0}")]
    Data(#[from] serde_json::Error),
    /// The template failed.
    #[error("the page cannot be put together: {0}")]
    Template(#[from] askama::Error),
}

/// The report on `sources`, compared with each other where there are several.
pub fn report(sources: &[Source]) -> Result<String, ReportError> {
    if sources.is_empty() {
        return Err(ReportError::Nothing);
    }
    Ok(Page::of(sources)?.render()?)
}

/// The digest of a file as `sha256-…`, in the form a content security policy takes.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// JSON that may stand inside an element `script`: no `<` is left that could end it.
fn json_for_script<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string(value)?
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests;
