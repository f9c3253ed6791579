// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the page that show figures.

use std::collections::BTreeMap;

use super::groups::{self, Group, Item, groups, slug};
use super::tables::{self, Table};
use crate::record::series::Quantity;
use crate::view::axis::{self, Axis};
use crate::view::chart::palette::COLORS;
use crate::view::chart::{
    self, Curve, ecdf, gaps, histogram, pareto, percentiles, placements, ranges, trials,
};
use crate::view::figures::{self, Distribution};

/// A chart with the sentence that tells how to read it.
#[derive(Debug)]
pub(super) struct Chart {
    pub heading: String,
    pub how: &'static str,
    pub svg: String,
    /// Whether it wants the whole width of the page.
    pub wide: bool,
}

/// Everything about one quantity.
#[derive(Debug)]
pub(super) struct Section {
    pub id: String,
    pub heading: String,
    pub definition: &'static str,
    pub common: String,
    pub overviews: Vec<Chart>,
    pub table: Table,
    /// The charts of each group of arms run under the same conditions.
    pub panels: Vec<Panel>,
}

/// Arms drawn over each other, under several views.
#[derive(Debug)]
pub(super) struct Panel {
    pub name: String,
    pub charts: Vec<Chart>,
}

const RANGES: &str = "One line per arm. The dot is the median; the thick bar reaches to the 99th percentile, the middle one \
    to the 99.9th, the thin one to the longest time seen. Further left is quicker. Hover over a line for its figures.";
const PLACEMENTS: &str = "One row per mechanism, one line per placement, the quickest mechanism on top. How far the \
    lines of a row lie apart is what the placement is worth to it. Names leave out what most arms share.";
const ECDF: &str = "How large a share of the samples took at most the time below. A steep curve repeats well; a \
    stair means two populations, such as wakes on one core and wakes across cores. The axis ends at the largest 99.9th \
    percentile: the worst samples are in the charts beside this one.";
const PERCENTILES: &str = "The time at each percentile. Each further nine takes as much room as the one before, so the \
    tail can be read: a curve that stays flat to the right keeps its promise to the unlucky too.";
const HISTOGRAM: &str = "How many samples took how long. Heights are logarithmic: one sample in a million still shows, \
    so a single worst case can be seen, and humps far apart are populations.";
const TRIALS: &str = "Each mark is the median of one trial, in processes of its own. Marks close together repeat; two \
    clusters are two populations, and the shape of the mark says on which CPUs the sides were seen.";
const PARETO: &str = "Time against the CPU time that both sides spend for it. Left and low is better; the dashed line \
    joins the arms that no other beats in both. The thin line upwards reaches to the 99th percentile.";
const GAPS: &str = "What a longer sleep costs: the median (thick) and the 99th percentile (thin) at each gap between \
    notifications. A ping-pong without a gap shows only the left end.";

/// One section per quantity.
pub(super) fn sections(items: &[Item], several: bool) -> Vec<Section> {
    let mut quantities: Vec<Quantity> =
        items.iter().flat_map(|item| item.row.series.keys().copied()).collect();
    quantities.sort_unstable();
    quantities.dedup();
    quantities.into_iter().map(|quantity| section(items, quantity, several)).collect()
}

fn section(items: &[Item], quantity: Quantity, several: bool) -> Section {
    let name = figures::name(quantity);
    let having = || items.iter().filter(|item| item.row.series.contains_key(&quantity));
    let all = groups(items, quantity, false);
    let mut panels = Vec::new();
    for group in &groups(items, quantity, true) {
        panels.extend(panels_of(group, name, several));
    }
    panels.extend(gap_panels(items, quantity, several));
    Section {
        id: slug(name),
        heading: name.to_owned(),
        definition: quantity.definition(),
        common: axis::common(having().map(|item| item.row.cell())),
        overviews: [by_placement(items, quantity, name), Some(overview(&all, name, several))]
            .into_iter()
            .flatten()
            .collect(),
        table: tables::quantity(items, quantity, several),
        panels,
    }
}

fn by_placement(items: &[Item], quantity: Quantity, name: &str) -> Option<Chart> {
    let (places, rows) = groups::by_placement(items, quantity)?;
    let svg = placements::draw(&rows, &places, name, None).inline();
    Some(Chart { heading: format!("{name} by mechanism and placement"), how: PLACEMENTS, svg, wide: true })
}

fn overview(all: &[Group], name: &str, several: bool) -> Chart {
    let curves: Vec<Vec<Curve>> = all.iter().map(|group| group.curves(several)).collect();
    let rows: Vec<ranges::Group> = all
        .iter()
        .zip(&curves)
        .map(|(group, curves)| ranges::Group { name: group.name.clone(), curves })
        .collect();
    Chart {
        heading: format!("{name}, every arm"),
        how: RANGES,
        svg: ranges::draw(&rows, name, None).inline(),
        wide: true,
    }
}

