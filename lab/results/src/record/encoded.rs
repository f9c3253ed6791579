// SPDX-License-Identifier: MIT OR Apache-2.0
//! An encoded histogram, looked at before anything is allocated for it.
//!
//! SUMMARY: whatever a file claims, looking at one histogram takes
//! under 2 MB and one pass over its bytes.
//!
//! DETAILS: the text is base64 of HdrHistogram's compressed form: the number
//! `0x1c849314`, a length, and a zlib stream of the plain form: the number `0x1c849313`,
//! a length, the normalizing offset, the significant digits, the lowest and the highest
//! value, a ratio, and then the counters as zig-zag LEB128 numbers, where -n stands for
//! n empty counters (HdrHistogram's `V2Serializer`). A decoder that believes the header
//! allocates what it asks for: 3 significant digits up to 2^63 are 440 KB, 5 digits 50
//! MB, a claimed length 4 GB. Ours has one shape, so any other is refused here.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::histogram::{COUNTERS, DIGITS, HistogramError, LONGEST_PS, SHORTEST_PS};

const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
const HEADER: usize = 40;
/// A LEB128 number of 64 bits takes at most 9 bytes in HdrHistogram's variant.
const LONGEST_PLAIN: usize = HEADER + 9 * COUNTERS;
/// Base64 of the longest plain form, which deflate may lengthen by 5 bytes per 16 KB block (RFC
/// 1951 §3.2.4) and a few bytes of framing; rounded up.
const LONGEST_TEXT: usize = LONGEST_PLAIN / 3 * 4 + 4096;
/// Samples whose number still survives the way through a `double`,
/// which is what most readers of JSON have.
const MOST_SAMPLES: u64 = 1 << 53;

/// The occupied counters of a histogram, the shortest first: a time that each stands for,
/// picoseconds, and its samples. Some hundred pairs where the histogram itself has 44,032 counters,
/// most of which are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(pub(super) Vec<(u64, u64)>);

impl Counters {
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    pub fn count(&self) -> u64 {
        self.iter().map(|(_, samples)| samples).sum()
    }
}

/// The shortest time of the counter at `index`: times below 2048 ps
/// have one each, and every later doubling has 1024.
fn shortest(index: u64) -> u64 {
    if index < 2048 { index } else { (index % 1024 + 1024) << (index / 1024 - 1) }
}

/// An encoded histogram of our shape, in plain form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Encoded {
    /// HdrHistogram V2, not compressed.
    pub(super) plain: Vec<u8>,
    /// What is in it.
    pub(super) counters: Counters,
}

impl Encoded {
    /// Takes the text apart as far as the plain form and checks every number in it.
    pub(super) fn inspect(text: &str) -> Result<Self, HistogramError> {
        if text.len() > LONGEST_TEXT {
            return Err(HistogramError::TooLarge { what: "bytes of text", claimed: text.len() as u64 });
        }
        let bytes = STANDARD.decode(text).map_err(|error| HistogramError::Base64(error.to_string()))?;
        let mut rest = bytes.as_slice();
        if take_u32(&mut rest)? != COMPRESSED {
            return Err(HistogramError::Encoding("it does not begin as a compressed HdrHistogram V2".into()));
        }
        let length = take_u32(&mut rest)? as usize;
        if length != rest.len() {
            return Err(HistogramError::Encoding(format!("{length} bytes announced, {} there", rest.len())));
        }
        let mut plain = Vec::new();
        // One byte more than can be right, so that a longer stream is seen without being unpacked.
        flate2::read::ZlibDecoder::new(rest)
            .take(LONGEST_PLAIN as u64 + 1)
            .read_to_end(&mut plain)
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        if plain.len() > LONGEST_PLAIN {
            return Err(HistogramError::TooLarge { what: "bytes unpacked", claimed: plain.len() as u64 });
        }
        let counters = check(&plain)?;
        Ok(Self { plain, counters })
    }
}

