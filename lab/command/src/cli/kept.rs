// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results that can be named without their files: the last one, and baselines.

use std::path::{Path, PathBuf};

use super::usage::Usage;
use doorbell_files::NotWritten;
use doorbell_results::quantity::refused;
use doorbell_results::record::ResultFile;
use doorbell_results::record::read::read;
use doorbell_results::record::write::write;
use doorbell_verdict::identity;

/// The folders for results that were given no other, as the environment names them (XDG Base
/// Directory Specification).
fn named_folders() -> impl Iterator<Item = PathBuf> {
    let named = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = named("HOME").map(|home| home.join(".local/state"));
    [named("XDG_STATE_HOME"), home].into_iter().flatten().map(|state| state.join("doorbell"))
}

/// The folder for results that were given no other, made if it is not there: the first that is
/// named and can be written, as `/` of an ordinary user without a home cannot. Where there is none,
/// as in a service, it is one of this user's own among the temporary files.
pub fn state_folder() -> std::io::Result<PathBuf> {
    for folder in named_folders() {
        match doorbell_files::folder(&folder) {
            Ok(folder) if is_writable(&folder) => return Ok(folder),
            // Whoever planted it would else choose where results go, be it elsewhere.
            Err(error) if NotWritten::is_why(&error) => return Err(error),
            _ => {}
        }
    }
    without_home()
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

/// The file `name` of the first folder that has it; where none has,
/// its place in the one that is written to.
fn kept(name: impl AsRef<Path>) -> std::io::Result<PathBuf> {
    for folder in named_folders() {
        match doorbell_files::resolved(&folder.join(name.as_ref())) {
            Ok(path) if path.exists() => return Ok(path),
            Err(error) if NotWritten::is_why(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(state_folder()?.join(name.as_ref()))
}

fn without_home() -> std::io::Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    doorbell_harness::run_dir::own_folder(&std::env::temp_dir().join(format!("doorbell-results-{uid}")))
}

/// The name of a baseline, if `text` can be one: it becomes the name of a file.
pub fn baseline_name(text: &str) -> Result<String, String> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if text.is_empty() || text.len() > 100 || text.starts_with(['.', '-']) || !text.chars().all(letter) {
        return Err(refused(
            format_args!("'{text}' cannot name a baseline: that takes letters, digits, dashes and dots"),
            &["main", "v1.2"],
        ));
    }
    Ok(text.to_owned())
}

fn baseline(name: &str) -> PathBuf {
    Path::new("baselines").join(format!("{name}.json"))
}

/// The most runs of one baseline: with twelve the quantile of t is within an eighth of what it is
/// with any number, and older ones tell less of the machine as it is.
const MOST_RUNS: usize = 12;

/// Keeps `result` as a run of the baseline `name`; how many it has then. Runs of another plan or
/// another machine that were kept under that name go.
pub fn save_baseline(name: &str, result: &ResultFile) -> anyhow::Result<usize> {
    let path = state_folder()?.join(baseline(name));
    // If it cannot be made, writing fails with the path and the cure.
    let _ = path.parent().map(doorbell_files::folder);
    let mut before = earlier(&path);
    let newest = read(&path).ok().filter(|newest| is_of_one_baseline(newest, result));
    if let Some(newest) = newest {
        let kept = earlier_folder(&path).join(format!("{:020}.json", newest.started_at_unix_ns));
        let _ = kept.parent().map(doorbell_files::folder);
        write(&newest, &kept)?;
        before.insert(0, kept);
    } else {
        // Also where the latest run was removed or cannot be read: nothing says what these are runs of.
        before.drain(..).try_for_each(std::fs::remove_file)?;
    }
    write(result, &path)?;
    let kept = before.len().min(MOST_RUNS - 1);
    before.drain(kept..).try_for_each(std::fs::remove_file)?;
    Ok(1 + kept)
}

/// Whether the two are runs of one plan on one machine, in slices: of trials each run stands alone.
fn is_of_one_baseline(one: &ResultFile, other: &ResultFile) -> bool {
    one.plan.bench.is_some()
        && other.plan.bench.is_some()
        && one.plan.configurations == other.plan.configurations
        && identity::alike(&one.machine, &other.machine)
}

/// Where the earlier runs of the baseline at `newest` lie.
fn earlier_folder(newest: &Path) -> PathBuf {
    let folder = newest.parent().unwrap_or(Path::new("")).join("earlier");
    folder.join(newest.file_stem().unwrap_or_default())
}

/// The earlier runs of the baseline at `newest`, the latest first.
fn earlier(newest: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(earlier_folder(newest)).into_iter().flatten();
    let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    runs.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    runs.sort_unstable_by(|one, other| other.cmp(one));
    runs
}

/// A file, and what a reader calls it.
#[derive(Debug)]
pub struct Named {
    pub name: PathBuf,
    pub path: PathBuf,
}

/// The files that `named` means: itself, or all runs of the baseline of that name, the latest
/// first.
pub fn find_runs(named: &Path) -> Result<Vec<Named>, Usage> {
    let newest = find(named)?;
    let before = if newest == named { Vec::new() } else { earlier(&newest) };
    let newest = Named { name: named.to_owned(), path: newest };
    let before = before.into_iter().map(|path| Named { name: path.clone(), path });
    Ok(std::iter::once(newest).chain(before).collect())
}

/// The file that `named` means: itself, or the latest run of the baseline of that name.
pub fn find(named: &Path) -> Result<PathBuf, Usage> {
    if named.as_os_str() == "-" || named.exists() {
        return Ok(named.to_owned());
    }
    let Some(name) = named.to_str().filter(|name| baseline_name(name).is_ok()) else {
        // Reading it says what is wrong with it.
        return Ok(named.to_owned());
    };
    let path = kept(baseline(name)).map_err(|error| {
        Usage(format!("there is no file '{name}', and no baseline can be looked for: {error}"))
    })?;
    if path.exists() {
        return Ok(path);
    }
    let folder = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let names = folder.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
    names.sort_unstable();
    let known = if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    };
    Err(Usage(format!(
        "there is no file '{name}' and no baseline of that name ({known}); `--save-baseline \
         {name}` on any run keeps one"
    )))
}

/// The file in which the path of the last result is written down.
const LAST: &str = "last";
/// The longest path that is written down, bytes: more than any system opens.
const LONGEST_PATH: u64 = 1 << 16;

/// Remembers that the last result went to `path`. That it could not
/// be is no failure of the run: `show` then says so.
pub fn remember(path: &Path) {
    let Ok(mark) = state_folder().map(|folder| folder.join(LAST)) else { return };
    let Ok(path) = std::path::absolute(path) else { return };
    let _ = doorbell_files::put(&mark, path.as_os_str().as_encoded_bytes());
}

/// The path that was written down.
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// Where the last result went.
pub fn last() -> Result<PathBuf, Usage> {
    let mark = kept(LAST).map_err(|error| Usage(format!("the last result is not known: {error}")))?;
    let path = doorbell_files::bytes(&mark, LONGEST_PATH).ok().and_then(path_of);
    match path {
        Some(path) if path.exists() => Ok(path),
        Some(path) => {
            Err(Usage(format!("the last result, {}, is no longer there; name a file", path.display())))
        }
        None => Err(Usage("no run has left a result yet; name a file, or run `doorbell` first".to_owned())),
    }
}
