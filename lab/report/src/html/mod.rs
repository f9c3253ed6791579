// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one page that needs nothing but itself.
//!
//! Everything a reader needs is text and SVG in the page; the script adds only comfort (hiding
//! variants, links to a variant, copying). The page forbids itself every connection by its content
//! security policy, and names the digests of its own style and script there, so that nothing
//! smuggled in by a result file could run.

mod anatomy;
mod chapter;
pub mod fleet;
pub(super) mod groups;
mod page;
mod run;
mod sections;
mod tables;

use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::subsection::Subsection;
use doorbell_results::record::ResultFile;
use page::Page;

/// One result with the name it goes by in the report.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its own name, or that of its file.
    pub name: String,
    /// What was asked of it, and what follows; empty where nothing was.
    pub verdict: Vec<Subsection>,
    pub result: ResultFile,
}

/// The page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("a report needs at least one result file")]
    Nothing,
    /// A result could not be put into the page's data.
    #[error("the results cannot be written as JSON: {0}")]
    Data(#[from] serde_json::Error),
    #[error("the results cannot be packed: {0}")]
    Packing(#[from] std::io::Error),
    #[error("the page cannot be put together: {0}")]
    Template(#[from] askama::Error),
}

/// The report on `sources`: a chapter for each experiment, in which
/// several runs of it are compared with each other.
pub fn report(sources: &[Source]) -> Result<String, ReportError> {
    if sources.is_empty() {
        return Err(ReportError::Nothing);
    }
    Ok(Page::of(sources)?.render()?)
}

/// The digest of a file as `sha256-…`, in the form a content security policy takes.
pub(super) fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// The policy of a page that loads nothing and runs nothing but its own style and script.
fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(digest);
    format!(
        "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests;
