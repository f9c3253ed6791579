// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts of the source tree. One is run only where the user says so: named by its variable, or in
//! the tree that he stands in and that is his alone. The place where this program was compiled says
//! nothing: on the machine that it runs on it may be anybody's.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The group's and all others' part of a mode: to write. And the bit of a folder in which each may
/// only remove what is his.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// A script of the source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// Its path in the tree.
    pub name: &'static str,
    /// The variable that names it, wherever it lies.
    pub variable: &'static str,
}

/// Why a script is not run.
#[derive(Debug, thiserror::Error)]
pub enum NoScript {
    /// There is none.
    #[error(
        "no {} is in this folder or in one above it: go to Doorbell's source tree, or name the \
         script with {}",
        .0.name, .0.variable
    )]
    Nowhere(Script),
    /// The folder that one stands in is gone, or may not be looked at.
    #[error("cannot look for {} at {}: {cause}; name the script with {}", .script.name, .path.display(), .script.variable)]
    Unseen {
        /// What was looked for.
        script: Script,
        /// Where.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Another user could have written it, or put it there.
    #[error(
        "{} is not run, for another user may change it: {} belongs to user {owner} with mode \
         {mode:o}; make it yours alone (chown, chmod go-w), or name the script with {}",
        .script.name, .path.display(), .script.variable
    )]
    NotOurs {
        /// What was looked for.
        script: Script,
        /// The file or folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who may do what.
        mode: u32,
    },
}

impl Script {
    /// Where it is.
    pub fn find(self) -> Result<PathBuf, NoScript> {
        match std::env::var_os(self.variable) {
            Some(named) => Ok(named.into()),
            None => {
                let here = std::env::current_dir().map_err(|cause| self.unseen(Path::new("."), cause))?;
                self.above(&here, geteuid().as_raw())
            }
        }
    }

    /// The one in the tree that `folder` lies in, which is all of `user`.
    fn above(self, folder: &Path, user: u32) -> Result<PathBuf, NoScript> {
        // As the kernel sees it: a link of another user may be on the way.
        let folder = folder.canonicalize().map_err(|cause| self.unseen(folder, cause))?;
        let is_there = |tree: &&Path| tree.join(self.name).symlink_metadata().is_ok();
        let tree = folder.ancestors().find(is_there).ok_or(NoScript::Nowhere(self))?;
        let script = tree.join(self.name);
        for path in script.ancestors() {
            let data = path.symlink_metadata().map_err(|cause| self.unseen(path, cause))?;
            let fits = if path.starts_with(tree) { is_alone(&data, user) } else { is_kept(&data, user) };
            if !fits {
                let (owner, mode) = (data.uid(), data.mode() & 0o7777);
                return Err(NoScript::NotOurs { script: self, path: path.to_owned(), owner, mode });
            }
        }
        Ok(script)
    }

    fn unseen(self, path: &Path, cause: io::Error) -> NoScript {
        NoScript::Unseen { script: self, path: path.to_owned(), cause }
    }
}

/// Whether nobody but the user himself and the superuser can have put what is at `path` there, as a
/// program of the system's.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    let user = geteuid().as_raw();
    let kept = |path: &Path| path.symlink_metadata().is_ok_and(|data| is_kept(&data, user));
    let Ok(path) = path.canonicalize() else { return false };
    let closed = path.symlink_metadata().is_ok_and(|data| data.is_file() && !others_may_write(&data));
    closed && path.ancestors().all(kept)
}

/// Whether somebody else than the owner may write. Where each user has a
/// group of his own, of the same number, that is nobody else: there new
/// files are the group's to write, too (pam_umask(8), `usergroups`).
fn others_may_write(data: &Metadata) -> bool {
    let own_group = data.gid() == data.uid() && data.uid() != 0;
    data.mode() & OTHERS_WRITE != 0 || data.mode() & GROUP_WRITES != 0 && !own_group
}

/// Whether a file or folder of the tree is this user's, and nobody else may write to it.
fn is_alone(data: &Metadata, user: u32) -> bool {
    !data.is_symlink() && data.uid() == user && !others_may_write(data)
}

/// Whether nobody else but the superuser may put another tree in the place of one in this folder.
fn is_kept(data: &Metadata, user: u32) -> bool {
    [0, user].contains(&data.uid()) && (!others_may_write(data) || data.mode() & STICKY != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SCRIPT: Script = Script { name: "uintr/qemu/build", variable: "DOORBELL_TEST_BUILD" };

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A tree with the script and a folder within.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["uintr", "uintr/qemu", "lab/command"] {
            fs::create_dir_all(tree.path().join(folder)).unwrap();
            mode(&tree.path().join(folder), 0o755);
        }
        fs::write(tree.path().join("uintr/qemu/build"), "#!/bin/sh\n").unwrap();
        mode(&tree.path().join("uintr/qemu/build"), 0o755);
        tree
    }

    #[test]
    fn a_script_is_found_from_every_folder_of_a_tree_that_is_ones_own() {
        let (tree, user) = (tree(), geteuid().as_raw());
        for folder in ["", "uintr/qemu", "lab/command"] {
            let found = SCRIPT.above(&tree.path().join(folder), user).unwrap();
            assert_eq!(found, tree.path().canonicalize().unwrap().join("uintr/qemu/build"));
        }
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(matches!(SCRIPT.above(elsewhere.path(), user), Err(NoScript::Nowhere(_))));
    }

    /// Whoever stood in a folder for everybody ran what another user had put there.
    #[test]
    fn a_script_that_another_user_may_have_written_is_not_run_and_what_is_wrong_is_named() {
        let (tree, user) = (tree(), geteuid().as_raw());
        let told = |user| SCRIPT.above(tree.path(), user).unwrap_err().to_string();
        let other = told(user + 1);
        assert!(
            other.contains(&format!("belongs to user {user}")) && other.contains(SCRIPT.variable),
            "{other}"
        );
        for (path, open, closed) in
            [("uintr/qemu/build", 0o757, 0o755), ("uintr", 0o777, 0o755), ("", 0o1777, 0o700)]
        {
            let path = tree.path().join(path);
            mode(&path, open);
            let told = told(user);
            let named = path.display().to_string();
            assert!(told.contains(named.trim_end_matches('/')) && told.contains("chmod go-w"), "{told}");
            mode(&path, closed);
        }
        let moved = tree.path().join("moved");
        fs::rename(tree.path().join("uintr/qemu/build"), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, tree.path().join("uintr/qemu/build")).unwrap();
        assert!(told(user).contains("uintr/qemu/build"), "a link leads elsewhere");
    }

    #[test]
    fn a_tree_in_a_folder_where_others_may_exchange_it_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("uintr/qemu")).unwrap();
        fs::write(tree.join("uintr/qemu/build"), "").unwrap();
        for path in [&tree, &tree.join("uintr"), &tree.join("uintr/qemu"), &tree.join("uintr/qemu/build")] {
            mode(path, 0o755);
        }
        mode(folder.path(), 0o777);
        let told = SCRIPT.above(&tree, geteuid().as_raw()).unwrap_err().to_string();
        assert!(told.contains("with mode 777"), "{told}");
        // As /tmp is: there nobody moves what is another's.
        mode(folder.path(), 0o1777);
        SCRIPT.above(&tree, geteuid().as_raw()).unwrap();
    }
}
