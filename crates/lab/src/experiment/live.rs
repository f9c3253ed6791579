// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run tells while it goes on, in a file of its folder: written between trials by the
//! process that starts them, and never while one runs. Whoever may read the folder may look.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use doorbell_harness::run_dir::{self, RunDir};
use doorbell_report::axis::{self, Axis};
use doorbell_results::live::{Head, Run, Trial};
use doorbell_results::plan::Plan;
use doorbell_results::record::{Outcome, Record};
use serde::Serialize;

/// The file's name.
const FILE: &str = "live";

/// The longest file that is written: the folder may be memory. A line takes some kilobytes; after
/// it the run goes on untold.
const LONGEST: u64 = 32 << 20;

/// The longest line that is read, and how much of a run is read at a look.
const LONGEST_LINE: usize = 1 << 20;
const MOST_READ: u64 = 8 << 20;

/// The file as the run writes it. That it cannot be written is no
/// reason to end a run: then nobody is told.
#[derive(Debug)]
pub struct Told {
    file: Option<File>,
    written: u64,
    number: usize,
    axes: Vec<Axis>,
}

impl Told {
    /// Begins it.
    pub fn begin(run_dir: &RunDir, plan: &Plan, trials: usize, command_line: &[String]) -> Self {
        let path = run_dir.path().join(FILE);
        let file = doorbell_files::create_new(&path, 0o600).ok();
        let axes = axis::varying(plan.configurations.iter());
        let mut told = Self { file, written: 0, number: 0, axes };
        told.line(&Head {
            process: std::process::id(),
            command_line: command_line.to_vec(),
            experiment: plan.experiment.clone(),
            trials,
        });
        told
    }

    /// A trial ended with `record`.
    pub fn ended(&mut self, record: &Record) {
        self.number += 1;
        if self.file.is_none() {
            return;
        }
        let usable = matches!(record.outcome, Outcome::Done | Outcome::Partial);
        let headline = record.configuration.pattern.headline();
        let series = record.series.get(&headline).filter(|_| usable);
        self.line(&Trial {
            number: self.number,
            label: axis::label(&record.configuration, &self.axes),
            times: series.map(|series| (headline, series.clone())),
            interference: record.warnings.iter().map(|warning| warning.cause.clone()).collect(),
        });
    }

    fn line(&mut self, line: &impl Serialize) {
        let Some(file) = &mut self.file else { return };
        let Ok(mut bytes) = serde_json::to_vec(line) else { return };
        bytes.push(b'\n');
        self.written += bytes.len() as u64;
        // A line that was written in part has no end, and nothing may follow it.
        if self.written > LONGEST || file.write_all(&bytes).is_err() {
            self.file = None;
        }
    }
}

/// The runs of this user that go on, as far as they were read.
#[derive(Debug, Default)]
pub struct Runs {
    known: BTreeMap<PathBuf, Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    at: u64,
    /// What was read of a line that has no end yet.
    begun: Vec<u8>,
    run: Run,
}

impl Runs {
    /// Reads what is new.
    pub fn look(&mut self) -> Vec<Run> {
        let there = run_dir::running();
        self.known.retain(|path, _| there.contains(path));
        for path in there {
            let reading = self.known.entry(path.clone()).or_default();
            // One that has just ended, or is of a release that tells nothing, has no such file.
            let _ = reading.read(path.join(FILE));
        }
        self.known
            .values()
            .filter(|reading| reading.run.head.is_some())
            .map(|reading| reading.run.clone())
            .collect()
    }
}

impl Reading {
    fn read(&mut self, path: PathBuf) -> std::io::Result<()> {
        let mut file = doorbell_files::open(&path)?;
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        self.at += file.take(MOST_READ).read_to_end(&mut bytes)? as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + piece.len() <= LONGEST_LINE {
                self.begun.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.run.take(self.begun.trim_ascii_end());
                self.begun.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_comes_in_pieces_is_taken_once_and_one_without_end_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let head = Head { process: 7, command_line: Vec::new(), experiment: "ping".to_owned(), trials: 3 };
        let trial = Trial { number: 1, label: String::new(), times: None, interference: Vec::new() };
        let text = format!(
            "{}\n{}\n",
            serde_json::to_string(&head).unwrap(),
            serde_json::to_string(&trial).unwrap()
        );
        let mut reading = Reading::default();
        for end in 0..=text.len() {
            std::fs::write(&path, &text[..end]).unwrap();
            reading.read(path.clone()).unwrap();
        }
        assert_eq!((reading.run.head.as_ref(), reading.run.done), (Some(&head), 1));
        std::fs::write(
            &path,
            format!("{text}{}\n{}", "x".repeat(3 * LONGEST_LINE), &text[text.find('\n').unwrap() + 1..]),
        )
        .unwrap();
        reading.read(path.clone()).unwrap();
        assert_eq!(reading.run.done, 2, "what stands behind a line that is too long is read");
        assert!(reading.begun.len() <= LONGEST_LINE);
    }
}
