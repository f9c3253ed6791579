// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes result files: whole or not at all, and never at the cost of what was measured.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{ResultFile, Warning, warning};
use crate::written::json;

/// A result that could not be written where it should be.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}; {}{}", .target.display(), cure(.cause), whereabouts(.rescued))]
pub struct WriteError {
    /// Where it should be.
    pub target: PathBuf,
    /// The system's error.
    pub cause: io::Error,
    /// Where it was saved instead. None if no other folder took it either: then it is still in memory alone, and the
    /// caller's last resort is standard output.
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
/// JSON has no NaN and no infinity; a writer that meets one writes `null`. Where a number may be missing that says the
/// right thing. Where it may not, no reader would take the file: such a figure is left out, with a warning that names it.
pub fn to_json(result: &ResultFile) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail, and every map of a result has text keys.
    write_json(&finite(result), &mut text).ok();
    String::from_utf8(text).unwrap_or_default()
}

fn write_json(result: &ResultFile, target: &mut impl Write) -> io::Result<()> {
    target.write_all(json(result)?.as_bytes())?;
    target.write_all(b"\n")
}

/// Writes `result` to the file `target`: the old file, if any, stays as it is until the new one is complete on disk. If that fails
/// the result is saved in a folder for temporary files.
pub fn write(result: &ResultFile, target: &Path) -> Result<(), WriteError> {
    let result = finite(result);
    let written = replace(target, |file| write_json(&result, file));
    written.map_err(|cause| rescued(&result, target, cause))
}

/// Writes `result` to `stream`, which errors call `name`. If that fails the result is saved in a folder for temporary files.
pub fn write_to(result: &ResultFile, name: &Path, stream: &mut impl Write) -> Result<(), WriteError> {
    let result = finite(result);
    let written = write_json(&result, stream).and_then(|()| stream.flush());
    written.map_err(|cause| rescued(&result, name, cause))
}

/// The error of writing `result` to `target`, once the result is safe elsewhere.
fn rescued(result: &ResultFile, target: &Path, cause: io::Error) -> WriteError {
    let second = result.started_at_unix_ns / 1_000_000_000;
    let rescued = [std::env::temp_dir(), PathBuf::from("/dev/shm")].into_iter().find_map(|folder| {
        let path = folder.join(format!("doorbell-{second}-{}.json", lot().ok()?));
        replace(&path, |file| write_json(result, file)).is_ok().then_some(path)
    });
    WriteError { target: target.to_owned(), cause, rescued }
}

/// The error that [`write()`] would meet at `target` now, if any; what lies there stays as it is. A pipe or a device is not touched.
pub fn try_out(target: &Path) -> Result<(), WriteError> {
    if target.as_os_str() == "-" {
        return Ok(());
    }
    let refused = |cause| WriteError { target: target.to_owned(), cause, rescued: None };
    beside(&behind_links(target)).map(drop).map_err(refused)
}

/// A part of a name that nobody can tell beforehand: in a folder for everybody somebody else could have made it first, as a link to
/// what he wants overwritten.
fn lot() -> io::Result<String> {
    let mut lot = [0; 16];
    getrandom::fill(&mut lot)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(lot)))
}

/// A file on its way to another name; removed when this is dropped, which after the renaming finds nothing under its own.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Puts a file in the place of `target`: written beside it, flushed to disk, then renamed over it (rename(2) is
/// atomic; without the flush a crash could leave an empty file under the new name).
pub fn replace(target: &Path, put: impl Fn(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let target = behind_links(target);
    let Some((beside, file)) = beside(&target)? else {
        let mut file = BufWriter::new(OpenOptions::new().write(true).open(&target)?);
        put(&mut file)?;
        return file.flush();
    };
    let mut file = BufWriter::new(file);
    put(&mut file)?;
    file.into_inner()?.sync_all()?;
    fs::rename(&beside.0, &target)?;
    // So that the new name survives a crash too. Some file systems cannot flush a folder, nor can Windows; the file is safe there.
    File::open(folder_of(&target)).and_then(|folder| folder.sync_all()).or(Ok(()))
}

/// Through a symbolic link the file behind it is replaced, not the link.
fn behind_links(target: &Path) -> PathBuf {
    fs::canonicalize(target).unwrap_or_else(|_| target.to_owned())
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file beside `target` that may take its place; none where that is a pipe or a device, which is written to, not replaced.
fn beside(target: &Path) -> io::Result<Option<(Beside, File)>> {
    match fs::metadata(target) {
        Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return Ok(None),
        // Renaming would replace a write-protected file too: ask it for permission first.
        Ok(_) => drop(OpenOptions::new().write(true).open(target)?),
        Err(_) => {}
    }
    if target.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let beside = folder_of(target).join(format!(".doorbell-{}.tmp", lot()?));
    // Fails on a name that is there, be it a link (open(2), O_EXCL).
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    Ok(Some((Beside(beside), file)))
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
            record.warnings.push(Warning {
                name: warning::NOT_A_NUMBER.name.to_owned(),
                cause: format!("no finite number came out for {}", dropped.join(", ")),
                effect: "left out of the record".to_owned(),
                cure: "please report this as a fault of doorbell".to_owned(),
            });
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
    fn a_link_is_written_through() {
        let (result, folder) = (result(), tempfile::tempdir().unwrap());
        let (target, link) = (folder.path().join("result.json"), folder.path().join("latest.json"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink("result.json", &link).unwrap();
        write(&result, &link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(read::read(&target).unwrap(), result);
    }

    #[test]
    fn a_disk_that_fills_up_in_the_middle_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("result.json");
        fs::write(&target, "old").unwrap();
        let cause = replace(&target, |file| {
            file.write_all(b"{\"schema_ver")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(cause.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&target).unwrap(), b"old");
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

    /// Its name could be told beforehand, and a link there was written through.
    #[test]
    fn the_file_on_its_way_has_a_name_of_its_own_each_time_and_a_panic_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("result.json");
        let seen = std::cell::RefCell::new(std::collections::HashSet::new());
        for _ in 0..2 {
            let look = |_: &mut BufWriter<File>| {
                seen.borrow_mut()
                    .extend(names(folder.path()).into_iter().filter(|name| name.ends_with(".tmp")));
                Ok(())
            };
            replace(&target, look).unwrap();
        }
        assert_eq!(seen.borrow().len(), 2);
        let panics = || replace(&target, |_| panic!("in the middle of it"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn trying_a_target_out_meets_the_errors_of_writing_and_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        for refused in [folder.path().to_owned(), folder.path().join("missing/x.json"), file.join("x.json")] {
            assert!(try_out(&refused).is_err(), "{}", refused.display());
        }
        for taken in [file.clone(), folder.path().join("new.json"), "-".into(), "/dev/full".into()] {
            try_out(&taken).unwrap();
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file"]);
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
