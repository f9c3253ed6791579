// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder, and whether what lies there is this user's alone.

use crate::user::is_ours;
use rustix::fs::{AtFlags, CWD, FileType, Mode, mkdirat, statat};
use rustix::io::Errno;
use std::fmt;
use std::path::{Path, PathBuf};

/// A folder in which services of this user may listen, and what was found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    /// What is there.
    pub state: FolderState,
}

/// What is at the place of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderState {
    /// What `$DOORBELL_RUNTIME_DIR` names, used as it is.
    Named,
    /// A folder of this user, into which nobody else can put anything.
    Ours,
    /// Nothing.
    Nothing,
    /// Something of another user, who may have made it to be taken for ours.
    OtherUsers {
        /// Whose.
        uid: u32,
    },
    /// A folder of this user that others may enter or write.
    Open {
        /// Its rights.
        mode: u32,
    },
    /// A link, or a file.
    NoFolder,
    /// It could not be looked at, or not be made.
    Unknown(Errno),
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.state {
            FolderState::Named => write!(f, "{path} is what DOORBELL_RUNTIME_DIR names"),
            FolderState::Ours => write!(f, "{path} is this user's"),
            FolderState::Nothing => write!(f, "{path} is not there"),
            FolderState::OtherUsers { uid } => {
                write!(f, "{path} is user {uid}'s, who can remove it, as root can")
            }
            FolderState::Open { mode } => {
                write!(f, "{path} can be entered by others (rights {:o}): `chmod 700` it", mode & 0o777)
            }
            FolderState::NoFolder => write!(f, "{path} is a link or a file: remove it"),
            FolderState::Unknown(errno) => write!(f, "{path}: {errno}"),
        }
    }
}

impl Folder {
    /// Do services listen there, and do clients look there?
    pub fn is_used(&self) -> bool {
        matches!(self.state, FolderState::Named | FolderState::Ours)
    }

    /// What is at `path` now.
    pub(crate) fn look(path: PathBuf) -> Self {
        let state = look(&path);
        Self { path, state }
    }

    /// As `look`, after making the folder if nothing is there.
    pub(crate) fn make(path: PathBuf) -> Self {
        let state = match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => look(&path),
            Err(errno) => FolderState::Unknown(errno),
        };
        Self { path, state }
    }
}

fn look(path: &Path) -> FolderState {
    let there = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => there,
        Err(Errno::NOENT | Errno::NOTDIR) => return FolderState::Nothing,
        Err(errno) => return FolderState::Unknown(errno),
    };
    let mode = Mode::from_raw_mode(there.st_mode);
    if !is_ours(there.st_uid) {
        FolderState::OtherUsers { uid: there.st_uid }
    } else if FileType::from_raw_mode(there.st_mode) != FileType::Directory {
        FolderState::NoFolder
    } else if mode.intersects(Mode::RWXG | Mode::RWXO) {
        FolderState::Open { mode: mode.as_raw_mode() }
    } else {
        FolderState::Ours
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, FolderState};
    use rustix::io::Errno;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_may_enter_and_a_link_to_ours_are_not_ours() {
        let scratch = std::env::temp_dir().join(format!("doorbell-folder-{}", std::process::id()));
        let found = |path: &std::path::Path| Folder::look(path.to_owned()).state;
        assert_eq!(found(&scratch), FolderState::Nothing);
        assert_eq!(Folder::make(scratch.clone()).state, FolderState::Ours);
        // It is there already.
        assert!(Folder::make(scratch.clone()).is_used());
        let link = scratch.join("link");
        symlink(&scratch, &link).unwrap();
        assert_eq!(found(&link), FolderState::NoFolder);
        assert_eq!(Folder::make(link).state, FolderState::NoFolder);
        assert_eq!(Folder::make(scratch.join("no/folder")).state, FolderState::Unknown(Errno::NOENT));
        set_permissions(&scratch, Permissions::from_mode(0o711)).unwrap();
        assert_eq!(found(&scratch), FolderState::Open { mode: 0o711 });
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
