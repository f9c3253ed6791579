// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a chart is told of a variant.

use crate::figures::Distribution;

#[derive(Debug, Clone)]
pub struct Curve<'figures> {
    /// What the variant is called throughout a page.
    pub id: String,
    /// Its name in this chart.
    pub name: String,
    /// Its place among the colours.
    pub color: usize,
    /// Whether it measures the harness: drawn apart, in grey.
    pub harness: bool,
    pub series: &'figures Distribution,
    /// The CPU time that is weighed against its times, picoseconds.
    pub cpu_ps: Option<f64>,
}
