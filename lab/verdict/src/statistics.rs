// SPDX-License-Identifier: MIT OR Apache-2.0
//! Medians, and the distributions that bounds of shares come from.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::ln_beta;

/// The middle value, or the mean of the two middle ones; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How many standard errors above the middle the share `share` of Student's distribution with
/// `freedom` degrees, at least one, ends.
pub fn student(share: f64, freedom: f64) -> f64 {
    // Of more degrees no digit changes.
    let freedom = freedom.clamp(1.0, 1e6);
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(share))
}

/// How many standard errors to each side of an estimate hold the share `confidence`.
fn reach(confidence: f64, freedom: f64) -> f64 {
    student(f64::midpoint(confidence, 1.0), freedom)
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How far the mean of independent `values` may be off to each side; without end of fewer than two.
pub fn half_interval(values: &[f64], confidence: f64) -> f64 {
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let (mean, freedom) = (mean(values), values.len() as f64 - 1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    reach(confidence, freedom) * (squares / freedom / values.len() as f64).sqrt()
}

/// The bounds of a share of which `k` of `n`, not necessarily whole, were seen, each holding with
/// `confidence`: Clopper's and Pearson's.
pub fn clopper_pearson(n: f64, k: f64, confidence: f64) -> (f64, f64) {
    let lower = if k <= 0.0 { 0.0 } else { beta_quantile(1.0 - confidence, k, n - k + 1.0) };
    let upper = if k >= n { 1.0 } else { beta_quantile(confidence, k + 1.0, n - k) };
    (lower, upper)
}

/// The `p` below which the beta distribution with parameters `a`, `b` has the share `share`:
/// bisection, which is slow, exact, and called a handful of times.
fn beta_quantile(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if beta_share_below(middle, a, b) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function `I(x; a, b)` by its
/// continued fraction (Abramowitz and Stegun, 26.5.8), evaluated from
/// the front by Lentz's method (W. J. Lentz, Applied Optics 15, 1976).
///
/// Not that of `statrs`, which ends after 140 steps: near the mean the
/// fraction needs as many as the root of the greater parameter, and of
/// the median of three million wakes `statrs` 0.18 says 0.479 for 0.5.
pub fn beta_share_below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return if a <= 0.0 { 1.0 } else { 0.0 };
    }
    if x >= 1.0 || b <= 0.0 {
        return if x >= 1.0 { 1.0 } else { 0.0 };
    }
    // The fraction converges fast on this side of the mean; beyond it the other tail is taken.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_share_below(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    let tiny = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / tiny(1.0 + numerator * d);
            c = tiny(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_quantiles_of_students_distribution_are_those_of_the_tables() {
        // Any printed table of Student's distribution.
        for (share, freedom, table) in [
            (0.95, 1.0, 6.314),
            (0.95, 2.0, 2.920),
            (0.975, 3.0, 3.182),
            (0.99, 9.0, 2.821),
            (0.975, 18.0, 2.101),
            (0.9995, 20.0, 3.850),
            (0.95, 1e9, 1.645),
        ] {
            let quantile = student(share, freedom);
            assert!((quantile / table - 1.0).abs() < 1e-3, "{share} {freedom}: {quantile}");
        }
        assert_eq!(reach(0.95, 18.0), student(0.975, 18.0));
    }

    #[test]
    fn the_bounds_of_a_share_are_clopper_and_pearsons() {
        // Two-sided 95 % intervals of printed tables, each bound of which holds with 97.5 %.
        for (above, all, low, high) in [
            (1.0, 10.0, 0.0025, 0.4450),
            (5.0, 20.0, 0.0866, 0.4910),
            (50.0, 100.0, 0.3983, 0.6017),
            (2.0, 50.0, 0.0049, 0.1371),
        ] {
            let (lower, upper) = clopper_pearson(all, above, 0.975);
            assert!((lower - low).abs() < 1e-4, "{above} of {all}: {lower}");
            assert!((upper - high).abs() < 1e-4, "{above} of {all}: {upper}");
        }
        // The rule of three, exactly.
        for all in [10.0, 1000.0, 3e6] {
            let bound = clopper_pearson(all, 0.0, 0.95).1;
            let exact = 1.0 - 0.05_f64.powf(1.0 / all);
            assert!((bound / exact - 1.0).abs() < 1e-6, "{all}: {bound} against {exact}");
        }
        // Half of the wakes lie below their median, of however many.
        for all in [3e3, 3e6] {
            assert!((beta_share_below(0.5, all / 2.0, all / 2.0) - 0.5).abs() < 1e-6);
        }
    }
}
