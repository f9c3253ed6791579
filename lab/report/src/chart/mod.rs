// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts as SVG, one file each, drawn from figures without any library or script.
//!
//! A chart library would bring a megabyte into each report, draw only where scripts may run, and
//! give every chart its own idea of an axis. These charts need five shapes; what a reader sees is
//! the same on paper, in a mail and in a browser that blocks scripts.

mod curve;
mod frame;
pub mod histogram;
pub mod pairs;
pub mod palette;
pub mod pareto;
pub mod percentiles;
pub mod placements;
pub mod primitives;
pub mod ranges;
mod scale;
pub mod svg;
pub mod sweep;
pub mod trials;
pub mod waterfall;

pub use curve::Curve;
