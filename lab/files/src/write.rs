// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes files: whole or not at all, and through no link and into no
//! pipe that another user planted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::by_number::is_by_number;
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::folder::is_trusted;
use crate::folder::{or_here, resolved};
#[cfg(unix)]
use crate::read::{NotRead, what};

/// A part of a name that nobody can tell beforehand: in a folder for everybody somebody else could
/// have made it first, as a link to what he wants overwritten.
pub fn unforeseen() -> io::Result<String> {
    let mut lot = [0; 16];
    getrandom::fill(&mut lot)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(lot)))
}

/// Makes a new file, open for reading and writing, with these rights of
/// its owner, group and others, less what the umask takes; an error
/// where there is anything by that name, be it a link (open(2), O_EXCL).
#[expect(clippy::disallowed_methods, reason = "O_EXCL follows nothing and opens nothing that is there")]
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut how, mode);
    #[cfg(not(unix))]
    let _ = mode;
    how.open(path)
}

/// Opens a file of this program's own for writing, at its end if `append`, and makes it, for its
/// owner alone, where there is none. Through no link, and nothing but a regular file.
#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "O_NOFOLLOW, and what is opened is looked at before it is used"
)]
pub fn own(path: &Path, append: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut how = OpenOptions::new();
    how.create(true).write(true).append(append).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = how.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(io::Error::other(NotRead::Kind(what(kind)))) }
}

/// A temporary file on its way to another name; removed when this is dropped. After the rename
/// there is none to remove.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Puts `bytes` in the place of `target`, as [`replace`] does.
pub fn put(target: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(target, |file| file.write_all(bytes))
}

/// Puts a file in the place of `target`: written beside it, flushed to disk, then renamed over it
/// (rename(2) is atomic; without the flush a crash could leave an empty file under the new name).
/// Links of ours and of the superuser's are written through; a pipe or a device is written to.
pub fn replace(target: &Path, put: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let target = resolved(target)?;
    let Some((beside, file)) = beside(&target)? else {
        let mut file = BufWriter::new(pipe_or_device(&target)?);
        put(&mut file)?;
        return file.flush();
    };
    let mut file = BufWriter::new(file);
    put(&mut file)?;
    file.into_inner()?.sync_all()?;
    fs::rename(&beside.0, &target)?;
    // So that the new name survives a crash too. Some file systems cannot flush a folder, nor can
    // Windows; the file is safe there.
    #[expect(clippy::disallowed_methods, reason = "the folder of the file that was just written")]
    File::open(folder_of(&target)).and_then(|folder| folder.sync_all()).or(Ok(()))
}

/// The error that [`replace`] would meet at `target` now, if any; what lies there stays as it is. A
/// pipe or a device is not touched.
pub fn try_out(target: &Path) -> io::Result<()> {
    let target = resolved(target)?;
    if beside(&target)?.is_none() {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        held(&target)?;
    }
    Ok(())
}

fn folder_of(target: &Path) -> &Path {
    or_here(target.parent().unwrap_or(Path::new("")))
}

/// Holds what is no regular file, to be written to.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn held(target: &Path) -> io::Result<crate::Held> {
    if is_by_number(target) {
        return crate::Held::at(target);
    }
    let held = crate::Held::at_name(target)?;
    is_trusted(target, what(held.data.file_type()), &held.data)?;
    Ok(held)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn pipe_or_device(target: &Path) -> io::Result<File> {
    held(target)?.open(OpenOptions::new().write(true))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::disallowed_methods, reason = "the system has no way to hold what it does not open")]
fn pipe_or_device(target: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(target)
}

/// A new file beside `target` that may take its place; none where that is a pipe or a device, which
/// is written to, not replaced.
fn beside(target: &Path) -> io::Result<Option<(Beside, File)>> {
    let there = fs::metadata(target).ok();
    match &there {
        Some(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(there) if !there.is_file() => return Ok(None),
        // Renaming would replace a write-protected file too: ask it for permission first.
        Some(_) => may_be_written(target)?,
        None => {}
    }
    if target.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let path = folder_of(target).join(format!(".doorbell-{}.tmp", unforeseen()?));
    let file = create_new(&path, 0o666)?;
    let beside = Beside(path);
    #[cfg(unix)]
    if let Some(there) = there {
        use std::os::unix::fs::MetadataExt as _;
        // One that was closed to others stays closed. The rights of another user's are not ours to keep.
        if there.uid() == rustix::process::geteuid().as_raw() {
            file.set_permissions(there.permissions())?;
        }
    }
    Ok(Some((beside, file)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a regular file, and O_NONBLOCK: a pipe put there meanwhile does not block"
)]
fn may_be_written(target: &Path) -> io::Result<()> {
    let mut how = OpenOptions::new();
    how.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, flags.bits().cast_signed());
    }
    how.open(target).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use crate::folder::tests::given_away;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
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

    /// Once its name could be told beforehand, and a link there was written through.
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
        for taken in [file.clone(), folder.path().join("new.json"), "/dev/full".into()] {
            try_out(&taken).unwrap();
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_link_of_ones_own_is_written_through_and_a_closed_file_stays_closed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        put(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        std::os::unix::fs::symlink("round", folder.path().join("round")).unwrap();
        assert!(put(&folder.path().join("round"), b"").is_err());
    }

    /// Once the superuser's page overwrote the file that another user's link named, and his report
    /// went into another user's pipe.
    #[test]
    fn a_link_and_a_pipe_that_another_user_planted_are_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        std::os::unix::fs::symlink("precious", at("link")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), mode).unwrap();
        if !given_away(&at("link")) || !given_away(&at("fifo")) {
            doorbell_skipped::skip("only the superuser can give a file away");
            return;
        }
        for (name, what) in [("link", "a link"), ("fifo", "a named pipe")] {
            let told = put(&at(name), b"page").unwrap_err().to_string();
            assert!(told.contains(&format!("is {what} of another user (number 65534)")), "{told}");
        }
        for name in ["link", "fifo"] {
            assert!(try_out(&at(name)).is_err(), "{name}: and a run is told before it measures");
        }
        assert_eq!(fs::read(at("precious")).unwrap(), b"precious");
        // A file of his is replaced, and his rights are not taken over.
        fs::write(at("his"), "").unwrap();
        assert!(given_away(&at("his")));
        put(&at("his"), b"page").unwrap();
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(fs::metadata(at("his")).unwrap().uid(), rustix::process::geteuid().as_raw());
    }

    #[test]
    fn a_new_file_is_made_where_nothing_is_not_even_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        assert_eq!(create_new(&link, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["link"]);
    }
}
