// SPDX-License-Identifier: MIT OR Apache-2.0
//! How rows of a table stand to each other, in sentences with
//! intervals: what a first screen says of several.

use super::answer::could_be;
use super::axis::{self, Axis};
use super::figures::Having;
use super::sentence::Sentence;
use super::unit::{alike, time};
use super::wording::multiple;
use doorbell_results::configuration::Configuration;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::ratio::{Ratio, Standing};
use doorbell_verdict::versus::{Versus, versus_of};
use std::collections::BTreeSet;

use indexmap::IndexMap;

/// Pairs that are judged at the most; of more only the ends are named.
const MOST: usize = 780;

/// Conditions of which a first screen tells how the rows under them stand to each other.
pub const CONDITIONS: usize = 3;

/// Whether nothing is known of a ratio.
pub fn is_open(ratio: Option<Ratio>) -> bool {
    ratio.is_none_or(|ratio| ratio.standing(RELEVANT) == Standing::Inconclusive)
}

/// A ratio with its interval, or what keeps it open.
pub fn interval(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return "too few blocks to say by how much".to_owned() };
    match ratio.standing(RELEVANT) {
        Standing::Slower | Standing::Faster => multiple(ratio, " times as long"),
        Standing::Same { within } => format!("the same within {:.1} %", within * 100.0),
        Standing::Inconclusive => format!("inconclusive, {}", could_be(ratio)),
    }
}

/// Rows that were judged together; none of the harness itself.
#[derive(Debug)]
pub struct Judged<'a> {
    rows: Vec<Having<'a>>,
    alike: Vec<Alike>,
    versus: Versus,
    quantity: Quantity,
}

/// Rows that differ in one thing alone.
#[derive(Debug)]
struct Alike {
    /// What all of them have in common, and others have not; empty where there are no others.
    conditions: String,
    places: Vec<usize>,
    /// What tells them apart.
    names: Vec<Axis>,
}

impl Alike {
    /// Groups of `rows`, in the order in which they come first: sentences
    /// that set beside each other what differs in more than one thing, a byte
    /// after no gap and a page after a long one, say of neither what it does.
    /// Everything is one group where no two rows differ in one thing alone.
    fn of(rows: &[Having]) -> Vec<Self> {
        let configurations = || rows.iter().map(|(row, _)| row.configuration());
        let axes = axis::varying(configurations());
        let values = |axis: Axis| configurations().map(|one| axis.value(one)).collect::<BTreeSet<_>>().len();
        let [names, shared] = axis::groups(&axes, values);
        let mut groups: IndexMap<String, Vec<usize>> = IndexMap::new();
        for (place, (row, _)) in rows.iter().enumerate() {
            groups.entry(axis::label(row.configuration(), &shared)).or_default().push(place);
        }
        let group = |(conditions, places)| Self { conditions, places, names: names.clone() };
        let groups = groups.into_iter().filter(|(_, places)| places.len() > 1);
        let mut groups: Vec<Self> = groups.map(group).collect();
        if groups.is_empty() {
            let places = (0..rows.len()).collect();
            groups.push(Self { conditions: String::new(), places, names: axes });
        }
        groups.truncate(CONDITIONS);
        groups
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.places.iter().enumerate();
        pairs.flat_map(|(index, a)| self.places[index + 1..].iter().map(move |b| (*a, *b)))
    }
}

