// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the action github-action-benchmark reads as `customSmallerIsBetter`.

use std::io::{self, Write};

use serde_json::json;

use super::trend::points;
use crate::export::Export;
use doorbell_results::record::ResultFile;
use doorbell_results::written::pretty_json;

/// One entry a configuration.
#[derive(Debug, Clone, Copy)]
pub struct GithubBenchmark;

impl Export for GithubBenchmark {
    fn name(&self) -> &'static str {
        "github-benchmark"
    }

    fn about(&self) -> &'static str {
        "github-action-benchmark's customSmallerIsBetter: the median of each configuration in nanoseconds, with its blocks' spread"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        let entry = |point: &super::trend::Point| {
            let mut entry = json!({
                "name": format!("{} p50", point.name()),
                "unit": "ns",
                "value": point.p50_ns(),
                "extra": format!("{} samples", point.times.count),
            });
            if let Some([low, high]) = point.spread_ns() {
                entry["range"] = format!("{low} to {high}").into();
            }
            entry
        };
        let entries: Vec<_> = points(result).iter().map(entry).collect();
        writeln!(out, "{}", pretty_json(&entries)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn each_configuration_is_an_entry_whose_name_does_not_hang_on_what_ran_beside_it() {
        let configurations = [sample::configuration("futex"), sample::configuration("eventfd")];
        let exported = |configurations: &[_]| -> Vec<serde_json::Value> {
            let mut text = Vec::new();
            let result = sample::result(configurations, 3, |_, _| 16_000.0);
            GithubBenchmark.export(&result, &mut text).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let (alone, both) = (exported(&configurations[..1]), exported(&configurations));
        assert_eq!((alone.len(), both.len()), (1, 2));
        assert_eq!(alone[0]["name"], both[0]["name"]);
        assert_eq!(both[1]["unit"], "ns");
        assert!(
            both.iter()
                .all(|entry| entry["value"].as_f64().is_some_and(|ns| (ns / 16_000.0 - 1.0).abs() < 0.2))
        );
    }
}
