// SPDX-License-Identifier: MIT OR Apache-2.0
//! Go's benchmark text, which benchstat compares: a line for each block of each configuration.

use std::io::{self, Write};

use super::trend::points;
use crate::export::Export;
use doorbell_results::record::ResultFile;
use doorbell_results::written::inert;

/// The blocks' medians, of which benchstat makes its intervals itself.
#[derive(Debug, Clone, Copy)]
pub struct Benchstat;

impl Export for Benchstat {
    fn name(&self) -> &'static str {
        "benchstat"
    }

    fn about(&self) -> &'static str {
        "Go's benchmark text for benchstat: the median of each block of each configuration, in ns/op"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "goos: linux\npkg: doorbell/{}", word(&result.plan.experiment))?;
        if let Some(name) = &result.machine.processor.model_name {
            writeln!(out, "cpu: {}", inert(name))?;
        }
        for point in points(result) {
            let mut parts = point.parts.iter();
            let subject = parts.next().map_or_else(String::new, |(_, subject)| word(subject));
            let keyed = parts.map(|(key, value)| format!("/{}={}", word(key), word(value)));
            let name = format!(
                "Benchmark{}{}/{}",
                upper(&subject),
                keyed.collect::<String>(),
                point.quantity.name()
            );
            let mark = result.mark().map_or_else(String::new, |mark| format!("/{}", word(mark)));
            let blocks = &point.times.block_medians_ps;
            // How many samples a block has is not kept: each has its share.
            let each = point.times.count / (blocks.len() as u64).max(1);
            for ps in blocks {
                writeln!(out, "{name}{mark} {each} {} ns/op", *ps as f64 / 1e3)?;
            }
        }
        Ok(())
    }
}

/// A name there has no blanks, and `/`, `=` and `-` divide it.
fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || ".,_+%".contains(letter);
    text.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// A benchmark of Go begins with a capital.
fn upper(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    #[test]
    fn each_block_is_a_line_of_a_name_a_count_and_a_time() {
        let configurations = [sample::configuration("eventfd-io-uring"), sample::configuration("a b/c=\nd")];
        let mut text = Vec::new();
        Benchstat.export(&sample::result(&configurations, 3, |_, _| 16_000.0), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("Benchmark"))
            .map(|line| line.split(' ').collect())
            .collect();
        assert_eq!(lines.len(), 6, "{text}");
        for line in &lines {
            let [name, count, ns, "ns/op"] = line[..] else { panic!("{line:?}") };
            assert!(
                name.starts_with("BenchmarkEventfd_io_uring/") || name.starts_with("BenchmarkA_b_c__d/"),
                "{name}"
            );
            assert_eq!(count, "1000");
            assert!((ns.parse::<f64>().unwrap() / 16_000.0 - 1.0).abs() < 0.2, "{ns}");
        }
    }
}
