// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of CPUs: the medians of one mechanism as a matrix.

use super::figures::{Figures, Row};

/// The figure of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The CPU that notifies first.
    pub from: u32,
    /// The other side's CPU.
    pub to: u32,
    /// Median of the headline quantity, picoseconds.
    pub p50_ps: f64,
    /// Samples.
    pub count: u64,
}

/// All pairs of one mechanism that differ in nothing but their CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<'result> {
    /// The mechanism.
    pub subject: &'result str,
    /// Its pairs, in the order of the plan.
    pub pairs: Vec<Pair>,
}

impl<'result> Matrix<'result> {
    /// The matrices of a run, and the rows that belong to none: unpinned ones and the harness.
    pub fn of(figures: &'result Figures) -> (Vec<Self>, Vec<&'result Row<'result>>) {
        let mut matrices: Vec<Self> = Vec::new();
        let mut rest = Vec::new();
        for row in &figures.rows {
            let series = row.series.get(&row.arm.headline());
            let (Some([from, to]), Some(series), false) =
                (row.cell().placement.cpus, series, row.is_harness())
            else {
                rest.push(row);
                continue;
            };
            let pair = Pair { from, to, p50_ps: series.quantile(0.5) as f64, count: series.count };
            let subject = row.cell().subject.as_str();
            match matrices.iter_mut().find(|known| known.subject == subject) {
                // A pair measured under several conditions has no single figure: the first stands.
                Some(known) if known.get(from, to).is_some() => rest.push(row),
                Some(known) => known.pairs.push(pair),
                None => matrices.push(Self { subject, pairs: vec![pair] }),
            }
        }
        (matrices, rest)
    }

    /// The figure of one pair.
    pub fn get(&self, from: u32, to: u32) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.from == from && pair.to == to)
    }

    /// CPUs that notify first, in order.
    pub fn rows(&self) -> Vec<u32> {
        in_order(self.pairs.iter().map(|pair| pair.from))
    }

    /// CPUs on the other side, in order.
    pub fn columns(&self) -> Vec<u32> {
        in_order(self.pairs.iter().map(|pair| pair.to))
    }

    /// Samples of all pairs.
    pub fn count(&self) -> u64 {
        self.pairs.iter().fold(0, |sum, pair| sum.saturating_add(pair.count))
    }

    /// The quickest pair.
    pub fn best(&self) -> Option<&Pair> {
        self.pairs.iter().min_by(|a, b| a.p50_ps.total_cmp(&b.p50_ps))
    }

    /// The slowest pair.
    pub fn worst(&self) -> Option<&Pair> {
        self.pairs.iter().max_by(|a, b| a.p50_ps.total_cmp(&b.p50_ps))
    }

    /// Where a time lies between the best (0) and the worst (1) pair, on a logarithmic scale.
    pub fn shade(&self, ps: f64) -> f64 {
        let log = |pair: Option<&Pair>| pair.map_or(1.0, |pair| pair.p50_ps.max(1.0)).ln();
        let (best, worst) = (log(self.best()), log(self.worst()));
        ((ps.max(1.0).ln() - best) / (worst - best).max(1e-9)).clamp(0.0, 1.0)
    }
}

fn in_order(cpus: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut cpus: Vec<u32> = cpus.collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}
