// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the page.

use super::groups::Item;
use crate::axis;
use crate::claims::tally;
use crate::comparison::columns as compared_rows;
use crate::figures::{self, Distribution, Row};
use crate::notifications::{IRREGULARITIES, counts};
use crate::pairs::Matrix;
use crate::quantities::columns;
use crate::style::Role;
use crate::subsection;
use crate::table::{self, Align, number};
use crate::unit::{Scale, count, plain, time};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Tally};
use doorbell_verdict::claims;
use doorbell_verdict::compare::Comparison;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// What it shows, with its unit.
    pub caption: String,
    /// Heads, and whether the column holds numbers.
    pub columns: Vec<(String, bool)>,
    pub rows: Vec<TableRow>,
}

/// A row: the variant it belongs to (or nothing), and its cells.
#[derive(Debug)]
pub(super) struct TableRow {
    pub variant: String,
    pub harness: bool,
    pub cells: Vec<String>,
}

impl TableRow {
    pub(super) fn plain(cells: Vec<String>) -> Self {
        Self { variant: String::new(), harness: false, cells }
    }

    /// The cells, each with its class: numbers have none, and a sentence may be broken over lines.
    pub(super) fn typed<'a>(
        &'a self,
        columns: &'a [(String, bool)],
    ) -> impl Iterator<Item = (&'a str, &'static str)> {
        self.cells.iter().zip(columns).map(|(cell, (_, number))| {
            let class = match cell.chars().count() {
                _ if *number => "",
                0..=SENTENCE => "w",
                _ => "w long",
            };
            (cell.as_str(), class)
        })
    }
}

/// Letters of a cell of words that is still no sentence.
const SENTENCE: usize = 60;

impl From<&table::Table> for Table {
    fn from(table: &table::Table) -> Self {
        let columns = table.columns.iter().map(|column| (column.head.clone(), column.align == Align::Right));
        let rows = table.rows.iter().cloned().map(TableRow::plain);
        Self { caption: String::new(), columns: columns.collect(), rows: rows.collect() }
    }
}

/// What a view tells, as the page shows it.
#[derive(Debug)]
pub(super) struct Subsection {
    pub title: String,
    /// Whether the title is a verdict that fails.
    pub bad: bool,
    pub lead: Vec<String>,
    pub table: Option<Table>,
    pub notes: Vec<String>,
}

impl From<&subsection::Subsection> for Subsection {
    fn from(subsection: &subsection::Subsection) -> Self {
        Self {
            title: subsection.title.clone(),
            bad: subsection.role == Role::Error,
            lead: subsection.lead.clone(),
            table: subsection.table.as_ref().map(Table::from),
            notes: subsection.notes.clone(),
        }
    }
}

/// Subsections as the page shows them.
pub(super) fn shown(told: &[subsection::Subsection]) -> Vec<Subsection> {
    told.iter().map(Subsection::from).collect()
}

fn words(head: &str) -> (String, bool) {
    (head.to_owned(), false)
}

/// The figures of one quantity, one variant a row, all in one unit.
pub(super) fn quantity(items: &[Item], quantity: Quantity, several: bool) -> Table {
    let (items, rows): (Vec<&Item>, Vec<(&Row, &Distribution)>) =
        items.iter().filter_map(|item| Some((item, (item.row, item.row.series.get(&quantity)?)))).unzip();
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let table = columns(&axes, scale)
        .by_block(number("p50 by block"), scale)
        .with(number("min"), |(_, series)| scale.show(series.min_ps as f64))
        .with(number("mean"), |(_, series)| scale.show(series.mean_ps))
        .table(&rows);
    let caption = format!(
        "All times in {}. CPU: {}. p50 by block: lowest and highest median of the run's blocks.",
        scale.unit.sign(),
        figures::cpu(quantity)
    );
    of_items(&table, &items, several, caption)
}

/// A table whose rows are of these items, which are named where there are several runs.
fn of_items(table: &table::Table, items: &[&Item], several: bool, caption: String) -> Table {
    let mut table = Table { caption, ..Table::from(table) };
    for (row, item) in table.rows.iter_mut().zip(items) {
        (row.variant, row.harness) = (item.id.to_owned(), item.row.is_harness());
        if several {
            row.cells.insert(0, item.run.to_owned());
        }
    }
    if several {
        table.columns.insert(0, words("run"));
    }
    table
}

