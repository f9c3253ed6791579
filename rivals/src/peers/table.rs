// SPDX-License-Identifier: MIT OR Apache-2.0
//! The comparisons as a table in Markdown.

use crate::peers::comparison::{Comparison, Measured};
use crate::statistics::{Ratio, Stands};
use crate::table::{Table, digits};
use doorbell_verdict::statistics::median;
use std::fmt::Write;

/// One comparison in one line, for progress.
pub fn line(comparison: &Comparison, Measured { theirs, ours, .. }: &Measured) -> String {
    let (name, unit, ratio) = (comparison.name, comparison.unit, Ratio::paired(ours, theirs));
    format!("{name}: theirs {}, ours {} {unit}, ratio {ratio:.3}", spread(theirs), spread(ours))
}

/// All of them.
pub fn markdown(measured: &[(&Comparison, anyhow::Result<Measured>)]) -> String {
    let heads = [
        "comparison",
        "what",
        "unit",
        ">peer: median [min..max]",
        ">doorbell: median [min..max]",
        ">ratio [95 %]",
        "verdict",
        ">rounds",
    ];
    let mut table = Table::new(heads);
    for (comparison, result) in measured {
        let figures = match result {
            Err(error) => ["", "", "", &format!("not run: {error:#}"), ""].map(str::to_owned),
            Ok(Measured { theirs, ours, repeated, .. }) => {
                let ratio = Ratio::paired(ours, theirs);
                let verdict = match ratio.stands(1.0 - comparison.within, 1.0 + comparison.within) {
                    Stands::Within => "agrees",
                    Stands::Below | Stands::Above => "differs",
                    Stands::Undecided => "inconclusive",
                };
                let rounds = match repeated.len() {
                    0 => ours.len().to_string(),
                    repeated => format!("{}, {repeated} repeated", ours.len()),
                };
                let verdict = format!("{verdict} within {:.0} %", comparison.within * 100.0);
                [spread(theirs), spread(ours), format!("{ratio:.3}"), verdict, rounds]
            }
        };
        let what = [comparison.name, comparison.what, comparison.unit].map(str::to_owned);
        table.row(what.into_iter().chain(figures));
    }
    let mut out = table.to_string();
    for (comparison, result) in measured {
        for why in result.iter().flat_map(|figures| &figures.repeated) {
            let _ = writeln!(out, "\nA round of {} was repeated: {why}", comparison.name);
        }
    }
    out.push_str("\nThe commands, `doorbell` with `--blocks 1`:\n\n");
    for (Comparison { name, command, arguments, .. }, _) in measured {
        let _ = writeln!(out, "- {name}: `{command}` against `doorbell {arguments}`");
    }
    out
}

fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let middle = median(values).unwrap_or(f64::NAN);
    format!("{} [{}..{}]", digits(middle), digits(least), digits(most))
}