impl<'a> Judged<'a> {
    pub fn of(rows: &[Having<'a>], quantity: Quantity) -> Self {
        let rows: Vec<Having> = rows.iter().filter(|(row, _)| !row.is_harness()).copied().collect();
        let variants: Vec<_> = rows.iter().map(|(row, _)| &row.variant).collect();
        let loads: Vec<(usize, usize)> =
            (0..rows.len()).filter_map(|place| Some((unloaded(&rows, place)?, place))).collect();
        let alike = Alike::of(&rows);
        let spoken_of = if loads.is_empty() { alike.iter().flat_map(Alike::pairs).collect() } else { loads };
        let versus = match spoken_of.len() {
            1..=MOST => versus_of(&variants, quantity, &spoken_of),
            _ => Versus::default(),
        };
        Self { rows, alike, versus, quantity }
    }

    /// What a row takes, picoseconds: what its ratios are of where it was judged, so that no
    /// sentence contradicts the table, else its median.
    pub fn p50_ps(&self, having: &Having) -> f64 {
        let place = self.rows.iter().position(|(row, _)| std::ptr::eq(*row, having.0));
        let level = place.and_then(|place| self.versus.level_ns(place)).map(|ns| ns * 1e3);
        level.unwrap_or_else(|| having.1.p50_ps())
    }

    /// What the rows say of each other: the shortest beside the longest of those that differ in one
    /// thing alone, or what a load does where rows differ in it. Of at most so many conditions:
    /// a screen has twenty lines for all quantities.
    pub fn sentences(&self, conditions: usize) -> Vec<Sentence> {
        let axes = axis::varying(self.rows.iter().map(|(row, _)| row.configuration()));
        let by_load = self.under_load(&axes);
        if !by_load.is_empty() {
            return by_load;
        }
        self.alike.iter().take(conditions).filter_map(|group| self.ends(group)).collect()
    }

    /// The shortest of a group beside its longest.
    fn ends(&self, group: &Alike) -> Option<Sentence> {
        let p50 = |place: usize| self.p50_ps(&self.rows[place]);
        let by_p50 = |a: &usize, b: &usize| p50(*a).total_cmp(&p50(*b));
        let first = group.places.iter().copied().min_by(by_p50)?;
        let last = group.places.iter().copied().rev().max_by(by_p50)?;
        if first == last {
            return Some(Sentence { text: alone(&self.rows[first], self.quantity), open: false });
        }
        let name = |place: usize| axis::label(self.rows[place].0.configuration(), &group.names);
        let [short, long] = alike([p50(first), p50(last)]);
        let conditions =
            if group.conditions.is_empty() { String::new() } else { format!("{}: ", group.conditions) };
        let ratio = self.versus.ratio(first, last);
        let text = format!(
            "{conditions}{} takes {short} and {} {long}: {}.",
            name(first),
            name(last),
            interval(ratio)
        );
        Some(Sentence { text, open: is_open(ratio) })
    }

    /// What a load makes of the rows that were also run without one.
    fn under_load(&self, axes: &[Axis]) -> Vec<Sentence> {
        let apart: Vec<Axis> = axes.iter().copied().filter(|axis| *axis != Axis::Load).collect();
        let loaded = self.rows.iter().enumerate();
        loaded
            .filter_map(|(place, having)| {
                let configuration = having.0.configuration();
                let without = unloaded(&self.rows, place)?;
                let [busy, free] = alike([having, &self.rows[without]].map(|having| self.p50_ps(having)));
                let ratio = self.versus.ratio(without, place);
                let text = format!(
                    "{} takes {busy} under load ({}) and {free} on an idle machine: {}.",
                    axis::label(configuration, &apart),
                    Axis::Load.value(configuration),
                    interval(ratio)
                );
                Some(Sentence { text, open: is_open(ratio) })
            })
            .take(LOADS)
            .collect()
    }
}

/// The row that differs from the one at `place` in nothing but that it ran without its load.
fn unloaded(rows: &[Having], place: usize) -> Option<usize> {
    let configuration = rows[place].0.configuration();
    configuration.load.as_ref()?;
    let bare = Configuration { load: None, ..configuration.clone() };
    rows.iter().position(|(row, _)| *row.configuration() == bare)
}

/// One row in a sentence.
fn alone((row, series): &Having, quantity: Quantity) -> String {
    let what = super::figures::name(quantity).to_lowercase();
    let [p50, p99] = alike([0.5, 0.99].map(|q| series.percentile(q).map_or(f64::NAN, |ps| ps as f64)));
    let p99 = if series.percentile(0.99).is_some() { format!(", p99 {p99}") } else { String::new() };
    let cpu = row.cpu_ps().map_or_else(String::new, |ps| format!(", {} of CPU", time(ps)));
    let place = axis::relation(&row.configuration().placement.relation);
    format!("{} ({place}): {what} {p50}{p99}{cpu}.", row.configuration().subject)
}

/// Sentences on loads at the most.
const LOADS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::sample;

    fn said(of: &[(&str, u32, u64)]) -> Vec<String> {
        let records = of.iter().map(|(subject, size, ps)| {
            let configuration = Configuration { size: *size, ..sample::configuration(subject) };
            sample::record(&configuration, 0, &[*ps; 3])
        });
        let result = sample::result("uintr", records.collect());
        let figures = Figures::of(&result);
        let rows = figures.having(|_| Quantity::RoundTrip);
        let said = Judged::of(&rows, Quantity::RoundTrip).sentences(CONDITIONS);
        said.into_iter().map(|said| said.text).collect()
    }

    /// A spin with one byte once stood beside a futex with a page, as
    /// if the futex took all of the difference.
    #[test]
    fn a_sentence_sets_beside_each_other_what_differs_in_one_thing_alone() {
        let said = said(&[
            ("spin", 1, 500_000),
            ("futex", 1, 5_000_000),
            ("spin", 4096, 8_000_000),
            ("eventfd", 4096, 14_000_000),
            ("futex", 4096, 13_000_000),
        ]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("message 1 B: spin takes 500 ns and futex 5,000 ns"), "{said:?}");
        assert!(
            said[1].starts_with("message 4,096 B: spin takes 8") && said[1].contains(" and eventfd 14"),
            "{said:?}"
        );
    }

    #[test]
    fn a_mechanism_alone_is_set_beside_itself() {
        let said = said(&[("futex", 1, 5_000_000), ("futex", 4096, 13_000_000)]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("futex · message 1 B takes 5"), "{said:?}");
    }

    #[test]
    fn where_no_two_rows_differ_in_one_thing_alone_the_ends_are_named_with_all_of_theirs() {
        let said = said(&[("spin", 1, 500_000), ("futex", 4096, 13_000_000)]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("spin · message 1 B takes 0.5")
                && said[0].contains("futex · message 4,096 B 13"),
            "{said:?}"
        );
    }
}
