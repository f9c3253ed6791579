// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads result files that may be cut, foreign, newer or hostile.
//!
//! What comes out has been checked as a whole: every histogram decodes within 2 MB, percentiles
//! rise, CPU numbers are ones that a machine can have, and no text carries control characters.
//! Whatever a file claims, it costs at most some 100 bytes for each of its values (at most 8
//! million) beyond its own length, and whoever shows it whole at most 128 MB and 64 times its
//! length (`check.rs`); it is no longer than [`LONGEST`].

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::check::{Nonsense, check};
use super::result::SCHEMA_VERSION;
use super::{ResultFile, scan};

/// The longest file that is read, bytes. A record takes some 5 KB, so this holds 50 000.
pub const LONGEST: u64 = 256 << 20;

/// Why a file could not be read as a result; each message ends in what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {file}: {cause}")]
    System { file: String, cause: io::Error },
    /// Longer than any result.
    #[error("{file} is longer than {LONGEST} bytes, more than this program reads; was it meant?")]
    TooLong { file: String },
    /// More values than any result.
    #[error("{file} holds some {values} values, more than this program reads (8 million); was it meant?")]
    TooMany { file: String, values: usize },
    /// Ends in the middle.
    #[error(
        "{file} is cut: it ends after {bytes} bytes in the middle of the document; copy or measure it again"
    )]
    Cut { file: String, bytes: usize },
    /// Not written by this program.
    #[error("{file} is not a result of doorbell but {}; {}", .of.looks_like, .of.cure)]
    Foreign {
        file: String,
        /// What it seems to be.
        of: Foreign,
    },
    /// Written by a later version.
    #[error(
        "{file} has layout {version}, this program ({}) reads layout {SCHEMA_VERSION}; \
         read it with version {tool_version} of doorbell or a later one",
        env!("CARGO_PKG_VERSION")
    )]
    Newer { file: String, version: u64, tool_version: String },
    /// Written by an earlier version, in a layout that is no longer read.
    #[error(
        "{file} has layout {version}, which doorbell {tool_version} wrote and this program ({}) \
         does not read: it says nothing about what its subjects were nor what was asked; measure \
         again, or read it with that version",
        env!("CARGO_PKG_VERSION")
    )]
    Older { file: String, version: u64, tool_version: String },
    /// Not of the layout it claims.
    #[error(
        "{file} is damaged at line {line}, column {column}: {cause}; `doorbell schema` prints what \
         is expected"
    )]
    Malformed { file: String, line: usize, column: usize, cause: String },
    /// Of the right layout, with values that cannot be.
    #[error("{file} is damaged: {cause}; copy or measure it again")]
    Nonsense { file: String, cause: Nonsense },
}

/// What a file is that is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    pub looks_like: &'static str,
    pub cure: &'static str,
}

impl Foreign {
    const fn new(looks_like: &'static str) -> Self {
        Self { looks_like, cure: "`doorbell ping --output FILE` writes results" }
    }
}

const FIO: Foreign = Foreign {
    looks_like: "one of fio",
    cure: "`doorbell io --import FILE` reads it and writes a result that stands in the same tables",
};
/// One of hyperfine, whose times are of whole programs.
const HYPERFINE: Foreign = Foreign {
    looks_like: "one of hyperfine or a similar tool",
    cure: "it times whole programs, in runs that nothing is known of but their length, so that no \
        rule of a comparison here holds for it; compare such files with the tool that wrote them",
};
/// A log of HdrHistogram, which says neither the unit of its values nor what they are of.
const HDR_LOG: Foreign = Foreign {
    looks_like: "a log of HdrHistogram",
    cure: "it says neither the unit of its values nor what was measured or what interfered, so \
        that no comparison can be made of it; keep the result that `doorbell export hlog` made it \
        of",
};

