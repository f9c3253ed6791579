// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parquet: the long table of figures and the histograms' bins, for
//! DuckDB, pandas, Polars and Spark.
//!
//! Both tables begin with what tells one run from another, so that
//! the files of many machines can be read as one table.

use std::io::{self, Write};
use std::rc::Rc;

use crate::export::Export;
use crate::long_table::{ColumnType, FIGURE, TRIAL, Value, lines, name, trial};
use doorbell_results::record::{Outcome, ResultFile};

#[cfg(feature = "parquet")]
mod file;
#[cfg(not(feature = "parquet"))]
#[path = "parquet/no_file.rs"]
mod file;

use file::File;

#[derive(Debug, Clone, Copy)]
pub struct Figures;

#[derive(Debug, Clone, Copy)]
pub struct Bins;

/// Lines that are held in memory together; a reader of a few columns
/// seeks once for each of so many.
const GROUP: usize = 50_000;

/// The columns that say which run a line is from.
const RUN: [(&str, ColumnType); 7] = [
    ("experiment", ColumnType::Text),
    ("started_at_unix_ns", ColumnType::Whole),
    ("tool_version", ColumnType::Text),
    ("kernel", ColumnType::Text),
    ("processor", ColumnType::Text),
    ("product", ColumnType::Text),
    ("hypervisor", ColumnType::Text),
];

/// The columns of a bin: samples from `low_ns` to `high_ns`, both included.
const BIN: [(&str, ColumnType); 5] = [
    ("quantity", ColumnType::Text),
    ("low_ns", ColumnType::Real),
    ("high_ns", ColumnType::Real),
    ("count", ColumnType::Whole),
    ("unit", ColumnType::Text),
];

fn run(result: &ResultFile) -> Vec<Value> {
    let machine = &result.machine;
    let text = |text: &Option<String>| Value::text(text.as_deref().unwrap_or_default());
    vec![
        Value::text(&result.plan.experiment),
        Value::Whole(result.started_at_unix_ns),
        Value::text(&result.tool_version),
        text(&machine.kernel.release),
        text(&machine.processor.model_name),
        text(&machine.virtualisation.product),
        text(&machine.virtualisation.hypervisor),
    ]
}

/// A table of results, whose columns are the same for each.
pub trait Table: Copy {
    /// Its columns.
    fn columns(self) -> Vec<(&'static str, ColumnType)>;
    /// What it says of `result`, a field for each column.
    fn lines(self, result: &ResultFile) -> Box<dyn Iterator<Item = Vec<Value>> + '_>;
}

impl Table for Figures {
    fn columns(self) -> Vec<(&'static str, ColumnType)> {
        [&RUN[..], &TRIAL, &FIGURE].concat()
    }

    fn lines(self, result: &ResultFile) -> Box<dyn Iterator<Item = Vec<Value>> + '_> {
        let run = run(result);
        Box::new(lines(result).map(move |line| [run.clone(), line].concat()))
    }
}

impl Table for Bins {
    fn columns(self) -> Vec<(&'static str, ColumnType)> {
        [&RUN[..], &TRIAL, &BIN].concat()
    }

    fn lines(self, result: &ResultFile) -> Box<dyn Iterator<Item = Vec<Value>> + '_> {
        let run = run(result);
        let name: Rc<str> = name(result).into();
        let unit = Value::text(&result.mark().map_or_else(|| "ns".to_owned(), |mark| format!("ns {mark}")));
        let usable = |record: &doorbell_results::record::Record| {
            // Figures of an implausible record never reach a table.
            matches!(record.outcome, Outcome::Done | Outcome::Partial)
        };
        let records = result.records.iter().enumerate().filter(move |(_, record)| usable(record));
        Box::new(records.flat_map(move |(index, record)| {
            let head = [run.clone(), trial(&name, index, record)].concat();
            let unit = unit.clone();
            record.series.iter().flat_map(move |(quantity, series)| {
                let quantity = Value::text(quantity.name());
                let bins: Vec<[Value; 3]> = series.decode().map_or_else(
                    |_| Vec::new(),
                    |histogram| {
                        let ns = |ps: u64| Value::Real(ps as f64 / 1000.0);
                        let bins = histogram.inner().iter_recorded().map(|bin| {
                            let inner = histogram.inner();
                            let ps = bin.value_iterated_to();
                            let [low, high] = [inner.lowest_equivalent(ps), inner.highest_equivalent(ps)];
                            [ns(low), ns(high), Value::Whole(bin.count_at_value())]
                        });
                        bins.collect()
                    },
                );
                let (head, unit) = (head.clone(), unit.clone());
                bins.into_iter().map(move |bin| {
                    let mut line = head.clone();
                    line.push(quantity.clone());
                    line.extend(bin);
                    line.push(unit.clone());
                    line
                })
            })
        }))
    }
}

impl Export for Figures {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn about(&self) -> &'static str {
        "the table of csv as a Parquet file, with the machine of the run in each line"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        alone(*self, result, out)
    }
}

