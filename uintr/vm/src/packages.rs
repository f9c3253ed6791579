// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's packages that guests are made of: the kernel, and a shell
//! for people. For who builds modules, the kernel's headers, with the
//! compiler they ask for. Unpacked into the cache, never installed.
//!
//! `packages/NAME_VERSION_SUM` holds one unpacked package; a name in `chosen/` says which of them
//! is in use, so that a guest stays the same until the cache is deleted.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;

use crate::apt::{Apt, Offer, run};
use crate::architecture::{self, Architecture};
use crate::cache::{self, LONGEST, folder_made, put};
use crate::fetch_error::FetchError;
use crate::kernel::{Kernel, NoKernelFor, shell_suites};
use crate::process::Failure;
use crate::program::needs_a_loader;

/// A part of a guest that is a package of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A kernel.
    Kernel(&'static Kernel, &'static Architecture),
    /// A shell with the usual small programs, in one static file.
    Shell(&'static Architecture),
    /// What modules for a kernel are built with, on the same architecture.
    Headers(&'static Kernel),
}

/// A package that is not in the cache.
#[derive(Debug)]
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
    apt: Apt,
}

impl Part {
    fn name(self) -> String {
        let name = match self {
            Self::Kernel(kernel, _) => format!("kernel-{kernel}"),
            Self::Shell(_) => "shell".to_owned(),
            Self::Headers(kernel) => format!("headers-{kernel}"),
        };
        name + &suffix(self.architecture())
    }

    fn architecture(self) -> &'static Architecture {
        match self {
            Self::Kernel(_, architecture) | Self::Shell(architecture) => architecture,
            Self::Headers(_) => &architecture::ALL[0],
        }
    }

    fn suites(self) -> Result<&'static [&'static str], NoKernelFor> {
        match self {
            Self::Shell(architecture) => Ok(shell_suites(architecture)),
            Self::Kernel(kernel, _) | Self::Headers(kernel) => {
                kernel.package(self.architecture()).map(|(_, suites)| suites)
            }
        }
    }

    /// The file or folder of use, if it is in the cache: the kernel's image, the shell, the folder
    /// that the kernel's own `make -C` takes.
    pub fn find(self) -> Option<PathBuf> {
        self.file(&folder().ok()?.join("packages").join(self.chosen()?))
    }

    /// The name of the unpacked package in use.
    fn chosen(self) -> Option<String> {
        let chosen = folder().ok()?.join("chosen").join(self.name());
        let chosen = doorbell_files::text(&chosen, LONGEST).ok()?;
        Some(chosen.trim().to_owned())
    }

    fn file(self, unpacked: &Path) -> Option<PathBuf> {
        let inside = |folder: &str| inside(&unpacked.join(folder));
        let is_image = |file: &PathBuf| {
            // For RISC-V it is not compressed.
            let name = file.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b"vmlinuz-") || name.starts_with(b"vmlinux-")
        };
        let among = |folder: &PathBuf| {
            ["vmlinuz", "vmlinux"].map(|name| folder.join(name)).into_iter().find(|file| file.exists())
        };
        match self {
            // Since Debian 13 all programs lie below usr.
            Self::Shell(_) => ["bin/busybox", "usr/bin/busybox"]
                .map(|file| unpacked.join(file))
                .into_iter()
                .find(|file| file.exists()),
            // Since 7 the image lies among the modules.
            Self::Kernel(..) => inside("boot")
                .find(is_image)
                .or_else(|| inside("usr/lib/modules").find_map(|version| among(&version))),
            // Beside it lie the headers that all builds of this version share.
            Self::Headers(_) => inside("usr/src").find(|folder| folder.join("Module.symvers").exists()),
        }
    }
}

/// What tells the names of an architecture's parts from those of the first.
fn suffix(architecture: &Architecture) -> String {
    if architecture.is_x86() { String::new() } else { format!("-{architecture}") }
}

/// What lies in a folder; nothing, where there is none.
fn inside(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()))
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
    _lock: File,
}