/// What the first bytes of a file show, if they begin no JSON object.
fn begins(bytes: &[u8]) -> Option<Foreign> {
    let marks: [(&[u8], Foreign); 3] = [
        (b"\x1f", Foreign::new("compressed data (unpack it first)")),
        (b"#[", HDR_LOG),
        (b"\"StartTimestamp\"", HDR_LOG),
    ];
    let known = marks.into_iter().find(|(mark, _)| bytes.starts_with(mark));
    let fio =
        || bytes.windows(16).take(4096).any(|bytes| bytes.starts_with(b"\"fio version\"")).then_some(FIO);
    let marked = doorbell_files::MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
    marked
        .map(|(_, looks_like)| Foreign { looks_like, cure: "save it as UTF-8 without a byte-order mark" })
        .or(known.map(|(_, of)| of))
        .or_else(fio)
}

/// Reads the result file at `path`; `-` is standard input.
pub fn read(path: &Path) -> Result<ResultFile, ReadError> {
    read_bytes(bytes(path)?, &named(path))
}

/// What `path` is called in messages.
pub fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// What lies at `path`, if it is no longer than a result may be; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let file = named(path);
    if path.as_os_str() == "-" {
        return bounded(io::stdin().lock(), &file);
    }
    match doorbell_files::open(path) {
        Ok(open) => bounded(open, &file),
        Err(cause) => Err(ReadError::System { file, cause }),
    }
}

fn bounded(source: impl Read, file: &str) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|cause| ReadError::System { file: file.to_owned(), cause })?;
    if bytes.len() as u64 > LONGEST {
        return Err(ReadError::TooLong { file: file.to_owned() });
    }
    Ok(bytes)
}

/// The layout's version and its writer, whatever else there is.
#[derive(Deserialize)]
struct Preface {
    schema_version: Option<Value>,
    tool_version: Option<Value>,
    #[serde(rename = "fio version")]
    fio: Option<IgnoredAny>,
    benchmarks: Option<IgnoredAny>,
    results: Option<IgnoredAny>,
}

/// Reads a result out of `bytes`, called `file` in messages.
pub fn read_bytes(mut bytes: Vec<u8>, file: &str) -> Result<ResultFile, ReadError> {
    let named = || file.to_owned();
    let foreign = |of| ReadError::Foreign { file: named(), of };
    let length = bytes.len();
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(ReadError::Cut { file: named(), bytes: length }),
        Some(b'{') => {}
        Some(_) => {
            return Err(foreign(begins(&bytes).unwrap_or(Foreign::new("something else than a JSON object"))));
        }
    }
    let values = scan::scan(&mut bytes);
    if values > scan::MOST_VALUES {
        return Err(ReadError::TooMany { file: named(), values });
    }
    let broken = |error: serde_json::Error| {
        // A number that is cut counts as a fault of syntax, at the last byte.
        if error.is_eof() || (error.is_syntax() && last_position(&bytes) == (error.line(), error.column())) {
            return ReadError::Cut { file: named(), bytes: length };
        }
        let (line, column) = (error.line(), error.column());
        ReadError::Malformed { file: named(), line, column, cause: describe(&error) }
    };
    let preface: Preface = serde_json::from_slice(&bytes).map_err(broken)?;
    match preface.schema_version.as_ref().map(Value::as_u64) {
        Some(Some(version)) if version == u64::from(SCHEMA_VERSION) => {}
        Some(Some(version @ 1..)) => {
            let tool_version = preface.tool_version.as_ref().and_then(Value::as_str);
            let tool_version = tool_version.filter(|text| text.len() < 40).unwrap_or("(unnamed)").to_owned();
            let newer = version > u64::from(SCHEMA_VERSION);
            if newer && tool_version == env!("CARGO_PKG_VERSION") {
                return Err(foreign(Foreign {
                    looks_like: "JSON with a later `schema_version` than this version has, by \
                        which it says to be written",
                    cure: "read it with the build that wrote it, or measure again",
                }));
            }
            let file = named();
            return Err(if newer {
                ReadError::Newer { file, version, tool_version }
            } else {
                ReadError::Older { file, version, tool_version }
            });
        }
        _ if preface.fio.is_some() => return Err(foreign(FIO)),
        _ if preface.benchmarks.is_some() => return Err(foreign(Foreign::new("one of Google Benchmark"))),
        _ if preface.results.is_some() => return Err(foreign(HYPERFINE)),
        Some(_) => {
            return Err(foreign(Foreign::new("JSON with a `schema_version` that is no number of a layout")));
        }
        None => return Err(foreign(Foreign::new("JSON without a `schema_version`"))),
    }
    let result: ResultFile = serde_json::from_slice(&bytes).map_err(broken)?;
    check(&result).map_err(|cause| ReadError::Nonsense { file: named(), cause })?;
    Ok(result)
}

