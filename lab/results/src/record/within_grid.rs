// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles finer than the clock's grid.
//!
//! WHY: a counter that steps by 10 ns makes every time a whole number of steps, so that
//! the median of a million round trips of 47 ns reads 50.1 ns, that of others of 49 ns
//! the same, and a difference of 4 % cannot be seen. HOW: a time that begins and ends
//! anywhere between two steps reads a step too long or too short so often that the mean
//! is right. So half of the samples of a reading count as below it and half as above, and
//! between two readings that are a step apart quantiles lie in proportion (mid-quantiles:
//! Y. Ma, M. G. Genton, E. Parzen, *Asymptotic properties of sample quantiles of discrete
//! distributions*, 2011). Of times that are all the same it is the time itself.

/// Times of more steps than this are left as they are: a histogram's buckets are as wide there.
const STEPS: f64 = 1000.0;

/// Readings further apart than so many steps have nothing between them.
const NEIGHBOURS: f64 = 1.5;

/// The time at quantile `q` of 0 to 1 of `buckets` (time in picoseconds
/// and count, from short to long) read on a grid of `grid_ps`, in picoseconds; none where the grid
/// is too fine to matter or not known (0), or nothing was counted.
pub fn within_grid(buckets: &[(u64, u64)], q: f64, grid_ps: f64) -> Option<f64> {
    let count: f64 = buckets.iter().map(|(_, count)| *count as f64).sum();
    let rank = q.clamp(0.0, 1.0) * count;
    let mut below = 0.0;
    let mut last: Option<(f64, f64)> = None;
    for &(ps, count) in buckets {
        let (ps, count) = (ps as f64, count as f64);
        let middle = below + count / 2.0;
        if rank <= middle {
            if grid_ps <= 0.0 || ps > grid_ps * STEPS {
                return None;
            }
            return Some(match last {
                Some((before, ranked)) if ps - before <= grid_ps * NEIGHBOURS => {
                    before + (ps - before) * (rank - ranked) / (middle - ranked).max(f64::MIN_POSITIVE)
                }
                Some((before, _)) if rank <= below => before,
                _ => ps,
            });
        }
        below += count;
        last = Some((ps, middle));
    }
    last.map(|(ps, _)| ps).filter(|ps| grid_ps > 0.0 && *ps <= grid_ps * STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Histogram;

    /// Times around `middle_ns`, read by a counter that steps by
    /// `grid_ps` and begins anywhere in a step.
    fn read(middle_ns: f64, grid_ps: u64) -> Histogram {
        let mut random = fastrand::Rng::with_seed(11);
        let mut histogram = Histogram::new();
        for _ in 0..50_000 {
            let time_ps = middle_ns * 1000.0 * (1.0 + 0.1 * (random.f64() - 0.5));
            let begins = random.f64() * grid_ps as f64;
            let ends = begins + time_ps;
            let steps = |ps: f64| (ps / grid_ps as f64).floor() as u64;
            histogram.record((steps(ends) - steps(begins)) * grid_ps);
        }
        histogram
    }

    #[test]
    fn a_difference_of_a_twentieth_is_seen_below_the_grid() {
        let grid_ps = 10_015;
        let [short, long] = [47.0, 49.4].map(|middle| read(middle, grid_ps));
        let apart = short.quantile(0.5).abs_diff(long.quantile(0.5));
        assert!(apart < grid_ps / 100, "on the grid they are the same: {apart} ps");
        let medians = [short, long].map(|histogram| {
            let buckets: Vec<(u64, u64)> = histogram.buckets().collect();
            within_grid(&buckets, 0.5, grid_ps as f64).unwrap() / 1000.0
        });
        assert!((medians[0] - 47.0).abs() < 0.5 && (medians[1] - 49.4).abs() < 0.5, "{medians:?}");
    }

    /// The counters of ARM and RISC-V: 62.5 MHz, 24 MHz, 10 MHz. A time may be shorter than a step.
    #[test]
    fn it_is_seen_below_the_coarse_grids_of_other_processors_too() {
        for grid_ps in [16_000, 41_667, 100_000] {
            let medians = [47.0, 51.7].map(|middle| {
                let buckets: Vec<(u64, u64)> = read(middle, grid_ps).buckets().collect();
                within_grid(&buckets, 0.5, grid_ps as f64).unwrap() / 1000.0
            });
            assert!(medians[1] - medians[0] > 2.0, "{grid_ps} ps: {medians:?}");
            assert!((medians[0] - 47.0).abs() < 3.0, "{grid_ps} ps: {medians:?}");
        }
    }

    #[test]
    fn a_grid_that_is_fine_or_unknown_changes_nothing() {
        let buckets = [(20_000_000, 5), (20_100_000, 6)];
        assert_eq!(within_grid(&buckets, 0.5, 10_015.0), None);
        assert_eq!(within_grid(&[(50_000, 7)], 0.5, 0.0), None);
        assert_eq!(within_grid(&[], 0.5, 10.0), None);
    }
}
