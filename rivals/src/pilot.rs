// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many of something fit into a block.

use std::time::Duration;

/// So many pilots are run of each size. In the first a partner may still sleep on the CPU where
/// another side spins: until the scheduler's tick lets it move to its own, milliseconds pass, a
/// thousand times what the others take.
const PILOTS: usize = 3;

/// How many fit into `length`, no fewer than `least` and no more than
/// `most`, judged by pilot blocks that grow until one is long enough.
/// `block` runs so many and returns how many nanoseconds that took.
pub fn fitting<E>(
    length: Duration,
    least: u64,
    most: u64,
    mut block: impl FnMut(u64) -> Result<f64, E>,
) -> Result<u64, E> {
    let wanted = length.as_nanos() as f64;
    let mut count = least;
    loop {
        let mut shortest = f64::INFINITY;
        for _ in 0..PILOTS {
            shortest = shortest.min(block(count)?.max(1.0));
        }
        let fitting = (count as f64 * wanted / shortest) as u64;
        // Long enough to judge by.
        if shortest > wanted / 4.0 || count >= most {
            return Ok(fitting.clamp(least, most));
        }
        count = fitting.clamp(count * 2, count * 16).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting_after(first: f64) -> u64 {
        let mut blocks = 0;
        let block = |count: u64| {
            blocks += 1;
            Ok::<_, ()>(count as f64 * 100.0 + if blocks == 1 { first } else { 0.0 })
        };
        fitting(Duration::from_millis(5), 8, 200_000, block).unwrap()
    }

    /// Blocks of a gather had eleven messages, for the first pilot
    /// had taken more than a millisecond.
    #[test]
    fn a_first_block_that_is_slow_does_not_make_the_others_short() {
        assert_eq!(fitting_after(0.0), 50_000);
        assert_eq!(fitting_after(4e6), 50_000);
    }

    #[test]
    fn the_count_stays_between_its_bounds_and_what_goes_wrong_is_told() {
        let taking = |each: f64| fitting(Duration::from_millis(5), 8, 1000, |n| Ok::<_, ()>(n as f64 * each));
        assert_eq!((taking(1e9), taking(1.0)), (Ok(8), Ok(1000)));
        assert_eq!(fitting(Duration::from_millis(5), 8, 1000, |_| Err("gone")), Err("gone"));
    }
}
