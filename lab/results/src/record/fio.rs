// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of fio (`--output-format=json+`, or `json`, which has percentiles alone), as records
//! that stand beside this program's own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::rank::rank;
use super::subject::Subject;
use super::{
    Environment, Histogram, Outcome, Quantity, Record, Series, SideCounters, Tally, Warning, warning,
};
use crate::configuration::{Configuration, Direction, Pattern, Target, Until};

/// Why a file is no result of fio that can stand in a table here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    #[error("no result of fio (--output-format=json+ or json): {0}")]
    Shape(String),
    /// No job has what is needed.
    #[error("job '{job}': {reason}")]
    Job { job: String, reason: String },
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
    min: f64,
    #[serde(default)]
    max: f64,
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    stddev: f64,
    #[serde(rename = "N", default)]
    count: u64,
    /// Nanoseconds that so many in a hundred samples do not exceed.
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
    /// Samples by the middle of their bucket, nanoseconds.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// The records in a result of fio; each is of block `block`.
pub fn records(text: &str, block: u32) -> Result<Vec<Record>, FioError> {
    // fio writes what it wants to say before the document, which begins a line.
    let begins = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|end| end + 1) };
    let json = begins.map_or("", |start| &text[start..]);
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
    let engine = option("ioengine").unwrap_or("psync");
    for name in ["iodepth", "numjobs"] {
        // An engine that waits in its call has one transfer under way, whatever was asked for.
        let told = name == "iodepth" && ONE_AT_A_TIME.contains(&engine);
        if let Some(value) = option(name).filter(|value| *value != "1" && !told) {
            return Err(refuse(format!(
                "{name} is {value}; only transfers one at a time stand beside transfers one at a time"
            )));
        }
    }
    let all = [
        (&stream.lat_ns, "from submission to completion"),
        (&stream.clat_ns, "from submission's end to completion"),
    ];
    let binned = all.into_iter().find(|(latency, _)| !latency.bins.is_empty());
    let known = binned.or_else(|| all.into_iter().find(|(latency, _)| !latency.percentile.is_empty()));
    let Some((latency, what)) = known else {
        return Err(refuse(
            "it has neither bins nor percentiles; run fio with --output-format=json+".to_owned(),
        ));
    };
    let series = series(latency).map_err(refuse)?;
    let size = option("bs").or(option("blocksize")).map_or(Some(4096), bytes);
    let size = size.ok_or_else(|| refuse("its size of block is no single number".to_owned()))?;
    let direct = on("direct");
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
    let imported = warning::IMPORTED.warning(
        format!("job '{}' was measured by {}, {what}{left_out}", job.jobname, document.version),
        "nothing here proves that its transfers went to the device, or that what it calls polled was",
        "hold it against an engine of this program on the same file: rivals/io/compare",
    );
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
        series: [(Quantity::Transfer, series)].into(),
        figures: Vec::new(),
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
        warnings: percentiles_alone(latency).into_iter().chain([imported]).collect(),
    })
}

/// Engines that wait for each transfer in the call that begins it.
const ONE_AT_A_TIME: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// The times of `latency`: every bin, else what its percentiles leave known.
fn series(latency: &Latency) -> Result<Series, String> {
    let mut histogram = Histogram::new();
    if !latency.bins.is_empty() {
        for (ns, count) in &latency.bins {
            let ns: u64 = ns.parse().map_err(|_| format!("'{ns}' is no number of nanoseconds"))?;
            histogram.record_many(ns.saturating_mul(1000), *count);
        }
        return Ok(Series::from(&histogram));
    }
    let mut known = Vec::new();
    for (percentile, ns) in &latency.percentile {
        let share =
            format!("{percentile}e-2").parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        let share = share.ok_or_else(|| format!("'{percentile}' is no percentile"))?;
        known.push((rank(share, latency.count), ns.saturating_mul(1000)));
    }
    known.sort_unstable();
    let ps = |ns: f64| (ns.clamp(0.0, 1e15) * 1e3) as u64;
    let (min, max) = (ps(latency.min), ps(latency.max));
    histogram.record_many(min, u64::from(latency.count > 1));
    let mut told = histogram.count();
    for (rank, time) in known {
        // No time is told to be less than it was.
        histogram.record_many(time.clamp(min, max.max(min)), rank.saturating_sub(told));
        told = told.max(rank);
    }
    histogram.record_many(max, latency.count.saturating_sub(told));
    let series = Series::from(&histogram);
    // These fio has counted itself.
    let counted = |own: f64, told: f64| if told.is_finite() && told >= 0.0 { told } else { own };
    Ok(Series {
        mean_ns: counted(series.mean_ns, latency.mean),
        stdev_ns: counted(series.stdev_ns, latency.stddev),
        ..series
    })
}

fn percentiles_alone(latency: &Latency) -> Option<Warning> {
    let cause = format!("fio wrote {} percentiles and no bins", latency.percentile.len());
    let effect = "a time between two of them counts as the longer one: other percentiles, charts \
        and comparisons are coarse";
    let cure = "run fio with --output-format=json+";
    latency.bins.is_empty().then(|| warning::IMPORTED.warning(cause, effect, cure))
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
        assert!(
            refusal(r#""ioengine" : "io_uring""#, r#""iodepth" : "8", "ioengine" : "io_uring""#)
                .contains("iodepth is 8")
        );
        assert!(refusal(r#""error" : 0"#, r#""error" : 5"#).contains("error 5"));
        assert!(refusal(r#""total_ios" : 1000"#, r#""total_ios" : 0"#).contains("no job"));
        assert!(refusal(r#""80384" :"#, r#""soon" :"#).contains("'soon' is no number"));
        for nothing in ["", "fio: error", "{}", "[]", "{\"jobs\": 3}", "{\"fio version\":\"x\",\"jobs\":[]}"]
        {
            assert!(records(nothing, 0).is_err(), "{nothing}");
        }
    }

    /// What fio 3.33 wrote, with a warning of its before, told to
    /// have four transfers under way by an engine that has one.
    const PERCENTILES: &str = include_str!("fio-percentiles.json");

    #[test]
    fn percentiles_without_bins_are_read_as_far_as_they_go_and_said_to_be_no_more() {
        assert!(PERCENTILES.starts_with("note: "));
        let record = &records(PERCENTILES, 0).unwrap()[0];
        let times = &record.series[&Quantity::Transfer];
        let near =
            |found: f64, told: f64| assert!((found / told - 1.0).abs() < 0.002, "{found} is not {told}");
        assert_eq!(times.count, 13_426);
        near(times.min_ns, 23_425.0);
        near(times.p50_ns, 39_680.0);
        near(times.max_ns, 10_544_811.0);
        assert_eq!((times.mean_ns, times.stdev_ns), (73_491.684_716, 346_649.088_690));
        let text: serde_json::Value =
            serde_json::from_str(&PERCENTILES[PERCENTILES.find("\n{").unwrap()..]).unwrap();
        let told = text["jobs"][0]["read"]["clat_ns"]["percentile"].as_object().unwrap();
        for (percentile, ns) in told {
            let share = format!("{percentile}e-2").parse().unwrap();
            near(times.decode().unwrap().quantile(share) as f64 / 1e3, ns.as_f64().unwrap());
        }
        let warned = record.warnings.iter().any(|warning| warning.cause.contains("percentiles and no bins"));
        assert!(warned, "{:?}", record.warnings);
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
