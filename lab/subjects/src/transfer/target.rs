// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens what is transferred between, and refuses what must not be written.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use doorbell_files::Held;

use super::scratch::{self, Noted};
use doorbell_machine::block::{self, InUse};
use doorbell_machine::root::Root;
use doorbell_results::configuration::{Direction, Target};
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::record::io::Prepared;

#[derive(Debug)]
pub struct Opened {
    /// Open for the direction asked for.
    pub file: OwnedFd,
    /// Its length, bytes.
    pub bytes: u64,
    /// The device that it is or lies on; none where the file system has none.
    pub device: Option<BlockDevice>,
    pub number: [u32; 2],
    /// What is known of its content.
    pub prepared: Option<Prepared>,
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("{}: {cause}", .path.display())]
    Open { path: PathBuf, cause: io::Error },
    #[error("{} is no longer the file that this run made and filled: somebody has put another in \
        its place; the run wrote nothing to that one: run it again, with --dir in a folder that \
        only you may write to", .0.display())]
    Replaced(PathBuf),
    #[error("{} cannot be opened with O_DIRECT: its file system keeps everything in memory; choose \
        a folder on a disk with --dir", .0.display())]
    NoDirect(PathBuf),
    #[error("{} is no {wanted}", .path.display())]
    Kind { path: PathBuf, wanted: &'static str },
    #[error("{} has {bytes} bytes, fewer than a block of {block}", .path.display())]
    TooSmall { path: PathBuf, bytes: u64, block: u32 },
    #[error("{name} takes blocks of {least} bytes and multiples, not {block} (--size)")]
    Block { name: String, least: u64, block: u32 },
    #[error("{} is a file that was there before: it is only read; leave --file out, and a file is \
        made to be written", .0.display())]
    NotOurs(PathBuf),
    #[error("{name} would be overwritten: say so with --write-device {name}")]
    NoConsent { name: String },
    #[error("{0}; it is not written")]
    InUse(InUse),
    #[error("{name} is in use, the kernel says (O_EXCL: {cause}); it is not written")]
    Busy { name: String, cause: io::Error },
}

/// Opens `target` for transfers of `block` bytes in `direction`;
/// `run_dir` is where the file of this run is noted.
pub fn open(
    target: &Target,
    direction: Direction,
    direct: bool,
    block: u32,
    run_dir: &Path,
) -> Result<Opened, TargetError> {
    let root = Root::live();
    let path = match target {
        Target::Created { .. } => scratch::path(run_dir),
        Target::File { path } | Target::Device { path, .. } => path.clone(),
    };
    let at = |cause| TargetError::Open { path: path.clone(), cause };
    let held = Held::at(&path).map_err(at)?;
    let data = &held.data;
    let wanted: (fn(&FileType) -> bool, &str) = match target {
        Target::Device { .. } => (FileTypeExt::is_block_device, "block device"),
        _ => (FileType::is_file, "regular file"),
    };
    if !wanted.0(&data.file_type()) {
        return Err(TargetError::Kind { path, wanted: wanted.1 });
    }
    let noted = Noted::read(run_dir);
    let made = noted.as_ref().and_then(|noted| noted.file);
    if matches!(target, Target::Created { .. }) && made != Some([data.dev(), data.ino()]) {
        return Err(TargetError::Replaced(path));
    }
    let number = match target {
        Target::Device { .. } => data.rdev(),
        _ => device_of(&root, data.dev()),
    };
    let number = [rustix::fs::major(number), rustix::fs::minor(number)];
    let device = doorbell_machine::block::read(&root, number[0], number[1]);
    let mut flags = if direct { libc::O_DIRECT } else { 0 };
    if direction == Direction::Write {
        match target {
            Target::Created { .. } => {}
            Target::File { .. } => return Err(TargetError::NotOurs(path)),
            Target::Device { consent, .. } => {
                may_write(&root, number, device.as_ref(), consent.as_deref())?;
                flags |= libc::O_EXCL;
            }
        }
    }
    let file = held
        .open(OpenOptions::new().read(true).write(direction == Direction::Write).custom_flags(flags))
        .map_err(|cause| match (cause.raw_os_error(), &device) {
            (Some(libc::EINVAL), _) if direct => TargetError::NoDirect(path.clone()),
            (Some(libc::EBUSY), Some(device)) => TargetError::Busy { name: device.name.clone(), cause },
            _ => TargetError::Open { path: path.clone(), cause },
        })?;
    let bytes = length(&file, data, device.as_ref());
    if let Some((name, least)) = device.as_ref().and_then(|device| Some((&device.name, device.block_bytes?)))
        && !u64::from(block).is_multiple_of(least)
    {
        return Err(TargetError::Block { name: name.clone(), least, block });
    }
    if bytes < block.into() {
        return Err(TargetError::TooSmall { path, bytes, block });
    }
    let noted = noted.filter(|_| !matches!(target, Target::File { .. }));
    let prepared = noted.map(|noted| noted.prepared);
    Ok(Opened { file: file.into(), bytes, device, number, prepared })
}

/// The block device that transfers to or from `target` go to, before anything of it is opened or
/// made; none where there is none, or what is named is not there.
pub(crate) fn device(target: &Target, root: &Root) -> Option<BlockDevice> {
    let path = match target {
        Target::Created { folder, .. } => folder.as_deref().unwrap_or(Path::new(".")),
        Target::File { path } | Target::Device { path, .. } => path,
    };
    let data = std::fs::metadata(path).ok()?;
    let number = match target {
        Target::Device { .. } => data.rdev(),
        _ => device_of(root, data.dev()),
    };
    block::read(root, rustix::fs::major(number), rustix::fs::minor(number))
}