impl Export for Bins {
    fn name(&self) -> &'static str {
        "parquet-bins"
    }

    fn about(&self) -> &'static str {
        "every occupied bin of every histogram as a Parquet file: percentiles of any choice, over any number of runs"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        alone(*self, result, out)
    }
}

/// The file of one result.
fn alone(table: impl Table, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    // The library writes to what another thread may have, which `out` may not be.
    let mut bytes = Vec::new();
    let mut sheet = Sheet::new(table, &mut bytes)?;
    sheet.add(result)?;
    sheet.close()?;
    out.write_all(&bytes)
}

/// A table that grows by one result after another, of which it holds `GROUP` lines at the most.
pub struct Sheet<T: Table, W: Write + Send> {
    table: T,
    columns: Vec<(&'static str, ColumnType)>,
    file: File<W>,
    held: Vec<Vec<Value>>,
}

impl<T: Table, W: Write + Send> Sheet<T, W> {
    /// An empty one, which is written to `out`.
    pub fn new(table: T, out: W) -> io::Result<Self> {
        let columns = table.columns();
        let file = File::new(&columns, out)?;
        Ok(Self { table, columns, file, held: Vec::new() })
    }

    /// Adds what it says of `result`.
    pub fn add(&mut self, result: &ResultFile) -> io::Result<()> {
        for line in self.table.lines(result) {
            self.held.push(line);
            if self.held.len() == GROUP {
                self.put()?;
            }
        }
        Ok(())
    }

    /// Writes what is held, and the end of the file.
    pub fn close(mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            self.put()?;
        }
        self.file.close()
    }

    fn put(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.file.group(&self.columns, &held)
    }
}

impl<T: Table, W: Write + Send> std::fmt::Debug for Sheet<T, W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sheet").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use doorbell_results::record::sample;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn rows(format: &dyn Export, result: &ResultFile) -> Vec<Vec<(String, Field)>> {
        let mut bytes = Vec::new();
        format.export(result, &mut bytes).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| {
            row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
        })
        .collect()
    }

    fn at<'row>(row: &'row [(String, Field)], column: &str) -> &'row Field {
        &row.iter().find(|(name, _)| name == column).unwrap().1
    }

    fn is(row: &[(String, Field)], column: &str, text: &str) -> bool {
        *at(row, column) == Field::Str(text.to_owned())
    }

    #[test]
    fn the_figures_read_back_are_those_of_the_result() {
        let result =
            sample::result(&[sample::configuration("futex"), sample::configuration("pipe")], 2, |_, _| {
                16_000.0
            });
        let rows = rows(&Figures, &result);
        assert_eq!(rows.len(), lines(&result).count());
        let p50 = rows
            .iter()
            .find(|row| {
                is(row, "mechanism", "pipe")
                    && is(row, "quantity", "round-trip")
                    && is(row, "statistic", "p50")
            })
            .unwrap();
        let series = &result.records[1].series[&doorbell_results::record::series::Quantity::RoundTrip];
        assert_eq!(*at(p50, "value"), Field::Double(series.p50_ns));
        assert_eq!(*at(p50, "record"), Field::Long(1));
        assert_eq!(*at(p50, "cpu_second"), Field::Long(1));
        assert_eq!(*at(p50, "receivers"), Field::Null, "a ping-pong has none");
        assert_eq!(*at(p50, "result"), Field::Str("made up".to_owned()));
    }

    #[test]
    fn the_bins_hold_every_sample_and_lie_in_order() {
        let result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let rows = rows(&Bins, &result);
        let number = |row: &[(String, Field)], column| match at(row, column) {
            Field::Double(number) => *number,
            Field::Long(number) => *number as f64,
            other => panic!("{column}: {other}"),
        };
        let of = |record: i64| {
            rows.iter().filter(move |row| {
                is(row, "quantity", "round-trip") && *at(row, "record") == Field::Long(record)
            })
        };
        for record in 0..2 {
            assert_eq!(of(record).map(|row| number(row, "count")).sum::<f64>(), 1000.0);
            let highs: Vec<f64> = of(record).map(|row| number(row, "high_ns")).collect();
            let lows: Vec<f64> = of(record).map(|row| number(row, "low_ns")).collect();
            assert!(lows[1..].iter().zip(&highs).all(|(low, high)| low > high));
            assert!((lows[0] / 16_000.0 - 1.0).abs() < 0.002, "{}", lows[0]);
        }
    }

    #[test]
    fn what_may_not_be_shown_has_a_line_and_no_bin() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.records[0].outcome = Outcome::Hung { last_seen: Vec::new() };
        assert_eq!(rows(&Bins, &result), Vec::<Vec<(String, Field)>>::new());
        let figures = rows(&Figures, &result);
        assert_eq!(figures.len(), 1);
        assert!(is(&figures[0], "outcome", "hung") && *at(&figures[0], "value") == Field::Null);
    }
}
