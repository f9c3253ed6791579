// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that the guest runs: this very one, with the shared libraries it asks for.
//!
//! Host and guest then run the same bytes, so that a comparison of their results is one of
//! machines, not of builds. A static program needs nothing else and is taken as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::architecture::Architecture;
use crate::cache::LONGEST;
use crate::checkout::is_of_the_system;
use crate::process::answer;

/// The time for listing libraries, which takes milliseconds.
const LIMIT: Duration = Duration::from_secs(60);

/// A program that cannot be taken along.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A file that cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Not a program for the guest's CPU.
    #[error("{} is no ELF program for {architecture}, as the guest is", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The guest's.
        architecture: &'static Architecture,
    },
    /// A program with libraries that are not this machine's.
    #[error("{} loads libraries, and this machine has none of {architecture}: link it statically", .path.display())]
    NotStatic {
        /// The file.
        path: PathBuf,
        /// The guest's.
        architecture: &'static Architecture,
    },
    /// It names a loader that would be run here and that somebody else may have put there.
    #[error("{} asks for the loader {}, which is not run here, for another user may change it", .program.display(), .loader.display())]
    Loader {
        /// The dynamic loader.
        loader: PathBuf,
        /// The program.
        program: PathBuf,
    },
    /// The dynamic loader did not name the libraries.
    #[error("{} did not list the libraries of {}: {complaint}", .loader.display(), .program.display())]
    Libraries {
        /// The dynamic loader.
        loader: PathBuf,
        /// The program.
        program: PathBuf,
        /// What it said.
        complaint: String,
    },
}

/// A program and all it needs to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program itself.
    pub content: Vec<u8>,
    /// The loader and the libraries, by the path they must have.
    pub libraries: Vec<(PathBuf, Vec<u8>)>,
}

impl Program {
    /// The program that calls this, even if its file was replaced since it started.
    pub fn own() -> Result<Self, ProgramError> {
        // The loader would find itself behind /proc/self.
        Self::read(Path::new(&format!("/proc/{}/exe", std::process::id())), Architecture::own())
    }

    /// The program in a file, for an architecture.
    pub fn read(path: &Path, architecture: &'static Architecture) -> Result<Self, ProgramError> {
        let read = |path: &Path| {
            doorbell_files::bytes(path, LONGEST)
                .map_err(|cause| ProgramError::File { path: path.to_owned(), cause })
        };
        let content = read(path)?;
        let foreign = |NotOurs| ProgramError::Foreign { path: path.to_owned(), architecture };
        let loader = loader(&content, architecture).map_err(foreign)?;
        let mut libraries = Vec::new();
        if let Some(loader) = loader {
            if !architecture.is_own() {
                return Err(ProgramError::NotStatic { path: path.to_owned(), architecture });
            }
            for library in needed(&loader, path)? {
                let bytes = read(&library)?;
                libraries.push((library, bytes));
            }
            let bytes = read(&loader)?;
            libraries.push((loader, bytes));
        }
        Ok(Self { content, libraries })
    }
}

/// What the loader would load: `NAME => /PATH (ADDRESS)` lines; the
/// loader itself and the vDSO have no arrow.
fn needed(loader: &Path, program: &Path) -> Result<Vec<PathBuf>, ProgramError> {
    if !is_of_the_system(loader) {
        return Err(ProgramError::Loader { loader: loader.to_owned(), program: program.to_owned() });
    }
    let listed = answer(Command::new(loader).arg("--list").arg(program), LIMIT).map_err(|it| it.to_string());
    match listed {
        Ok(text) if !text.contains("not found") => Ok(parse(&text)),
        Ok(said) | Err(said) => Err(ProgramError::Libraries {
            loader: loader.to_owned(),
            program: program.to_owned(),
            complaint: said.trim().to_owned(),
        }),
    }
}

fn parse(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (_, behind) = line.split_once("=> ")?;
        let (path, _) = behind.rsplit_once(" (")?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

struct NotOurs;

/// Whether this is a program for this CPU that a dynamic loader starts.
pub(crate) fn needs_a_loader(content: &[u8]) -> bool {
    matches!(loader(content, Architecture::own()), Ok(Some(_)))
}

/// The dynamic loader an ELF file asks for (gABI, program header of
/// type PT_INTERP); `None` for a static program.
fn loader(elf: &[u8], architecture: &Architecture) -> Result<Option<PathBuf>, NotOurs> {
    const IDENTITY: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let field = elf.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte)))
    };
    if !elf.starts_with(&IDENTITY) || number(18, 2) != Some(architecture.elf.into()) {
        return Err(NotOurs);
    }
    let headers = || Some((number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize));
    let (start, size, count) = headers().ok_or(NotOurs)?;
    for index in 0..count {
        let at = index.checked_mul(size).and_then(|offset| offset.checked_add(start)).ok_or(NotOurs)?;
        if number(at, 4) != Some(PT_INTERP.into()) {
            continue;
        }
        let text = || {
            let (offset, length) = (number(at + 8, 8)? as usize, number(at + 32, 8)? as usize);
            let text = elf.get(offset..offset.checked_add(length)?)?;
            std::str::from_utf8(text.strip_suffix(&[0])?).ok()
        };
        return text().map(|path| Some(PathBuf::from(path))).ok_or(NotOurs);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_behind_an_arrow() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n\tlibodd.so => /opt/a b (c)/libodd.so (0x1)\n";
        assert_eq!(
            parse(listed),
            [PathBuf::from("/lib/x86_64-linux-gnu/libm.so.6"), PathBuf::from("/opt/a b (c)/libodd.so")]
        );
    }

    #[test]
    fn this_test_is_a_program_with_all_its_libraries() {
        let program = Program::own().unwrap();
        let has =
            |name: &str| program.libraries.iter().any(|(path, _)| path.to_string_lossy().contains(name));
        assert!(program.content.starts_with(b"\x7fELF"));
        if program.libraries.is_empty() {
            assert!(loader(&program.content, Architecture::own()).is_ok_and(|loader| loader.is_none()));
        } else {
            assert!(has("libc.so") && has("ld-linux"), "{:?}", program.libraries.iter().map(|it| &it.0));
        }
    }

    /// A program in a folder that was carried into a guest named a
    /// loader of another user's, and it was run here, as root.
    #[test]
    fn a_loader_that_another_user_may_have_written_is_not_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("loader"), format!("#!/bin/sh\ntouch {}\n", at("ran").display())).unwrap();
        std::fs::set_permissions(at("loader"), std::fs::Permissions::from_mode(0o777)).unwrap();
        let refused = needed(&at("loader"), Path::new("/bin/true"));
        assert!(matches!(refused, Err(ProgramError::Loader { .. })), "{refused:?}");
        assert!(!at("ran").exists());
        assert!(is_of_the_system(Path::new("/bin/sh")));
    }

    #[test]
    fn cut_or_foreign_files_are_refused_and_never_read_beyond_their_end() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        for length in 0..512 {
            let _ = loader(&own[..length], Architecture::own());
        }
        assert!(loader(b"#!/bin/sh\n", Architecture::own()).is_err());
        let mut wild = own[..64].to_vec();
        wild[32..40].fill(0xff);
        assert!(!matches!(loader(&wild, Architecture::own()), Ok(Some(_))));
        for other in crate::architecture::ALL.iter().filter(|it| !it.is_own()) {
            assert!(loader(&own, other).is_err());
        }
    }
}
