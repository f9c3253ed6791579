// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a fleet, one at a time.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use doorbell_report::fleet::LeftOut;
use doorbell_results::record::{ResultFile, read};

/// The files that `named` means: of a folder those in it whose names end in `.json`, in their order.
pub fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let entries = entries.collect::<Result<Vec<_>, _>>().with_context(|| path.display().to_string())?;
        let mut inside: Vec<PathBuf> = entries
            .into_iter()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        anyhow::ensure!(!inside.is_empty(), "{}: no file in it ends in .json", path.display());
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

/// Hands each result to `take`, one in memory at a time, and says which files are none or were not taken.
pub fn each(
    files: &[PathBuf],
    mut take: impl FnMut(&Path, &ResultFile) -> std::io::Result<Result<(), String>>,
) -> std::io::Result<Vec<LeftOut>> {
    let mut left_out = Vec::new();
    for file in files {
        let taken = match read::read(file) {
            Ok(result) => take(file, &result)?,
            Err(error) => {
                let told = error.to_string();
                // The file is named beside it.
                Err(told.strip_prefix(&format!("{} is ", file.display())).unwrap_or(&told).to_owned())
            }
        };
        if let Err(reason) = taken {
            left_out.push(LeftOut { file: name(file), reason });
        }
    }
    Ok(left_out)
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
