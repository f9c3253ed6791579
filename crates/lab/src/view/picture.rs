// SPDX-License-Identifier: MIT OR Apache-2.0
//! One chart as a file of its own: for a README, a slide, a mail.

use super::chart::{Curve, ranges};
use super::figures::{self, Figures};
use super::html::{Source, groups};
use super::pairs::Matrix;
use crate::record::series::Quantity;

/// Which chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// Every arm from its shortest to its longest time, the back-to-back round trips where there are any
    Ranges,
    /// The map of CPU pairs
    Pairs,
}

/// The results have nothing that this chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// No arm has figures.
    #[error("no trial of these results has figures to draw; `doorbell report` without --picture says why")]
    NoFigures,
    /// No pairs.
    #[error("these results hold no pairs of CPUs; `doorbell pairs` measures them")]
    NoPairs,
}

/// Draws `name` from `sources`.
pub fn draw(name: Name, sources: &[Source]) -> Result<String, PictureError> {
    let figures: Vec<Figures> = sources.iter().map(|source| Figures::of(&source.result)).collect();
    match name {
        Name::Ranges => ranges_of(sources, &figures).ok_or(PictureError::NoFigures),
        Name::Pairs => {
            let matrices = figures.iter().map(|figures| Matrix::of(figures).0);
            let first = matrices.flatten().next().ok_or(PictureError::NoPairs)?;
            Ok(super::chart::pairs::draw(&first, "round trip").alone())
        }
    }
}

fn ranges_of(sources: &[Source], figures: &[Figures]) -> Option<String> {
    let several = sources.len() > 1;
    let ids = groups::ids(figures);
    let items = groups::items(sources, figures, &ids);
    let mut quantities: Vec<Quantity> = figures.iter().flat_map(Figures::quantities).collect();
    quantities.sort_unstable();
    let quantity = *quantities.first()?;
    let all = groups::groups(&items, quantity, true);
    let curves: Vec<Vec<Curve>> = all.iter().map(|group| group.curves(several)).collect();
    let rows: Vec<ranges::Group> = all
        .iter()
        .zip(&curves)
        .map(|(group, curves)| ranges::Group { name: group.name.clone(), curves })
        .collect();
    let name = figures::name(quantity);
    let title = match sources {
        [source] => format!("{name} by mechanism: {}", source.name),
        _ => format!("{name} by mechanism"),
    };
    Some(ranges::draw(&rows, name, Some(&title)).alone())
}
