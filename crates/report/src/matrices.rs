// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pairs` on the terminal: a matrix of CPUs for each mechanism.

use super::bars;
use super::figures::Figures;
use super::pairs::Matrix;
use super::quantities;
use super::section::Section;
use super::style::{Role, Style};
use super::unit::{Scale, time};
use super::wording::counted;
use doorbell_results::record::ResultFile;

#[derive(Debug)]
pub struct Matrices;

impl Section for Matrices {
    fn name(&self) -> &'static str {
        "pairs"
    }
    fn text(&self, _: &ResultFile, figures: &Figures, style: &Style) -> String {
        text(figures, style)
    }
}

/// One matrix per mechanism, with the best and the worst pair named.
fn text(figures: &Figures, style: &Style) -> String {
    let (matrices, rest) = Matrix::of(figures);
    let mut out = String::new();
    for matrix in &matrices {
        let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
        let title = format!("{}: median by pair, {}", matrix.subject, scale.unit.sign());
        out.push_str(&format!("\n{}\n", style.paint(Role::Heading, &style.text(&title))));
        let note = format!(
            "Row: the CPU that notifies first; column: the other. {}.",
            counted(matrix.count(), "sample")
        );
        out.push_str(&style.wrap(&note, 0));
        out.push_str(&bars::matrix(matrix, scale, style));
        if let (Some(best), Some(worst)) = (matrix.best(), matrix.worst()) {
            let line = format!(
                "Best pair: {},{} with {}. Worst: {},{} with {}, {:.2} times as much.",
                best.from,
                best.to,
                time(best.p50_ps),
                worst.from,
                worst.to,
                time(worst.p50_ps),
                worst.p50_ps / best.p50_ps.max(1.0)
            );
            out.push_str(&style.wrap(&line, 0));
            let unpinned = rest.iter().find(|row| {
                row.configuration().subject == matrix.subject && row.configuration().placement.cpus.is_none()
            });
            if let Some(series) = unpinned.and_then(|row| row.series.get(&row.variant.headline())) {
                let ps = series.quantile(0.5) as f64;
                let line = format!(
                    "Left to the scheduler: {}, {:.2} times as much as the best pair.",
                    time(ps),
                    ps / best.p50_ps.max(1.0)
                );
                out.push_str(&style.wrap(&line, 0));
            }
        }
    }
    if !rest.is_empty() {
        let rest = Figures { rows: rest.into_iter().cloned().collect(), absent: Vec::new() };
        out.push_str(&quantities::tables(&rest, style));
    }
    out
}
