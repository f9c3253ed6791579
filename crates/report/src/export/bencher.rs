// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bencher's own JSON (Bencher Metric Format): measures by the names of benchmarks.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::trend::points;
use crate::export::Export;
use crate::figures::supports;
use doorbell_results::record::ResultFile;
use doorbell_results::written::pretty_json;

/// The measure `latency`, which Bencher knows as nanoseconds, and `p99`.
#[derive(Debug, Clone, Copy)]
pub struct Bencher;

impl Export for Bencher {
    fn name(&self) -> &'static str {
        "bencher"
    }

    fn about(&self) -> &'static str {
        "Bencher Metric Format: the median of each configuration as latency, with its blocks' spread, and p99"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        let mut benchmarks = Map::new();
        for point in points(result) {
            let mut latency = json!({"value": point.p50_ns()});
            if let Some([low, high]) = point.spread_ns() {
                latency["lower_value"] = low.into();
                latency["upper_value"] = high.into();
            }
            let mut measures = json!({"latency": latency});
            if supports(point.times.count, 0.99) {
                measures["p99"] = json!({"value": point.times.quantile(0.99) as f64 / 1e3});
            }
            benchmarks.insert(point.name(), measures);
        }
        writeln!(out, "{}", pretty_json(&Value::Object(benchmarks))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn each_configuration_has_its_median_between_those_of_its_blocks() {
        let configurations = [sample::configuration("futex"), sample::configuration("eventfd")];
        let mut text = Vec::new();
        let result = sample::result(&configurations, 3, |_, block| 16_000.0 + f64::from(block) * 100.0);
        Bencher.export(&result, &mut text).unwrap();
        let benchmarks: Map<String, Value> = serde_json::from_slice(&text).unwrap();
        assert_eq!(benchmarks.len(), 2);
        for (name, measures) in &benchmarks {
            let [low, value, high] =
                ["lower_value", "value", "upper_value"].map(|key| measures["latency"][key].as_f64().unwrap());
            assert!(low <= value && value <= high && low < high, "{name}: {measures}");
            assert!(measures["p99"]["value"].as_f64().unwrap() >= value, "{name}: {measures}");
        }
    }
}
