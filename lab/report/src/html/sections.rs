// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of the page that show figures.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{self, Group, Item, groups, slug};
use super::tables::{self, Captioned};
use crate::axis::{self, Axis};
use crate::chart::palette::COLORS;
use crate::chart::{self, Curve, histogram, pareto, percentiles, placements, ranges, sweep, trials};
use crate::figures::{self, Distribution};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::series::Quantity;

/// A chart with the sentence that tells how to read it.
#[derive(Debug)]
pub(super) struct Chart {
    pub heading: String,
    pub how: &'static str,
    pub svg: String,
    /// Whether it wants the whole width of the page.
    pub wide: bool,
}

#[derive(Debug)]
pub(super) struct Section {
    pub id: String,
    pub heading: String,
    pub definition: &'static str,
    pub common: String,
    pub overviews: Vec<Chart>,
    pub table: Captioned,
    /// The charts of each group of variants run under the same conditions.
    pub panels: Vec<Panel>,
}

/// Variants drawn over each other, under several views.
#[derive(Debug)]
pub(super) struct Panel {
    pub name: String,
    pub charts: Vec<Chart>,
}

const RANGES: &str = "One line per variant. The dot is the median; the thick bar reaches to the \
    99th percentile, the middle one to the 99.9th, the thin one to the longest time seen. Further \
    left is quicker. Hover over a line for its figures.";
const PLACEMENTS: &str = "One row per mechanism, one line per placement, the quickest mechanism on \
    top. How far the lines of a row lie apart is what the placement is worth to it. Names leave \
    out what most variants share.";
const PERCENTILES: &str = "The time at each percentile. Each further nine takes as much room as \
    the one before, so the tail can be read: a curve that stays flat to the right keeps its \
    promise to the unlucky too.";
const HISTOGRAM: &str = "How many samples took how long. Heights are logarithmic: one sample in a \
    million still shows, so a single worst case can be seen, and humps far apart are modes of the \
    distribution.";
const TRIALS: &str = "Each mark is the median of one trial, in processes of its own. Marks close \
    together repeat; two clusters are a bimodal distribution, and the shape of the mark says on \
    which CPUs the sides were seen.";
const PARETO: &str = "Time against the CPU time spent for it. Left and low is better; the dashed line \
    joins the variants that no other beats in both. The thin line upwards reaches to the 99th percentile.";
/// Something that is varied on purpose, along which times are drawn.
struct Sweep {
    axis: Axis,
    value: fn(&Configuration) -> f64,
    /// The title of its axis, with the unit.
    along: &'static str,
    heading: &'static str,
    what: &'static str,
    how: &'static str,
}

const SWEEPS: [Sweep; 3] = [
    Sweep {
        axis: Axis::Gap,
        value: |configuration| configuration.pattern.gap_ns() as f64,
        along: "gap between notifications (time)",
        heading: "Time against the gap",
        what: "what a longer sleep costs",
        how: "What a longer sleep costs: the median (thick) and the 99th percentile (thin) at each \
            gap between notifications. A ping-pong without a gap shows only the left end.",
    },
    Sweep {
        axis: Axis::Receivers,
        value: |configuration| configuration.pattern.receivers().unwrap_or(0).into(),
        along: "receivers (number)",
        heading: "Time against the number of receivers",
        what: "what more receivers cost",
        how: "What each further receiver costs: the median (thick) and the 99th percentile (thin) \
            at each number of receivers.",
    },
    Sweep {
        axis: Axis::Tasks,
        value: |configuration| configuration.pattern.tasks().map_or(0.0, |(tasks, _)| tasks.into()),
        along: "tasks (number)",
        heading: "Time against the number of tasks",
        what: "what more tasks cost",
        how: "What a hand-off or a life costs among more and more tasks: the median (thick) and \
            the 99th percentile (thin). Where two lines cross, the better kind changes.",
    },
];

/// Nobody opens more panels than these. Where variants ran under more conditions,
/// each panel is two charts and not four: histograms and medians of trials tell
/// little that the others and the table do not. And of more panels of the same
/// conditions none is drawn: the overview has a line for every variant.
const MANY: usize = 12;

/// One section per quantity, each id after `prefix`.
pub(super) fn sections(items: &[Item], several: bool, prefix: &str, limit: Option<f64>) -> Vec<Section> {
    let mut quantities: Vec<Quantity> =
        items.iter().flat_map(|item| item.row.series.keys().copied()).collect();
    quantities.sort_unstable();
    quantities.dedup();
    quantities.into_iter().map(|quantity| section(items, quantity, several, prefix, limit)).collect()
}

