// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages that guests are made of: the kernel, and a shell for people. Unpacked into the cache, never
//! installed.
//!
//! `packages/NAME_VERSION_SUM` holds one unpacked package; a name in `chosen/` says which of them is in use, so that a
//! guest stays the same until the cache is deleted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;

use crate::apt::{Apt, Offer, run};
use crate::cache::{self, folder_made, put};

/// What could not be fetched, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No place for the cache.
    #[error("there is no place for the cache: set HOME or XDG_CACHE_HOME to a folder")]
    NoCache,
    /// A file of the cache.
    #[error("cannot write {}: {cause}; delete the cache or name another with XDG_CACHE_HOME", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A program or package of the host.
    #[error("{0} is needed and not here; on Debian install apt, dpkg and debian-archive-keyring")]
    Lacking(&'static str),
    /// A program that does not start.
    #[error("cannot start {program}: {cause}")]
    Start {
        /// The program.
        program: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// A program that failed.
    #[error("{program} ended with {status}: {complaint}")]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        complaint: String,
    },
    /// A program that does not end.
    #[error("{program} did not end within {} s; try again, or name another mirror with DOORBELL_DEBIAN_MIRROR", .after.as_secs())]
    Late {
        /// The program.
        program: &'static str,
        /// How long it was given.
        after: Duration,
    },
    /// A package that the lists do not have.
    #[error("Debian's lists have no usable package {0}")]
    NoSuchPackage(String),
    /// A package without what it is fetched for.
    #[error("{} holds no {wanted}; delete it and build again", .folder.display())]
    Incomplete {
        /// The unpacked package.
        folder: PathBuf,
        /// What it lacks.
        wanted: &'static str,
    },
}

/// A part of a guest that is a package of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The kernel made for virtual machines: NVMe and the serial ports are built into it.
    Kernel,
    /// A shell with the usual small programs, in one static file.
    Shell,
}

/// A package that is not in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it is for.
    pub part: Part,
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// What is fetched for it.
    pub bytes: u64,
    sha256: String,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Shell];

    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Shell => "shell",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Kernel => "linux-image-cloud-amd64",
            Self::Shell => "busybox-static",
        }
    }

    /// The file the guest needs, if it is in the cache.
    pub fn find(self) -> Option<PathBuf> {
        let folder = folder().ok()?;
        let chosen = fs::read_to_string(folder.join("chosen").join(self.name())).ok()?;
        self.file(&folder.join("packages").join(chosen.trim()))
    }

    fn file(self, unpacked: &Path) -> Option<PathBuf> {
        match self {
            Self::Shell => Some(unpacked.join("bin/busybox")).filter(|file| file.exists()),
            Self::Kernel => {
                let files = fs::read_dir(unpacked.join("boot")).ok()?;
                let name = |file: &PathBuf| file.file_name()?.to_str()?.starts_with("vmlinuz-").then_some(());
                files.filter_map(|file| Some(file.ok()?.path())).find(|file| name(file).is_some())
            }
        }
    }
}

fn folder() -> Result<PathBuf, FetchError> {
    Ok(cache::folder().ok_or(FetchError::NoCache)?.join("vm"))
}

/// What is to be fetched. While it is there no other process changes the cache.
#[derive(Debug)]
pub struct Errand {
    /// The parts that are not in the cache, as Debian offers them.
    pub missing: Vec<Missing>,
    cache: Option<Cache>,
}

#[derive(Debug)]
struct Cache {
    folder: PathBuf,
    apt: Apt,
    _lock: File,
}

fn absent() -> Vec<Part> {
    Part::ALL.into_iter().filter(|part| part.find().is_none()).collect()
}

