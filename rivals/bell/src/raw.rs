// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every block as it came, one JSON object a line, for those who want to compute something else of it.

use std::fs::File;
use std::io::{BufWriter, Write};

pub struct Raw(Option<BufWriter<File>>);

impl Raw {
    /// Nothing is written if no file is named.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(path: Option<&str>) -> Result<Self, String> {
        let file =
            path.map(|path| File::create(path).map_err(|error| format!("{path}: {error}"))).transpose()?;
        Ok(Self(file.map(BufWriter::new)))
    }

    pub fn bar(&mut self, bar: &str, side: &str, round: usize, p50: f64, cpu: f64) -> Result<(), String> {
        // No name has a quote in it.
        self.line(&format!(
            r#"{{"bar":"{bar}","side":"{side}","round":{round},"p50_ns":{p50:.1},"cpu_ns":{cpu:.1}}}"#
        ))
    }

    pub fn point(
        &mut self,
        placement: &str,
        gap_us: f64,
        policy: &str,
        round: usize,
        [p50, p99, cpu]: [f64; 3],
    ) -> Result<(), String> {
        self.line(&format!(
            r#"{{"placement":"{placement}","gap_us":{gap_us},"policy":"{policy}","round":{round},"p50_ns":{p50:.0},"p99_ns":{p99:.0},"cpu_ns":{cpu:.0}}}"#
        ))
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{line}").map_err(|error| format!("the raw output: {error}"))
    }

    /// # Errors
    /// What could not be written.
    pub fn finish(self) -> Result<(), String> {
        self.0.map_or(Ok(()), |mut file| file.flush().map_err(|error| format!("the raw output: {error}")))
    }
}
