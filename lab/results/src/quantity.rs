// SPDX-License-Identifier: MIT OR Apache-2.0
//! How durations, shares and waiting policies are written on the command line and in tables.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::configuration::WaitPolicy;
pub use crate::written::short;

/// The longest time that can be asked for, nanoseconds: 30 days, beyond any trial, and far inside
/// what every clock here can hold.
pub const LONGEST_NS: u64 = 30 * 86_400_000_000_000;

/// The error of a text that cannot be read: why, and what may stand in its place.
///
/// Every error of a text that somebody typed is made of it, so that a
/// test finds what they advise and tries it.
pub fn refused(why: impl Display, write: &[impl Display]) -> String {
    let mut message = format!("{why}; write for example ");
    for (place, example) in write.iter().enumerate() {
        message.push_str(match place {
            0 => "",
            place if place + 1 == write.len() => " or ",
            _ => ", ",
        });
        message.push_str(&example.to_string());
    }
    message
}

/// A number at the beginning of `text`, as `10`, `1.5` or `1e3`, and what stands after it.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut end = digits(text);
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    if let Some(power) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let power = digits(&power[sign..]);
        // Without digits it is the beginning of a unit.
        end += if power > 0 { 1 + sign + power } else { 0 };
    }
    let (number, behind) = text.split_at(end);
    Some((number.parse().ok()?, behind.trim()))
}

/// A duration: `0`, `10us`, `1ms`, `1.5s`, `10m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    const EXAMPLES: [&str; 3] = ["10us", "1ms", "2s"];
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let Some((number, unit)) = number(text) else {
        return Err(refused(format_args!("'{text}' is no time"), &EXAMPLES));
    };
    let nanoseconds = match unit {
        "ns" | "nsec" => 1.0,
        // The sign for micro is two letters of Unicode: U+00B5 and U+03BC.
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" | "msec" => 1e6,
        "s" | "sec" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" => return Err(refused(format_args!("'{text}' has no unit"), &EXAMPLES)),
        _ => return Err(refused(format_args!("'{unit}' is no unit of time"), &EXAMPLES)),
    };
    let total = number * nanoseconds;
    if total > 0.0 && total < 1.0 {
        return Err(refused(format_args!("'{text}' is less than a nanosecond"), &["1ns", "1us"]));
    }
    if !(0.0..=LONGEST_NS as f64).contains(&total) {
        return Err(refused(format_args!("'{text}' is out of range; the longest is 720h"), &EXAMPLES));
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

/// A number of bytes within `bounds`: `4096`, `4k`, `4KiB`, `256M`, `1G`; units are powers of 1024.
pub fn bytes(text: &str, bounds: RangeInclusive<u64>) -> Result<u64, String> {
    let examples =
        || [256, 64 << 10, 1 << 20, 256 << 20].map(|each: u64| each.clamp(*bounds.start(), *bounds.end()));
    let refuse = |why: String| {
        let mut examples = examples().map(short_bytes).to_vec();
        examples.dedup();
        refused(why, &examples)
    };
    let trimmed = text.trim();
    let (digits, unit) =
        trimmed.split_at(trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len()));
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(refuse(format!("'{text}' is no size"))),
    };
    let number: u64 = digits.parse().map_err(|_| refuse(format!("'{text}' is no size")))?;
    let size = number.checked_mul(1 << shift).filter(|size| bounds.contains(size));
    size.ok_or_else(|| {
        let [least, most] = [bounds.start(), bounds.end()].map(|end| short_bytes(*end));
        refuse(format!("'{text}' is not from {least} to {most}"))
    })
}

/// A number of bytes as people write it: `512`, `4K`, `1M`.
pub fn short_bytes(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    match units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// A duration that is not nothing: how long something is to last.
pub fn span(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(refused("nothing can be measured in no time", &["1ms", "100ms"])),
        span => Ok(span),
    }
}

/// A gap: a duration, a rate, `20kHz`, or `none`, as tables call it.
pub fn gap(text: &str) -> Result<Duration, String> {
    match text.trim() {
        "none" => Ok(Duration::ZERO),
        text if text.ends_with("Hz") || text.ends_with("/s") => rate(text),
        text => duration(text),
    }
}

/// A gap that is not nothing.
pub fn some_gap(text: &str) -> Result<Duration, String> {
    match gap(text)? {
        Duration::ZERO => span("0"),
        gap => Ok(gap),
    }
}

/// Gaps: one, or `5us..1ms` for 1, 2 and 5 of every decade between the two, both included.
pub fn gaps(text: &str) -> Result<Vec<Duration>, String> {
    let Some((from, to)) = text.split_once("..") else { return Ok(vec![gap(text)?]) };
    let (from, to) = (span(from)?, span(to)?);
    if from > to {
        let turned = format!("{}..{}", short(to.as_nanos() as u64), short(from.as_nanos() as u64));
        return Err(refused(format_args!("'{text}' runs backwards"), &[turned]));
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
            0 => Err(refused("a time-out of 0 never waits", &["timeout=100us", "spin"])),
            timeout_ns => Ok(WaitPolicy::Timeout { timeout_ns }),
        },
        _ => Err(refused(
            format_args!("'{text}' is no way to wait"),
            &["block", "spin", "spin-then-block=10us", "timeout=100us"],
        )),
    }
}

