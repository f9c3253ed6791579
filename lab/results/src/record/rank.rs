// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sample a percentile is: the one function of headlines, tables and exports.

/// The place of the sample at quantile `q` of `count` sorted ones, counted from 1: the least that
/// `q` of all do not exceed.
///
/// Exact for what can be written in decimals: of 3,000 samples p99.9 is the 2,997th, since the
/// share is taken as 999/1000 and not as the number of 64 bits beside it, whose product with a
/// count may lie on either side of a whole number.
pub fn rank(q: f64, count: u64) -> u64 {
    /// Decimals of a share; a number of 64 bits has 15.
    const DECIMALS: u32 = 15;
    let q = q.clamp(0.0, 1.0);
    let decimal = (0..=DECIMALS).map(|digits| 10_u64.pow(digits)).find_map(|whole| {
        let part = (q * whole as f64).round();
        (part / whole as f64 == q).then_some((part as u128, u128::from(whole)))
    });
    let rank = match decimal {
        Some((part, whole)) => (part * u128::from(count)).div_ceil(whole) as u64,
        None => (q * count as f64).ceil() as u64,
    };
    rank.clamp(1, count.max(1))
}

/// The time at quantile `q` of `count` samples that lie in `buckets` (middle and count, from short
/// to long), none longer than `max`.
pub fn at(buckets: impl IntoIterator<Item = (u64, u64)>, q: f64, count: u64, max: u64) -> u64 {
    let rank = rank(q, count);
    let mut seen = 0_u64;
    for (time, samples) in buckets {
        seen = seen.saturating_add(samples);
        // The longest is known better than by the middle of its bucket.
        if seen >= count {
            break;
        }
        if seen >= rank {
            return time.min(max);
        }
    }
    max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_share_that_its_decimals_say() {
        for (q, count, place) in [
            (0.999, 3000, 2997),
            (0.999, 1000, 999),
            (0.99, 300, 297),
            (0.9, 30, 27),
            (0.5, 3, 2),
            // 0.55 * 100 is 55.00000000000001, and 0.07 * 100 is 7.000000000000001.
            (0.55, 100, 55),
            (0.07, 100, 7),
            (0.99999, 10_000_000, 9_999_900),
            (0.0, 9, 1),
            (1.0, 9, 9),
            (0.5, 0, 1),
            (1.0, u64::MAX, u64::MAX),
        ] {
            assert_eq!(rank(q, count), place, "{q} of {count}");
        }
        for thousandths in 1..1000_u64 {
            let q = thousandths as f64 / 1000.0;
            assert_eq!(rank(q, 1_000_000), thousandths * 1000, "{q}");
        }
    }
}
