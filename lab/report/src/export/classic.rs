// SPDX-License-Identifier: MIT OR Apache-2.0
//! The eight lines that ipc-bench prints, for comparison with results that exist in no other form.
//!
//! They say less than they seem to: a mean hides populations, and a
//! standard deviation the tail that made it.

use std::io::{self, Write};

use crate::axis;
use crate::export::Format;
use crate::figures::Figures;
use crate::wording::foreign;
use doorbell_results::record::ResultFile;
use doorbell_results::written::inert;

pub const CLASSIC: Format = Format {
    name: "classic",
    about: "the eight lines of ipc-bench for each configuration: message size, count, total, average, \
         minimum, maximum, deviation, rate",
    export: eight_lines,
};

fn eight_lines(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let figures = Figures::of(result);
    let axes = axis::varying(figures.rows.iter().map(|row| row.configuration()));
    if let Some(foreign) = foreign(result) {
        writeln!(out, "# {}", inert(&foreign))?;
    }
    for row in &figures.rows {
        let quantity = row.variant.headline();
        let Some(histogram) = row.variant.histogram(quantity) else { continue };
        let (count, us) = (histogram.count(), |ps: f64| ps / 1e6);
        // As ipc-bench has it: the total is the sum of what was timed, and the rate follows from it.
        let total_ps = histogram.mean() * count as f64;
        writeln!(out, "# {} ({})", inert(&axis::label(row.configuration(), &axes)), quantity.name())?;
        writeln!(out, "============ RESULTS ================")?;
        writeln!(out, "Message size:       {}", row.configuration().size)?;
        writeln!(out, "Message count:      {count}")?;
        writeln!(out, "Total duration:     {:.3}\tms", total_ps / 1e9)?;
        writeln!(out, "Average duration:   {:.3}\tus", us(histogram.mean()))?;
        writeln!(out, "Minimum duration:   {:.3}\tus", us(histogram.min() as f64))?;
        writeln!(out, "Maximum duration:   {:.3}\tus", us(histogram.max() as f64))?;
        writeln!(out, "Standard deviation: {:.3}\tus", us(histogram.stdev()))?;
        writeln!(out, "Message rate:       {:.0}\tmsg/s", count as f64 / (total_ps / 1e12))?;
        writeln!(out, "=====================================")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn every_variant_has_its_eight_lines_and_they_fit_together() {
        let configurations = [sample::configuration("futex"), sample::configuration("eventfd")];
        let mut text = Vec::new();
        eight_lines(&sample::result(&configurations, 3, |_, _| 16_000.0), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("Message rate")).count(), 2);
        let number = |head: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(head)).unwrap();
            line.split_once(':').unwrap().1.split_whitespace().next().unwrap().parse().unwrap()
        };
        assert_eq!(number("Message count"), 3000.0);
        assert!((number("Total duration") * 1000.0 / 3000.0 - number("Average duration")).abs() < 0.01);
        assert!((number("Message rate") * number("Average duration") / 1e6 - 1.0).abs() < 0.001);
        assert!(number("Minimum duration") < number("Average duration"));
    }
}
