// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tools that follow benchmarks over time take: a name that
//! stays the same from run to run, and a few figures.

use crate::axis::Axis;
use crate::figures::{Distribution, Figures};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_results::written::inert;

/// One configuration's own quantity.
pub(super) struct Point {
    /// Of the configuration alone: that others were run beside it changes nothing.
    pub(super) parts: Vec<(&'static str, String)>,
    pub(super) quantity: Quantity,
    pub(super) times: Distribution,
    /// What marks times of an emulated machine, which are no machine's.
    mark: Option<&'static str>,
}

impl Point {
    /// Its name for people.
    pub(super) fn name(&self) -> String {
        let parts = self.parts.iter().map(|(_, value)| value.as_str());
        let mark = self.mark.map_or_else(String::new, |mark| format!(" ({mark})"));
        format!("{}: {}{mark}", parts.collect::<Vec<_>>().join(" · "), self.quantity.name())
    }

    /// The shortest and the longest median of its blocks, nanoseconds.
    pub(super) fn spread_ns(&self) -> Option<[f64; 2]> {
        self.times.spread_ps().map(|(low, high)| [low, high].map(|ps| ps as f64 / 1e3))
    }

    /// Its median, nanoseconds.
    pub(super) fn p50_ns(&self) -> f64 {
        self.times.quantile(0.5) as f64 / 1e3
    }
}

/// Every configuration that has figures, but for the harness itself.
pub(super) fn points(result: &ResultFile) -> Vec<Point> {
    let figures = Figures::of(result);
    let rows = figures.rows.into_iter().filter(|row| !row.is_harness());
    rows.filter_map(|mut row| {
        let quantity = row.variant.headline();
        let times = row.series.remove(&quantity)?;
        Some(Point { parts: parts(row.configuration()), quantity, times, mark: result.mark() })
    })
    .collect()
}

/// What tells `configuration` from the plainest one of its subject and pattern.
fn parts(configuration: &Configuration) -> Vec<(&'static str, String)> {
    let plain = Configuration::new(configuration.subject.clone(), configuration.pattern, configuration.until);
    let always = [Axis::Subject, Axis::Relation, Axis::Gap];
    let told = Axis::ALL.into_iter().filter(|axis| {
        // Which CPUs they were is the placement's, and of another machine others.
        let differs = || *axis != Axis::Cpus && axis.value(configuration) != axis.value(&plain);
        always.contains(axis) || differs()
    });
    let named = told.map(|axis| (axis.name(), inert(&axis.value(configuration))));
    named.filter(|(_, value)| !value.is_empty()).collect()
}