fn panels_of(group: &Group, name: &str, several: bool) -> Vec<Panel> {
    let panels = group.panels(several);
    let number = panels.len();
    let mut shown: Vec<Panel> = panels
        .into_iter()
        .enumerate()
        .map(|(index, curves)| {
            let part = if number > 1 {
                format!(" ({} of {number}, the quickest first)", index + 1)
            } else {
                String::new()
            };
            let mut charts = vec![
                small("Distribution", ECDF, ecdf::draw(&curves, name)),
                small("Percentiles", PERCENTILES, percentiles::draw(&curves, name)),
                small("Number of samples", HISTOGRAM, histogram::draw(&curves, name)),
            ];
            let lines = trial_lines(group, &curves);
            if lines.iter().any(|line| line.trials.len() > 1) {
                charts.push(small("Medians of the trials", TRIALS, trials::draw(&lines, name)));
            }
            Panel { name: format!("{}{part}", join(&group.name, "distributions")), charts }
        })
        .collect();
    if let Some(picture) = pareto::draw(&group.curves(several), name) {
        let charts = vec![small("Time against CPU time", PARETO, picture)];
        shown.push(Panel { name: join(&group.name, "what it costs"), charts });
    }
    shown
}

fn trial_lines<'a>(group: &Group<'a>, curves: &[Curve<'a>]) -> Vec<trials::Line<'a>> {
    curves
        .iter()
        .filter_map(|curve| {
            let (item, series) = group.items.iter().find(|(item, _)| item.id == curve.id)?;
            let medians = series.block_medians_ps.iter();
            let trials = item.row.arm.records.iter().zip(medians);
            Some(trials::Line {
                look: curve.clone(),
                trials: trials
                    .map(|(record, ps)| (record.block, *ps as f64, trials::Sides::of(record)))
                    .collect(),
            })
        })
        .collect()
}

/// Latency against the gap: arms that differ in nothing else make one line.
fn gap_panels(items: &[Item], quantity: Quantity, several: bool) -> Vec<Panel> {
    let having: Vec<(&Item, &Distribution)> = items
        .iter()
        .filter(|item| item.row.arm.headline() == quantity)
        .filter_map(|item| Some((item, item.row.series.get(&quantity)?)))
        .collect();
    let varying = axis::varying(having.iter().map(|(item, _)| item.row.cell()));
    if !varying.contains(&Axis::Gap) {
        return Vec::new();
    }
    let apart: Vec<Axis> = varying.iter().copied().filter(|axis| *axis != Axis::Gap).collect();
    let mut lines: BTreeMap<(String, usize), gaps::Line> = BTreeMap::new();
    for (item, series) in having {
        let name = axis::label(item.row.cell(), &apart);
        let name = if several { format!("{name} · {}", item.run) } else { name };
        let gap = item.row.cell().pattern.gap_ns() as f64 * 1e3;
        let line = lines.entry((name.clone(), item.file)).or_insert_with(|| gaps::Line {
            look: Curve {
                id: item.id.to_owned(),
                name,
                color: 0,
                harness: item.row.is_harness(),
                series,
                cpu_ps: None,
            },
            points: Vec::new(),
        });
        line.points.push((gap, series));
    }
    let (harness, mut arms): (Vec<_>, Vec<_>) = lines.into_values().partition(|line| line.look.harness);
    drop(harness);
    for line in &mut arms {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    arms.sort_by_key(|line| line.points.last().map(|point| point.1.quantile(0.5)));
    let number = arms.len().div_ceil(COLORS);
    let mut charts = Vec::new();
    for (part, chunk) in arms.chunks_mut(COLORS).enumerate() {
        for (color, line) in chunk.iter_mut().enumerate() {
            line.look.color = color;
        }
        if let Some(picture) = gaps::draw(chunk, figures::name(quantity)) {
            let heading = if number > 1 {
                format!("Time against the gap ({} of {number}, the quickest first)", part + 1)
            } else {
                "Time against the gap".to_owned()
            };
            charts.push(Chart { heading, how: GAPS, svg: picture.inline(), wide: false });
        }
    }
    if charts.is_empty() {
        Vec::new()
    } else {
        vec![Panel { name: join("", "what a longer sleep costs"), charts }]
    }
}

fn small(heading: &str, how: &'static str, picture: chart::svg::Picture) -> Chart {
    Chart { heading: heading.to_owned(), how, svg: picture.inline(), wide: false }
}

/// What a panel shows, after the conditions its arms share.
fn join(conditions: &str, what: &str) -> String {
    if conditions.is_empty() { format!("All arms: {what}") } else { format!("{conditions}: {what}") }
}
