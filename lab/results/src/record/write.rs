// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes result files: whole or not at all, and never at the cost of what was measured.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doorbell_files::{replace, unforeseen};

use super::{ResultFile, warning};
use crate::machine::Machine;
use crate::written::json;

/// A result that could not be written where it should be.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}; {}{}", .target.display(), cure(.cause), whereabouts(.rescued))]
pub struct WriteError {
    /// Where it should be.
    pub target: PathBuf,
    /// The system's error.
    pub cause: io::Error,
    /// Where it was saved instead. None if no other folder took it either: then it is still in
    /// memory alone, and the caller's last resort is standard output.
    pub rescued: Option<PathBuf>,
}

fn cure(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space, or name a file on another disk with `--output`"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "name a file that you may write with `--output`"
        }
        io::ErrorKind::NotFound => "make the folder first, or name another with `--output`",
        io::ErrorKind::NotADirectory => "a part of the path is not a folder; name another with `--output`",
        io::ErrorKind::IsADirectory => "it is a folder; name a file in it with `--output`",
        _ => "name another file with `--output`",
    }
}

fn whereabouts(rescued: &Option<PathBuf>) -> String {
    rescued.as_ref().map_or_else(String::new, |path| format!(". The result was saved as {}", path.display()))
}

/// The JSON text of `result`, ended by a line end.
///
/// JSON has no NaN and no infinity; a writer that meets one writes `null`. Where a number may be
/// missing that says the right thing. Where it may not, no reader would take the file: such a
/// figure is left out, with a warning that names it.
pub fn to_json(result: &ResultFile) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail, and every map of a result has text keys.
    write_json(&finite(result), &mut text).ok();
    String::from_utf8(text).unwrap_or_default()
}

/// The JSON text of `machine` alone.
pub fn machine_json(machine: &Machine) -> String {
    json(machine).unwrap_or_default()
}

fn write_json(result: &ResultFile, target: &mut impl Write) -> io::Result<()> {
    target.write_all(json(result)?.as_bytes())?;
    target.write_all(b"\n")
}

/// Writes `result` to the file `target`: the old file, if any, stays as it is until the new one is
/// complete on disk. If that fails the result is saved in a folder for temporary files.
pub fn write(result: &ResultFile, target: &Path) -> Result<(), WriteError> {
    let result = finite(result);
    let written = replace(target, |file| write_json(&result, file));
    written.map_err(|cause| rescued(&result, target, cause))
}

/// Writes `result` to `stream`, which errors call `name`. If that fails the result is saved in a
/// folder for temporary files.
pub fn write_to(result: &ResultFile, name: &Path, stream: &mut impl Write) -> Result<(), WriteError> {
    let result = finite(result);
    let written = write_json(&result, stream).and_then(|()| stream.flush());
    written.map_err(|cause| rescued(&result, name, cause))
}

/// The error of writing `result` to `target`, once the result is safe elsewhere.
fn rescued(result: &ResultFile, target: &Path, cause: io::Error) -> WriteError {
    if cause.kind() == io::ErrorKind::BrokenPipe {
        // Nobody wanted it there; where it goes instead is the caller's to say.
        return WriteError { target: target.to_owned(), cause, rescued: None };
    }
    let second = result.started_at_unix_ns / 1_000_000_000;
    let rescued = [std::env::temp_dir(), PathBuf::from("/dev/shm")].into_iter().find_map(|folder| {
        let path = folder.join(format!("doorbell-{second}-{}.json", unforeseen().ok()?));
        replace(&path, |file| write_json(result, file)).is_ok().then_some(path)
    });
    WriteError { target: target.to_owned(), cause, rescued }
}

/// The error that [`write()`] would meet at `target` now, if any; what lies there stays as it is. A
/// pipe or a device is not touched.
pub fn try_out(target: &Path) -> Result<(), WriteError> {
    if target.as_os_str() == "-" {
        return Ok(());
    }
    let refused = |cause| WriteError { target: target.to_owned(), cause, rescued: None };
    doorbell_files::try_out(target).map_err(refused)
}

