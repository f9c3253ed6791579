// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the page.

use super::groups::Item;
use crate::bars;
use crate::claims::tally;
use crate::columns::Columns;
use crate::comparison::columns as compared_rows;
use crate::figures::{self, Having, Row, scale};
use crate::notifications::{IRREGULARITIES, counts};
use crate::pairs::Matrix;
use crate::quantities::columns;
use crate::table::{Table, number, word};
use crate::unit::{Scale, count, plain, time};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Tally};
use doorbell_verdict::claims::{self, Judged};
use doorbell_verdict::compare::Comparison;

/// What a table shows, with its unit, and the table.
pub(super) type Captioned = (String, Table);

/// The figures of one quantity, one variant a row, all in one unit.
pub(super) fn quantity(items: &[Item], quantity: Quantity, several: bool) -> Captioned {
    let (items, rows): (Vec<&Item>, Vec<Having>) =
        items.iter().filter_map(|item| Some((item, (item.row, item.row.series.get(&quantity)?)))).unzip();
    let scale = scale(&rows);
    let table = columns(&rows, scale)
        .by_block(number("p50 by block"), scale)
        .with(number("min"), |(_, series)| scale.show(series.min_ps as f64))
        .with(number("mean"), |(_, series)| scale.show(series.mean_ps))
        .table(&rows);
    let caption = format!(
        "All times in {}. CPU: {}. p50 by block: lowest and highest median of the run's blocks.",
        scale.unit.sign(),
        figures::cpu(quantity)
    );
    (caption, of_items(table, &items, several))
}

/// A table whose rows are of these items, which are named where there are several runs.
fn of_items(mut table: Table, items: &[&Item], several: bool) -> Table {
    table.variants = items.iter().map(|item| (item.id.to_owned(), item.row.is_harness())).collect();
    if several {
        table.columns.insert(0, word("run"));
        table.rows.iter_mut().zip(items).for_each(|(row, item)| row.insert(0, item.run.to_owned()));
    }
    table
}

pub(super) fn comparison(compared: &Comparison) -> Captioned {
    let table = compared_rows(&compared.rows)
        .with(number("count of blocks"), |row| format!("{} and {}", row.blocks[0], row.blocks[1]))
        .table(&compared.rows);
    let caption = "Ratios of candidate to baseline without unit, above 1 is slower. p50 and p99 \
        ratio: the machine's own change taken out, with an interval; the intervals of all \
        configurations hold together with 95 %. As measured: the medians alone. Machine: its own \
        change.";
    (caption.to_owned(), table)
}

/// What became of the notifications, by sequence number.
pub(super) fn notifications(items: &[Item], several: bool) -> Option<Captioned> {
    let told = items.iter().map(|item| (item, (item.row, item.row.variant.tally())));
    let (items, rows): (Vec<&Item>, Vec<(&Row, Tally)>) =
        told.filter(|(_, (_, tally))| tally.sent > 0).unzip();
    let table = counts(&rows, &IRREGULARITIES.iter().collect::<Vec<_>>())
        .tally(number("seen"), |tally| tally.seen)
        .with(number("switches of the sides"), |(row, _)| {
            count(row.sum_of_sides(|side| side.voluntary_switches.saturating_add(side.involuntary_switches)))
        })
        .table(&rows);
    let meanings = IRREGULARITIES.map(|kind| format!("{}: {}", kind.name, kind.meaning));
    let caption = format!("Numbers of notifications. {}.", meanings.join("; "));
    (!items.is_empty()).then(|| (caption, of_items(table, &items, several)))
}

/// Claims of others, each with its result.
pub(super) fn claims(result: &ResultFile) -> Option<Captioned> {
    let judged = claims::judge(result);
    let source = claims::source(result).filter(|_| !judged.is_empty())?;
    let table = Columns::none()
        .with(number("row"), |judged: &Judged| {
            judged.claim.row.map_or_else(String::new, |row| row.to_string())
        })
        .with(word("claim"), |judged| judged.claim.says.to_owned())
        .with(word("result"), |judged| judged.decision.name().to_owned())
        .with(word("evidence"), |judged| judged.evidence.clone())
        .table(&judged);
    Some((format!("Claims of {}: {}.", source.about, tally(&judged)), table))
}

pub(super) fn pairs(matrix: &Matrix) -> Captioned {
    let scale = Scale::for_ps(matrix.pairs.iter().map(|pair| pair.p50_ps));
    let caption = format!("Medians in {}; {} samples in all.", scale.unit.sign(), count(matrix.count()));
    (caption, bars::matrix(matrix, word("first CPU \\ other CPU"), scale, false))
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