/// A rate, `20k/s`, `500/s`, `20kHz`, `1.5M/s`, as the gap between two on average.
pub fn rate(text: &str) -> Result<Duration, String> {
    const EXAMPLES: [&str; 3] = ["500/s", "20k/s", "20kHz"];
    let refuse = |why: &str| refused(format_args!("'{text}' {why}"), &EXAMPLES);
    let trimmed = text.trim();
    let bare = trimmed.strip_suffix("/s").or_else(|| trimmed.strip_suffix("Hz")).unwrap_or(trimmed);
    let (number, factor) = number(bare).ok_or_else(|| refuse("is no rate"))?;
    let rate = number
        * match factor {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            _ => return Err(refuse("is no rate")),
        };
    if !(0.01..=1e7).contains(&rate) {
        return Err(refuse("is not from 0.01/s to 10M/s"));
    }
    Ok(Duration::from_nanos((1e9 / rate).round() as u64))
}

/// A share in percent, `5%`, as parts per million.
pub fn percent(text: &str) -> Result<u32, String> {
    let refuse = |why: &str| refused(format_args!("'{text}' {why}"), &["5%", "2.5%"]);
    let number = text.trim().strip_suffix('%').and_then(number).filter(|(_, behind)| behind.is_empty());
    let (number, _) = number.ok_or_else(|| refuse("is no percentage"))?;
    if !(0.0..=1000.0).contains(&number) {
        return Err(refuse("is not from 0% to 1000%"));
    }
    Ok((number * 10_000.0).round() as u32)
}

/// A percentile, `p99.9`, `99.9` or `p999`, as a share of 0 to 1: the
/// number that is nearest to 999/1000.
pub fn percentile(text: &str) -> Result<f64, String> {
    let refuse = || refused(format_args!("'{text}' is no percentile"), &["p50", "p99", "p99.9"]);
    let digits = text.trim();
    let digits = digits.strip_prefix(['p', 'P']).unwrap_or(digits);
    if !digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
        return Err(refuse());
    }
    // Nobody means the 999th of a hundred: p999 is how many write p99.9.
    let digits = match digits.split_at_checked(2) {
        Some((whole, rest)) if whole.starts_with('9') && !rest.is_empty() && !digits.contains('.') => {
            format!("{whole}.{rest}")
        }
        _ => digits.to_owned(),
    };
    // Divided by 100, 99.9 is 0.9990000000000001.
    match format!("{digits}e-2").parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(refuse()),
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
            ("10usec", 10_000),
            ("10\u{b5}s", 10_000),
            ("10\u{3bc}s", 10_000),
            ("1e3ns", 1000),
            ("1.5e-3 s", 1_500_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("1m", 60_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for text in
            ["", "10", "us", "-1us", "1e400s", "nan s", "9999999h", "0.0000001ns", "1ens", "10 parsec"]
        {
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
        // 99.9 / 100 is 0.9990000000000001, of which 2,998 of 3,000 samples are the share, and not 2,997.
        for text in ["p99.9", "99.9", "p999", "999", "P99.9", "p99.90"] {
            assert_eq!(percentile(text), Ok(0.999), "{text}");
        }
        assert_eq!((percentile("p50"), percentile("p99995")), (Ok(0.5), Ok(0.99995)));
        for text in ["", "p", "p0", "p100", "pNaN", "p99%", "max", "p9.9.9", "p1e1"] {
            assert!(percentile(text).is_err(), "{text}");
        }
        assert_eq!(share("95%"), Ok(0.95));
        assert!(share("0.95").is_err());
    }

    #[test]
    fn rates_are_read_as_people_write_them() {
        for text in ["20k/s", "20kHz", "20 kHz", "20000/s", "20000", "2e4/s", "20K/s"] {
            assert_eq!(rate(text), Ok(Duration::from_micros(50)), "{text}");
        }
        assert_eq!((gap("20kHz"), gap("none"), gap("1ms")), (rate("20kHz"), duration("0"), duration("1ms")));
        assert_eq!(some_gap("2k/s"), span("500us"));
        assert!(some_gap("none").is_err() && gap("kHz").is_err());
        for text in ["", "k/s", "20/m", "20x/s", "0/s", "11M/s", "-1/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        let read = |text: &str| bytes(text, 0..=1 << 30);
        for text in ["4096", "4k", "4K", "4KiB", "4 kb", "4096B"] {
            assert_eq!(read(text), Ok(4096), "{text}");
        }
        assert_eq!((read("0"), read("256M"), read("1G")), (Ok(0), Ok(256 << 20), Ok(1 << 30)));
        for text in ["", "K", "2G", "4X", "-1", "4k2", "18446744073709551615G"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!([0, 512, 4096, 1 << 20].map(short_bytes), ["0", "512", "4K", "1M"]);
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
