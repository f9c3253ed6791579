// SPDX-License-Identifier: MIT OR Apache-2.0
//! HdrHistogram's interval log (V2): every trial's histogram, lossless, as an interval with a tag.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};

use crate::axis::{self, Axis};
use crate::export::Format;
use crate::figures::Figures;
use doorbell_results::configuration::Configuration;
use doorbell_results::record::{Outcome, ResultFile};
use doorbell_results::written::inert;

pub const HDR_LOG: Format = Format {
    name: "hlog",
    about: "HdrHistogram's interval log, V2: one tagged interval per trial and quantity, lossless, in \
         picoseconds",
    export: log,
};

fn log(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let figures = Figures::of(result);
    let configurations: Vec<&Configuration> = figures.rows.iter().map(|row| row.configuration()).collect();
    let axes = axis::varying(configurations.iter().copied());
    let start = moment(result.started_at_unix_ns);
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[doorbell: values in picoseconds; the column of maxima in microseconds]")
        .with_start_time(start)
        .with_base_time(start)
        // 1e6 picoseconds to a microsecond.
        .with_max_value_divisor(1e6);
    let mut out = out;
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    // In the order of execution: readers expect rising start times.
    for record in
        result.records.iter().filter(|record| matches!(record.outcome, Outcome::Done | Outcome::Partial))
    {
        let began = record.environment.started_at_unix_ns.saturating_sub(result.started_at_unix_ns);
        let lasted = Duration::from_nanos(record.environment.wall_ns);
        for (quantity, series) in &record.series {
            let Ok(histogram) = series.decode() else { continue };
            let mut tag = tag(&record.configuration, &axes, quantity.name());
            if let Some(mark) = result.mark() {
                tag.push_str(&format!(".{mark}"));
            }
            log.write_histogram(histogram.inner(), Duration::from_nanos(began), lasted, Tag::new(&tag))
                .map_err(|error| match error {
                    // As it is: a reader that leaves is not to be complained about.
                    IntervalLogWriterError::IoError(error) => error,
                    IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
                })?;
        }
    }
    Ok(())
}

fn moment(unix_ns: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(unix_ns)
}

/// What tells the configuration and the quantity from others, in the letters a tag may have: no
/// comma, no blank, no line end.
fn tag(configuration: &Configuration, axes: &[Axis], quantity: &str) -> String {
    let parts = axes.iter().map(|axis| axis.value(configuration)).filter(|value| !value.is_empty());
    let text = inert(&parts.chain([quantity.to_owned()]).collect::<Vec<_>>().join("."));
    text.chars().map(|letter| if letter.is_ascii_graphic() && letter != ',' { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use doorbell_results::record::sample;
    use doorbell_results::record::series::Quantity;

    #[test]
    fn every_trial_is_an_interval_from_which_its_histogram_comes_back() {
        let configurations = [sample::configuration("futex"), sample::configuration("eventfd")];
        let result = sample::result(&configurations, 3, |_, _| 16_000.0);
        let mut text = Vec::new();
        log(&result, &mut text).unwrap();
        let mut tags = Vec::new();
        let mut last = Duration::ZERO;
        for entry in IntervalLogIterator::new(&text) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                tags.push(interval.tag().unwrap().as_str().to_owned());
                assert!(interval.start_timestamp() >= last);
                last = interval.start_timestamp();
                let back = doorbell_results::record::Histogram::decode(interval.encoded_histogram()).unwrap();
                assert_eq!(back.count(), 1000);
            }
        }
        assert_eq!(tags.len(), 2 * 3 * 3);
        assert!(tags.contains(&format!("futex.{}", Quantity::RoundTrip.name())), "{tags:?}");
    }

    /// `doorbell export hlog FILE | head` once ended in a complaint about the broken pipe.
    #[test]
    fn a_reader_that_leaves_is_told_by_the_kind_of_the_error() {
        struct Gone(usize);
        impl Write for Gone {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let result = sample::result(&[sample::configuration("futex")], 3, |_, _| 16_000.0);
        for writes in 0..40 {
            let error = log(&result, &mut Gone(writes)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "after {writes} writes: {error}");
        }
    }

    #[test]
    fn a_tag_never_breaks_the_line_it_stands_in() {
        let mut configuration = sample::configuration("a, b\nc\u{1f}µ");
        configuration.placement.cpus = Some([0, 1]);
        assert_eq!(tag(&configuration, &[Axis::Subject, Axis::Cpus], "wake"), "a--b-c\\u{1f}-.0-1.wake");
    }
}