/// Checks the plain form and returns what is in it.
fn check(plain: &[u8]) -> Result<Counters, HistogramError> {
    let mut rest = plain;
    if take_u32(&mut rest)? != PLAIN {
        return Err(HistogramError::Encoding("what was compressed is no HdrHistogram V2".into()));
    }
    let length = take_u32(&mut rest)? as usize;
    let offset = take_u32(&mut rest)?;
    let digits = take_u32(&mut rest)?;
    let (lowest, highest) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
    let ratio = take_u64(&mut rest)?;
    if highest > LONGEST_PS {
        return Err(HistogramError::TooLarge { what: "ps as its highest value", claimed: highest });
    }
    let shape = (digits, lowest, highest, offset, ratio);
    if shape != (u32::from(DIGITS), SHORTEST_PS, LONGEST_PS, 0, 1_f64.to_bits()) {
        return Err(HistogramError::Encoding(format!(
            "{digits} significant digits from {lowest} to {highest} ps are not how this program keeps times"
        )));
    }
    if length != rest.len() {
        return Err(HistogramError::Encoding(format!("{length} bytes announced, {} there", rest.len())));
    }
    let (mut index, mut count, mut counters) = (0_u64, 0_u64, Vec::new());
    while !rest.is_empty() {
        let number = take_number(&mut rest)?;
        let (skipped, samples) = if number < 0 { (number.unsigned_abs(), 0) } else { (1, number as u64) };
        if samples > 0 && index < COUNTERS as u64 {
            counters.push((shortest(index), samples));
        }
        index = index.saturating_add(skipped);
        count = count.saturating_add(samples);
        if index > COUNTERS as u64 {
            return Err(HistogramError::TooLarge { what: "counters", claimed: index });
        }
        if count > MOST_SAMPLES {
            return Err(HistogramError::TooLarge { what: "samples", claimed: count });
        }
    }
    Ok(Counters(counters))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], HistogramError> {
    let (head, tail) =
        rest.split_first_chunk::<N>().ok_or_else(|| HistogramError::Encoding("it is cut".into()))?;
    *rest = tail;
    Ok(*head)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, HistogramError> {
    Ok(u32::from_be_bytes(take(rest)?))
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, HistogramError> {
    Ok(u64::from_be_bytes(take(rest)?))
}

/// A zig-zag LEB128 number: seven bits a byte, the ninth byte whole.
fn take_number(rest: &mut &[u8]) -> Result<i64, HistogramError> {
    let mut value = 0_u64;
    for byte_index in 0..9 {
        let [byte] = take(rest)?;
        if byte_index == 8 {
            value |= u64::from(byte) << 56;
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * byte_index);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::record::Histogram;

    /// A compressed histogram with this header and these counters.
    fn forge(length: u32, digits: u32, lowest: u64, highest: u64, counters: &[u8]) -> String {
        let mut plain = Vec::new();
        plain.extend(PLAIN.to_be_bytes());
        plain.extend(length.to_be_bytes());
        plain.extend(0_u32.to_be_bytes());
        plain.extend(digits.to_be_bytes());
        plain.extend(lowest.to_be_bytes());
        plain.extend(highest.to_be_bytes());
        plain.extend(1_f64.to_be_bytes());
        plain.extend(counters);
        compress(&plain)
    }

    fn compress(plain: &[u8]) -> String {
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(plain).unwrap();
        let packed = packed.finish().unwrap();
        let mut bytes = COMPRESSED.to_be_bytes().to_vec();
        bytes.extend((packed.len() as u32).to_be_bytes());
        bytes.extend(packed);
        STANDARD.encode(bytes)
    }

    fn refused(text: &str) -> HistogramError {
        let error = Encoded::inspect(text).unwrap_err();
        assert_eq!(
            Histogram::decode(text).unwrap_err(),
            error,
            "the decoder must refuse what the look refuses"
        );
        error
    }

    #[test]
    fn a_histogram_of_ours_is_let_through_with_its_count() {
        let mut histogram = Histogram::new();
        for ps in [1, 2047, 2048, 1_000_000, 1_000_001, LONGEST_PS, u64::MAX] {
            histogram.record(ps);
        }
        let extent = |histogram: &Histogram| {
            let counters = Encoded::inspect(&histogram.encode()).unwrap().counters;
            (counters.count(), counters.0.len())
        };
        // An hour and what is longer share a bucket, and so do the two around a microsecond.
        assert_eq!(extent(&histogram), (7, 5));
        assert_eq!(extent(&Histogram::new()), (0, 0));
    }

    #[test]
    fn a_histogram_that_claims_a_terabyte_is_refused_by_its_header() {
        assert!(matches!(
            refused(&forge(0, 3, 1, u64::MAX / 2, &[])),
            HistogramError::TooLarge { what: "ps as its highest value", .. }
        ));
        assert!(matches!(refused(&forge(0, 5, 1, LONGEST_PS, &[])), HistogramError::Encoding(_)));
        assert!(matches!(refused(&forge(u32::MAX, 3, 1, LONGEST_PS, &[])), HistogramError::Encoding(_)));
    }

    #[test]
    fn a_deflate_bomb_is_not_unpacked() {
        let bomb = compress(&vec![0; 4 << 20]);
        assert!(bomb.len() < LONGEST_TEXT, "a thousandfold compression makes it small: {}", bomb.len());
        assert!(matches!(refused(&bomb), HistogramError::TooLarge { what: "bytes unpacked", .. }));
    }

    #[test]
    fn counters_beyond_the_last_and_counts_beyond_counting_are_refused() {
        // 9 bytes of ones are the zig-zag form of the most negative
        // number, which has no positive counterpart.
        let most_negative = [0xff; 9];
        assert!(matches!(
            refused(&forge(9, 3, 1, LONGEST_PS, &most_negative)),
            HistogramError::TooLarge { what: "counters", .. }
        ));
        let greatest = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(
            refused(&forge(9, 3, 1, LONGEST_PS, &greatest)),
            HistogramError::TooLarge { what: "samples", .. }
        ));
        // A counter cut in its middle.
        assert!(matches!(refused(&forge(1, 3, 1, LONGEST_PS, &[0x80])), HistogramError::Encoding(_)));
    }

    #[test]
    fn text_that_is_no_histogram_is_refused_with_the_reason() {
        for text in ["", "????", "HISTFAAA", "AAAA", &"A".repeat(LONGEST_TEXT + 4)] {
            Encoded::inspect(text).unwrap_err();
        }
    }
}
