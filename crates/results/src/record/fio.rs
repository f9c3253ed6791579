// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of fio (`--output-format=json+`), as records that stand beside this program's own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::series::Quantity;
use super::subject::Subject;
use super::{Environment, Histogram, Outcome, Record, Series, SideCounters, Tally, Warning, warning};
use crate::configuration::{Configuration, Direction, Pattern, Target, Until};

/// Why a file is no result of fio that can stand in a table here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    /// Not fio's JSON.
    #[error("no result of fio (--output-format=json+): {0}")]
    Shape(String),
    /// No job has what is needed.
    #[error("job '{job}': {reason}")]
    Job {
        /// Its name.
        job: String,
        /// What does not fit.
        reason: String,
    },
    /// No jobs.
    #[error("the file has no job that transferred anything")]
    Nothing,
}

type Options = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(rename = "global options", default)]
    options: Options,
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    jobname: String,
    #[serde(rename = "job options", default)]
    options: Options,
    #[serde(default)]
    error: i64,
    read: Stream,
    write: Stream,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    #[serde(default)]
    ctx: u64,
    #[serde(default)]
    majf: u64,
    #[serde(default)]
    minf: u64,
}

#[derive(Debug, Deserialize)]
struct Stream {
    #[serde(default)]
    total_ios: u64,
    /// Milliseconds.
    #[serde(default)]
    runtime: f64,
    #[serde(default)]
    slat_ns: Latency,
    #[serde(default)]
    clat_ns: Latency,
    #[serde(default)]
    lat_ns: Latency,
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    /// Samples by the middle of their bucket, nanoseconds.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// The records in a result of fio; each is of block `block`.
pub fn records(text: &str, block: u32) -> Result<Vec<Record>, FioError> {
    // fio writes what it wants to say before the document.
    let json = text.find('{').map_or("", |start| &text[start..]);
    let mut documents = serde_json::Deserializer::from_str(json).into_iter::<Document>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => return Err(FioError::Shape(error.to_string())),
        None => return Err(FioError::Shape("there is no JSON object in it".to_owned())),
    };
    let mut records = Vec::new();
    for job in &document.jobs {
        for (direction, stream) in [(Direction::Read, &job.read), (Direction::Write, &job.write)] {
            if stream.total_ios > 0 {
                records.push(record(&document, job, direction, stream, block)?);
            }
        }
    }
    if records.is_empty() { Err(FioError::Nothing) } else { Ok(records) }
}

fn record(
    document: &Document,
    job: &Job,
    direction: Direction,
    stream: &Stream,
    block: u32,
) -> Result<Record, FioError> {
    let refuse = |reason: String| FioError::Job { job: job.jobname.clone(), reason };
    let option = |name: &str| job.options.get(name).or(document.options.get(name)).map(String::as_str);
    // An option without a value is on.
    let on = |name: &str| option(name).is_some_and(|value| value != "0");
    if job.error != 0 {
        return Err(refuse(format!("fio ended it with error {}", job.error)));
    }
    for name in ["iodepth", "numjobs"] {
        if let Some(value) = option(name).filter(|value| *value != "1") {
            return Err(refuse(format!(
                "{name} is {value}; only transfers one at a time stand beside transfers one at a time"
            )));
        }
    }
    let (bins, what) = if stream.lat_ns.bins.is_empty() {
        (&stream.clat_ns.bins, "from submission's end to completion")
    } else {
        (&stream.lat_ns.bins, "from submission to completion")
    };
    if bins.is_empty() {
        return Err(refuse("it has no bins; run fio with --output-format=json+".to_owned()));
    }
    let mut histogram = Histogram::new();
    for (ns, count) in bins {
        let ns: u64 = ns.parse().map_err(|_| refuse(format!("'{ns}' is no number of nanoseconds")))?;
        histogram.record_many(ns.saturating_mul(1000), *count);
    }
    let size = option("bs").or(option("blocksize")).map_or(Some(4096), bytes);
    let size = size.ok_or_else(|| refuse("its size of block is no single number".to_owned()))?;
    let direct = on("direct");
    let engine = option("ioengine").unwrap_or("psync");
    let mut subject = format!("fio {engine}");
    for flag in ["hipri", "sqthread_poll"] {
        if on(flag) {
            subject.push_str(&format!(" {flag}"));
        }
    }
    if option("rw").or(option("readwrite")).is_some_and(|rw| !rw.starts_with("rand")) {
        subject.push_str(" in order");
    }
    let runtime_ns = (stream.runtime * 1e6).clamp(0.0, 1e15);
    let window_ns = runtime_ns as u64;
    let share = |percent: f64| (runtime_ns * (percent / 100.0).clamp(0.0, 1000.0)) as u64;
    let submission = stream.slat_ns.mean;
    let left_out = if what.contains("end") && submission > 0.0 {
        format!("; submission, {submission:.0} ns in the mean, is not in these times")
    } else {
        String::new()
    };
    Ok(Record {
        configuration: Configuration {
            size,
            target: option("filename").map(target),
            ..Configuration::new(
                subject,
                Pattern::Io { direction, direct },
                Until::time(Duration::from_nanos(window_ns)),
            )
        },
        subject: Subject::Unknown,
        block,
        attempts: 1,
        outcome: Outcome::Done,
        series: [(Quantity::Transfer, Series::from(&histogram))].into(),
        figures: Vec::new(),
        reference: None,
        work: None,
        slices: Vec::new(),
        anatomy: None,
        fanout: None,
        io: None,
        tally: Tally { sent: stream.total_ios, seen: stream.total_ios, ..Tally::default() },
        sides: vec![SideCounters {
            side: "fio".to_owned(),
            voluntary_switches: job.ctx,
            major_faults: job.majf,
            minor_faults: job.minf,
            user_ns: share(job.usr_cpu),
            system_ns: share(job.sys_cpu),
            window_ns,
            ..SideCounters::default()
        }],
        load: None,
        environment: Environment { wall_ns: window_ns, ..Environment::default() },
        warnings: vec![Warning {
            name: warning::IMPORTED.name.to_owned(),
            cause: format!("job '{}' was measured by {}, {what}{left_out}", job.jobname, document.version),
            effect:
                "nothing here proves that its transfers went to the device, or that what it calls polled was"
                    .to_owned(),
            cure: "hold it against an engine of this program on the same file: rivals/io/compare".to_owned(),
        }],
    })
}

