// SPDX-License-Identifier: MIT OR Apache-2.0
//! Views: from records and verdicts to text and pictures. Nothing here measures.

#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

pub mod anatomy;
pub mod axis;
pub mod bars;
pub mod chart;
pub mod check;
pub mod claims;
pub mod columns;
pub mod command_line;
pub mod comparison;
pub mod doctor;
pub mod edge;
pub mod emulated;
pub mod environment;
mod escaped;
pub mod export;
pub mod extra;
pub mod fanout;
pub mod figures;
pub mod fleet;
pub mod gate;
pub mod gpu;
pub mod html;
pub mod idle;
pub mod io;
pub mod load;
pub mod long_table;
pub mod machines;
pub mod matrices;
pub mod net;
pub mod notifications;
pub mod pairs;
pub mod pick;
pub mod picture;
pub mod program;
pub mod progress;
pub mod published;
pub mod quantities;
pub mod result_text;
pub mod row_comparison;
pub mod run_context;
pub mod screen;
pub mod section;
pub mod sections;
pub mod sentence;
pub mod spin;
pub mod style;
pub mod subsection;
pub mod summary;
pub mod switch;
pub mod table;
pub mod tasks;
pub mod terms;
pub mod top;
pub mod tune;
pub mod unit;
pub mod verdict_format;
pub mod verified;
pub mod waiter_metrics;
pub mod wake_export;
pub mod warnings;
pub mod what_if;
pub mod why;
pub mod wording;

pub mod answer;
pub mod judgement;
pub mod survey;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod views;
