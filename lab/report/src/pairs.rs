// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of CPUs: the medians of one mechanism as a matrix.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::figures::{Figures, Row};

/// The figure of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The CPU that notifies first.
    pub from: u32,
    pub to: u32,
    /// Median of the headline quantity, picoseconds.
    pub p50_ps: f64,
    pub count: u64,
}

/// The pairs of one mechanism and the rows they come from, by their CPUs.
type ByCpus<'result> = BTreeMap<[u32; 2], (Pair, &'result Row<'result>)>;

/// All pairs of one mechanism that differ in nothing but their CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<'result> {
    pub subject: &'result str,
    /// Its pairs by rising CPUs, the first side's before the other's.
    pub pairs: Vec<Pair>,
    /// Logarithms of the quickest and the slowest pair's median.
    range: [f64; 2],
}

/// The pairs of each mechanism, and the rows that belong to none.
fn by_cpus<'result>(
    figures: &'result Figures,
) -> (Vec<(&'result str, ByCpus<'result>)>, Vec<&'result Row<'result>>) {
    let mut found: Vec<(&str, ByCpus)> = Vec::new();
    let mut rest = Vec::new();
    for row in &figures.rows {
        let series = row.series.get(&row.variant.headline());
        let (Some([from, to]), Some(series), false) =
            (row.configuration().placement.cpus, series, row.is_harness())
        else {
            rest.push(row);
            continue;
        };
        let pair = Pair { from, to, p50_ps: series.p50_ps(), count: series.count };
        let subject = row.configuration().subject.as_str();
        let known = found.iter().position(|(known, _)| *known == subject).unwrap_or_else(|| {
            found.push((subject, BTreeMap::new()));
            found.len() - 1
        });
        match found[known].1.entry([from, to]) {
            // A pair measured under several conditions has no single figure: the first stands.
            Entry::Occupied(_) => rest.push(row),
            Entry::Vacant(place) => {
                place.insert((pair, row));
            }
        }
    }
    (found, rest)
}

impl<'result> Matrix<'result> {
    /// The matrix of `pairs`, each of which is there once.
    pub(crate) fn new(subject: &'result str, mut pairs: Vec<Pair>) -> Self {
        pairs.sort_unstable_by_key(|pair| (pair.from, pair.to));
        let logs = || pairs.iter().map(|pair| pair.p50_ps.max(1.0).ln());
        let range = [logs().fold(f64::INFINITY, f64::min), logs().fold(0.0, f64::max)];
        Self { subject, pairs, range }
    }

    /// The matrices of a run, and the rows that belong to none: unpinned ones, the harness, and
    /// pairs so scattered that their matrix would be blank.
    pub fn of(figures: &'result Figures) -> (Vec<Self>, Vec<&'result Row<'result>>) {
        let (found, mut rest) = by_cpus(figures);
        let mut matrices = Vec::new();
        for (subject, pairs) in found {
            let matrix = Self::new(subject, pairs.values().map(|(pair, _)| *pair).collect());
            if matrix.is_filled() {
                matrices.push(matrix);
            } else {
                rest.extend(pairs.values().map(|(_, row)| *row));
            }
        }
        (matrices, rest)
    }

    /// The pairs of each mechanism of a run, however scattered, and the rows that are none.
    pub fn measured(figures: &'result Figures) -> (Vec<Self>, Vec<&'result Row<'result>>) {
        let (found, rest) = by_cpus(figures);
        let matrix = |(subject, pairs): (_, ByCpus)| {
            Self::new(subject, pairs.values().map(|(pair, _)| *pair).collect())
        };
        (found.into_iter().map(matrix).collect(), rest)
    }

    /// Whether a table of all its rows and columns says more than a list of its pairs. A machine
    /// has thousands of CPUs at most, a file may name as many in as many pairs, and their
    /// square is a hundred million blanks.
    fn is_filled(&self) -> bool {
        const SMALL: usize = 64 * 64;
        self.rows().len() * self.columns().len() <= SMALL + 16 * self.pairs.len()
    }

    /// The figure of one pair.
    pub fn get(&self, from: u32, to: u32) -> Option<&Pair> {
        let place = self.pairs.binary_search_by_key(&(from, to), |pair| (pair.from, pair.to));
        place.ok().map(|place| &self.pairs[place])
    }

    /// CPUs that notify first, in order.
    pub fn rows(&self) -> Vec<u32> {
        in_order(self.pairs.iter().map(|pair| pair.from))
    }

    /// CPUs on the other side, in order.
    pub fn columns(&self) -> Vec<u32> {
        in_order(self.pairs.iter().map(|pair| pair.to))
    }

    pub fn count(&self) -> u64 {
        self.pairs.iter().fold(0, |sum, pair| sum.saturating_add(pair.count))
    }

    pub fn best(&self) -> Option<&Pair> {
        self.pairs.iter().min_by(|a, b| a.p50_ps.total_cmp(&b.p50_ps))
    }

    pub fn worst(&self) -> Option<&Pair> {
        self.pairs.iter().max_by(|a, b| a.p50_ps.total_cmp(&b.p50_ps))
    }

    /// Where a time lies between the best (0) and the worst (1) pair, on a logarithmic scale.
    pub fn shade(&self, ps: f64) -> f64 {
        let [best, worst] = self.range;
        ((ps.max(1.0).ln() - best) / (worst - best).max(1e-9)).clamp(0.0, 1.0)
    }
}

fn in_order(cpus: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut cpus: Vec<u32> = cpus.collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{configuration, record, result};
    use doorbell_results::configuration::{Configuration, Placement};

    #[test]
    fn pairs_scattered_over_thousands_of_cpus_are_rows_and_no_matrix() {
        let pair = |from, to| Configuration {
            placement: Placement { relation: "cpus".into(), cpus: Some([from, to]) },
            ..configuration("spin")
        };
        let run = |cpus: fn(u32) -> (u32, u32)| {
            let pairs = (0..200).map(cpus).map(|(from, to)| pair(from, to));
            result("pairs", pairs.map(|configuration| record(&configuration, 0, &[52_000; 5])).collect())
        };
        let (scattered, near) = (run(|n| (n * 40, n * 40 + 1)), run(|n| (n % 15, 20 + n / 15)));
        let figures = Figures::of(&scattered);
        let (matrices, rest) = Matrix::of(&figures);
        assert_eq!((matrices.len(), rest.len()), (0, 200));
        assert_eq!(Matrix::of(&Figures::of(&near)).0.len(), 1);
    }
}
