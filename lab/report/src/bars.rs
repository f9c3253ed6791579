// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small pictures in plain characters: a distribution in one line, a matrix of CPUs.

use super::pairs::Matrix;
use super::style::Style;
use super::table::{Align, Column, Table};
use super::unit::Scale;

const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '+', '+', '#', '#'];

/// A distribution in one line of `columns` characters between `from_ps` and `to_ps`, both on
/// logarithmic scales: equal steps to the right are equal ratios of time, equal steps upwards equal
/// ratios of count, so that one sample in a million still shows.
pub fn strip(buckets: &[(u64, u64)], from_ps: f64, to_ps: f64, columns: usize, style: &Style) -> String {
    let mut counts = vec![0_u64; columns];
    let (low, high) = (from_ps.max(1.0).ln(), to_ps.max(2.0).ln());
    for &(ps, count) in buckets {
        let share = ((ps.max(1) as f64).ln() - low) / (high - low).max(f64::MIN_POSITIVE);
        let column = (share * columns as f64).clamp(0.0, columns.saturating_sub(1) as f64) as usize;
        if let Some(slot) = counts.get_mut(column) {
            *slot += count;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let steps = if style.unicode { &UNICODE } else { &ASCII };
    counts
        .iter()
        .map(|&count| {
            if count == 0 {
                return steps[0];
            }
            let height = ((count as f64).ln_1p() / (most as f64).ln_1p() * 8.0).ceil() as usize;
            steps[height.clamp(1, 8)]
        })
        .collect()
}

/// A matrix of CPUs: one row per notifying CPU, one column per waiting CPU, values in the cells in
/// one unit, the shades of the cells from light (fast) to dark (slow).
pub fn matrix(matrix: &Matrix, scale: Scale, style: &Style) -> String {
    let shades = if style.unicode { [' ', '░', '▒', '▓', '█'] } else { [' ', '.', ':', '+', '#'] };
    let mut columns = vec![Column::new("CPU", Align::Right)];
    columns.extend(matrix.columns().iter().map(|cpu| Column::new(cpu.to_string(), Align::Right)));
    let mut table = Table::new(columns);
    for from in matrix.rows() {
        let mut cells = vec![from.to_string()];
        for to in matrix.columns() {
            cells.push(matrix.get(from, to).map_or_else(
                || "-".to_owned(),
                |pair| {
                    let shade = shades[(matrix.shade(pair.p50_ps) * 4.999) as usize];
                    format!("{shade}{}", scale.show(pair.p50_ps))
                },
            ));
        }
        table.row(cells);
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Pair;
    use crate::unit::Unit;

    #[test]
    fn one_sample_among_a_million_still_shows() {
        let buckets = [(1_000, 1_000_000), (1_000_000, 1)];
        let strip = strip(&buckets, 1e3, 1e6, 10, &Style { unicode: true, ..Style::PLAIN });
        assert_eq!(strip, "█        ▁");
    }

    #[test]
    fn a_strip_of_nothing_is_blank_and_of_one_value_is_one_bar() {
        assert_eq!(strip(&[], 1e3, 1e6, 4, &Style::PLAIN), "    ");
        assert_eq!(strip(&[(5_000, 9)], 5e3, 5e3, 4, &Style::PLAIN), "#   ");
    }

    #[test]
    fn a_matrix_names_its_cpus_and_shades_the_slow() {
        let pair = |from, to, p50_ps| Pair { from, to, p50_ps, count: 1 };
        let pairs = vec![pair(0, 1, 50e3), pair(1, 0, 52e3), pair(0, 64, 500e3)];
        let scale = Scale { unit: Unit::Nanoseconds };
        assert_eq!(
            matrix(&Matrix::new("spin", pairs), scale, &Style::PLAIN),
            "CPU      0      1    64\n  0      -   50.0  #500\n  1   52.0      -     -\n"
        );
    }
}
