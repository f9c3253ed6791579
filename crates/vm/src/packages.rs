// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages that guests are made of: the kernel, and a shell for people. For who builds modules, the kernel's
//! headers. Unpacked into the cache, never installed.
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
    /// Headers of another version than the kernel's.
    #[error(
        "Debian no longer offers {package} in version {version}, that of the kernel in the cache; delete {} and build again \
         for a newer kernel with its headers", .cache.display()
    )]
    NoHeaders {
        /// The package with the headers.
        package: String,
        /// The kernel's version.
        version: String,
        /// What holds the kernel.
        cache: PathBuf,
    },
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
    /// What modules for the kernel are built with.
    Headers,
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
    /// What is fetched for it, and for what it needs beside it.
    pub bytes: u64,
    sha256: String,
    /// Packages that are unpacked to the same place, each with its version.
    beside: Vec<(String, String)>,
}

impl Part {
    /// What every guest needs.
    pub const GUEST: [Self; 2] = [Self::Kernel, Self::Shell];

    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Shell => "shell",
            Self::Headers => "headers",
        }
    }

    /// The file or folder of use, if it is in the cache: the kernel's image, the shell, the folder that the kernel's own
    /// `make -C` takes.
    pub fn find(self) -> Option<PathBuf> {
        self.file(&folder().ok()?.join("packages").join(self.chosen()?))
    }

    /// The name of the unpacked package in use.
    fn chosen(self) -> Option<String> {
        let chosen = fs::read_to_string(folder().ok()?.join("chosen").join(self.name())).ok()?;
        Some(chosen.trim().to_owned())
    }

    fn file(self, unpacked: &Path) -> Option<PathBuf> {
        let find = |folder: &str, wanted: &dyn Fn(&Path) -> bool| {
            let files = fs::read_dir(unpacked.join(folder)).ok()?;
            files.filter_map(|file| Some(file.ok()?.path())).find(|file| wanted(file))
        };
        match self {
            Self::Shell => Some(unpacked.join("bin/busybox")).filter(|file| file.exists()),
            Self::Kernel => find("boot", &|file| {
                file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz-"))
            }),
            // Beside it lie the headers that all builds of this version share.
            Self::Headers => find("usr/src", &|folder| folder.join("Module.symvers").exists()),
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

/// Finds out what of the guest is missing, and of the kernel's `headers` if they are wanted; asks the network only if
/// anything is. Another process that changes the cache is waited for, and `waits` told so.
pub fn errand(headers: bool, waits: impl FnOnce()) -> Result<Errand, FetchError> {
    let wanted = || Part::GUEST.into_iter().chain(headers.then_some(Part::Headers));
    let there = |part: &Part| part.find().is_some() && (*part != Part::Headers || headers_fit());
    let absent = || wanted().filter(|part| !there(part)).collect::<Vec<_>>();
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
    let mut missing: Vec<Missing> = Vec::new();
    for part in absent {
        let offered = match part {
            Part::Kernel => kernel(&apt)?,
            Part::Shell => Missing::of(part, apt.offer("busybox-static")?),
            Part::Headers => {
                let coming = missing.iter().find(|it| it.part == Part::Kernel);
                let coming = coming.map(|kernel| (kernel.package.clone(), kernel.version.clone()));
                let (kernel, version) = coming
                    .or_else(|| chosen(Part::Kernel))
                    .ok_or_else(|| FetchError::NoSuchPackage("linux-headers".into()))?;
                headers_of(&apt, &kernel, &version, &folder)?
            }
        };
        missing.push(offered);
    }
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

impl Missing {
    fn of(part: Part, offer: Offer) -> Self {
        let Offer { package, version, bytes, sha256, .. } = offer;
        Self { part, package, version, bytes, sha256, beside: Vec::new() }
    }
}

fn kernel(apt: &Apt) -> Result<Missing, FetchError> {
    let newest = apt.offer("linux-image-cloud-amd64")?;
    // The package for "the newest one" depends on the package with the kernel.
    let name = depends(&newest).find(|name| name.starts_with("linux-image-"));
    let name = name.ok_or_else(|| FetchError::NoSuchPackage(newest.package.clone()))?;
    Ok(Missing::of(Part::Kernel, apt.offer(name)?))
}

/// Package and version of a part in the cache.
fn chosen(part: Part) -> Option<(String, String)> {
    let chosen = part.chosen()?;
    let mut words = chosen.split('_');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// Whether the headers in the cache are those of the kernel there; where none is, another may come.
fn headers_fit() -> bool {
    let version = |part| chosen(part).map(|(_, version)| version);
    Part::Kernel.find().is_some() && version(Part::Headers) == version(Part::Kernel)
}

/// The headers of exactly this kernel: a module built with others is refused by it, or worse, is not.
fn headers_of(apt: &Apt, kernel: &str, version: &str, cache: &Path) -> Result<Missing, FetchError> {
    let package = kernel.replace("linux-image-", "linux-headers-");
    let gone = |package: &str| FetchError::NoHeaders {
        package: package.to_owned(),
        version: version.to_owned(),
        cache: cache.to_owned(),
    };
    let offer = |package: &str| match apt.offer(&format!("{package}={version}")) {
        Err(FetchError::Failed { .. } | FetchError::NoSuchPackage(_)) => Err(gone(package)),
        outcome => outcome,
    };
    let own = offer(&package)?;
    // Those that all builds share, and the programs that make modules. The compiler is the host's.
    let beside = depends(&own)
        .filter(|name| ["linux-headers-", "linux-kbuild-"].iter().any(|start| name.starts_with(start)));
    let beside = beside.map(offer).collect::<Result<Vec<_>, _>>()?;
    let mut missing = Missing::of(Part::Headers, own);
    missing.bytes += beside.iter().map(|it| it.bytes).sum::<u64>();
    missing.beside = beside.into_iter().map(|it| (it.package, it.version)).collect();
    Ok(missing)
}

/// The names in a package's "Depends".
fn depends(offer: &Offer) -> impl Iterator<Item = &str> {
    offer.depends.split(',').filter_map(|dependence| dependence.split_whitespace().next())
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
    for (package, version) in &wanted.beside {
        apt.download(package, version, &part.join("deb"))?;
    }
    unpack(part)?;
    if wanted.part == Part::Headers
        && let Some(folder) = wanted.part.file(part)
    {
        settle(&folder)?;
    }
    // Else a crash could leave a folder that is called complete and is not.
    File::open(part).and_then(|folder| Ok(syncfs(&folder)?)).map_err(fail)?;
    fs::rename(part, done).map_err(fail)
}

/// The folder's `Makefile` names the shared headers by where they would be installed; they lie beside it.
fn settle(headers: &Path) -> Result<(), FetchError> {
    let makefile = headers.join("Makefile");
    let fail = |cause| FetchError::File { path: makefile.clone(), cause };
    let text = fs::read_to_string(&makefile).map_err(fail)?;
    fs::write(&makefile, text.replace("/usr/src/", "../")).map_err(fail)
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
    fn the_names_of_what_a_package_needs_are_read_without_versions_and_alternatives() {
        let depends_on =
            "linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (>= 6.1.192-2), gcc-12 | gcc";
        let offer = Offer {
            package: String::new(),
            version: String::new(),
            bytes: 0,
            sha256: String::new(),
            depends: depends_on.to_owned(),
        };
        let names: Vec<_> = depends(&offer).collect();
        assert_eq!(names, ["linux-headers-6.1.0-56-common", "linux-kbuild-6.1", "gcc-12"]);
    }

    #[test]
    fn headers_are_found_by_their_list_of_symbols_and_look_for_the_shared_ones_beside_them() {
        let unpacked = tempfile::tempdir().unwrap();
        let (shared, own) =
            ("usr/src/linux-headers-6.1.0-56-common", "usr/src/linux-headers-6.1.0-56-cloud-amd64");
        for folder in [shared, own] {
            fs::create_dir_all(unpacked.path().join(folder)).unwrap();
        }
        assert_eq!(Part::Headers.file(unpacked.path()), None);
        let own = unpacked.path().join(own);
        fs::write(own.join("Module.symvers"), "").unwrap();
        fs::write(own.join("Makefile"), "include /usr/src/linux-headers-6.1.0-56-common/Makefile\n").unwrap();
        assert_eq!(Part::Headers.file(unpacked.path()), Some(own.clone()));
        settle(&own).unwrap();
        let makefile = fs::read_to_string(own.join("Makefile")).unwrap();
        assert_eq!(makefile, "include ../linux-headers-6.1.0-56-common/Makefile\n");
    }

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
