// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of wake-ups goes, on the page: waterfalls and the stages of each path.

use super::sections::Chart;
use super::tables::Captioned;
use crate::anatomy::{columns, difference, label, notes, scale_of, stages_of, title};
use crate::axis::{self, Axis};
use crate::chart::svg::Picture;
use crate::chart::waterfall;
use crate::subsection::Subsection;
use crate::table::number;
use crate::unit::{count, time_ns};
use crate::why::{events, table, title as explained, verdict};
use crate::wording::counted;
use doorbell_results::record::ResultFile;
use doorbell_verdict::anatomy::{Dissected, PathTimes, dissect};
use doorbell_verdict::why::{Slow, why};

#[derive(Debug)]
pub(super) struct Dissection {
    pub name: String,
    pub charts: Vec<Chart>,
    pub how: &'static str,
    pub tables: Vec<Captioned>,
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

fn chart(heading: String, picture: &Picture) -> Chart {
    Chart { heading, how: "", svg: picture.inline(), wide: false }
}

fn slowest(slow: &Slow, configurations: usize) -> Dissection {
    let charts =
        slow.kept.iter().map(|one| chart(explained(one), &waterfall::draw(one.wake, &explained(one))));
    let caption = format!("The slowest of {} wake-ups, by cause", count(slow.wakes));
    Dissection {
        name: axis::label(slow.configuration, &[Axis::Subject, Axis::Relation, Axis::Gap, Axis::Load]),
        charts: charts.collect(),
        how: WATERFALL,
        tables: (!slow.kept.is_empty()).then(|| (caption, table(&slow.kept, true))).into_iter().collect(),
        events: slow.kept.iter().map(|one| events(one.wake)).collect(),
        notes: vec![verdict(slow, configurations)],
    }
}

fn stages(way: &PathTimes) -> Captioned {
    let scale = scale_of(way);
    let table = columns(way, "stage".to_owned(), scale)
        .with(number("count"), |(_, times)| count(times.count()))
        .table(&stages_of(way));
    (format!("{}: time of each stage, {}", way.name(), scale.unit.sign()), table)
}

fn dissection(variant: &Dissected, variants: &[Dissected]) -> Dissection {
    let name = label(variant.configuration, variants);
    let charts = variant.shown.iter().map(|wake| chart(title(wake), &waterfall::draw(wake, &name)));
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
        charts: charts.collect(),
        how: WATERFALL,
        tables: variant.paths.iter().map(stages).collect(),
        events: Vec::new(),
        notes,
        name,
    }
}
