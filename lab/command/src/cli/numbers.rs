// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of receivers or tasks: one, or from one to another in steps of ten times; sizes of
//! messages; times as results have them.

use std::ops::RangeInclusive;
use std::time::Duration;

use doorbell_results::quantity::{bytes, refused};

/// The longest message.
pub const LONGEST_MESSAGE: u32 = 1 << 26;

/// One item of a comma-separated list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(Vec<u32>);

impl Numbers {
    /// Every number of a list, each once.
    pub fn of(list: &[Self]) -> Vec<u32> {
        let mut all = Vec::new();
        for number in list.iter().flat_map(|item| &item.0) {
            if !all.contains(number) {
                all.push(*number);
            }
        }
        all
    }
}

/// `200`, or `20..2000` for 20, 200 and 2000; within `allowed`.
pub fn numbers(text: &str, allowed: RangeInclusive<u32>) -> Result<Numbers, String> {
    let number = |text: &str| match text.trim().parse::<u32>() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ => Err(refused(
            format_args!("'{text}' is no number from {} to {}", allowed.start(), allowed.end()),
            &["20", "20..2000"],
        )),
    };
    let Some((from, to)) = text.split_once("..") else { return Ok(Numbers(vec![number(text)?])) };
    let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
    if from > to {
        return Err(refused(format_args!("'{text}' runs backwards"), &[format!("{to}..{from}")]));
    }
    let steps = std::iter::successors(Some(from), |last| last.checked_mul(10)).take_while(|step| *step < to);
    Ok(Numbers(steps.chain([to]).collect()))
}

/// Nanoseconds of a time; what is longer than they can tell is as long as they can.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes of a message.
pub fn message(text: &str) -> Result<u32, String> {
    bytes(text, 0..=u64::from(LONGEST_MESSAGE)).map(|bytes| bytes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<u32>, String> {
        numbers(text, 2..=20_000).map(|item| Numbers::of(&[item]))
    }

    #[test]
    fn a_range_goes_up_by_ten_times_and_has_both_its_ends() {
        assert_eq!(all("20..2000"), Ok(vec![20, 200, 2000]));
        assert_eq!(all("20..300"), Ok(vec![20, 200, 300]));
        assert_eq!(all("7"), Ok(vec![7]));
        assert_eq!(all("7..7"), Ok(vec![7]));
        assert_eq!(all("10..=100"), Ok(vec![10, 100]));
    }

    #[test]
    fn what_is_no_range_is_told_with_how_to_write_one() {
        for text in ["", "..", "1", "20..", "x", "20..30000", "-5"] {
            assert!(all(text).unwrap_err().contains("20..2000"), "{text}");
        }
        assert!(all("200..20").unwrap_err().contains("20..200"));
    }
}
