// SPDX-License-Identifier: MIT OR Apache-2.0
//! HdrHistogram's percentile text, as its plotter reads it, values in microseconds.

use std::io::{self, Write};

use crate::axis;
use crate::export::Format;
use crate::figures::Figures;
use doorbell_results::record::{Histogram, ResultFile};
use doorbell_results::written::inert;

/// Picoseconds to a microsecond, in which the plotter's users think.
const PS_PER_UNIT: f64 = 1e6;
/// Lines for each halving of the distance to 100 %, as the plotter's own examples have it.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

pub const HDR_TEXT: Format = Format {
    name: "hgrm",
    about: "HdrHistogram's percentile text in microseconds, one section per configuration and quantity",
    export: percentiles,
};

fn percentiles(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let figures = Figures::of(result);
    let axes = axis::varying(figures.rows.iter().map(|row| row.configuration()));
    let unit = result.mark().map_or_else(|| "us".to_owned(), |mark| format!("us {mark}"));
    for row in &figures.rows {
        for &quantity in row.series.keys() {
            if let Some(histogram) = row.variant.histogram(quantity) {
                writeln!(
                    out,
                    "#[{} {}, {unit}]",
                    inert(&axis::label(row.configuration(), &axes)),
                    quantity.name()
                )?;
                section(&histogram, out)?;
            }
        }
    }
    Ok(())
}

fn section(histogram: &Histogram, out: &mut dyn Write) -> io::Result<()> {
    let inner = histogram.inner();
    let unit = |ps: f64| ps / PS_PER_UNIT;
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let mut total = 0;
    for step in inner.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let (value, share) = (unit(step.value_iterated_to() as f64), step.quantile_iterated_to());
        // To the picosecond: with fewer digits, buckets below a microsecond would fall together.
        write!(out, "{value:12.6} {share:2.12} {total:10}")?;
        // At 100 % the column would be a division by zero: it is left empty there.
        if share < 1.0 { writeln!(out, " {:14.2}", 1.0 / (1.0 - share))? } else { writeln!(out)? }
    }
    let (mean, deviation) = (unit(histogram.mean()), unit(histogram.stdev()));
    writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")?;
    let (max, count) = (unit(histogram.max() as f64), histogram.count());
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    // 2048 sub-buckets for 3 significant digits; one bucket for each doubling beyond them.
    let sub_buckets = 2048;
    let buckets = (inner.distinct_values() / (sub_buckets / 2)) - 1;
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn percentiles_rise_to_the_maximum_and_the_whole_count() {
        let mut text = Vec::new();
        let result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        percentiles(&result, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let first = text.split("#[Mean").next().unwrap();
        let rows: Vec<Vec<f64>> = first
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("Value") && !line.trim().is_empty())
            .map(|line| line.split_whitespace().map(|number| number.parse().unwrap()).collect())
            .collect();
        assert!(rows.len() > 20);
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1]));
        let last = rows.last().unwrap();
        assert_eq!((last[1], last[2], last.len()), (1.0, 2000.0, 3));
        assert!(text.contains("SubBuckets     =         2048]"));
    }
}