fn target(path: &str) -> Target {
    let path = PathBuf::from(path);
    if path.starts_with("/dev") {
        Target::Device { path, consent: None, passes: 0 }
    } else {
        Target::File { path }
    }
}

/// fio's way to write bytes: `4k` is 4096.
fn bytes(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let lower = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, shift) = match lower.as_bytes().last()? {
        b'k' => (&lower[..lower.len() - 1], 10),
        b'm' => (&lower[..lower.len() - 1], 20),
        _ => (lower, 0),
    };
    digits.parse::<u32>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.33 wrote for a second of random reads of a file, shortened.
    pub(crate) const FIO: &str = r#"fio: a line that fio says first
{
  "fio version" : "fio-3.33",
  "global options" : {"direct" : "1", "bs" : "4k", "filename" : "/root/file"},
  "jobs" : [ {
    "jobname" : "plain", "error" : 0, "elapsed" : 2,
    "job options" : {"name" : "plain", "rw" : "randread", "ioengine" : "io_uring", "hipri" : ""},
    "read" : {"io_bytes" : 4096000, "total_ios" : 1000, "runtime" : 100,
      "slat_ns" : {"min" : 0, "mean" : 2100.5, "N" : 1000},
      "clat_ns" : {"min" : 80000, "mean" : 90000.0, "N" : 1000, "bins" : {"80384" : 900, "120320" : 90, "329728" : 10}},
      "lat_ns" : {"min" : 0, "mean" : 92100.0, "N" : 1000}},
    "write" : {"total_ios" : 0, "runtime" : 0, "clat_ns" : {"mean" : 0.0}},
    "job_runtime" : 100, "usr_cpu" : 2.5, "sys_cpu" : 7.5, "ctx" : 1003, "majf" : 0, "minf" : 12
  } ]
}
"#;

    #[test]
    fn a_job_of_fio_becomes_a_record_with_its_samples_and_its_cpu_time() {
        let records = records(FIO, 3).unwrap();
        let [record] = &records[..] else { panic!("{}", records.len()) };
        assert_eq!(
            (record.configuration.subject.as_str(), record.configuration.size, record.block),
            ("fio io_uring hipri", 4096, 3)
        );
        assert_eq!(record.configuration.pattern, Pattern::Io { direction: Direction::Read, direct: true });
        let times = &record.series[&Quantity::Transfer];
        assert_eq!(times.count, 1000);
        assert!((times.p50_ns / 80_384.0 - 1.0).abs() < 0.001, "{}", times.p50_ns);
        assert!((times.p99_ns / 120_320.0 - 1.0).abs() < 0.001, "{}", times.p99_ns);
        assert_eq!(record.sides[0].user_ns + record.sides[0].system_ns, 10_000_000);
        assert!(
            record.warnings[0].cause.contains("submission, 2100 ns in the mean"),
            "{}",
            record.warnings[0].cause
        );
    }

    #[test]
    fn times_with_submission_are_preferred() {
        let text = FIO
            .replace(r#""mean" : 92100.0, "N" : 1000}"#, r#""mean" : 92100.0, "bins" : {"82432" : 1000}}"#);
        let record = &records(&text, 0).unwrap()[0];
        assert!((record.series[&Quantity::Transfer].p50_ns / 82_432.0 - 1.0).abs() < 0.001);
        assert!(!record.warnings[0].cause.contains("submission's end"));
    }

    #[test]
    fn what_does_not_compare_is_refused_by_name() {
        let refusal = |from: &str, to: &str| records(&FIO.replace(from, to), 0).unwrap_err().to_string();
        assert!(refusal(r#""bs" : "4k""#, r#""iodepth" : "32""#).contains("iodepth is 32"));
        assert!(
            refusal(r#""bins" : {"80384" : 900, "120320" : 90, "329728" : 10}"#, r#""N" : 1"#)
                .contains("json+")
        );
        assert!(refusal(r#""error" : 0"#, r#""error" : 5"#).contains("error 5"));
        assert!(refusal(r#""total_ios" : 1000"#, r#""total_ios" : 0"#).contains("no job"));
        assert!(refusal(r#""80384" :"#, r#""soon" :"#).contains("'soon' is no number"));
        for nothing in ["", "fio: error", "{}", "[]", "{\"jobs\": 3}", "{\"fio version\":\"x\",\"jobs\":[]}"]
        {
            assert!(records(nothing, 0).is_err(), "{nothing}");
        }
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(position in 0..FIO.len(), letter in "[0-9a-z{}\":,.-]") {
            if FIO.is_char_boundary(position) && FIO.is_char_boundary(position + 1) {
                let mut text = FIO.to_owned();
                text.replace_range(position..=position, &letter);
                let _ = records(&text, 0);
            }
        }
    }
}
