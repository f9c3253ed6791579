// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long tables of comma-separated values: a number or a bin a line, with
//! everything that tells where it comes from.

use std::io::{self, Write};

use crate::export::Format;
use crate::long_table::{BIN, FIGURE, RUN, TRIAL, Value, bins, lines};
use doorbell_results::record::ResultFile;
use doorbell_results::written::inert;

pub const CSV: Format = Format {
    name: "csv",
    about: "one number a line: every statistic, counter and figure of every trial, with its \
         configuration and machine",
    export: numbers,
};

fn numbers(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    table(&FIGURE, lines(result), out)
}

pub const BINS: Format = Format {
    name: "csv-bins",
    about: "every occupied bin of every histogram, a line each: percentiles of any choice, over any \
         number of runs",
    export: every_bin,
};

fn every_bin(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    table(&BIN, bins(result), out)
}

/// `lines` below the columns of a run, of a trial and `more`.
fn table(more: &[&str], lines: impl Iterator<Item = Vec<Value>>, out: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(RUN.iter().chain(&TRIAL).chain(more))?;
    for line in lines {
        table.write_record(line.iter().map(cell))?;
    }
    table.flush()
}

/// What a cell says. Words that a spreadsheet would take for a formula, and run, get an apostrophe,
/// which it does not show (OWASP, "CSV Injection").
fn cell(value: &Value) -> String {
    match value {
        Value::Text(text) => match inert(text) {
            text if text.trim_start().starts_with(['=', '+', '-', '@']) => format!("'{text}"),
            text => text,
        },
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Outcome, sample};

    fn rows(format: Format, result: &ResultFile) -> Vec<csv::StringRecord> {
        let mut text = Vec::new();
        (format.export)(result, &mut text).unwrap();
        csv::Reader::from_reader(text.as_slice()).records().map(Result::unwrap).collect()
    }

    fn column(name: &str, more: &[&str]) -> usize {
        RUN.iter().chain(&TRIAL).chain(more).position(|column| *column == name).unwrap()
    }

    #[test]
    fn no_name_is_a_formula_and_no_number_is_words() {
        for name in ["=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1"] {
            let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
            result.name = Some(name.to_owned());
            assert_eq!(
                rows(CSV, &result)[0][column("result", &FIGURE)],
                format!("'{}", name.replace('\t', " "))
            );
        }
        assert_eq!(cell(&Value::Real(-1.5)), "-1.5");
    }

    #[test]
    fn every_line_has_every_column_and_the_numbers_are_those_of_the_result() {
        let mut result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        result.name = Some("with, comma and \"quotes\"".to_owned());
        let table = rows(CSV, &result);
        assert!(table.iter().all(|line| line.len() == RUN.len() + TRIAL.len() + FIGURE.len()));
        let column = |name| column(name, &FIGURE);
        let p50 = table
            .iter()
            .find(|line| &line[column("quantity")] == "round-trip" && &line[column("statistic")] == "p50")
            .unwrap();
        let written: f64 = p50[column("value")].parse().unwrap();
        assert_eq!(
            written,
            result.records[0].series[&doorbell_results::record::series::Quantity::RoundTrip].p50_ns
        );
        assert_eq!(&p50[column("result")], "with, comma and \"quotes\"");
    }

    #[test]
    fn a_record_without_figures_keeps_its_outcome_and_shows_no_number() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.records[0].outcome = Outcome::Implausible { violations: Vec::new() };
        let table = rows(CSV, &result);
        assert_eq!(table.len(), 1);
        let [outcome, value] = ["outcome", "value"].map(|name| &table[0][column(name, &FIGURE)]);
        assert_eq!((outcome, value), ("implausible", ""));
        assert_eq!(rows(BINS, &result).len(), 0);
    }

    #[test]
    fn what_a_trial_leaves_beside_its_times_is_in_the_table() {
        let mut result = sample::result(&[sample::configuration("sync")], 1, |_, _| 16_000.0);
        let record = &mut result.records[0];
        record.io =
            Some(doorbell_results::record::io::Io { device_operations: Some(321), ..Default::default() });
        record.load =
            Some(doorbell_results::record::load::LoadProof { fewest_slices: 77, ..Default::default() });
        record.environment.idle_entries = [("C6".to_owned(), 12)].into();
        record.environment.throttled_ns = Some(5000);
        let rows = rows(CSV, &result);
        for (quantity, statistic, value) in [
            ("device", "operations", "321"),
            ("load", "fewest_slices", "77"),
            ("idle entries", "C6", "12"),
            ("environment", "throttled", "5000"),
        ] {
            let found = rows.iter().any(|row| {
                let fields: Vec<&str> = row.iter().collect();
                fields.windows(3).any(|fields| fields == [quantity, statistic, value])
            });
            assert!(found, "{quantity} {statistic}");
        }
    }

    #[test]
    fn the_bins_hold_every_sample_and_lie_in_order() {
        let result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let rows = rows(BINS, &result);
        let field = |row: &csv::StringRecord, name| row[column(name, &BIN)].to_owned();
        for record in ["0", "1"] {
            let own = |row: &&csv::StringRecord| {
                field(row, "quantity") == "round-trip" && field(row, "record") == record
            };
            let numbers = |name| -> Vec<f64> {
                rows.iter().filter(own).map(|row| field(row, name).parse().unwrap()).collect()
            };
            assert_eq!(numbers("count").iter().sum::<f64>(), 1000.0);
            let (lows, highs) = (numbers("low_ns"), numbers("high_ns"));
            assert!(lows[1..].iter().zip(&highs).all(|(low, high)| low > high));
            assert!((lows[0] / 16_000.0 - 1.0).abs() < 0.002, "{}", lows[0]);
        }
    }
}