/// Finds out what is missing; asks the network only if anything is. Another process that changes the cache is waited for,
/// and `waits` told so.
pub fn errand(waits: impl FnOnce()) -> Result<Errand, FetchError> {
    if absent().is_empty() {
        return Ok(Errand { missing: Vec::new(), cache: None });
    }
    let folder = folder()?;
    folder_made(&folder)?;
    let lock = lock(&folder.join("lock"), waits)?;
    // Whoever was waited for may have fetched it.
    let absent = absent();
    if absent.is_empty() {
        return Ok(Errand { missing: Vec::new(), cache: None });
    }
    let apt = Apt::update(&folder.join("apt"))?;
    let missing = absent.into_iter().map(|part| offer(&apt, part)).collect::<Result<_, _>>()?;
    Ok(Errand { missing, cache: Some(Cache { folder, apt, _lock: lock }) })
}

fn lock(path: &Path, waits: impl FnOnce()) -> Result<File, FetchError> {
    let fail = |cause| FetchError::File { path: path.to_owned(), cause };
    let file = File::create(path).map_err(fail)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            waits();
            flock(&file, FlockOperation::LockExclusive)
        }
        outcome => outcome,
    }
    .map_err(|error| fail(error.into()))?;
    Ok(file)
}

fn offer(apt: &Apt, part: Part) -> Result<Missing, FetchError> {
    let mut offer = apt.offer(part.package())?;
    if part == Part::Kernel {
        // The package for "the newest one" depends on the package with the kernel.
        let name = offer.depends.split([' ', ',']).find(|name| name.starts_with("linux-image-"));
        let name = name.ok_or_else(|| FetchError::NoSuchPackage(offer.package.clone()))?.to_owned();
        offer = apt.offer(&name)?;
    }
    let Offer { package, version, bytes, sha256, .. } = offer;
    Ok(Missing { part, package, version, bytes, sha256 })
}

impl Errand {
    /// Fetches and unpacks what is missing; a folder appears under its name only when it is complete.
    pub fn run(self) -> Result<(), FetchError> {
        let Some(Cache { folder, apt, _lock }) = self.cache else { return Ok(()) };
        let (packages, chosen) = (folder.join("packages"), folder.join("chosen"));
        folder_made(&packages)?;
        folder_made(&chosen)?;
        for wanted in &self.missing {
            let name = format!("{}_{}_{}", wanted.package, wanted.version, &wanted.sha256[..16]);
            let done = packages.join(&name);
            if !done.exists() {
                bring(&apt, wanted, &packages.join(format!("{name}.part")), &done)?;
            }
            if wanted.part.file(&done).is_none() {
                return Err(FetchError::Incomplete { folder: done, wanted: wanted.part.name() });
            }
            put(&chosen.join(wanted.part.name()), &name)?;
        }
        Ok(())
    }
}

/// Fetches one package and unpacks it into `part`, which then becomes `done`.
fn bring(apt: &Apt, wanted: &Missing, part: &Path, done: &Path) -> Result<(), FetchError> {
    let fail = |cause| FetchError::File { path: part.to_owned(), cause };
    if part.exists() {
        fs::remove_dir_all(part).map_err(fail)?;
    }
    folder_made(&part.join("deb"))?;
    apt.download(&wanted.package, &wanted.version, &part.join("deb"))?;
    unpack(part)?;
    // Else a crash could leave a folder that is called complete and is not.
    File::open(part).and_then(|folder| Ok(syncfs(&folder)?)).map_err(fail)?;
    fs::rename(part, done).map_err(fail)
}

fn unpack(folder: &Path) -> Result<(), FetchError> {
    let deb = folder.join("deb");
    let fail = |cause| FetchError::File { path: deb.clone(), cause };
    let files = fs::read_dir(&deb).map_err(fail)?.collect::<io::Result<Vec<_>>>().map_err(fail)?;
    for file in files {
        run("dpkg-deb", ["-x".as_ref(), file.path().as_os_str(), folder.as_os_str()], folder, &[])?;
    }
    fs::remove_dir_all(&deb).map_err(fail)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_second_build_waits_for_the_first_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock(&path, || panic!("nobody holds it yet")).unwrap();
        let (say, said) = mpsc::channel();
        thread::scope(|scope| {
            let second = scope.spawn(|| lock(&path, move || say.send(()).unwrap()).map(drop));
            said.recv().unwrap();
            drop(held);
            second.join().unwrap().unwrap();
        });
    }
}