/// A comparison of two runs.
pub(super) fn comparison(compared: &Comparison) -> Table {
    let table = compared_rows(&compared.rows)
        .with(number("count of blocks"), |row| format!("{} and {}", row.blocks[0], row.blocks[1]))
        .table(&compared.rows);
    let caption = "Ratios of candidate to baseline without unit, above 1 is slower. p50 and p99 \
        ratio: the machine's own change taken out, with an interval; the intervals of all \
        configurations hold together with 95 %. As measured: the medians alone. Machine: its own \
        change.";
    Table { caption: caption.to_owned(), ..Table::from(&table) }
}

/// What became of the notifications, by sequence number.
pub(super) fn notifications(items: &[Item], several: bool) -> Option<Table> {
    let told: Vec<(&Item, Tally)> = items
        .iter()
        .map(|item| (item, item.row.variant.tally()))
        .filter(|(_, tally)| tally.sent > 0)
        .collect();
    if told.is_empty() {
        return None;
    }
    let (items, rows): (Vec<&Item>, Vec<(&Row, Tally)>) =
        told.into_iter().map(|(item, tally)| (item, (item.row, tally))).unzip();
    let table = counts(&rows, &IRREGULARITIES.iter().collect::<Vec<_>>())
        .with(number("seen"), |(_, tally)| count(tally.seen))
        .with(number("switches of the sides"), |(row, _)| {
            let sides = row.variant.records.iter().flat_map(|record| &record.sides);
            count(sides.fold(0_u64, |sum, side| {
                sum.saturating_add(side.voluntary_switches).saturating_add(side.involuntary_switches)
            }))
        })
        .table(&rows);
    let meanings: Vec<String> =
        IRREGULARITIES.iter().map(|kind| format!("{}: {}", kind.name, kind.meaning)).collect();
    let caption = format!("Numbers of notifications. {}.", meanings.join("; "));
    Some(of_items(&table, &items, several, caption))
}

/// Claims of others, each with its result.
pub(super) fn claims(result: &ResultFile) -> Option<Table> {
    let judged = claims::judge(result);
    let source = claims::source(result).filter(|_| !judged.is_empty())?;
    let columns = vec![("row".to_owned(), true), words("claim"), words("result"), words("evidence")];
    let rows = judged
        .iter()
        .map(|judged| {
            let row = judged.claim.row.map_or_else(String::new, |row| row.to_string());
            let says = judged.claim.says.to_owned();
            TableRow::plain(vec![row, says, judged.decision.name().to_owned(), judged.evidence.clone()])
        })
        .collect();
    let caption = format!("Claims of {}: {}.", source.about, tally(&judged));
    Some(Table { caption, columns, rows })
}

pub(super) fn pairs(matrix: &Matrix) -> Table {
    let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
    let mut columns = vec![words("first CPU \\ other CPU")];
    columns.extend(matrix.columns().iter().map(|cpu| (cpu.to_string(), true)));
    let rows = matrix
        .rows()
        .into_iter()
        .map(|from| {
            let mut cells = vec![from.to_string()];
            cells.extend(matrix.columns().into_iter().map(|to| {
                matrix.get(from, to).map_or_else(|| "–".to_owned(), |pair| scale.show(pair.p50_ps))
            }));
            TableRow::plain(cells)
        })
        .collect();
    let caption = format!("Medians in {}; {} samples in all.", scale.unit.sign(), count(matrix.count()));
    Table { caption, columns, rows }
}

/// The best and the worst pair in words.
pub(super) fn pairs_verdict(matrix: &Matrix) -> String {
    match (matrix.best(), matrix.worst()) {
        (Some(best), Some(worst)) if matrix.pairs.len() > 1 => format!(
            "Best pair: CPUs {} and {} with {}. Worst: {} and {} with {}, {} times as much.",
            best.from,
            best.to,
            time(best.p50_ps),
            worst.from,
            worst.to,
            time(worst.p50_ps),
            plain(worst.p50_ps / best.p50_ps.max(1.0))
        ),
        _ => String::new(),
    }
}
