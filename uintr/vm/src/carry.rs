// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the host that go along into a guest, to the same paths.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::architecture::Architecture;
use crate::cache::LONGEST;
use crate::program::{Program, ProgramError};

/// A file as the guest has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its path.
    pub path: PathBuf,
    /// What is in it.
    pub content: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// The files at absolute `paths` for a guest of an architecture, folders with
/// all that is in them, programs with the libraries they ask for. A link
/// becomes the file it names; what is neither file nor folder is left out.
pub fn carried(paths: &[PathBuf], architecture: &'static Architecture) -> Result<Vec<Carried>, ProgramError> {
    let mut files = BTreeMap::new();
    paths.iter().try_for_each(|path| take(path, architecture, &mut files))?;
    Ok(files.into_values().collect())
}

fn take(
    path: &Path,
    architecture: &'static Architecture,
    files: &mut BTreeMap<PathBuf, Carried>,
) -> Result<(), ProgramError> {
    let fail = |cause| ProgramError::File { path: path.to_owned(), cause };
    let kind = fs::metadata(path).map_err(fail)?;
    if kind.is_dir() {
        for entry in fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            // A link to a folder may lead back to where we are.
            if !(entry.file_type().map_err(fail)?.is_symlink() && entry.path().is_dir()) {
                take(&entry.path(), architecture, files)?;
            }
        }
    } else if kind.is_file() {
        let content = doorbell_files::bytes(path, LONGEST).map_err(fail)?;
        let executable = kind.permissions().mode() & 0o111 != 0;
        if executable && content.starts_with(b"\x7fELF") {
            for (path, content) in Program::read(path, architecture)?.libraries {
                files.insert(path.clone(), Carried { path, content, executable: true });
            }
        }
        files.insert(path.to_owned(), Carried { path: path.to_owned(), content, executable });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_along_whole_and_a_program_with_its_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, text) = (folder.path().join("inner"), folder.path().join("inner/text"));
        fs::create_dir(&inner).unwrap();
        fs::write(&text, "words").unwrap();
        std::os::unix::fs::symlink(folder.path(), inner.join("back")).unwrap();
        let own = std::env::current_exe().unwrap();
        let files = carried(&[folder.path().to_owned(), own.clone()], Architecture::own()).unwrap();
        let file = |path: &Path| files.iter().find(|file| file.path == path);
        assert_eq!(file(&text).unwrap().content, b"words");
        assert!(!file(&text).unwrap().executable && file(&own).unwrap().executable);
        let libraries = Program::read(&own, Architecture::own()).unwrap().libraries;
        assert!(libraries.iter().all(|(path, _)| file(path).is_some()));
        assert_eq!(files.len(), 2 + libraries.len());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = carried(&["/nowhere/at/all".into()], Architecture::own()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
