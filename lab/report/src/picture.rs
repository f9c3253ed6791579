// SPDX-License-Identifier: MIT OR Apache-2.0
//! One chart as a file of its own: for a README, a slide, a mail.

use super::chart::{placements, ranges};
use super::figures::{self, Figures};
use super::html::{Source, groups};
use super::pairs::Matrix;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;

/// Which chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// Every variant from its shortest to its longest time, the
    /// back-to-back round trips where there are any
    Ranges,
    /// One row per mechanism with a line for each placement
    Placements,
    /// The map of CPU pairs
    Pairs,
}

/// The results have nothing that this chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("no trial of these results has figures to draw; `doorbell report` without --picture says why")]
    NoFigures,
    /// One placement, or more than a row can hold.
    #[error("these results are not one run at two to four placements; `doorbell survey` makes such a run")]
    NoPlacements,
    #[error("these results hold no pairs of CPUs; `doorbell pairs` measures them")]
    NoPairs,
}

/// Draws `name` from `sources`.
pub fn draw(name: Name, sources: &[Source]) -> Result<String, PictureError> {
    let figures: Vec<Figures> = sources.iter().map(|source| Figures::of(&source.result)).collect();
    match name {
        Name::Ranges => ranges_of(sources, &figures).ok_or(PictureError::NoFigures),
        Name::Placements => placements_of(sources, &figures),
        Name::Pairs => {
            let matrices = figures.iter().map(|figures| Matrix::of(figures).0);
            let first = matrices.flatten().next().ok_or(PictureError::NoPairs)?;
            Ok(super::chart::pairs::draw(&first, "round trip").alone())
        }
    }
}

fn placements_of(sources: &[Source], figures: &[Figures]) -> Result<String, PictureError> {
    let ids = groups::ids(figures);
    let items = items(sources, figures, &ids);
    let quantity = headline(figures).ok_or(PictureError::NoFigures)?;
    let (places, rows) = groups::by_placement(&items, quantity).ok_or(PictureError::NoPlacements)?;
    let name = figures::name(quantity);
    let title = sources.first().map(|source| title(&source.result, name));
    Ok(placements::draw(&rows, &places, name, title.as_deref(), rows.len()).alone())
}

fn items<'a>(sources: &'a [Source], figures: &'a [Figures], ids: &'a [Vec<String>]) -> Vec<groups::Item<'a>> {
    let files = sources.iter().zip(figures).zip(ids);
    groups::items(
        &files.map(|((source, figures), ids)| (source, figures, ids.as_slice())).collect::<Vec<_>>(),
    )
}

/// What was measured, and on what.
fn title(result: &ResultFile, name: &str) -> String {
    let machine = &result.machine;
    let model = machine.processor.model_name.as_deref().unwrap_or("unknown processor");
    let system = machine.kernel.title().unwrap_or_else(|| "Linux unknown".to_owned());
    format!("{name} by mechanism · {model} · {system}")
}

/// The first quantity, in the order readers want them.
fn headline(figures: &[Figures]) -> Option<Quantity> {
    figures.iter().flat_map(Figures::quantities).min()
}

fn ranges_of(sources: &[Source], figures: &[Figures]) -> Option<String> {
    let several = sources.len() > 1;
    let ids = groups::ids(figures);
    let items = items(sources, figures, &ids);
    let quantity = headline(figures)?;
    let all = groups::groups(&items, quantity, true);
    let rows: Vec<ranges::Group> = all.iter().map(|group| group.ranges(several)).collect();
    let name = figures::name(quantity);
    let title = match sources {
        [source] => title(&source.result, name),
        _ => format!("{name} by mechanism"),
    };
    Some(ranges::draw(&rows, name, Some(&title), None).alone())
}