/// Whether the device may be written: the user named it, and nobody uses it.
pub(crate) fn may_write(
    root: &Root,
    number: [u32; 2],
    device: Option<&BlockDevice>,
    consent: Option<&str>,
) -> Result<(), TargetError> {
    if let Some(reason) = doorbell_machine::block::in_use(root, number[0], number[1]) {
        return Err(TargetError::InUse(reason));
    }
    let name = device.map(|device| device.name.clone()).unwrap_or_default();
    if consent != Some(name.as_str()) { Err(TargetError::NoConsent { name }) } else { Ok(()) }
}

/// The number of the device under a file system, whose own may be made up.
fn device_of(root: &Root, own: u64) -> u64 {
    let source = block::source_of_mount(root, rustix::fs::major(own), rustix::fs::minor(own));
    let data = source.and_then(|path| std::fs::metadata(path).ok());
    data.filter(|data| data.file_type().is_block_device()).map_or(own, |data| data.rdev())
}

fn length(file: &File, data: &Metadata, device: Option<&BlockDevice>) -> u64 {
    if data.file_type().is_file() {
        return data.len();
    }
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0));
    end.ok().or(device.and_then(|device| device.bytes)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_machine::recorded::Recorded;

    fn refused(recorded: &Recorded, number: [u32; 2], consent: Option<&str>) -> String {
        let device = doorbell_machine::block::read(&recorded.root(), number[0], number[1]);
        match may_write(&recorded.root(), number, device.as_ref(), consent) {
            Ok(()) => "may be written".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_device_is_written_only_if_it_is_free_and_named_by_the_user() {
        let recorded = Recorded::new();
        let empty = [259, 5];
        assert_eq!(refused(&recorded, empty, Some("nvme1n1")), "may be written");
        assert!(refused(&recorded, empty, None).ends_with("say so with --write-device nvme1n1"));
        assert!(refused(&recorded, empty, Some("nvme0n1")).contains("--write-device nvme1n1"));
        assert!(refused(&recorded, [259, 0], Some("nvme0n1")).contains("has partitions"));
        assert!(refused(&recorded, [259, 1], Some("nvme0n1p1")).contains("is a part of nvme0n1"));
        assert!(refused(&recorded, [254, 0], Some("vda")).contains("is mounted on /"));
    }

    #[test]
    fn a_file_that_was_there_before_is_never_opened_to_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious");
        std::fs::write(&path, vec![7; 8192]).unwrap();
        let target = Target::File { path: path.clone() };
        let error = open(&target, Direction::Write, false, 4096, folder.path()).unwrap_err();
        assert!(matches!(error, TargetError::NotOurs(_)), "{error}");
        let opened = open(&target, Direction::Read, false, 4096, folder.path()).unwrap();
        assert_eq!(opened.bytes, 8192);
        assert_eq!(std::fs::read(path).unwrap(), vec![7; 8192]);
    }

    #[test]
    fn what_is_too_small_or_something_else_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short");
        std::fs::write(&path, "short").unwrap();
        let read = |target: &Target| {
            open(target, Direction::Read, false, 4096, folder.path()).unwrap_err().to_string()
        };
        assert!(read(&Target::File { path: path.clone() }).contains("5 bytes, fewer than a block of 4096"));
        assert!(read(&Target::Device { path, consent: None, passes: 0 }).ends_with("is no block device"));
        assert!(read(&Target::File { path: folder.path().to_owned() }).ends_with("is no regular file"));
    }

    /// It was looked at by name, and then opened by name.
    #[test]
    fn what_was_looked_at_is_opened_whatever_has_its_name_by_then() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("looked-at"), "ours").unwrap();
        std::os::unix::fs::symlink(at("looked-at"), at("link")).unwrap();
        let held = Held::at(&at("link")).unwrap();
        std::fs::write(at("other"), "theirs").unwrap();
        std::fs::rename(at("other"), at("looked-at")).unwrap();
        let opened = held.open(OpenOptions::new().read(true)).unwrap();
        assert_eq!(std::io::read_to_string(opened).unwrap(), "ours");
        assert_eq!(held.data.len(), 4);
    }

    #[test]
    fn a_file_in_the_place_of_the_one_that_was_made_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("made"), vec![1; 8192]).unwrap();
        std::os::unix::fs::symlink(at("made"), scratch::path(folder.path())).unwrap();
        let data = std::fs::metadata(at("made")).unwrap();
        let prepared = Prepared { bytes: 8192, passes: Vec::new(), checked_sectors: 16 };
        let noted = Noted { prepared, file: Some([data.dev(), data.ino()]) };
        std::fs::write(at("io-prepared.json"), serde_json::to_vec(&noted).unwrap()).unwrap();
        let target = Target::Created { bytes: 8192, folder: None, passes: 1 };
        let write = || open(&target, Direction::Write, false, 4096, folder.path());
        assert_eq!(write().unwrap().bytes, 8192);
        std::fs::write(at("precious"), vec![7; 8192]).unwrap();
        std::fs::remove_file(at("made")).unwrap();
        std::os::unix::fs::symlink(at("precious"), at("made")).unwrap();
        let error = write().unwrap_err();
        assert!(matches!(error, TargetError::Replaced(_)) && error.to_string().contains("--dir"), "{error}");
    }
}