/// Variants that one chart has room for.
const MOST: usize = 40;

/// The one chart of a run that says most: along what was varied on
/// purpose, else by placement, else every variant.
pub(super) fn telling(items: &[Item], limit: Option<f64>) -> Option<Chart> {
    let mut headlines: Vec<Quantity> = items.iter().map(|item| item.row.variant.headline()).collect();
    headlines.sort_unstable();
    let of = |quantity: &Quantity| headlines.iter().filter(|other| *other == quantity).count();
    let quantity = *headlines.iter().max_by_key(|quantity| of(quantity))?;
    let name = figures::name(quantity);
    let along =
        || SWEEPS.iter().find_map(|sweep| swept(sweep, items, quantity, false)?.charts.into_iter().next());
    let all = || {
        let groups = groups(items, quantity, false);
        let variants: usize = groups.iter().map(|group| group.items.len()).sum();
        (variants <= MOST).then(|| overview(&groups, name, false, limit))
    };
    if limit.is_some() {
        return all();
    }
    by_placement(items, quantity, name, placements::fits).or_else(along).or_else(all)
}

fn section(items: &[Item], quantity: Quantity, several: bool, prefix: &str, limit: Option<f64>) -> Section {
    let name = figures::name(quantity);
    let having = || items.iter().filter(|item| item.row.series.contains_key(&quantity));
    let all = groups(items, quantity, false);
    // Only what was judged is held against it.
    let limit = limit.filter(|_| having().any(|item| item.row.variant.headline() == quantity));
    let mut panels = Vec::new();
    let conditions = groups(items, quantity, true);
    for group in &conditions {
        panels.extend(panels_of(group, name, several, conditions.len() > MANY));
    }
    panels.extend(SWEEPS.iter().filter_map(|sweep| swept(sweep, items, quantity, several)));
    Section {
        id: format!("{prefix}{}", slug(name)),
        heading: name.to_owned(),
        definition: quantity.definition(),
        common: axis::common(having().map(|item| item.row.configuration())),
        overviews: [
            by_placement(items, quantity, name, |rows| rows.len()),
            Some(overview(&all, name, several, limit)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        table: tables::quantity(items, quantity, several),
        panels,
    }
}

/// As many of its rows as there is `room` for, the quickest first.
fn by_placement(
    items: &[Item],
    quantity: Quantity,
    name: &str,
    room: fn(&[placements::PlacementsRow]) -> usize,
) -> Option<Chart> {
    let (places, rows) = groups::by_placement(items, quantity)?;
    let svg = placements::draw(&rows[..room(&rows)], &places, name, None, rows.len()).inline();
    Some(Chart { heading: format!("{name} by mechanism and placement"), how: PLACEMENTS, svg, wide: true })
}

fn overview(all: &[Group], name: &str, several: bool, limit: Option<f64>) -> Chart {
    let rows: Vec<ranges::Group> = all.iter().map(|group| group.ranges(several)).collect();
    Chart {
        heading: format!("{name}, every variant"),
        how: RANGES,
        svg: ranges::draw(&rows, name, None, limit).inline(),
        wide: true,
    }
}

fn panels_of(group: &Group, name: &str, several: bool, many: bool) -> Vec<Panel> {
    let mut panels = group.panels(several);
    if panels.len() > MANY {
        panels.clear();
    }
    let number = panels.len();
    let mut shown: Vec<Panel> = panels
        .into_iter()
        .enumerate()
        .map(|(index, curves)| {
            let part = part_of(index, number);
            let mut charts = vec![small("Percentiles", PERCENTILES, percentiles::draw(&curves, name))];
            if !many {
                charts.push(small("Number of samples", HISTOGRAM, histogram::draw(&curves, name)));
            }
            let lines = trial_lines(group, &curves);
            if !many && lines.iter().any(|line| line.trials.len() > 1) {
                charts.push(small("Medians of the trials", TRIALS, trials::draw(&lines, name)));
            }
            Panel { name: format!("{}{part}", join(&group.name, "distributions")), charts }
        })
        .collect();
    if let Some(picture) = pareto::draw(&group.curves(several), name, group.price()) {
        let charts = vec![small("Time against CPU time", PARETO, picture)];
        shown.push(Panel { name: join(&group.name, "what it costs"), charts });
    }
    shown
}

fn trial_lines<'a>(group: &Group<'a>, curves: &[Curve<'a>]) -> Vec<trials::TrialsCurve<'a>> {
    curves
        .iter()
        .filter_map(|curve| {
            let (item, series) = group.items.iter().find(|(item, _)| item.id == curve.id)?;
            let medians = series.block_medians_ps.iter();
            let trials = item.row.variant.records.iter().zip(medians);
            Some(trials::TrialsCurve {
                look: curve.clone(),
                trials: trials
                    .map(|(record, ps)| (record.block, *ps as f64, trials::SeenOn::of(record)))
                    .collect(),
            })
        })
        .collect()
}

/// Lines by their names and files.
type Lines<'a> = BTreeMap<(String, usize), sweep::SweepCurve<'a>>;

/// Times along `sweep`: variants that differ in nothing else make one line.
fn swept(sweep: &Sweep, items: &[Item], quantity: Quantity, several: bool) -> Option<Panel> {
    // The last to wake is what a fan-out is about, beside its headline.
    let wanted = |item: &&Item| item.row.variant.headline() == quantity || quantity == Quantity::LastWake;
    let having: Vec<(&Item, &Distribution)> = items
        .iter()
        .filter(wanted)
        .filter(|item| !item.row.is_harness())
        .filter_map(|item| Some((item, item.row.series.get(&quantity)?)))
        .collect();
    let varying = axis::varying(having.iter().map(|(item, _)| item.row.configuration()));
    let apart: Vec<Axis> = varying.iter().copied().filter(|axis| *axis != sweep.axis).collect();
    if apart.len() == varying.len() {
        return None;
    }
    // What one chart has room for is in one. Of more each has what was run under the same conditions:
    // where the quickest of all are together, nothing stands beside what it is held against.
    let different = |axes: &[Axis]| {
        let labels = having.iter().map(|(item, _)| axis::label(item.row.configuration(), axes));
        labels.collect::<BTreeSet<_>>().len()
    };
    let split = different(&apart) > COLORS && different(&[Axis::Subject]) > 1;
    let (subject, conditions): (Vec<Axis>, Vec<Axis>) =
        apart.into_iter().partition(|axis| !split || *axis == Axis::Subject);
    let mut groups: Vec<(String, Lines)> = Vec::new();
    for (item, series) in having {
        let configuration = item.row.configuration();
        let shared = axis::label(configuration, &conditions);
        let place = groups.iter().position(|(known, _)| *known == shared).unwrap_or_else(|| {
            groups.push((shared, Lines::new()));
            groups.len() - 1
        });
        let name = axis::label(configuration, &subject);
        let name = if several { format!("{name} · {}", item.run) } else { name };
        let line = groups[place].1.entry((name.clone(), item.file)).or_insert_with(|| sweep::SweepCurve {
            look: Curve { id: item.id.to_owned(), name, color: 0, harness: false, series, cpu_ps: None },
            points: Vec::new(),
        });
        line.points.push(((sweep.value)(configuration), sweep.axis.value(configuration), series));
    }
    let mut charts = Vec::new();
    for (conditions, lines) in groups {
        let mut variants: Vec<sweep::SweepCurve> = lines.into_values().collect();
        for line in &mut variants {
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        variants.sort_by_key(|line| line.points.last().map(|point| point.2.quantile(0.5)));
        let number = variants.len().div_ceil(COLORS);
        for (part, chunk) in variants.chunks_mut(COLORS).enumerate() {
            for (color, line) in chunk.iter_mut().enumerate() {
                line.look.color = color;
            }
            let picture = sweep::draw(chunk, figures::name(quantity), sweep.along);
            charts.extend(picture.map(|picture| {
                let part = part_of(part, number);
                let conditions =
                    if conditions.is_empty() { String::new() } else { format!(": {conditions}") };
                small(&format!("{}{conditions}{part}", sweep.heading), sweep.how, picture)
            }));
        }
    }
    (!charts.is_empty()).then(|| Panel { name: join("", sweep.what), charts })
}

fn small(heading: &str, how: &'static str, picture: chart::svg::Picture) -> Chart {
    Chart { heading: heading.to_owned(), how, svg: picture.inline(), wide: false }
}

/// Which of so many charts it is, where there are several.
fn part_of(index: usize, number: usize) -> String {
    if number > 1 { format!(" ({} of {number}, the quickest first)", index + 1) } else { String::new() }
}

/// What a panel shows, after the conditions its variants share.
fn join(conditions: &str, what: &str) -> String {
    if conditions.is_empty() { format!("All variants: {what}") } else { format!("{conditions}: {what}") }
}
