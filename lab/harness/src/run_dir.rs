// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of one run: what must not outlive it is written down here before it is made.
//!
//! Every process of a run inherits the open, locked file `lock` in the folder. The lock goes when
//! the last of them is gone, however it died: a folder whose lock can be taken belongs to nobody,
//! and the next run removes what its notes name, then the folder itself. A lock asks the kernel who
//! is alive; a process number, which may have been given to somebody else since, does not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::fs::{FlockOperation, flock};

use crate::any_path;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// A POSIX semaphore with this name (leading slash).
    Semaphore(String),
    /// A POSIX message queue with this name (leading slash).
    MessageQueue(String),
    /// A System V semaphore set with this key.
    SystemVSemaphores(i32),
    /// A System V message queue with this key.
    SystemVMessages(i32),
    /// A file that a run made in a folder which others may write to.
    File {
        /// Its absolute path; the name begins with [`Note::FILE_PREFIX`].
        #[serde(with = "any_path")]
        path: PathBuf,
        /// The number of its inode, once there is one: somebody
        /// else's file may have the name by now.
        inode: Option<u64>,
    },
}

impl Note {
    /// How the names of files begin that a run may remove.
    pub const FILE_PREFIX: &str = "doorbell-io-";
}

/// The longest notes that are read, bytes: of more objects than any run makes.
const LONGEST_NOTES: u64 = 256 << 20;

/// Notes of what belongs to a trial.
const NOTES: &str = "notes";
/// Notes of what belongs to the whole run.
const LASTING: &str = "lasting-notes";

/// The folder of a run, removed when the value is dropped by the process that made it.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    lock: File,
    owner: u32,
    next: AtomicU32,
}

