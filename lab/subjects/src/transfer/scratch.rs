// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a run: made, filled and checked before the first trial, removed with the run's
//! folder, by this run or the next.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use doorbell_results::record::io::{Pass, Prepared};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

use super::Buffer;
use doorbell_harness::run_dir::{Note, RunDir};

/// Bytes that are told apart: every one begins with a stamp that says which it is.
pub const SECTOR: u64 = 512;

/// The bytes of one write while filling.
const CHUNK: usize = 1 << 20;
/// The bytes of one write in later passes, which go over the file in random order.
const RANDOM: usize = 4096;

/// Why there is no file to transfer to.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error("{call} {}: {cause}{}", .path.display(), cure(.cause))]
    Call { call: &'static str, path: PathBuf, cause: io::Error },
    #[error("{}: {read} of {wanted} bytes at {offset} could be read back; the device or its file \
        system has cut it short: look for its errors in `dmesg`, and take another disk (--dir or \
        --device)", .path.display())]
    Short { path: PathBuf, offset: u64, read: usize, wanted: usize },
    #[error("{}: interrupted while it was filled", .0.display())]
    Interrupted(PathBuf),
    #[error("{}: what was written to the block at {offset} did not come back; the device or its \
        file system is broken: look for its errors in `dmesg`, and take another disk (--dir or \
        --device)", .path.display())]
    NotThere { path: PathBuf, offset: u64 },
    #[error("{}: the file system left a hole at {offset}, which is read without a device; choose a \
        folder on another file system with --dir", .path.display())]
    Hole { path: PathBuf, offset: u64 },
}

fn cure(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EINVAL) => {
            "; its file system takes no direct transfers: choose a folder on a disk with --dir"
        }
        Some(libc::ENOSPC) => "; make room, or a smaller file with --file-size",
        Some(libc::EACCES | libc::EROFS) => "; choose another folder with --dir",
        _ => "",
    }
}

