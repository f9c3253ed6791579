// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which variants are drawn over each other: those that differ in one thing, a few at a time.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;

use super::Source;
use crate::axis::{self, Axis};
use crate::chart::palette::COLORS;
use crate::chart::{Curve, placements, ranges};
use crate::figures::{Distribution, Figures, Row};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::series::Quantity;

/// One variant of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    /// The file, counted from 0.
    pub file: usize,
    pub run: &'a str,
    pub row: &'a Row<'a>,
    /// What it is called throughout the page, also in links.
    pub id: &'a str,
}

/// Variants run under the same conditions.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The conditions; empty where all variants have the same.
    pub name: String,
    /// The variants, the quickest first.
    pub items: Vec<(Item<'a>, &'a Distribution)>,
    pub apart: Vec<Axis>,
}

/// The variants that have `quantity`, in groups that differ only on one
/// axis: the mechanism if there are several, else what differs most.
/// With several files, the variants of one group are those of all files.
pub(crate) fn groups<'a>(items: &[Item<'a>], quantity: Quantity, headline: bool) -> Vec<Group<'a>> {
    let having: Vec<(Item, &Distribution)> = items
        .iter()
        .filter(|item| !headline || item.row.variant.headline() == quantity)
        .filter_map(|item| Some((*item, item.row.series.get(&quantity)?)))
        .collect();
    let configurations = || having.iter().map(|(item, _)| item.row.configuration());
    let varying = axis::varying(configurations());
    let real = || having.iter().map(|(item, _)| item.row).filter(|row| !row.is_harness());
    let distinct =
        |axis: Axis| real().map(|row| axis.value(row.configuration())).collect::<BTreeSet<_>>().len();
    let [apart, shared] = axis::groups(&varying, distinct);
    let mut named: IndexMap<String, Vec<_>> = IndexMap::new();
    for (item, series) in having {
        named.entry(axis::label(item.row.configuration(), &shared)).or_default().push((item, series));
    }
    let group = |(name, items)| Group { name, items, apart: apart.clone() };
    let mut groups: Vec<Group> = named.into_iter().map(group).collect();
    for group in &mut groups {
        // The quickest first; the same variant of several files side by side, by the quickest of them.
        let mut best: HashMap<&Configuration, u64> = HashMap::new();
        for (item, series) in &group.items {
            let known = best.entry(item.row.configuration()).or_insert(u64::MAX);
            *known = series.quantile(0.5).min(*known);
        }
        let places: Vec<_> = group.items.iter().map(|(item, _)| best[item.row.configuration()]).collect();
        let mut order: Vec<usize> = (0..group.items.len()).collect();
        order.sort_by_key(|&index| (places[index], group.items[index].0.file));
        group.items = order.into_iter().map(|index| group.items[index]).collect();
    }
    groups
}

impl<'a> Group<'a> {
    /// The variants as curves, at most as many to a panel as there
    /// are colours; the harness in every panel.
    pub(crate) fn panels(&self, several: bool) -> Vec<Vec<Curve<'a>>> {
        let (harness, variants): (Vec<_>, Vec<_>) =
            self.items.iter().partition(|(item, _)| item.row.is_harness());
        let mut panels: Vec<Vec<Curve>> = variants
            .chunks(COLORS)
            .map(|chunk| {
                let own = chunk.iter().enumerate();
                let mut curves: Vec<Curve> =
                    own.map(|(color, pair)| self.curve(pair, color, several)).collect();
                curves.extend(harness.iter().map(|pair| self.curve(pair, 0, several)));
                curves
            })
            .collect();
        if panels.is_empty() && !harness.is_empty() {
            panels.push(harness.iter().map(|pair| self.curve(pair, 0, several)).collect());
        }
        panels
    }

    /// All variants as curves of one colour, or of one colour per file where there are several.
    pub(crate) fn curves(&self, several: bool) -> Vec<Curve<'a>> {
        self.items
            .iter()
            .map(|pair| self.curve(pair, if several { pair.0.file } else { 0 }, several))
            .collect()
    }

    /// The same for the chart that has a line for each variant.
    pub(crate) fn ranges(&self, several: bool) -> ranges::Group<'a> {
        ranges::Group { name: self.name.clone(), curves: self.curves(several) }
    }

    /// What the CPU time of its variants is.
    pub(crate) fn price(&self) -> &'static str {
        self.items.first().map_or("CPU time", |(item, _)| item.row.price().1)
    }

    fn curve(&self, (item, series): &(Item<'a>, &'a Distribution), color: usize, several: bool) -> Curve<'a> {
        let name = axis::label(item.row.configuration(), &self.apart);
        let name = if item.row.is_harness() { format!("{name} (the harness)") } else { name };
        Curve {
            id: item.id.to_owned(),
            name: if several { format!("{name} · {}", item.run) } else { name },
            color,
            harness: item.row.is_harness(),
            series,
            cpu_ps: item.row.price().0,
        }
    }
}

