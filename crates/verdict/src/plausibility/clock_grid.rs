// SPDX-License-Identifier: MIT OR Apache-2.0
//! A minimum is the mechanism's and not the clock's.

use super::{Known, Rule, waits};
use doorbell_results::about::About;
use doorbell_results::record::Record;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::Waits;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "clock-grid",
        what: "The shortest time is a property of the clock and not of the mechanism.",
        taken: "A minimum of fewer than three steps of the clock, or of the grid on which the times themselves lie.",
        misleads: "A grid finer than a thousandth of the time is not seen, and does not matter.",
    },
    evidence,
};

/// A minimum of less than three steps of the clock is a property of the clock.
fn evidence(record: &Record, known: &Known) -> Vec<String> {
    if waits(record) == Some(Waits::Nothing) {
        // The null mechanism is there to show the clock.
        return Vec::new();
    }
    let measured =
        [Quantity::RoundTrip, Quantity::Wake, Quantity::WakeBack, Quantity::Response, Quantity::Operation];
    measured
        .into_iter()
        .filter_map(|quantity| {
            let series = record.series.get(&quantity).filter(|series| series.count > 0)?;
            // Operations are timed in batches, so a step of the clock is shared out over the batch.
            let batch = match quantity {
                Quantity::Operation => {
                    record.configuration.pattern.batch().map_or(1.0, |batch| f64::from(batch.max(1)))
                }
                _ => 1.0,
            };
            let grid_ns = series.decode().map_or(0.0, |histogram| histogram.grid_ps() / 1000.0);
            let step = grid_ns.max(known.clock_step_ns / batch);
            (step * 3.0 > series.min_ns && step > 0.001).then(|| {
                format!("{} min {:.1} ns lies on a grid of {step:.1} ns", quantity.name(), series.min_ns)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sane::{broken, only, replace, sane};
    use doorbell_results::record::Histogram;
    use doorbell_results::record::series::Quantity;

    #[test]
    fn a_minimum_on_the_grid_of_a_double_is_the_clocks() {
        // Seconds times 1e9 plus nanoseconds in a double: readings differ by 0, 256 or 512 ns.
        let (mut record, primitives) = sane();
        let mut trip = Histogram::new();
        for sample in 0..1000_u64 {
            trip.record([256_000, 512_000, 512_000, 768_000][sample as usize % 4]);
        }
        replace(&mut record, Quantity::RoundTrip, &trip);
        only("clock-grid", &record, &primitives);
    }

    #[test]
    fn a_minimum_of_two_known_steps_is_the_clocks_and_of_ten_is_not() {
        let (record, primitives) = sane();
        assert_eq!(broken(&record, &primitives, 6_000.0), ["clock-grid", "clock-grid"]);
        assert_eq!(broken(&record, &primitives, 800.0), [""; 0]);
    }

    #[test]
    fn a_fine_grid_under_a_long_time_is_no_fault() {
        let (mut record, primitives) = sane();
        let mut trip = Histogram::new();
        for sample in 0..1000_u64 {
            trip.record(16_000_000 + sample % 5 * 100_000);
        }
        replace(&mut record, Quantity::RoundTrip, &trip);
        assert_eq!(broken(&record, &primitives, 10.0), [""; 0]);
    }
}
