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

use rustix::fs::{FlockOperation, flock};

use crate::apt::{Apt, Offer, run};
use crate::cache;

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

/// The parts that are not in the cache, as Debian offers them; asks the network only if any is missing.
pub fn missing() -> Result<Vec<Missing>, FetchError> {
    let absent: Vec<Part> = Part::ALL.into_iter().filter(|part| part.find().is_none()).collect();
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    let apt = Apt::update(&folder()?.join("apt"))?;
    absent.into_iter().map(|part| offer(&apt, part)).collect()
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

/// Fetches and unpacks what [`missing`] named; a folder appears under its name only when it is complete.
pub fn fetch(missing: &[Missing]) -> Result<(), FetchError> {
    let folder = folder()?;
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |cause| FetchError::File { path, cause }
    };
    let (packages, chosen) = (folder.join("packages"), folder.join("chosen"));
    fs::create_dir_all(&packages).map_err(fail(&packages))?;
    fs::create_dir_all(&chosen).map_err(fail(&chosen))?;
    let lock = folder.join("lock");
    let held = File::create(&lock).map_err(fail(&lock))?;
    flock(&held, FlockOperation::LockExclusive).map_err(|cause| fail(&lock)(cause.into()))?;
    for wanted in missing.iter().filter(|wanted| wanted.part.find().is_none()) {
        let name = format!("{}_{}_{}", wanted.package, wanted.version, &wanted.sha256[..16]);
        let (done, part) = (packages.join(&name), packages.join(format!("{name}.part")));
        if !done.exists() {
            if part.exists() {
                fs::remove_dir_all(&part).map_err(fail(&part))?;
            }
            fs::create_dir_all(part.join("deb")).map_err(fail(&part))?;
            let apt = Apt::open(&folder.join("apt"));
            apt.download(&wanted.package, &wanted.version, &part.join("deb"))?;
            unpack(&part)?;
            fs::rename(&part, &done).map_err(fail(&done))?;
        }
        if wanted.part.file(&done).is_none() {
            return Err(FetchError::Incomplete { folder: done, wanted: wanted.part.name() });
        }
        let choice = chosen.join(wanted.part.name());
        fs::write(&choice, &name).map_err(fail(&choice))?;
    }
    Ok(())
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