/// The back-to-back or only rows of `quantity` by mechanism, with a line for each placement: names,
/// rows. None where there are fewer than two placements.
pub(crate) fn by_placement<'a>(
    items: &[Item<'a>],
    quantity: Quantity,
) -> Option<(Vec<String>, Vec<placements::PlacementsRow<'a>>)> {
    let having: Vec<(Item, &Distribution)> = items
        .iter()
        .filter(|item| item.row.variant.headline() == quantity)
        .filter_map(|item| Some((*item, item.row.series.get(&quantity)?)))
        .collect();
    let mut places: Vec<String> = Vec::new();
    for (item, _) in &having {
        let place = Axis::Relation.value(item.row.configuration());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    // More lines than these in one row cannot be told apart; a run on
    // chosen CPUs has its map of pairs instead.
    if !(2..=6).contains(&places.len()) || having.iter().any(|(item, _)| item.file > 0) {
        return None;
    }
    let varying = axis::varying(having.iter().map(|(item, _)| item.row.configuration()));
    if !varying.contains(&Axis::Relation) {
        return None;
    }
    let axes: Vec<Axis> =
        varying.into_iter().filter(|axis| !matches!(axis, Axis::Relation | Axis::Cpus)).collect();
    let usual: Vec<String> = axes.iter().map(|axis| most_common(*axis, &having)).collect();
    let mut rows: Vec<placements::PlacementsRow> = Vec::new();
    for (item, series) in having {
        let configuration = item.row.configuration();
        let place = places.iter().position(|known| *known == Axis::Relation.value(configuration))?;
        let words = axes
            .iter()
            .zip(&usual)
            .filter(|(axis, usual)| **axis == Axis::Subject || axis.value(configuration) != **usual);
        let mut name = axis::label(configuration, &words.map(|(axis, _)| *axis).collect::<Vec<_>>());
        if item.row.is_harness() {
            name.push_str(" (the harness)");
        }
        let curve = Curve {
            id: item.id.to_owned(),
            name: name.clone(),
            color: place,
            harness: item.row.is_harness(),
            series,
            cpu_ps: None,
        };
        let index = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            rows.push(placements::PlacementsRow { name, places: places.iter().map(|_| None).collect() });
            rows.len() - 1
        });
        rows[index].places[place] = Some(curve);
    }
    let slowest = |row: &placements::PlacementsRow| {
        row.places.iter().flatten().map(|curve| curve.series.quantile(0.5)).max().unwrap_or(0)
    };
    rows.sort_by_key(slowest);
    Some((places, rows))
}

fn most_common(axis: Axis, having: &[(Item, &Distribution)]) -> String {
    let mut counts: IndexMap<String, usize> = IndexMap::new();
    for (item, _) in having {
        *counts.entry(axis.value(item.row.configuration())).or_default() += 1;
    }
    counts.into_iter().max_by_key(|known| known.1).map(|known| known.0).unwrap_or_default()
}

/// The variants of some files, each with its figures and the names of its variants.
pub(crate) fn items<'a>(files: &[(&'a Source, &'a Figures<'a>, &'a [String])]) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for (file, (source, figures, ids)) in files.iter().enumerate() {
        let variants = figures.rows.iter().zip(ids.iter());
        items.extend(variants.map(|(row, id)| Item { file, run: &source.name, row, id }));
    }
    items
}

/// A name for each variant that can stand in a link and belongs to no other.
pub(crate) fn ids(figures: &[Figures]) -> Vec<Vec<String>> {
    let mut taken = std::collections::HashSet::new();
    let mut named = Vec::new();
    for (file, figures) in figures.iter().enumerate() {
        let axes = axis::varying(figures.rows.iter().map(|row| row.configuration()));
        let own = figures.rows.iter().map(|row| {
            let label = slug(&axis::label(row.configuration(), &axes));
            let wanted = if file == 0 { label } else { format!("{label}-{}", file + 1) };
            let mut id = wanted.clone();
            let mut number = 2;
            while id.is_empty() || !taken.insert(id.clone()) {
                id = format!("{wanted}-{number}");
                number += 1;
            }
            id
        });
        named.push(own.collect());
    }
    named
}

/// A name as it may stand in a link: letters, digits and dashes.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for letter in text.to_lowercase().chars().take(60) {
        if letter.is_ascii_alphanumeric() {
            out.push(letter);
        } else if letter == 'µ' {
            out.push('u');
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}
