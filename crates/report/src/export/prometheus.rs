// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prometheus's text format: what the node exporter's textfile collector, push gateways and
//! promtool read, which take no OpenMetrics.

use std::io::{self, Write};

use super::openmetrics::{Dialect, metrics};
use crate::export::Export;
use doorbell_results::record::ResultFile;

#[derive(Debug, Clone, Copy)]
pub struct Prometheus;

impl Export for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn about(&self) -> &'static str {
        "Prometheus's text format, for the node exporter's textfile collector and push gateways: the metrics of openmetrics"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        metrics(result, Dialect::Prometheus, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::openmetrics::OpenMetrics;
    use doorbell_results::record::sample;

    fn text(format: &dyn Export) -> String {
        let result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let mut bytes = Vec::new();
        format.export(&result, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The textfile collector dropped the whole file: `unknown metric type "info"`.
    #[test]
    fn every_type_is_one_of_the_formats_five_and_names_its_own_samples() {
        let text = text(&Prometheus);
        let mut types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        assert!(types.all(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let known = ["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind);
            known && text.lines().any(|line| line.starts_with(name))
        }));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }

    #[test]
    fn the_samples_are_those_of_openmetrics() {
        let samples = |format: &dyn Export| -> Vec<String> {
            text(format).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(samples(&Prometheus), samples(&OpenMetrics));
    }
}
