// SPDX-License-Identifier: MIT OR Apache-2.0
//! The comparisons as a table in Markdown.

use std::fmt::Write;

use crate::comparison::{Comparison, Measured};
use crate::interval::{Ratio, median, ratio};

/// What the interval shows: the ratio alone is one draw of it.
fn verdict(ratio: &Ratio, within: f64) -> &'static str {
    let (least, most) = (1.0 - within, 1.0 + within);
    if ratio.low >= least && ratio.high <= most {
        "agrees"
    } else if ratio.high < least || ratio.low > most {
        "differs"
    } else {
        "undecided"
    }
}

/// One comparison in one line, for progress.
pub fn line(comparison: &Comparison, figures: &Measured) -> String {
    let ratio = ratio(&figures.theirs, &figures.ours);
    format!(
        "{}: theirs {}, ours {} {}, ratio {:.3} [{:.3}, {:.3}]",
        comparison.name,
        spread(&figures.theirs),
        spread(&figures.ours),
        comparison.unit,
        ratio.ratio,
        ratio.low,
        ratio.high
    )
}

/// All of them.
pub fn markdown(measured: &[(&Comparison, anyhow::Result<Measured>)]) -> String {
    let mut out = String::from(
        "| comparison | what | unit | peer: median [min..max] | doorbell: median [min..max] | ratio [95 %] | verdict | rounds |\n\
         |---|---|---|---:|---:|---:|---|---:|\n",
    );
    for (comparison, result) in measured {
        let Comparison { name, what, unit, .. } = comparison;
        // Writing to a string does not fail.
        let _ = match result {
            Err(error) => writeln!(out, "| {name} | {what} | {unit} | | | | not run: {error:#} | |"),
            Ok(figures) => {
                let ratio = ratio(&figures.theirs, &figures.ours);
                let verdict = verdict(&ratio, comparison.within);
                let rounds = match figures.repeated.len() {
                    0 => figures.ours.len().to_string(),
                    repeated => format!("{}, {repeated} repeated", figures.ours.len()),
                };
                writeln!(
                    out,
                    "| {name} | {what} | {unit} | {} | {} | {:.3} [{:.3}, {:.3}] | {verdict} within {:.0} % | {rounds} |",
                    spread(&figures.theirs),
                    spread(&figures.ours),
                    ratio.ratio,
                    ratio.low,
                    ratio.high,
                    comparison.within * 100.0
                )
            }
        };
    }
    for (comparison, result) in measured {
        for why in result.iter().flat_map(|figures| &figures.repeated) {
            let _ = writeln!(out, "\nA round of {} was repeated: {why}", comparison.name);
        }
    }
    out.push_str("\nThe commands, `doorbell` with `--blocks 1`:\n\n");
    for (comparison, _) in measured {
        let _ = writeln!(
            out,
            "- {}: `{}` against `doorbell {}`",
            comparison.name, comparison.command, comparison.arguments
        );
    }
    out
}

fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{} [{}..{}]", digits(median(values)), digits(least), digits(most))
}

/// Four significant digits.
fn digits(value: f64) -> String {
    let whole = if value > 0.0 { value.log10().floor() } else { 0.0 };
    format!("{value:.*}", (3.0 - whole).clamp(0.0, 6.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ratio of 1.00 whose interval went from 0.91 to 1.14 once read "yes".
    #[test]
    fn the_whole_interval_decides() {
        let verdict = |low, high| verdict(&Ratio { ratio: f64::midpoint(low, high), low, high }, 0.05);
        for (low, high, expected) in [
            (0.96, 1.04, "agrees"),
            (0.95, 1.05, "agrees"),
            (0.91, 1.14, "undecided"),
            (0.94, 1.00, "undecided"),
            (1.04, 1.20, "undecided"),
            (0.80, 0.94, "differs"),
            (1.06, 1.07, "differs"),
            (f64::NAN, f64::NAN, "undecided"),
        ] {
            assert_eq!(verdict(low, high), expected, "[{low}, {high}]");
        }
    }
}
