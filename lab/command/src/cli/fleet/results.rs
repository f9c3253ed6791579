// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a fleet, one at a time.

use super::super::out::aside;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use doorbell_report::fleet::LeftOut;
use doorbell_report::judgement;
use doorbell_results::record::{ResultFile, read};

/// How far the clocks of nodes may be ahead of this one's.
const AHEAD: Duration = Duration::from_secs(24 * 3600);

/// When a run of a node can have begun at the latest, nanoseconds since 1970.
pub fn latest_begin() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + AHEAD).as_nanos()).unwrap_or(u64::MAX)
}

/// The files that `named` means: of a folder those in it whose names end in `.json`, in their
/// order. What else lies there is named on standard error: it may have been meant.
pub fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let entries = entries.collect::<Result<Vec<_>, _>>().with_context(|| path.display().to_string())?;
        let is_result = |path: &PathBuf| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
        let (mut inside, mut others): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.into_iter().map(|entry| entry.path()).partition(is_result);
        anyhow::ensure!(!inside.is_empty(), "{}: no file in it ends in .json", path.display());
        inside.sort();
        others.sort();
        if let Some(first) = others.first() {
            // Nothing can be done about a standard error that is closed.
            aside!(
                "doorbell: {}: not read, for their names do not end in .json: {} in all, the first {first:?}",
                path.display(),
                others.len()
            );
        }
        files.append(&mut inside);
    }
    Ok(files)
}

/// Hands each result to `take`, one in memory at a time, and says
/// which files are none or were not taken.
pub fn each(
    files: &[PathBuf],
    mut take: impl FnMut(&Path, &mut ResultFile) -> io::Result<Result<(), String>>,
) -> io::Result<Vec<LeftOut>> {
    let mut left_out = Vec::new();
    for file in files {
        let taken = match result(file) {
            Ok(mut result) => take(file, &mut result)?,
            Err(reason) => Err(reason),
        };
        if let Err(reason) = taken {
            left_out.push(LeftOut { file: name(file), reason });
        }
    }
    Ok(left_out)
}

/// Makes the verdict of `result` anew of its figures: what stands in a file may be anybody's. That
/// of a check stays, for its baseline is not at hand.
pub fn judge(result: &mut ResultFile) {
    if result.verdict.is_some() || result.plan.question.is_some() {
        result.verdict = Some(judgement::verdict(result, &[]));
    }
}

/// The result in `file`, or why there is none.
fn result(file: &Path) -> Result<ResultFile, String> {
    let named = name(file);
    // The file is named beside it.
    let told = |error: read::ReadError| {
        let told = error.to_string();
        told.strip_prefix(&format!("{named} is ")).unwrap_or(&told).to_owned()
    };
    read::read(file).map_err(told)
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
