// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables as columns: each with its head, how long it stays where
//! there is no room, and what stands in it of a row.

use super::axis::{self, Axis};
use super::extra::Extra;
use super::figures::{Having, Row, percentile};
use super::table::{Column, Table, word};
use super::unit::{Scale, count};
use super::wording::shown;
use doorbell_results::record::Tally;
use doorbell_results::record::series::Quantity;

type Cell<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

/// The columns of a table whose rows are made of `R`.
pub struct Columns<'a, R>(Vec<(Column, Cell<'a, R>)>);

impl<R> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(column, _)| column)).finish()
    }
}

impl<'a, R> Columns<'a, R> {
    /// None yet.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// And this one.
    #[must_use]
    pub fn with(mut self, column: Column, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.0.push((column, Box::new(cell)));
        self
    }

    /// And this one, if it is `wanted`.
    #[must_use]
    pub fn with_if(self, wanted: bool, column: Column, cell: impl Fn(&R) -> String + 'a) -> Self {
        if wanted { self.with(column, cell) } else { self }
    }

    /// A column for each of `axes`, in which the subject is called `subject`.
    pub fn along(axes: &[Axis], subject: &str, cell: impl Fn(&R, Axis) -> String + Clone + 'a) -> Self {
        let head = |axis: Axis| word(if axis == Axis::Subject { subject } else { axis.name() });
        let heads = axes.iter().map(|axis| (head(*axis), *axis));
        Self::none().each(heads, move |row, axis| cell(row, *axis))
    }

    /// And these, each for one of `what`.
    #[must_use]
    pub fn each<T: 'a>(
        self,
        what: impl IntoIterator<Item = (Column, T)>,
        cell: impl Fn(&R, &T) -> String + Clone + 'a,
    ) -> Self {
        what.into_iter().fold(self, |columns, (column, one)| {
            let cell = cell.clone();
            columns.with(column, move |row| cell(row, &one))
        })
    }

    /// The table of `rows`.
    pub fn table<'r>(self, rows: impl IntoIterator<Item = &'r R>) -> Table
    where
        R: 'r,
    {
        let (columns, cells): (Vec<Column>, Vec<Cell<'a, R>>) = self.0.into_iter().unzip();
        let mut table = Table::new(columns);
        for row in rows {
            table.row(cells.iter().map(|cell| cell(row)).collect());
        }
        table
    }
}

/// What belongs to a row of figures.
pub trait OfRow {
    fn row(&self) -> &Row<'_>;
}

impl OfRow for &Row<'_> {
    fn row(&self) -> &Row<'_> {
        self
    }
}

impl OfRow for Extra<'_> {
    fn row(&self) -> &Row<'_> {
        self.row
    }
}

impl<T> OfRow for (&Row<'_>, T) {
    fn row(&self) -> &Row<'_> {
        self.0
    }
}

impl<'a, R: OfRow> Columns<'a, R> {
    /// A column for each thing in which `rows` differ, where the subject is called `subject`.
    pub fn of(rows: &[R], subject: &str) -> Self {
        let axes = axis::varying(rows.iter().map(|row| row.row().configuration()));
        Self::along(&axes, subject, |row, axis| shown(axis, row.row()))
    }

    /// The CPU time a wake-up or an operation.
    #[must_use]
    pub fn cpu(self, column: Column, scale: Scale) -> Self {
        self.with(column, move |row| scale.known(row.row().cpu_ps()))
    }

    /// The median of a quantity.
    #[must_use]
    pub fn p50(self, column: Column, quantity: Quantity, scale: Scale) -> Self {
        self.with(column, move |row| scale.known(row.row().p50_ps(quantity)))
    }

    /// The middle of the trials of a figure beside the series.
    #[must_use]
    pub fn figure(self, column: Column, wanted: &'a str, show: impl Fn(f64) -> String + 'a) -> Self {
        self.with(column, move |row| row.row().figure(|name| name == wanted).map_or_else(dash, &show))
    }

    /// What the trials counted.
    #[must_use]
    pub fn tally(self, column: Column, of: fn(&Tally) -> u64) -> Self {
        self.with(column, move |row| count(of(&row.row().variant.tally())))
    }
}

impl<'a, 'row: 'a> Columns<'a, Having<'row>> {
    /// The distribution at each of these quantiles, as far as its samples support it.
    #[must_use]
    pub fn at(self, quantiles: impl IntoIterator<Item = (Column, f64)>, scale: Scale) -> Self {
        self.each(quantiles, move |(_, series), q| {
            percentile(series.quantile(*q) as f64, *q, series.count, scale)
        })
    }

    /// The shortest and the longest median of the blocks.
    #[must_use]
    pub fn by_block(self, column: Column, scale: Scale) -> Self {
        self.with(column, move |(_, series)| {
            series.spread_ps().map_or_else(String::new, |(low, high)| {
                format!("{}..{}", scale.show(low as f64), scale.show(high as f64))
            })
        })
    }

    /// How many samples it is of.
    #[must_use]
    pub fn samples(self, column: Column) -> Self {
        self.with(column, |(_, series)| count(series.count))
    }
}

/// What stands where nothing is known.
pub fn dash() -> String {
    "-".to_owned()
}