impl RunDir {
    /// Makes a folder for this run, after clearing what dead runs left.
    pub fn create() -> io::Result<Self> {
        let parent = own_folder(&parent())?;
        sweep(&parent);
        let owner = std::process::id();
        for attempt in 0.. {
            let path = parent.join(format!("{owner}-{attempt}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // Another run's sweep may meet the folder between these calls, lock it and clear it: then
                    // it is not ours, and the next number is tried.
                    let lock = match open_lock(&path) {
                        Ok(lock) => lock,
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => {
                            // Empty, and not worth a second error.
                            let _ = fs::remove_dir(&path);
                            return Err(error);
                        }
                    };
                    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
                        && path.join("lock").exists()
                    {
                        inherit(&lock)?;
                        return Ok(Self { path, lock, owner, next: AtomicU32::new(0) });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// The folder another process of this run made; `lock` was inherited from it.
    pub fn inherited(path: PathBuf, lock: File) -> Self {
        Self { path, lock, owner: 0, next: AtomicU32::new(0) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file whose lock keeps the folder alive; handed to child processes.
    pub fn lock(&self) -> &File {
        &self.lock
    }

    /// A number no other object of this run has, distinct between the
    /// processes of a run by the caller's salt.
    pub fn fresh(&self, salt: u32) -> u32 {
        let own = self.next.fetch_add(1, Relaxed);
        (std::process::id() << 8) ^ (own << 4) ^ salt
    }

    pub fn leave_note(&self, note: Note) -> io::Result<()> {
        self.append(NOTES, &note)
    }

    /// Writes down an object that is about to be made and lasts as long as the run.
    pub fn leave_lasting_note(&self, note: &Note) -> io::Result<()> {
        self.append(LASTING, note)
    }

    fn append(&self, file: &str, note: &Note) -> io::Result<()> {
        let mut notes = doorbell_files::own(&self.path.join(file), true)?;
        let mut line = serde_json::to_vec(note)?;
        line.push(b'\n');
        notes.write_all(&line)
    }

    pub fn clear_notes(&self) {
        clear_notes(&self.path, NOTES);
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            clear(&self.path);
        }
    }
}

/// Where run folders live: the user's runtime folder, else the system's folder for temporary files.
fn parent() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir()) {
        Some(runtime) => runtime.join("doorbell"),
        None => std::env::temp_dir().join(format!("doorbell-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Whether `path` is a folder of this user's that nobody else may enter.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|made| {
        made.is_dir() && made.uid() == rustix::process::geteuid().as_raw() && made.mode() & 0o077 == 0
    })
}

/// What there is of folders beside `wanted` that were made in its place.
fn others_of(wanted: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (wanted.parent(), wanted.file_name()) else { return Vec::new() };
    let prefix = format!("{}.", name.display());
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    named.map(|entry| entry.path()).collect()
}

/// The folder `wanted`, made if it is not there; where somebody else has one by that name, perhaps
/// with notes of his own, one of ours beside it, whose name nobody could foresee.
pub fn own_folder(wanted: &Path) -> io::Result<PathBuf> {
    let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
    let (Some(folder), Some(name)) = (wanted.parent(), wanted.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = doorbell_files::folder(folder).map_err(|cause| {
        let told = format!(
            "cannot make {}: {cause}; set TMPDIR to a folder that you may write to",
            folder.display()
        );
        io::Error::new(cause.kind(), told)
    })?;
    let wanted = &folder.join(name);
    // One that is there already is as good, if it is ours.
    let _ = make(wanted);
    if is_ours(wanted) {
        return Ok(wanted.clone());
    }
    // What a run that was killed has left in one of them is cleared by the next.
    if let Some(path) = others_of(wanted).into_iter().find(|path| is_ours(path)) {
        return Ok(path);
    }
    let path = folder.join(format!("{}.{:016x}", name.display(), fastrand::Rng::new().u64(..)));
    make(&path).map(|()| path)
}

fn open_lock(folder: &Path) -> io::Result<File> {
    doorbell_files::own(&folder.join("lock"), false)
}

/// Lets child processes keep the lock across `exec`.
fn inherit(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

#[expect(clippy::disallowed_methods, reason = "nobody else may enter the folder")]
fn existing(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).open(path)
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let lock = match existing(&path.join("lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() != io::ErrorKind::NotFound => continue,
            // A folder without a lock is one whose maker died between
            // two calls, or has not come to the second yet.
            Err(_) => {
                let old = entry.metadata().and_then(|data| data.modified()).is_ok_and(|made| {
                    made.elapsed().is_ok_and(|age| age > std::time::Duration::from_secs(60))
                });
                if old {
                    clear(&path);
                }
                continue;
            }
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && is_at(&lock, &path.join("lock"))
        {
            clear(&path);
        }
    }
}

/// Whether the file still is the one at `path`: another sweep may
/// have removed it, and a new run made its own there.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => identity(open) == identity(there),
        _ => false,
    }
}

/// Removes the folder and what its notes name. As long as a note cannot be read, what it names may
/// be there: the folder stays, for a program that can read it.
fn clear(path: &Path) {
    if [NOTES, LASTING].map(|name| clear_notes(path, name)) == [true, true] {
        // Nothing is lost if this fails: the next run's sweep meets the folder again.
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes what the notes in a file name, and the notes; those that
/// cannot be read stay. Whether none did.
fn clear_notes(path: &Path, name: &str) -> bool {
    let file = path.join(name);
    let text = match doorbell_files::bytes(&file, LONGEST_NOTES) {
        Ok(text) => text,
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    let mut unread = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(note) => remove(&note),
            // A note is written whole before its object is made: of one without its end there is none.
            Err(_) if line.ends_with(b"\n") => unread.extend_from_slice(line),
            Err(_) => {}
        }
    }
    if unread.is_empty() {
        let _ = fs::remove_file(file);
        return true;
    }
    // Those that were read are gone with their objects: their names may be somebody else's by the next
    // time. If this fails all stay, which is what there was before.
    let _ = doorbell_files::put(&file, &unread);
    false
}

/// Removes one object; that it is gone already is as good.
fn remove(note: &Note) {
    match note {
        Note::Semaphore(name) => with_c_string(name, |name| {
            // SAFETY: `name` is a C string that lives through the call.
            unsafe { libc::sem_unlink(name) };
        }),
        Note::MessageQueue(name) => with_c_string(name, |name| {
            // SAFETY: as above.
            unsafe { libc::mq_unlink(name) };
        }),
        // SAFETY: takes integers only.
        Note::SystemVSemaphores(key) => unsafe {
            let id = libc::semget(*key, 0, 0);
            if id >= 0 {
                libc::semctl(id, 0, libc::IPC_RMID);
            }
        },
        // SAFETY: takes integers and a null pointer, which IPC_RMID ignores.
        Note::SystemVMessages(key) => unsafe {
            let id = libc::msgget(*key, 0);
            if id >= 0 {
                libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut());
            }
        },
        Note::File { path, inode } => {
            if is_a_runs(path, *inode) {
                // A file that is gone already, or lies where nothing can be removed, is left as it is.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether the file at `path` is the one that a run noted. The device
/// is not compared: its number may change at a boot.
fn is_a_runs(path: &Path, inode: Option<u64>) -> bool {
    let named = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(Note::FILE_PREFIX));
    let Ok(there) = fs::symlink_metadata(path) else { return false };
    let same = match inode {
        Some(inode) => there.ino() == inode,
        // Noted before it was made, and not again: nobody has written to it.
        None => there.len() == 0,
    };
    named && path.is_absolute() && there.is_file() && same
}

fn with_c_string(text: &str, act: impl FnOnce(*const libc::c_char)) {
    if let Ok(text) = std::ffi::CString::new(text) {
        act(text.as_ptr());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What a note makes of the folder that it is about: the names that are left there.
    fn left(folder: &Path, path: &Path, inode: Option<u64>) -> Vec<String> {
        remove(&Note::File { path: path.to_owned(), inode });
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Another user who had made the folder first kept everybody's runs from beginning.
    #[test]
    fn a_folder_that_is_not_ours_is_left_to_its_owner_and_another_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("doorbell-7");
        assert_eq!(own_folder(&wanted).unwrap(), wanted);
        // Anybody may write to it: it is no more ours than another user's.
        fs::set_permissions(&wanted, fs::Permissions::from_mode(0o777)).unwrap();
        let other = own_folder(&wanted).unwrap();
        assert_ne!(other, wanted);
        assert_eq!(fs::metadata(&other).unwrap().mode() & 0o777, 0o700);
        assert_eq!(own_folder(&wanted).unwrap(), other);
        fs::remove_dir(&wanted).unwrap();
        std::os::unix::fs::symlink(&other, &wanted).unwrap();
        assert_eq!(own_folder(&wanted).unwrap(), other, "a link leads where its owner likes");
    }

    /// Once whatever had the name was removed.
    #[test]
    fn a_file_is_removed_only_if_it_is_still_the_one_that_was_noted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let path = at("doorbell-io-7");
        fs::write(&path, "blocks").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        // Held, so that its number is not given to the next.
        let held = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        assert_eq!(left(folder.path(), &path, Some(inode)), ["doorbell-io-7"]);
        fs::remove_file(&path).unwrap();
        fs::write(at("precious"), "").unwrap();
        std::os::unix::fs::symlink(at("precious"), &path).unwrap();
        let link = fs::symlink_metadata(&path).unwrap().ino();
        assert_eq!(left(folder.path(), &path, Some(link)), ["doorbell-io-7", "precious"]);
        fs::remove_file(&path).unwrap();
        drop(held);
        fs::write(&path, "blocks").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(left(folder.path(), &path, Some(inode)), ["precious"]);
    }

    /// Notes that another version had written were dropped, and what they name stayed for ever.
    #[test]
    fn a_note_that_cannot_be_read_is_kept_with_its_folder_and_the_others_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        let made = folder.path().join("doorbell-io-9");
        fs::write(&made, "").unwrap();
        let known = serde_json::to_string(&Note::File { path: made.clone(), inode: None }).unwrap();
        let unknown = "{\"moon-base\":\"crater\"}\n";
        fs::write(run.join(LASTING), format!("{known}\n{unknown}{{\"semaph")).unwrap();
        clear(&run);
        assert!(!made.exists());
        assert_eq!(fs::read_to_string(run.join(LASTING)).unwrap(), unknown);
        fs::remove_file(run.join(LASTING)).unwrap();
        clear(&run);
        assert!(!run.exists());
    }

    #[test]
    fn a_run_that_died_between_note_and_file_leaves_nothing_and_takes_nothing_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("doorbell-io-7"), "").unwrap();
        fs::write(at("doorbell-io-8"), "written to, so noted again").unwrap();
        fs::write(at("other"), "").unwrap();
        assert_eq!(left(folder.path(), &at("doorbell-io-7"), None), ["doorbell-io-8", "other"]);
        assert_eq!(left(folder.path(), &at("doorbell-io-8"), None), ["doorbell-io-8", "other"]);
        assert_eq!(left(folder.path(), &at("other"), None), ["doorbell-io-8", "other"]);
    }
}