/// `result` itself if every number that must be there is finite, else a copy without what is not.
fn finite(result: &ResultFile) -> Cow<'_, ResultFile> {
    let mut copy = Cow::Borrowed(result);
    for (index, record) in result.records.iter().enumerate() {
        let mut dropped = Vec::new();
        for (quantity, series) in &record.series {
            let numbers = [
                series.min_ns,
                series.p50_ns,
                series.p90_ns,
                series.p99_ns,
                series.p999_ns,
                series.max_ns,
                series.mean_ns,
                series.stdev_ns,
            ];
            if !numbers.iter().all(|number| number.is_finite()) {
                copy.to_mut().records[index].series.remove(quantity);
                dropped.push(format!("{quantity:?}"));
            }
        }
        for figure in record.figures.iter().filter(|figure| !figure.value.is_finite()) {
            dropped.push(figure.name.clone());
        }
        if !dropped.is_empty() {
            let record = &mut copy.to_mut().records[index];
            record.figures.retain(|figure| figure.value.is_finite());
            let cause = format!("no finite number came out for {}", dropped.join(", "));
            let cure = "please report this as a fault of doorbell";
            record.warnings.push(warning::NOT_A_NUMBER.warning(cause, "left out of the record", cure));
        }
    }
    let sound =
        |primitive: &super::result::Primitive| primitive.p50_ns.is_finite() && primitive.min_ns.is_finite();
    if !result.primitives.iter().flat_map(|reading| &reading.primitives).all(sound) {
        for reading in &mut copy.to_mut().primitives {
            reading.primitives.retain(sound);
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::series::Quantity;
    use super::super::{read, sample};
    use super::*;

    fn result() -> ResultFile {
        sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0)
    }

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_result_is_written_whole_and_nothing_is_left_beside_it() {
        let (result, folder) = (result(), tempfile::tempdir().unwrap());
        let target = folder.path().join("result.json");
        for _ in 0..2 {
            write(&result, &target).unwrap();
            assert_eq!(read::read(&target).unwrap(), result);
        }
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_full_device_is_an_error_with_a_cure_and_the_result_is_saved_elsewhere() {
        let result = result();
        let error = write(&result, Path::new("/dev/full")).unwrap_err();
        let saved = error.rescued.as_ref().unwrap();
        assert_eq!(read::read(saved).unwrap(), result);
        let message = error.to_string();
        fs::remove_file(saved).unwrap();
        assert!(message.contains("free some space") && message.contains("was saved as"), "{message}");
    }

    #[test]
    fn a_target_that_cannot_be_a_file_is_refused_with_a_cure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        for (target, cure) in [
            (folder.path().to_owned(), "it is a folder"),
            (folder.path().join("missing/result.json"), "make the folder first"),
            (file.join("result.json"), "not a folder"),
        ] {
            assert!(try_out(&target).is_err(), "and a run is told before it measures");
            let error = write(&result(), &target).unwrap_err();
            fs::remove_file(error.rescued.as_ref().unwrap()).unwrap();
            assert!(error.to_string().contains(cure), "{error}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn a_number_that_is_not_finite_is_left_out_and_named_and_the_rest_is_kept() {
        let mut result = result();
        result.records[0].figures[0].value = f64::NAN;
        result.records[0].environment.steal_share = Some(f64::INFINITY);
        result.records[1].series.get_mut(&Quantity::Wake).unwrap().mean_ns = f64::NEG_INFINITY;
        result.primitives[1].primitives[0].p50_ns = f64::NAN;
        let back = read::read_bytes(to_json(&result).into_bytes(), "x.json").unwrap();
        assert_eq!(back.records[0].figures, []);
        assert_eq!(back.records[0].environment.steal_share, None);
        assert_eq!(back.records[0].environment.foreign_share, Some(0.01));
        assert!(back.records[0].warnings[0].cause.contains("per wake-up"));
        assert!(!back.records[1].series.contains_key(&Quantity::Wake));
        assert!(back.records[1].series.contains_key(&Quantity::RoundTrip));
        assert_eq!(back.primitives[1].primitives.len() + 1, back.primitives[0].primitives.len());
    }
}
