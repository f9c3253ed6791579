// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long table of comma-separated values: one number a line, with
//! everything that tells where it comes from.

use std::io::{self, Write};

use crate::export::Export;
use crate::long_table::{FIGURE, TRIAL, Value, lines};
use doorbell_results::record::ResultFile;
use doorbell_results::written::inert;

#[derive(Debug, Clone, Copy)]
pub struct Csv;

impl Export for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "one number a line: every statistic, counter and figure of every trial, with the configuration it belongs to"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(TRIAL.iter().chain(&FIGURE).map(|(column, _)| column))?;
        for line in lines(result) {
            table.write_record(line.iter().map(cell))?;
        }
        table.flush()
    }
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

    fn table(result: &ResultFile) -> Vec<csv::StringRecord> {
        let mut text = Vec::new();
        Csv.export(result, &mut text).unwrap();
        csv::Reader::from_reader(text.as_slice()).records().map(Result::unwrap).collect()
    }

    #[test]
    fn no_name_is_a_formula_and_no_number_is_words() {
        for name in ["=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1"] {
            let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
            result.name = Some(name.to_owned());
            assert_eq!(table(&result)[0][0], format!("'{}", name.replace('\t', " ")));
        }
        assert_eq!(cell(&Value::Real(-1.5)), "-1.5");
    }

    #[test]
    fn every_line_has_every_column_and_the_numbers_are_those_of_the_result() {
        let mut result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        result.name = Some("with, comma and \"quotes\"".to_owned());
        let table = table(&result);
        assert!(table.iter().all(|line| line.len() == TRIAL.len() + FIGURE.len()));
        let column = |name| TRIAL.iter().chain(&FIGURE).position(|(column, _)| *column == name).unwrap();
        let p50 = table
            .iter()
            .find(|line| &line[column("quantity")] == "round-trip" && &line[column("statistic")] == "p50")
            .unwrap();
        let written: f64 = p50[column("value")].parse().unwrap();
        assert_eq!(
            written,
            result.records[0].series[&doorbell_results::record::series::Quantity::RoundTrip].p50_ns
        );
        assert_eq!(&p50[0], "with, comma and \"quotes\"");
    }

    #[test]
    fn a_record_without_figures_keeps_its_outcome_and_shows_no_number() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.records[0].outcome = Outcome::Implausible { violations: Vec::new() };
        let table = table(&result);
        assert_eq!(table.len(), 1);
        assert_eq!((&table[0][4], &table[0][22]), ("implausible", ""));
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
        let rows = table(&result);
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
}
