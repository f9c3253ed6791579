// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts as text and as SVG. Pure functions of a [`Chart`](crate::model::Chart).

mod svg;
mod terminal;

pub use svg::svg;
pub use terminal::{Glyphs, terminal};
