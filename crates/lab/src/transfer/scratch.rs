// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a run: made, filled and checked before the first trial, removed with the run's folder, by this run or the next.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Buffer;
use crate::trial::run_dir::{Note, RunDir};

/// Bytes that are told apart: every one begins with a stamp that says which it is.
pub const SECTOR: u64 = 512;

/// The bytes of one write while filling.
const CHUNK: usize = 1 << 20;
/// The bytes of one write in later passes, which go over the file in random order.
const RANDOM: usize = 4096;

/// How a target was prepared, and what a look at it afterwards found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Bytes of it.
    pub bytes: u64,
    /// Each pass in order: the first from front to end in blocks of 1 MiB, later ones over every block of 4 KiB in random order.
    pub passes: Vec<Pass>,
    /// Sectors of 512 bytes that were read back from the device and held what had been written; all of them, or the run ends.
    pub checked_sectors: u64,
}

/// One pass over a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// `sequential` or `random`.
    pub order: String,
    /// How long it took, fsync included, nanoseconds.
    pub took_ns: u64,
    /// Bytes a second.
    pub rate: f64,
}

/// Why there is no file to transfer to.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// A call refused.
    #[error("{call} {}: {cause}{}", .path.display(), cure(.cause))]
    Call {
        /// What was tried.
        call: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// What was written is not there.
    #[error("{}: what was written to the block at {offset} did not come back; the device or its file system is broken", .path.display())]
    NotThere {
        /// Where.
        path: PathBuf,
        /// The first such sector, bytes from the front.
        offset: u64,
    },
    /// The file has a hole, which is read without a device.
    #[error("{}: the file system left a hole at {offset}, which is read without a device", .path.display())]
    Hole {
        /// Where.
        path: PathBuf,
        /// Bytes from the front.
        offset: u64,
    },
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
    // The odd constant spreads neighbouring numbers over all bits (Knuth, The Art of Computer Programming 3, 6.4): a block of
    // zeros, or of another file, is none.
    (offset / SECTOR + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The name under which a run's folder knows its file.
const LINK: &str = "io-file";
const NOTED: &str = "io-prepared.json";

/// Where the run with this folder has its file.
pub fn path(run_dir: &Path) -> PathBuf {
    run_dir.join(LINK)
}

impl Prepared {
    /// What was noted in a run's folder.
    pub fn noted(run_dir: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(run_dir.join(NOTED)).ok()?).ok()
    }
}

/// Makes the run's file of `bytes` in `folder` and fills it in so many passes.
pub fn make(run_dir: &RunDir, folder: &Path, bytes: u64, passes: u32) -> Result<(), ScratchError> {
    let run = run_dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unique = run_dir.fresh(0);
    let folder = std::path::absolute(folder).map_err(|cause| ScratchError::Call {
        call: "find",
        path: folder.to_owned(),
        cause,
    })?;
    let path = folder.join(format!("{}{run}-{unique:x}", Note::FILE_PREFIX));
    let failed = |call| {
        let path = path.clone();
        move |cause| ScratchError::Call { call, path, cause }
    };
    // Whoever comes after a sudden end knows what to remove.
    run_dir.leave_lasting_note(&Note::File(path.clone())).map_err(failed("note"))?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC)
        .open(&path)
        .map_err(failed("make"))?;
    let prepared = fill(&file, &path, bytes, passes)?;
    whole(&file, &path, bytes)?;
    note(run_dir, &path, &prepared).map_err(failed("note"))
}

/// Fills a device that may be written, in so many passes.
pub fn fill_device(
    run_dir: &RunDir,
    path: &Path,
    file: OwnedFd,
    bytes: u64,
    passes: u32,
) -> Result<(), ScratchError> {
    let prepared = fill(&File::from(file), path, bytes / CHUNK as u64 * CHUNK as u64, passes)?;
    let noted = serde_json::to_vec(&prepared).map_err(io::Error::from);
    noted
        .and_then(|text| std::fs::write(run_dir.path().join(NOTED), text))
        .map_err(|cause| ScratchError::Call { call: "note", path: path.to_owned(), cause })
}

fn note(run_dir: &RunDir, path: &Path, prepared: &Prepared) -> io::Result<()> {
    std::os::unix::fs::symlink(path, run_dir.path().join(LINK))?;
    std::fs::write(run_dir.path().join(NOTED), serde_json::to_vec(prepared)?)
}

fn fill(file: &File, path: &Path, bytes: u64, passes: u32) -> Result<Prepared, ScratchError> {
    let failed = |call| move |cause| ScratchError::Call { call, path: path.to_owned(), cause };
    let mut done = Vec::new();
    for pass in 0..passes {
        let begun = Instant::now();
        let (order, size) = if pass == 0 { ("sequential", CHUNK) } else { ("random", RANDOM) };
        let buffer = Buffer::new(size);
        let blocks = bytes / size as u64;
        let mut random = fastrand::Rng::with_seed(u64::from(pass));
        // Every block once: an odd step walks a circle of 2^n places through all of them, and places beyond the end are skipped.
        let circle = blocks.next_power_of_two();
        let (mut place, step) = (random.u64(..circle), if pass == 0 { 1 } else { random.u64(..circle) | 1 });
        if pass == 0 {
            place = 0;
        }
        for _ in 0..circle {
            if place < blocks {
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
    let checked_sectors = check(file, path, bytes)?;
    Ok(Prepared { bytes, passes: done, checked_sectors })
}

pub(super) fn stamp_all(buffer: &Buffer, offset: u64) {
    for sector in 0..buffer.bytes() as u64 / SECTOR {
        buffer.stamp_at((sector * SECTOR) as usize, stamp(offset + sector * SECTOR));
    }
}

fn write(file: &File, buffer: &Buffer, offset: u64) -> io::Result<()> {
    // SAFETY: by the invariant of the buffer nobody else touches it during the call, and it is as long as it says.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.pointer(), buffer.bytes()) };
    file.write_all_at(bytes, offset)
}

/// Reads all of it back, past the page cache, and compares the stamps.
fn check(file: &File, path: &Path, bytes: u64) -> Result<u64, ScratchError> {
    let buffer = Buffer::new(CHUNK);
    let mut checked = 0;
    let mut offset = 0;
    while offset + CHUNK as u64 <= bytes {
        // SAFETY: the buffer is as long as it says, and nobody else touches it during the call.
        // JUSTIFICATION: the safe read needs a slice of its own, which no O_DIRECT takes unless it is aligned.
        let read =
            unsafe { libc::pread(file.as_raw_fd(), buffer.pointer().cast(), CHUNK, offset as libc::off_t) };
        if read < 0 {
            let cause = io::Error::last_os_error();
            return Err(ScratchError::Call { call: "read", path: path.to_owned(), cause });
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
        let path = folder.path().join("file");
        let bytes = 3 * CHUNK as u64;
        for passes in [1, 3] {
            let file =
                OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
            let prepared = fill(&file, &path, bytes, passes).unwrap();
            assert_eq!(prepared.checked_sectors, bytes / SECTOR);
            assert_eq!(prepared.passes.len(), passes as usize);
            assert!(whole(&file, &path, bytes).is_ok());
            file.write_all_at(&[0; 8], 5 * SECTOR).unwrap();
            let error = check(&file, &path, bytes).unwrap_err();
            assert!(
                matches!(error, ScratchError::NotThere { offset, .. } if offset == 5 * SECTOR),
                "{error}"
            );
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(bytes).unwrap();
        assert!(matches!(whole(&file, &path, bytes), Err(ScratchError::Hole { offset: 0, .. })));
    }
}