/// Line and column of the last byte, as the parser counts them.
fn last_position(bytes: &[u8]) -> (usize, usize) {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.enumerate().last().map_or((1, 0), |(index, line)| (index + 1, line.len()))
}

/// The error without its position, which the message has already, and
/// without a hostile file's whole text in it.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(cause, _)| cause);
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Histogram, Quantity, Series, sample, write};
    use super::*;
    use crate::anatomy::Anatomy;
    use crate::anatomy::program::{Cost, LONGEST_NS, Program, Sequence};

    fn written() -> String {
        let configurations = [sample::configuration("futex"), sample::configuration("spin")];
        write::to_json(&sample::result(&configurations, 2, |_, _| 16_000.0))
    }

    fn refused(text: impl Into<Vec<u8>>) -> ReadError {
        read_bytes(text.into(), "x.json").unwrap_err()
    }

    /// The text with one value replaced, by the path of its keys.
    fn with(path: &str, value: serde_json::Value) -> String {
        let mut document: serde_json::Value = serde_json::from_str(&written()).unwrap();
        *document.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
        document.to_string()
    }

    #[test]
    fn what_was_written_is_read_the_same() {
        let result =
            sample::result(&[sample::configuration("futex")], 3, |_, block| 16_000.0 + f64::from(block));
        assert_eq!(read_bytes(write::to_json(&result).into_bytes(), "x.json").unwrap(), result);
    }

    /// A histogram with one sample in every bucket shrinks to some
    /// hundred letters, and was 700 KB to whoever showed it.
    #[test]
    fn histograms_that_unfold_to_far_more_than_their_text_are_refused_together() {
        let dense = Series::from(&Histogram::every_bucket());
        let mut result = sample::result(&[sample::configuration("futex")], 16, |_, _| 16_000.0);
        for record in &mut result.records {
            record.series = Quantity::ALL.into_iter().map(|quantity| (quantity, dense.clone())).collect();
        }
        let text = write::to_json(&result);
        let error = refused(text);
        assert!(matches!(error, ReadError::Nonsense { cause: Nonsense::TooDense { .. }, .. }), "{error}");
        // A few of them are only odd.
        result.records.truncate(2);
        read_bytes(write::to_json(&result).into_bytes(), "x.json").unwrap();
    }

    #[test]
    fn real_histograms_stay_far_from_that_bound() {
        // The least that a bucket takes: samples so few and so scattered that each has a bucket to itself.
        let mut random = fastrand::Rng::with_seed(1);
        let mut histogram = Histogram::new();
        for _ in 0..20_000 {
            histogram.record((1e6 * (random.f64() * 9.0).exp()) as u64);
        }
        let text = histogram.encode();
        let occupied = Histogram::counters_of(&text).unwrap().iter().count() as u64;
        assert!(occupied < 2 * text.len() as u64, "{occupied} buckets in {} bytes", text.len());
    }

    #[test]
    fn a_file_cut_anywhere_is_called_cut() {
        let text = written();
        let end = text.trim_end().len();
        for length in (0..end).step_by(97).chain([end - 1]) {
            let error = refused(&text.as_bytes()[..length]);
            assert!(matches!(error, ReadError::Cut { bytes, .. } if bytes == length), "{length}: {error}");
        }
    }

    #[test]
    fn results_of_other_tools_are_called_by_their_names() {
        for (text, who) in [
            (r#"{"fio version": "fio-3.33", "jobs": []}"#, "fio"),
            (r#"{"context": {}, "benchmarks": []}"#, "Google Benchmark"),
            (r#"{"results": [{"command": "true"}]}"#, "hyperfine"),
            (r#"{"a": 1}"#, "without a `schema_version`"),
            (r#"{"schema_version": "1"}"#, "no number of a layout"),
            (r#"{"schema_version": 0}"#, "no number of a layout"),
            (r#"{"schema_version": -1}"#, "no number of a layout"),
            (
                concat!(r#"{"schema_version": 99, "tool_version": ""#, env!("CARGO_PKG_VERSION"), "\"}"),
                "the build that wrote it",
            ),
            ("[1, 2]", "something else"),
            ("\u{1f}\u{8b}", "compressed"),
            ("# HELP", "something else"),
        ] {
            let message = refused(text).to_string();
            assert!(message.contains(who) && message.contains("not a result of doorbell"), "{message}");
        }
    }

    #[test]
    fn another_layout_is_refused_with_the_version_that_reads_it() {
        for (text, told) in [
            (
                r#"{"schema_version": 7, "tool_version": "9.1.0", "who": {"knows": ["what"]}}"#,
                ["layout 7", "9.1.0"],
            ),
            (
                r#"{"schema_version": 1, "tool_version": "0.1.0", "records": []}"#,
                ["layout 1", "measure again"],
            ),
        ] {
            let message = refused(text).to_string();
            assert!(told.iter().all(|told| message.contains(told)), "{message}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_found_by_line_and_column() {
        let text = written().replacen("\"block\":0", "\"block\":\"zero\"", 1);
        let ReadError::Malformed { line: 1, column: 2.., cause, .. } = refused(text) else { panic!() };
        assert!(cause.contains("zero"), "{cause}");
    }

    #[test]
    fn numbers_that_json_or_a_machine_cannot_have_are_refused() {
        let p50 = "/records/0/series/round-trip/p50_ns";
        for text in [
            written().replacen("\"p50_ns\":", "\"p50_ns\":NaN,\"was\":", 1),
            written().replacen("\"p50_ns\":", "\"p50_ns\":1e999,\"was\":", 1),
            with(p50, serde_json::Value::Null),
            with(p50, (-1).into()),
            with(p50, 1e300.into()),
            with("/records/0/series/round-trip/count", 5.into()),
            with("/records/0/tally/sent", u64::MAX.into()),
            with("/records/0/configuration/placement/cpus", serde_json::json!([0, 4_000_000_000_u32])),
            with("/records/0/block", 4_000_000_000_u32.into()),
            with("/records/1/sides/0/user_ns", u64::MAX.into()),
            written().replacen("\"window_ns\":", "\"call_ns\":-1,\"window_ns\":", 1),
            written().replacen("\"window_ns\":", "\"call_ns\":1e300,\"window_ns\":", 1),
            with("/records/0/series/round-trip/stdev_ns", (-3.5).into()),
            // Summaries of other histograms than their own.
            with("/records/0/series/round-trip/min_ns", 1.into()),
            with("/records/0/series/round-trip/max_ns", 1e12.into()),
            with("/records/0/series/round-trip/mean_ns", 1e12.into()),
            with("/records/0/environment/foreign_share", (-1e308).into()),
            with("/records/0/environment/foreign_share", 1e9.into()),
            with("/finished_at_unix_ns", 1.into()),
        ] {
            let error = refused(text);
            assert!(matches!(error, ReadError::Malformed { .. } | ReadError::Nonsense { .. }), "{error}");
        }
    }

    /// A result of a recorded program.
    fn read_again(program: Program) -> Result<ResultFile, ReadError> {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.records[0].environment.wall_ns = program.recorded_ns;
        result.records[0].anatomy = Some(Anatomy { program: Some(program), ..Anatomy::default() });
        read_bytes(write::to_json(&result).into(), "x.json")
    }

    #[test]
    fn a_wake_graph_that_contradicts_itself_is_refused() {
        let sequence = |edge: Vec<u32>, slept_ns: u64| Sequence {
            slept_ns: vec![slept_ns],
            took_ns: vec![1],
            awake_ns: vec![1],
            edge,
            ..Sequence::default()
        };
        let of = |sequence| Program { sequences: vec![sequence], ..Program::default() };
        assert!(read_again(of(sequence(vec![0], 1))).is_ok(), "a wake-up by an edge that is not in the list");
        let cost = Cost { call_ns: -1.0, ..Cost::default() };
        for program in [
            of(sequence(vec![0, 0], 1)),
            of(sequence(vec![1], 1)),
            of(sequence(vec![0], u64::MAX)),
            Program { wakes: u64::MAX, ..Program::default() },
            Program { cost, ..Program::default() },
        ] {
            let error = read_again(program).unwrap_err();
            assert!(matches!(error, ReadError::Nonsense { .. }), "{error}");
        }
    }

    #[test]
    fn a_recording_of_days_is_read_again() {
        let read = |ns: u64| {
            let times = || vec![ns];
            let sequence = Sequence {
                edge: vec![0],
                slept_ns: times(),
                took_ns: times(),
                awake_ns: times(),
                waker_ran_ns: vec![Some(ns)],
                ..Sequence::default()
            };
            read_again(Program { recorded_ns: ns, sequences: vec![sequence], ..Program::default() })
        };
        let days = 7 * 24 * 60 * 60 * 1_000_000_000;
        read(days).unwrap();
        assert!(matches!(read(LONGEST_NS), Err(ReadError::Nonsense { .. })));
    }

    #[test]
    fn a_hostile_histogram_is_named_with_its_record() {
        let error = refused(with("/records/1/series/wake/histogram", "HISTFAAAAAEA".into()));
        assert!(error.to_string().contains("record 1: Wake"), "{error}");
    }

    #[test]
    fn nesting_without_end_and_values_without_number_are_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for around in [
            format!("{{\"schema_version\":{deep}}}"),
            format!("{{\"schema_version\":2,\"machine\":{deep}}}"),
            written().replacen("\"warnings\":[]", &format!("\"warnings\":{deep}"), 1),
        ] {
            assert!(matches!(refused(around), ReadError::Malformed { .. }));
        }
        assert!(matches!(refused(format!("{{\"a\":{deep}}}")), ReadError::Foreign { .. }));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(scan::MOST_VALUES));
        assert!(matches!(refused(many), ReadError::TooMany { .. }));
    }

    #[test]
    fn an_endless_stream_is_given_up_at_the_limit() {
        struct Spaces;
        impl Read for Spaces {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b' ');
                Ok(buffer.len())
            }
        }
        assert!(matches!(bounded(Spaces, "-").unwrap_err(), ReadError::TooLong { .. }));
    }

    #[test]
    fn an_escape_sequence_in_a_name_does_not_reach_the_terminal() {
        let text = with("/name", "\u{1b}]0;owned\u{7}".into());
        let name = read_bytes(text.into(), "x.json").unwrap().name.unwrap();
        assert!(!name.contains(char::is_control), "{name:?}");
    }

    #[test]
    fn a_file_that_is_not_there_and_a_folder_are_errors_of_the_system() {
        for path in ["/nonexistent/x.json", "/"] {
            let error = read(Path::new(path)).unwrap_err();
            assert!(matches!(error, ReadError::System { .. }) && error.to_string().contains(path), "{error}");
        }
    }
}
