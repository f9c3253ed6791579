// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small pictures in plain characters: a distribution in one line, a matrix of CPUs.

use super::columns::{Columns, dash};
use super::pairs::{Matrix, Pair};
use super::table::{Column, Table, number};
use super::unit::Scale;

/// Columns of a distribution's strip.
pub const STRIP: usize = 24;

const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// A distribution in one line of [`STRIP`] characters between `from_ps` and `to_ps`, both on
/// logarithmic scales: equal steps to the right are equal ratios of time, equal steps upwards equal
/// ratios of count, so that one sample in a million still shows.
pub fn strip(buckets: &[(u64, u64)], from_ps: f64, to_ps: f64) -> String {
    let mut counts = [0_u64; STRIP];
    let (low, high) = (from_ps.max(1.0).ln(), to_ps.max(2.0).ln());
    for &(ps, count) in buckets {
        let share = ((ps.max(1) as f64).ln() - low) / (high - low).max(f64::MIN_POSITIVE);
        counts[(share * STRIP as f64).clamp(0.0, (STRIP - 1) as f64) as usize] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u64| ((count as f64).ln_1p() / (most as f64).ln_1p() * 8.0).ceil() as usize;
    counts.into_iter().map(|count| STEPS[height(count).min(8)]).collect()
}

/// A matrix of CPUs: one row per notifying CPU, one column per waiting CPU, values in the cells in
/// one unit, the shades of the cells from light (fast) to dark (slow) where they are `shaded`.
pub fn matrix(matrix: &Matrix, head: Column, scale: Scale, shaded: bool) -> Table {
    let cell = |pair: &Pair| {
        let shade = shaded.then(|| SHADES[(matrix.shade(pair.p50_ps) * 4.999) as usize]);
        format!("{}{}", shade.map_or_else(String::new, String::from), scale.show(pair.p50_ps))
    };
    let others = matrix.columns().into_iter().map(|cpu| (number(cpu.to_string()), cpu));
    Columns::none()
        .with(head, |from: &u32| from.to_string())
        .each(others, |from, to| matrix.get(*from, *to).map_or_else(dash, cell))
        .table(&matrix.rows())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::unit::Unit;

    #[test]
    fn one_sample_among_a_million_still_shows_and_nothing_is_blank() {
        let buckets = [(1_000, 1_000_000), (1_000_000, 1)];
        let alone = |first: &str, last: &str| format!("{first}{:22}{last}", "");
        assert_eq!(strip(&buckets, 1e3, 1e6), alone("█", "▁"));
        assert_eq!(Style::PLAIN.text(&strip(&buckets, 1e3, 1e6)), alone("#", "."));
        assert_eq!(strip(&[], 1e3, 1e6), alone(" ", " "));
        assert_eq!(strip(&[(5_000, 9)], 5e3, 5e3), alone("█", " "));
    }

    #[test]
    fn a_matrix_names_its_cpus_and_shades_the_slow() {
        let pair = |from, to, p50_ps| Pair { from, to, p50_ps, count: 1 };
        let pairs = vec![pair(0, 1, 50e3), pair(1, 0, 52e3), pair(0, 64, 500e3)];
        let scale = Scale { unit: Unit::Nanoseconds };
        assert_eq!(
            matrix(&Matrix::new("spin", pairs), number("CPU"), scale, true).render(&Style::PLAIN),
            "CPU      0      1    64\n  0      -   50.0  #500\n  1   52.0      -     -\n"
        );
    }
}
