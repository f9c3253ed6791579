// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times so near to what the clock can tell that the clock is part of
//! the figure: they are kept, and say so.

use super::{Known, of_two_clocks, waits};
use doorbell_results::about::About;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::warning::{ON_THE_CLOCK_GRID, WITHIN_CLOCK_SKEW};
use doorbell_results::record::{Quantity, Record, Series, Warning};
use doorbell_results::written::time_ns;

/// The share of a median that a step of the clock may be before the figure says so.
const SHARE: f64 = 0.1;

/// The marks of `record`, one for each way in which the clock is part of its figures.
pub fn near_the_clock(record: &Record, known: &Known) -> Vec<Warning> {
    // The null mechanism is there to show the clock.
    if waits(record).is_none_or(|waits| waits == Waits::Nothing) {
        return Vec::new();
    }
    let figures: Vec<(Quantity, &Series)> =
        [Quantity::RoundTrip, Quantity::Wake, Quantity::WakeBack, Quantity::Response]
            .into_iter()
            .filter_map(|quantity| {
                Some((quantity, record.series.get(&quantity).filter(|series| series.count > 0)?))
            })
            .collect();
    let step = known.clock_step_ns;
    let on_grid =
        figures.iter().filter(|(_, series)| step > series.p50_ns * SHARE).map(|(quantity, series)| {
            format!("{} p50 {}, steps of {}", quantity.name(), time_ns(series.p50_ns), time_ns(step))
        });
    let skewed = figures
        .iter()
        .filter(|(quantity, series)| {
            of_two_clocks(record, *quantity) && (known.skew_ns > series.p50_ns || series.min_ns <= 0.001)
        })
        .map(|(quantity, series)| {
            format!(
                "{} p50 {}, shortest {}, clocks within {} of each other",
                quantity.name(),
                time_ns(series.p50_ns),
                time_ns(series.min_ns),
                time_ns(known.skew_ns)
            )
        });
    let on_grid: Vec<String> = on_grid.collect();
    let skewed: Vec<String> = skewed.collect();
    let mark = |about: About, cause: Vec<String>, effect: &str, cure: &str| {
        (!cause.is_empty()).then(|| about.warning(cause.join("; "), effect, cure))
    };
    let grid = mark(
        ON_THE_CLOCK_GRID,
        on_grid,
        "single times are whole steps of the clock; percentiles are interpolated within a step, \
         and the mean does not depend on it",
        "compare medians and means; believe no single shortest time",
    );
    let skew = mark(
        WITHIN_CLOCK_SKEW,
        skewed,
        "the figure may be the clocks' difference as much as the wake-up",
        "use the round trip, which one clock times",
    );
    grid.into_iter().chain(skew).collect()
}
