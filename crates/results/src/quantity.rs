// SPDX-License-Identifier: MIT OR Apache-2.0
//! How durations, shares and waiting policies are written on the command line and in tables.

use std::time::Duration;

use crate::configuration::WaitPolicy;
pub use crate::written::short;

/// A duration: `0`, `10us`, `1ms`, `1.5s`, `10m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let split = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let nanoseconds = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return Err(format!("'{text}' has no unit; write for example 10us, 1ms or 2s")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("'{number}' is no number; write for example 10us"))?;
    let total = number * nanoseconds;
    // 30 days: beyond any trial, and far inside what every clock here can hold.
    if !(0.0..=30.0 * 86400e9).contains(&total) {
        return Err(format!("'{text}' is out of range; the longest duration is 720h"));
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

/// A duration that is not nothing: how long something is to last.
pub fn span(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("nothing can be measured in no time; write for example 100ms".to_owned()),
        span => Ok(span),
    }
}

/// Gaps: a duration, or `5us..1ms` for 1, 2 and 5 of every decade between the two, both included.
pub fn gaps(text: &str) -> Result<Vec<Duration>, String> {
    let Some((from, to)) = text.split_once("..") else { return Ok(vec![duration(text)?]) };
    let (from, to) = (span(from)?, span(to)?);
    if from > to {
        return Err(format!("'{text}' runs backwards; write the shorter gap first"));
    }
    let steps = (0..16).flat_map(|decade| [1, 2, 5].map(|step| step * 10_u64.pow(decade)));
    let between = steps.map(Duration::from_nanos).filter(|gap| *gap > from && *gap < to);
    let mut gaps: Vec<Duration> = std::iter::once(from).chain(between).chain([to]).collect();
    gaps.dedup();
    Ok(gaps)
}

/// A waiting policy: `block`, `spin`, `spin-then-block=10us`, `timeout=100us`.
pub fn wait_policy(text: &str) -> Result<WaitPolicy, String> {
    let nanoseconds = |text| duration(text).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    match text.split_once('=') {
        None if text == "block" => Ok(WaitPolicy::Block),
        None if text == "spin" => Ok(WaitPolicy::Spin),
        Some(("spin-then-block", time)) => Ok(WaitPolicy::SpinThenBlock { spin_ns: nanoseconds(time)? }),
        Some(("timeout", time)) => match nanoseconds(time)? {
            0 => Err("a time-out of 0 never waits; write for example timeout=100us".to_owned()),
            timeout_ns => Ok(WaitPolicy::Timeout { timeout_ns }),
        },
        _ => Err(format!("'{text}' is none of block, spin, spin-then-block=TIME, timeout=TIME")),
    }
}

/// A rate, `20k/s`, `500/s`, `1.5M/s`, as the gap between two on average.
pub fn rate(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let (number, factor) = match number.char_indices().last() {
        Some((end, 'k')) => (&number[..end], 1e3),
        Some((end, 'M')) => (&number[..end], 1e6),
        _ => (number, 1.0),
    };
    let rate = number
        .parse::<f64>()
        .map_err(|_| format!("'{text}' is no rate; write for example 20k/s or 500/s"))?
        * factor;
    if !(0.01..=1e7).contains(&rate) {
        return Err(format!("'{text}' is out of range; write 0.01/s to 10M/s"));
    }
    Ok(Duration::from_nanos((1e9 / rate).round() as u64))
}

/// A share in percent, `5%`, as parts per million.
pub fn percent(text: &str) -> Result<u32, String> {
    let number =
        text.strip_suffix('%').ok_or_else(|| format!("'{text}' is no percentage; write for example 5%"))?;
    let number: f64 = number.parse().map_err(|_| format!("'{number}' is no number; write for example 5%"))?;
    if !(0.0..=1000.0).contains(&number) {
        return Err(format!("'{text}' is out of range; write 0% to 1000%"));
    }
    Ok((number * 10_000.0).round() as u32)
}

/// A percentile, `p99.9`, as a share of 0 to 1.
pub fn percentile(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(number) if number > 0.0 && number < 100.0 => Ok(number / 100.0),
        _ => Err(format!("'{text}' is no percentile; write for example p50, p99 or p99.9")),
    }
}

/// A share in percent, `95%`, as a share of 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    percent(text).map(|ppm| f64::from(ppm) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("10us", 10_000),
            ("10µs", 10_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("1m", 60_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for text in ["", "10", "us", "-1us", "1e400s", "nan s", "9999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_of_nothing_is_refused() {
        assert_eq!(span("1ns"), Ok(Duration::from_nanos(1)));
        for text in ["0", "0ms", "0.0s", "0.1ns"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentiles_and_shares_are_read_and_nonsense_is_refused() {
        assert!((percentile("p99.9").unwrap() - 0.999).abs() < 1e-12);
        assert_eq!(percentile("p50"), Ok(0.5));
        for text in ["", "99", "p", "p0", "p100", "pNaN", "p99%", "max"] {
            assert!(percentile(text).is_err(), "{text}");
        }
        assert_eq!(share("95%"), Ok(0.95));
        assert!(share("0.95").is_err());
    }

    #[test]
    fn a_range_of_gaps_has_three_a_decade_and_both_ends() {
        let read =
            |text: &str| gaps(text).map(|gaps| gaps.iter().map(Duration::as_nanos).collect::<Vec<_>>());
        assert_eq!(read("3us"), Ok(vec![3000]));
        assert_eq!(read("5us..50us"), Ok(vec![5000, 10_000, 20_000, 50_000]));
        assert_eq!(read("3us..12us"), Ok(vec![3000, 5000, 10_000, 12_000]));
        assert_eq!(read("3us..3us"), Ok(vec![3000]));
        for text in ["", "..", "0..1us", "1us..", "2us..1us", "1us..2"] {
            assert!(gaps(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_short_duration_reads_back_as_itself() {
        for nanoseconds in [0, 1, 999, 1000, 1500, 10_000, 100_000_000, 3_600_000_000_000] {
            assert_eq!(duration(&short(nanoseconds)), Ok(Duration::from_nanos(nanoseconds)));
        }
    }

    #[test]
    fn waiting_policies_are_read_and_nonsense_is_refused() {
        assert_eq!(wait_policy("spin-then-block=10us"), Ok(WaitPolicy::SpinThenBlock { spin_ns: 10_000 }));
        assert_eq!(wait_policy("timeout=100us"), Ok(WaitPolicy::Timeout { timeout_ns: 100_000 }));
        for text in ["", "timeout=0", "timeout", "spin=3us", "sleep"] {
            assert!(wait_policy(text).is_err(), "{text}");
        }
    }
}
