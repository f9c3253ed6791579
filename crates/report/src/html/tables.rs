// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the page.

use super::groups::Item;
use crate::axis::{self, Axis};
use crate::claims::tally;
use crate::comparison::{interval, words as verdict};
use crate::figures::{self, Distribution, Row};
use crate::notifications::{IRREGULARITIES, share};
use crate::pairs::Matrix;
use crate::style::Role;
use crate::subsection;
use crate::table::{self, Align};
use crate::unit::{Scale, count, plain, time};
use doorbell_results::configuration::Timing;
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

/// A row: the variant it belongs to (or nothing), its configurations.
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

    /// The configurations, each with the class of its kind: numbers have none, and a sentence may be broken over lines.
    pub(super) fn typed<'a>(
        &'a self,
        columns: &'a [(String, bool)],
    ) -> impl Iterator<Item = (&'a str, &'static str)> {
        self.cells.iter().zip(columns).map(|(configuration, (_, number))| {
            let class = match configuration.chars().count() {
                _ if *number => "",
                0..=SENTENCE => "w",
                _ => "w long",
            };
            (configuration.as_str(), class)
        })
    }
}

/// Letters of a configuration of words that is still no sentence.
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

fn numbers(heads: &[&str]) -> Vec<(String, bool)> {
    heads.iter().map(|head| ((*head).to_owned(), true)).collect()
}

fn named(axis: Axis, row: &Row) -> String {
    let value = axis.value(row.configuration());
    match axis {
        Axis::Subject if row.is_harness() => format!("{value} (the harness)"),
        Axis::Subject if row.is_partial() => format!("{value} (partial)"),
        _ => value,
    }
}

/// The figures of one quantity, one variant a row, all in one unit.
pub(super) fn quantity(items: &[Item], quantity: Quantity, several: bool) -> Table {
    let having: Vec<(&Item, &Distribution)> =
        items.iter().filter_map(|item| Some((item, item.row.series.get(&quantity)?))).collect();
    let axes = axis::varying(having.iter().map(|(item, _)| item.row.configuration()));
    let scale = Scale::for_ps(having.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let mut columns = Vec::new();
    if several {
        columns.push(words("run"));
    }
    columns.extend(axes.iter().map(|axis| words(axis.name())));
    columns.extend(numbers(&[
        "min",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "mean",
        "count",
        "CPU",
        "p50 by block",
    ]));
    let rows = having
        .iter()
        .map(|(item, series)| {
            let mut cells = Vec::new();
            if several {
                cells.push(item.run.to_owned());
            }
            cells.extend(axes.iter().map(|axis| named(*axis, item.row)));
            cells.push(scale.show(series.min_ps as f64));
            cells.extend(figures::percentiles(series, [0.5, 0.9, 0.99, 0.999, 1.0], scale));
            cells.push(scale.show(series.mean_ps));
            cells.push(count(series.count));
            cells.push(item.row.cpu_ps().map_or_else(|| "–".to_owned(), |ps| scale.show(ps)));
            cells.push(series.spread_ps().map_or_else(
                || "–".to_owned(),
                |(low, high)| format!("{} … {}", scale.show(low as f64), scale.show(high as f64)),
            ));
            TableRow { variant: item.id.to_owned(), harness: item.row.is_harness(), cells }
        })
        .collect();
    let caption = format!(
        "All times in {}. CPU: {}. p50 by block: lowest and highest median of the run's blocks.",
        scale.unit.sign(),
        figures::cpu(quantity)
    );
    Table { caption, columns, rows }
}

/// A comparison of two runs.
pub(super) fn comparison(compared: &Comparison) -> Table {
    let rows = &compared.rows;
    let axes = axis::varying(rows.iter().map(|row| row.configuration));
    let scale = Scale::for_ps(rows.iter().map(|row| row.baseline_p50_ns * 1e3));
    let mut columns: Vec<(String, bool)> = axes.iter().map(|axis| words(axis.name())).collect();
    columns.extend(numbers(&[
        "baseline p50",
        "p50 ratio",
        "p99 ratio",
        "as measured",
        "machine",
        "count of blocks",
    ]));
    columns.push(words("verdict"));
    let lines = rows
        .iter()
        .map(|row| {
            let mut cells: Vec<String> = axes.iter().map(|axis| axis.value(row.configuration)).collect();
            cells.push(scale.show(row.baseline_p50_ns * 1e3));
            cells.push(interval(row.p50));
            cells.push(row.p99.map_or_else(|| "–".to_owned(), interval));
            cells.push(format!("{:.3}", row.measured));
            cells.push(row.machine.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}")));
            cells.push(format!("{} and {}", row.blocks[0], row.blocks[1]));
            cells.push(verdict(row));
            TableRow::plain(cells)
        })
        .collect();
    let caption = format!(
        "Baseline p50 in {}; ratios of candidate to baseline without unit, above 1 is slower. p50 and p99 ratio: the machine's \
         own change taken out, with an interval; the intervals of all configurations hold together with 95 %. As measured: \
         the medians alone. Machine: its own change.",
        scale.unit.sign()
    );
    Table { caption, columns, rows: lines }
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
    let axes = axis::varying(told.iter().map(|(item, _)| item.row.configuration()));
    let mut columns = Vec::new();
    if several {
        columns.push(words("run"));
    }
    columns.extend(axes.iter().map(|axis| words(axis.name())));
    columns.extend(numbers(&["sent", "seen"]));
    columns.extend(IRREGULARITIES.iter().map(|kind| (kind.name.to_owned(), true)));
    columns.extend(numbers(&["late share", "proven asleep", "switches of the sides"]));
    let rows = told
        .iter()
        .map(|(item, tally)| {
            let mut cells = Vec::new();
            if several {
                cells.push(item.run.to_owned());
            }
            cells.extend(axes.iter().map(|axis| named(*axis, item.row)));
            cells.extend([tally.sent, tally.seen].map(count));
            cells.extend(IRREGULARITIES.iter().map(|kind| count((kind.of)(tally))));
            cells.push(share(tally.late, tally.seen));
            let blocked = item.row.configuration().timing == Timing::Blocked;
            cells.push(if blocked { share(tally.proven_asleep, tally.sent) } else { "–".to_owned() });
            let sides = item.row.variant.records.iter().flat_map(|record| &record.sides);
            cells.push(count(sides.fold(0_u64, |sum, side| {
                sum.saturating_add(side.voluntary_switches).saturating_add(side.involuntary_switches)
            })));
            TableRow { variant: item.id.to_owned(), harness: item.row.is_harness(), cells }
        })
        .collect();
    let meanings: Vec<String> =
        IRREGULARITIES.iter().map(|kind| format!("{}: {}", kind.name, kind.meaning)).collect();
    Some(Table { caption: format!("Numbers of notifications. {}.", meanings.join("; ")), columns, rows })
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