/// Finds out what of a guest of this architecture with this kernel is missing, and of the kernel's
/// `headers` if they are wanted; asks the network only if anything is. Another process that changes
/// the cache is waited for, and `waits` told so.
pub fn errand(
    kernel: &'static Kernel,
    architecture: &'static Architecture,
    headers: bool,
    waits: impl FnOnce(),
) -> Result<Errand, FetchError> {
    kernel.check(architecture)?;
    let wanted = [Part::Kernel(kernel, architecture), Part::Shell(architecture)]
        .into_iter()
        .chain(headers.then_some(Part::Headers(kernel)));
    let there =
        |part: &Part| part.find().is_some() && (*part != Part::Headers(kernel) || headers_fit(kernel));
    let absent = || wanted.clone().filter(|part| !there(part)).collect::<Vec<_>>();
    if absent().is_empty() {
        return Ok(Errand { missing: Vec::new(), cache: None });
    }
    let folder = folder()?;
    folder_made(&folder)?;
    let lock = lock(&folder.join("lock"), waits)?;
    // Whoever was waited for may have fetched it.
    let absent = absent();
    let mut missing: Vec<Missing> = Vec::new();
    for part in absent {
        // Each release has lists of its own: what one offers must not stand in for the other's.
        let suites = part.suites()?;
        let lists = folder.join("apt").join(suites.join("+") + &suffix(architecture));
        let apt = match missing.iter().find(|other| other.part.suites() == Ok(suites)) {
            Some(other) => other.apt.clone(),
            None => Apt::update(&lists, architecture, suites)?,
        };
        let offered = match part {
            Part::Kernel(kernel, _) => image(apt, kernel, architecture)?,
            Part::Shell(_) => Missing::of(part, apt.offer("busybox-static")?, apt),
            Part::Headers(kernel) => {
                let own = Part::Kernel(kernel, architecture);
                let coming = missing.iter().find(|it| it.part == own);
                let coming = coming.map(|image| (image.package.clone(), image.version.clone()));
                let (image, version) = coming.or_else(|| chosen(own)).ok_or_else(|| {
                    FetchError::Incomplete { folder: folder.clone(), wanted: "kernel".into() }
                })?;
                headers_of(apt, kernel, &image, &version, &folder)?
            }
        };
        missing.push(offered);
    }
    Ok(Errand { missing, cache: Some(Cache { folder, _lock: lock }) })
}

fn lock(path: &Path, waits: impl FnOnce()) -> Result<File, FetchError> {
    let fail = |cause| FetchError::File { path: path.to_owned(), cause };
    let file = doorbell_files::own(path, false).map_err(fail)?;
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
    fn of(part: Part, offer: Offer, apt: Apt) -> Self {
        let Offer { package, version, bytes, sha256, .. } = offer;
        Self { part, package, version, bytes, sha256, beside: Vec::new(), apt }
    }

    fn beside(mut self, packages: Vec<Offer>) -> Self {
        self.bytes += packages.iter().map(|it| it.bytes).sum::<u64>();
        self.beside = packages.into_iter().map(|it| (it.package, it.version)).collect();
        self
    }
}

fn image(
    apt: Apt,
    kernel: &'static Kernel,
    architecture: &'static Architecture,
) -> Result<Missing, FetchError> {
    let newest = apt.offer_of(&kernel.package(architecture)?.0, kernel.series)?;
    // The package for "the newest one" depends on the package with the kernel, and that one since 7 on
    // the packages with the image and the modules.
    let name = depends(&newest, &["linux-image-"]).next().ok_or_else(|| FetchError::NoSuchPackage {
        package: format!("that {} {} depends on", newest.package, newest.version),
        series: kernel.series.to_owned(),
        offered: newest.depends.clone(),
    })?;
    let own = apt.offer(&format!("{name}={}", newest.version))?;
    let parts = depends(&own, &["linux-binary-", "linux-modules-"]);
    let parts = parts.map(|part| apt.offer(&format!("{part}={}", own.version))).collect::<Result<_, _>>()?;
    Ok(Missing::of(Part::Kernel(kernel, architecture), own, apt).beside(parts))
}

