// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single figures beside the series, and the primitive costs, each
//! gathered over the trials of a run.

use indexmap::IndexMap;

use super::figures::{Figures, Row};
use doorbell_results::record::ResultFile;

/// One figure of one variant over its trials.
#[derive(Debug, Clone)]
pub struct Extra<'result> {
    pub row: &'result Row<'result>,
    pub name: &'result str,
    pub unit: &'result str,
    pub formula: &'result str,
    /// Its value in each trial, ascending, finite; never empty.
    pub values: Vec<f64>,
}

impl<'result> Extra<'result> {
    /// The figures of a run, those of one unit next to each other.
    pub fn of(figures: &'result Figures) -> Vec<Self> {
        let mut extras: IndexMap<_, Self> = IndexMap::new();
        for (place, row) in figures.rows.iter().enumerate() {
            for figure in row.variant.records.iter().flat_map(|record| &record.figures) {
                if !figure.value.is_finite() {
                    continue;
                }
                let known = extras.entry((place, &figure.name, &figure.unit)).or_insert_with(|| Self {
                    row,
                    name: &figure.name,
                    unit: &figure.unit,
                    formula: &figure.formula,
                    values: Vec::new(),
                });
                known.values.push(figure.value);
            }
        }
        let mut extras: Vec<Self> = extras.into_values().collect();
        for extra in &mut extras {
            extra.values.sort_by(f64::total_cmp);
        }
        extras.sort_by_key(|extra| extra.unit);
        extras
    }

    pub fn median(&self) -> f64 {
        self.values[self.values.len() / 2]
    }

    pub fn range(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }
}

/// One primitive cost of the machine over a run.
#[derive(Debug, Clone)]
pub struct PrimitiveLine<'result> {
    pub name: &'result str,
    /// Median of each reading in the order they were taken:
    /// nanoseconds since 1970, picoseconds; never empty.
    pub medians: Vec<(u64, f64)>,
    /// Shortest time of all readings, picoseconds.
    pub min_ps: f64,
    pub count: u64,
}

impl<'result> PrimitiveLine<'result> {
    pub fn of(result: &'result ResultFile) -> Vec<Self> {
        let mut lines: IndexMap<&str, Self> = IndexMap::new();
        for reading in &result.primitives {
            for primitive in reading.primitives.iter().filter(|primitive| {
                (primitive.p50_ns * 1e3).is_finite() && (primitive.min_ns * 1e3).is_finite()
            }) {
                let known = lines.entry(&primitive.name).or_insert_with(|| Self {
                    name: &primitive.name,
                    medians: Vec::new(),
                    min_ps: f64::INFINITY,
                    count: 0,
                });
                known.medians.push((reading.at_unix_ns, primitive.p50_ns * 1e3));
                known.min_ps = known.min_ps.min(primitive.min_ns * 1e3);
                known.count = known.count.saturating_add(primitive.count);
            }
        }
        lines.into_values().collect()
    }

    /// The first reading, picoseconds.
    pub fn first_ps(&self) -> f64 {
        self.medians[0].1
    }

    /// The last reading, picoseconds.
    pub fn last_ps(&self) -> f64 {
        self.medians[self.medians.len() - 1].1
    }

    /// The lowest and the highest reading, picoseconds.
    pub fn range_ps(&self) -> (f64, f64) {
        self.medians.iter().fold((f64::INFINITY, 0.0), |(low, high), (_, ps)| (ps.min(low), ps.max(high)))
    }
}
