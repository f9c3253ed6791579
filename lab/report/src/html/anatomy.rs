// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of wake-ups goes, on the page: waterfalls and the stages of each path.

use super::sections::Chart;
use super::tables::{Subsection, Table, TableRow, shown};
use crate::anatomy::{difference, label, notes, rows, title};
use crate::axis::{self, Axis};
use crate::chart::waterfall;
use crate::unit::{Scale, count};
use crate::why::{causes, events, title as explained, verdict};
use crate::wording::counted;
use doorbell_results::record::ResultFile;
use doorbell_results::written::time_ns;
use doorbell_verdict::anatomy::{Dissected, dissect};
use doorbell_verdict::why::{Slow, why};

#[derive(Debug)]
pub(super) struct Dissection {
    pub name: String,
    pub charts: Vec<Chart>,
    pub how: &'static str,
    pub tables: Vec<Table>,
    /// What the kernel told of each wake that is explained.
    pub events: Vec<Subsection>,
    pub notes: Vec<String>,
}

const WATERFALL: &str = "One wake-up, from the notifier's stamp to the message read. Each bar \
    begins where the one above ended, so they add up to the whole. Hover over a bar for the event \
    that told of its end.";

/// Every traced variant of a result.
pub(super) fn dissections(result: &ResultFile) -> Vec<Dissection> {
    let (variants, slow) = (dissect(result), why(result));
    let stages = variants
        .iter()
        .filter(|variant| !variant.paths.is_empty())
        .map(|variant| dissection(variant, &variants));
    stages.chain(slow.iter().map(|one| slowest(one, slow.len()))).collect()
}

/// The slowest wakes of a variant.
fn slowest(slow: &Slow, configurations: usize) -> Dissection {
    let scale = Scale::for_ps(slow.kept.iter().map(|one| one.wake.whole_ps() as f64));
    let charts = slow
        .kept
        .iter()
        .map(|one| Chart {
            heading: explained(one),
            how: "",
            svg: waterfall::draw(one.wake, &explained(one)).inline(),
            wide: false,
        })
        .collect();
    let table = Table {
        caption: format!("The slowest of {} wake-ups, {}", count(slow.wakes), scale.unit.sign()),
        columns: vec![
            ("wake-up".to_owned(), true),
            ("took".to_owned(), true),
            ("cause".to_owned(), false),
            ("covers".to_owned(), true),
            ("evidence".to_owned(), false),
        ],
        rows: causes(&slow.kept, scale)
            .into_iter()
            .map(|cells| TableRow { variant: String::new(), harness: false, cells: cells.to_vec() })
            .collect(),
    };
    Dissection {
        name: axis::label(slow.configuration, &[Axis::Subject, Axis::Relation, Axis::Gap, Axis::Load]),
        charts,
        how: WATERFALL,
        tables: if slow.kept.is_empty() { Vec::new() } else { vec![table] },
        events: shown(&slow.kept.iter().map(|one| events(one.wake)).collect::<Vec<_>>()),
        notes: vec![verdict(slow, configurations)],
    }
}

fn dissection(variant: &Dissected, variants: &[Dissected]) -> Dissection {
    let charts = variant
        .shown
        .iter()
        .map(|wake| Chart {
            heading: title(wake),
            how: "",
            svg: waterfall::draw(wake, &label(variant.configuration, variants)).inline(),
            wide: false,
        })
        .collect();
    let tables = variant.paths.iter().map(|way| {
        let scale = Scale::for_ps(way.stages.values().map(|stage| stage.quantile(0.5) as f64));
        let unit = scale.unit.sign();
        let numbers = ["p50", "p90", "p99", "max", "mean", "share", "count"];
        Table {
            caption: format!("{}: time of each stage, {unit}", way.name()),
            columns: std::iter::once(("stage".to_owned(), false))
                .chain(numbers.map(|head| (head.to_owned(), true)))
                .collect(),
            rows: rows(way, scale)
                .into_iter()
                .map(|cells| TableRow { variant: String::new(), harness: false, cells })
                .collect(),
        }
    });
    let mut notes = notes(variant);
    if let Some(cost) = variant.cost {
        let said = match cost.within_ns {
            Some(_) if cost.is_shown() => "Tracing cost",
            Some(_) => "No cost of tracing is shown:",
            None => "The cost of tracing:",
        };
        notes.push(format!(
            "{said} {} of the median, {} with and {} without, in {}.",
            difference(&cost, |ns| format!("{ns:.0} ns")),
            time_ns(cost.with_ns),
            time_ns(cost.without_ns),
            counted(cost.blocks as u64, "block")
        ));
    }
    Dissection {
        name: label(variant.configuration, variants),
        charts,
        how: WATERFALL,
        tables: tables.collect(),
        events: Vec::new(),
        notes,
    }
}