/// Package and version of a part in the cache.
fn chosen(part: Part) -> Option<(String, String)> {
    let chosen = part.chosen()?;
    let mut words = chosen.split('_');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// Whether the headers in the cache are those of the kernel there; where none is, another may come.
fn headers_fit(kernel: &'static Kernel) -> bool {
    let version = |part| chosen(part).map(|(_, version)| version);
    let image = Part::Kernel(kernel, Part::Headers(kernel).architecture());
    image.find().is_some() && version(Part::Headers(kernel)) == version(image)
}

/// The headers of exactly this kernel: a module built with others is
/// refused by it, or worse, is not.
fn headers_of(
    apt: Apt,
    kernel: &'static Kernel,
    image: &str,
    version: &str,
    cache: &Path,
) -> Result<Missing, FetchError> {
    let package = image.replace("linux-image-", "linux-headers-");
    let gone = |package: &str| FetchError::NoHeaders {
        package: package.to_owned(),
        version: version.to_owned(),
        cache: cache.to_owned(),
    };
    let offer = |package: &str| match apt.offer(&format!("{package}={version}")) {
        Err(
            FetchError::Program { failure: Failure::Failed { .. }, .. } | FetchError::NoSuchPackage { .. },
        ) => Err(gone(package)),
        outcome => outcome,
    };
    let own = offer(&package)?;
    // Those that all builds share, and the programs that make modules: of these the archive keeps the
    // newest version alone, which comes some days before the kernel of that version.
    let shared = depends(&own, &["linux-headers-", "linux-kbuild-"])
        .map(|name| if is_tied(&own, name) { offer(name) } else { apt.offer(name) });
    let compiler =
        kernel.compiler.iter().flat_map(|compiler| compiler.packages).map(|package| apt.offer(package));
    let beside = shared.chain(compiler).collect::<Result<_, _>>()?;
    Ok(Missing::of(Part::Headers(kernel), own, apt.clone()).beside(beside))
}

/// The names in a package's "Depends" that begin with one of `starts`.
fn depends<'offer>(offer: &'offer Offer, starts: &'static [&str]) -> impl Iterator<Item = &'offer str> {
    let names = offer.depends.split(',').filter_map(|dependence| dependence.split_whitespace().next());
    names.filter(|name| starts.iter().any(|start| name.starts_with(start)))
}

/// Whether `offer` takes `name` in one version alone: `name (= 6.1.192-2)`.
fn is_tied(offer: &Offer, name: &str) -> bool {
    offer.depends.split(',').any(|dependence| {
        let mut words = dependence.split_whitespace();
        words.next() == Some(name) && words.next() == Some("(=")
    })
}

impl Errand {
    /// Fetches and unpacks what is missing; a folder appears under
    /// its name only when it is complete.
    pub fn run(self) -> Result<(), FetchError> {
        let Some(Cache { folder, _lock }) = self.cache else { return Ok(()) };
        let (packages, chosen) = (folder.join("packages"), folder.join("chosen"));
        folder_made(&packages)?;
        folder_made(&chosen)?;
        for wanted in &self.missing {
            let name = format!("{}_{}_{}", wanted.package, wanted.version, &wanted.sha256[..16]);
            let done = packages.join(&name);
            if !done.exists() {
                bring(wanted, &packages.join(format!("{name}.part")), &done)?;
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
fn bring(wanted: &Missing, part: &Path, done: &Path) -> Result<(), FetchError> {
    let fail = |cause| FetchError::File { path: part.to_owned(), cause };
    if part.exists() {
        fs::remove_dir_all(part).map_err(fail)?;
    }
    folder_made(&part.join("deb"))?;
    let own = (wanted.package.clone(), wanted.version.clone());
    for (package, version) in std::iter::once(&own).chain(&wanted.beside) {
        wanted.apt.download(package, version, &part.join("deb"))?;
    }
    unpack(part)?;
    if let Part::Headers(kernel) = wanted.part
        && let Some(folder) = wanted.part.file(part)
    {
        settle(&folder)?;
        if let Some(compiler) = &kernel.compiler {
            bind(part, done, &folder, Path::new(compiler.program))?;
        }
    }
    // Else a crash could leave a folder that is called complete and is not.
    #[expect(clippy::disallowed_methods, reason = "a folder that this build made")]
    let folder = File::open(part);
    folder.and_then(|folder| Ok(syncfs(&folder)?)).map_err(fail)?;
    fs::rename(part, done).map_err(fail)
}

/// The folder's `Makefile` names the shared headers by where they would be installed; they lie
/// beside it. The kernel's types, where they are there, would have every module described to BPF,
/// for which kbuild needs a program more.
fn settle(headers: &Path) -> Result<(), FetchError> {
    let types = headers.join("vmlinux");
    if types.exists() {
        fs::remove_file(&types).map_err(|cause| FetchError::File { path: types, cause })?;
    }
    edit(&headers.join("Makefile"), |text| text.replace("/usr/src/", "../"))
}

/// Makes the programs in `part`, the compiler and those of kbuild, start with the loader and the
/// libraries that lie beside them, for the host's may be older, and has kbuild take that compiler.
/// `done` is what `part` will be called.
///
/// Each becomes a script that calls the program under the script's
/// own name, by which it finds what lies beside it.
fn bind(part: &Path, done: &Path, headers: &Path, compiler: &Path) -> Result<(), FetchError> {
    let ours = |line: &str| match line.strip_prefix("CC = ") {
        Some(_) => format!("CC = {}\n", done.join(compiler).display()),
        None => format!("{line}\n"),
    };
    edit(&headers.join(".kernelvariables"), |text| text.lines().map(ours).collect())?;
    let mut folders = vec![part.join("usr/bin"), part.join("usr/libexec")];
    folders.extend(
        inside(&part.join("usr/lib")).filter(|path| path.to_string_lossy().contains("/linux-kbuild-")),
    );
    while let Some(folder) = folders.pop() {
        for path in inside(&folder) {
            let fail = |cause| FetchError::File { path: path.clone(), cause };
            let kind = fs::symlink_metadata(&path).map_err(fail)?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && needs_a_loader(&doorbell_files::bytes(&path, LONGEST).map_err(fail)?)
            {
                let mut program = path.clone().into_os_string();
                program.push(".elf");
                let program = PathBuf::from(program);
                let libraries = done.join("usr/lib/x86_64-linux-gnu");
                fs::rename(&path, &program).map_err(fail)?;
                let program = done.join(program.strip_prefix(part).unwrap_or(&program));
                let loader = libraries.join("ld-linux-x86-64.so.2");
                let [loader, libraries, program] = [loader, libraries, program].map(|path| quoted(&path));
                let call = format!("{loader} --library-path {libraries} --argv0 \"$0\" {program} \"$@\"");
                doorbell_files::put(&path, format!("#!/bin/sh\nexec {call}\n").as_bytes()).map_err(fail)?;
                fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(fail)?;
            }
        }
    }
    Ok(())
}

/// As one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result<(), FetchError> {
    let fail = |cause| FetchError::File { path: path.to_owned(), cause };
    let text = doorbell_files::text(path, LONGEST).map_err(fail)?;
    doorbell_files::put(path, change(&text).as_bytes()).map_err(fail)
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
    use crate::kernel;

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
        let names: Vec<_> = depends(&offer, &["linux-headers-", "gcc-"]).collect();
        assert_eq!(names, ["linux-headers-6.1.0-56-common", "gcc-12"]);
        assert!(is_tied(&offer, "linux-headers-6.1.0-56-common"));
        assert!(!is_tied(&offer, "linux-kbuild-6.1") && !is_tied(&offer, "gcc-12"));
    }

    #[test]
    fn headers_are_found_by_their_list_of_symbols_and_look_for_the_shared_ones_beside_them() {
        let unpacked = tempfile::tempdir().unwrap();
        let (shared, own) =
            ("usr/src/linux-headers-6.1.0-56-common", "usr/src/linux-headers-6.1.0-56-cloud-amd64");
        for folder in [shared, own] {
            fs::create_dir_all(unpacked.path().join(folder)).unwrap();
        }
        assert_eq!(Part::Headers(&kernel::ALL[0]).file(unpacked.path()), None);
        let own = unpacked.path().join(own);
        fs::write(own.join("Module.symvers"), "").unwrap();
        fs::write(own.join("Makefile"), "include /usr/src/linux-headers-6.1.0-56-common/Makefile\n").unwrap();
        assert_eq!(Part::Headers(&kernel::ALL[0]).file(unpacked.path()), Some(own.clone()));
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