/// What the sector at `offset` bytes begins with.
pub fn stamp(offset: u64) -> u64 {
    // The odd constant spreads neighbouring numbers over all bits (Knuth, The Art of Computer
    // Programming 3, 6.4): a block of zeros, or of another file, is none.
    (offset / SECTOR + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The name under which a run's folder knows its file.
const LINK: &str = "io-file";
const NOTED: &str = "io-prepared.json";

/// Where the run with this folder has its file.
pub fn path(run_dir: &Path) -> PathBuf {
    run_dir.join(LINK)
}

/// What a run's folder knows of its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    pub prepared: Prepared,
    /// The file that was made: the number of its file system and of its inode; none of a device.
    pub file: Option<[u64; 2]>,
}

/// The longest note that is read, bytes.
const LONGEST_NOTE: u64 = 1 << 20;

impl Noted {
    /// What was noted in a run's folder.
    pub fn read(run_dir: &Path) -> Option<Self> {
        serde_json::from_str(&doorbell_files::text(&run_dir.join(NOTED), LONGEST_NOTE).ok()?).ok()
    }

    fn write(&self, run_dir: &Path) -> io::Result<()> {
        doorbell_files::put(&run_dir.join(NOTED), &serde_json::to_vec(self)?)
    }
}

/// Makes the run's file of `bytes` in `folder` and fills it in so
/// many passes, or until `interrupted`.
pub fn make(
    run_dir: &RunDir,
    folder: &Path,
    bytes: u64,
    passes: u32,
    interrupted: &AtomicBool,
) -> Result<(), ScratchError> {
    let absolute = std::path::absolute(folder).and_then(|folder| doorbell_files::resolved(&folder));
    let folder =
        absolute.map_err(|cause| ScratchError::Call { call: "find", path: folder.to_owned(), cause })?;
    let (path, file) = create(run_dir, &folder, libc::O_DIRECT)?;
    let prepared = fill(&file, &path, bytes, passes, interrupted)?;
    whole(&file, &path, bytes)?;
    let noted = || {
        let data = file.metadata()?;
        Noted { prepared, file: Some([data.dev(), data.ino()]) }.write(run_dir.path())?;
        std::os::unix::fs::symlink(&path, run_dir.path().join(LINK))
    };
    noted().map_err(|cause| ScratchError::Call { call: "note", path: path.clone(), cause })
}

/// A file in `folder` that nobody else has, opened with `flags`. It is noted before it is there and
/// again when it is, so that whoever comes after a sudden end knows what to remove.
///
/// The name is drawn at random: in a folder for everybody's temporary files, one that could be told
/// beforehand could be made there by somebody else first.
fn create(run_dir: &RunDir, folder: &Path, flags: libc::c_int) -> Result<(PathBuf, File), ScratchError> {
    let mut lot = [0; 16];
    let drawn = getrandom(&mut lot[..], GetRandomFlags::empty()).map_err(io::Error::from);
    let path = folder.join(format!("{}{:032x}", Note::FILE_PREFIX, u128::from_ne_bytes(lot)));
    let failed = |call| {
        let path = path.clone();
        move |cause| ScratchError::Call { call, path, cause }
    };
    // Up to 256 bytes come whole or not at all (getrandom(2)).
    drawn.map_err(failed("name"))?;
    let note = |inode| run_dir.leave_lasting_note(&Note::File { path: path.clone(), inode });
    note(None).map_err(failed("note"))?;
    #[expect(clippy::disallowed_methods, reason = "made new, with the flags of the transfers")]
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(&path)
        .map_err(failed("make"))?;
    let inode = file.metadata().map_err(failed("look at"))?.ino();
    note(Some(inode)).map_err(failed("note"))?;
    Ok((path, file))
}

/// Fills a device that may be written, in so many passes, or until `interrupted`.
pub fn fill_device(
    run_dir: &RunDir,
    path: &Path,
    file: OwnedFd,
    bytes: u64,
    passes: u32,
    interrupted: &AtomicBool,
) -> Result<(), ScratchError> {
    let whole = bytes / CHUNK as u64 * CHUNK as u64;
    let prepared = fill(&File::from(file), path, whole, passes, interrupted)?;
    Noted { prepared, file: None }.write(run_dir.path()).map_err(|cause| ScratchError::Call {
        call: "note",
        path: path.to_owned(),
        cause,
    })
}

fn go_on(path: &Path, interrupted: &AtomicBool) -> Result<(), ScratchError> {
    if interrupted.load(Relaxed) { Err(ScratchError::Interrupted(path.to_owned())) } else { Ok(()) }
}

fn fill(
    file: &File,
    path: &Path,
    bytes: u64,
    passes: u32,
    interrupted: &AtomicBool,
) -> Result<Prepared, ScratchError> {
    let failed = |call| move |cause| ScratchError::Call { call, path: path.to_owned(), cause };
    let mut done = Vec::new();
    for pass in 0..passes {
        let begun = Instant::now();
        let (order, size) = if pass == 0 { ("sequential", CHUNK) } else { ("random", RANDOM) };
        let buffer = Buffer::new(size);
        let blocks = bytes / size as u64;
        let mut random = fastrand::Rng::with_seed(u64::from(pass));
        // Every block once: an odd step walks a circle of 2^n places
        // through all of them, and places beyond the end are skipped.
        let circle = blocks.next_power_of_two();
        let (mut place, step) = (random.u64(..circle), if pass == 0 { 1 } else { random.u64(..circle) | 1 });
        if pass == 0 {
            place = 0;
        }
        for _ in 0..circle {
            if place < blocks {
                go_on(path, interrupted)?;
                let offset = place * size as u64;
                stamp_all(&buffer, offset);
                write(file, &buffer, offset).map_err(failed("write"))?;
            }
            place = (place + step) % circle;
        }
        file.sync_all().map_err(failed("fsync"))?;
        let took_ns = begun.elapsed().as_nanos() as u64;
        done.push(Pass {
            order: order.to_owned(),
            took_ns,
            rate: bytes as f64 * 1e9 / took_ns.max(1) as f64,
        });
    }
    let checked_sectors = check(file, path, bytes, interrupted)?;
    Ok(Prepared { bytes, passes: done, checked_sectors })
}

pub(super) fn stamp_all(buffer: &Buffer, offset: u64) {
    for sector in 0..buffer.bytes() as u64 / SECTOR {
        buffer.stamp_at((sector * SECTOR) as usize, stamp(offset + sector * SECTOR));
    }
}

fn write(file: &File, buffer: &Buffer, offset: u64) -> io::Result<()> {
    // SAFETY: by the invariant of the buffer nobody else touches it
    // during the call, and it is as long as it says.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.pointer(), buffer.bytes()) };
    file.write_all_at(bytes, offset)
}

/// Reads all of it back, past the page cache, and compares the stamps.
fn check(file: &File, path: &Path, bytes: u64, interrupted: &AtomicBool) -> Result<u64, ScratchError> {
    let buffer = Buffer::new(CHUNK);
    let mut checked = 0;
    let mut offset = 0;
    while offset + CHUNK as u64 <= bytes {
        go_on(path, interrupted)?;
        // SAFETY: the buffer is as long as it says, and nobody else
        // touches it during the call. JUSTIFICATION: the safe read needs a
        // slice of its own, which no O_DIRECT takes unless it is aligned.
        let read =
            unsafe { libc::pread(file.as_raw_fd(), buffer.pointer().cast(), CHUNK, offset as libc::off_t) };
        if read < 0 {
            let cause = io::Error::last_os_error();
            return Err(ScratchError::Call { call: "read", path: path.to_owned(), cause });
        }
        // What did not come is not there to be compared: the buffer still holds the chunk before.
        let read = read.cast_unsigned();
        if read < CHUNK {
            return Err(ScratchError::Short { path: path.to_owned(), offset, read, wanted: CHUNK });
        }
        for sector in 0..CHUNK as u64 / SECTOR {
            let own = offset + sector * SECTOR;
            if buffer.stamped_at((sector * SECTOR) as usize) != stamp(own) {
                return Err(ScratchError::NotThere { path: path.to_owned(), offset: own });
            }
            checked += 1;
        }
        offset += CHUNK as u64;
    }
    Ok(checked)
}

/// That the file has no hole: lseek(2) SEEK_HOLE finds its end.
fn whole(file: &File, path: &Path, bytes: u64) -> Result<(), ScratchError> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0)) {
        Ok(offset) if offset < bytes => Err(ScratchError::Hole { path: path.to_owned(), offset }),
        // A file system that does not know holes has none that it would tell of.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty file to be filled.
    fn file(folder: &Path) -> (PathBuf, File) {
        let path = folder.join("file");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        (path, file.unwrap())
    }

    #[test]
    fn every_sector_has_a_stamp_of_its_own_and_none_is_zero() {
        let stamps: std::collections::HashSet<u64> =
            (0..10_000).map(|sector| stamp(sector * SECTOR)).collect();
        assert_eq!(stamps.len(), 10_000);
        assert!(!stamps.contains(&0));
    }

    #[test]
    fn a_target_is_filled_in_every_block_by_every_order_and_a_changed_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = 3 * CHUNK as u64;
        for passes in [1, 3] {
            let (path, file) = file(folder.path());
            let prepared = fill(&file, &path, bytes, passes, &AtomicBool::new(false)).unwrap();
            assert_eq!(prepared.checked_sectors, bytes / SECTOR);
            assert_eq!(prepared.passes.len(), passes as usize);
            assert!(whole(&file, &path, bytes).is_ok());
            file.write_all_at(&[0; 8], 5 * SECTOR).unwrap();
            let error = check(&file, &path, bytes, &AtomicBool::new(false)).unwrap_err();
            assert!(
                matches!(error, ScratchError::NotThere { offset, .. } if offset == 5 * SECTOR),
                "{error}"
            );
        }
        let (path, file) = file(folder.path());
        file.set_len(bytes).unwrap();
        assert!(matches!(whole(&file, &path, bytes), Err(ScratchError::Hole { offset: 0, .. })));
    }

    /// It was told as a block that did not come back, found by what
    /// the chunk before had left in the buffer.
    #[test]
    fn a_file_that_was_cut_short_is_told_as_such_with_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = file(folder.path());
        let (go_on, bytes) = (AtomicBool::new(false), 2 * CHUNK as u64);
        fill(&file, &path, bytes, 1, &go_on).unwrap();
        file.set_len(bytes - SECTOR).unwrap();
        let error = check(&file, &path, bytes, &go_on).unwrap_err();
        let short = CHUNK - SECTOR as usize;
        assert!(
            matches!(error, ScratchError::Short { offset, read, wanted: CHUNK, .. } if (offset, read) == (CHUNK as u64, short)),
            "{error}"
        );
    }

    /// Ctrl-C was looked at only when all passes were done.
    #[test]
    fn an_interrupted_fill_stops_before_its_next_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = file(folder.path());
        let interrupted = AtomicBool::new(true);
        let error = fill(&file, &path, 8 * CHUNK as u64, 1, &interrupted).unwrap_err();
        assert!(matches!(error, ScratchError::Interrupted(_)), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 0);
        fill(&file, &path, 8 * CHUNK as u64, 1, &AtomicBool::new(false)).unwrap();
        assert!(matches!(
            check(&file, &path, 8 * CHUNK as u64, &interrupted),
            Err(ScratchError::Interrupted(_))
        ));
    }

    /// The name was the run's number and a count: anybody could make it in `/tmp` beforehand.
    #[test]
    fn files_of_one_run_have_names_that_nobody_can_tell_beforehand_and_are_noted_with_their_inodes() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let lock = File::create(run.join("lock")).unwrap();
        let run_dir = RunDir::inherited(run.clone(), lock);
        let made = [(); 2].map(|()| create(&run_dir, folder.path(), 0).unwrap());
        let names = made.each_ref().map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned());
        let lots = names.each_ref().map(|name| name.strip_prefix(Note::FILE_PREFIX).unwrap());
        assert!(lots.iter().all(|lot| lot.len() == 32), "{names:?}");
        // Of 32 digits drawn at random two are the same by chance, and 16 once in 10^10 runs.
        let same = lots[0].bytes().zip(lots[1].bytes()).filter(|(one, other)| one == other).count();
        assert!(same < 16, "{names:?}");
        let notes = std::fs::read_to_string(run.join("lasting-notes")).unwrap();
        let notes: Vec<Note> = notes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (path, file) in made {
            let data = file.metadata().unwrap();
            assert_eq!(data.mode() & 0o777, 0o600);
            for inode in [None, Some(data.ino())] {
                assert!(notes.contains(&Note::File { path: path.clone(), inode }), "{notes:?}");
            }
        }
    }
}
