// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a path leads, if nobody else chose that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use crate::by_number::is_by_number;
#[cfg(unix)]
use crate::not_written::NotWritten;

/// Links on the way to a file, at most: as many as the kernel follows.
#[cfg(unix)]
const MOST_LINKS: u32 = 40;
/// Rights of a folder in which everybody may make a name: any user's
/// to write, or sticky, as such folders are.
#[cfg(unix)]
const SHARED: u32 = 0o1002;

/// Where `path` leads: through a symbolic link the file behind it is meant, not the link. One rule
/// for every name on the way: a link, and a folder below one in which everybody may make a name, is
/// this user's or the superuser's; else whoever made it chooses where it leads. (The
/// kernel's protected_symlinks looks at links alone, and not for who reads where they lead.) The
/// working folder is taken as it is: whoever started this process stands in it. From the first name
/// that is not there, `path` is left as it is.
///
/// # Errors
/// [`NotWritten`], and those of the system.
#[cfg(unix)]
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    use std::path::Component;
    let (mut at, mut ahead, mut links) = (PathBuf::new(), path.to_owned(), 0);
    loop {
        let whole = within(at.clone(), &ahead);
        if is_by_number(&whole) {
            // A file that was opened for us is replaced like one that is named.
            return if fs::metadata(&whole)?.is_file() { fs::canonicalize(&whole) } else { Ok(whole) };
        }
        let mut names = ahead.components();
        match names.next() {
            None => return Ok(at),
            Some(Component::CurDir) => {}
            Some(Component::ParentDir) if at.file_name().is_some() => _ = at.pop(),
            Some(name) => at.push(name),
        }
        let behind = names.as_path().to_owned();
        let there = match fs::symlink_metadata(or_here(&at)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(within(at, &behind)),
            there => there?,
        };
        if there.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, NotWritten::Links(MOST_LINKS)));
            }
            is_trusted(&at, "a link", &there)?;
            ahead = within(fs::read_link(&at)?, &behind);
            at.pop();
        } else {
            if there.is_dir() && at.ancestors().skip(1).any(is_shared) {
                is_trusted(&at, "a folder", &there)?;
            }
            ahead = behind;
        }
    }
}

/// Where `path` leads: nobody's choice is looked at here.
///
/// # Errors
/// None yet.
#[cfg(not(unix))]
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// Makes the folder `path`, and those above it, where they are not
/// there; where it is, as [`resolved`] tells.
///
/// # Errors
/// As of [`resolved`], and those of the system.
#[expect(clippy::disallowed_methods, reason = "the one place of it")]
pub fn folder(path: &Path) -> io::Result<PathBuf> {
    let path = resolved(path)?;
    fs::create_dir_all(&path)?;
    // Another may have been faster.
    resolved(&path)
}

/// `path` in `folder`; to join nothing would add a slash, which asks for a folder.
#[cfg(unix)]
fn within(folder: PathBuf, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { folder } else { folder.join(path) }
}

/// The path, which is of the working folder where it is empty.
pub(crate) fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(unix)]
fn is_shared(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(or_here(folder)).is_ok_and(|there| there.mode() & SHARED != 0)
}

/// An error where what lies at `path` is neither this user's nor the superuser's.
#[cfg(unix)]
pub(crate) fn is_trusted(path: &Path, what: &'static str, there: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if [0, rustix::process::geteuid().as_raw()].contains(&there.uid()) {
        return Ok(());
    }
    let planted = NotWritten::Planted { path: path.display().to_string(), what, owner: there.uid() };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, planted))
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Makes `path` belong to nobody, if this process may.
    pub(crate) fn given_away(path: &Path) -> bool {
        use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
        let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
        chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    #[test]
    fn links_and_steps_up_are_followed_and_what_is_not_there_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink("real", at("link")).unwrap();
        symlink(at("link"), at("whole")).unwrap();
        symlink("round", at("round")).unwrap();
        for (path, leads) in [
            ("whole/x/y", "real/x/y"),
            ("link/../real/./x", "real/x"),
            ("none/../x", "none/../x"),
            ("real", "real"),
        ] {
            let led = resolved(&at(path)).unwrap();
            // A slash at its end would ask for a folder.
            assert_eq!(led.as_os_str(), at(leads).as_os_str(), "{path}");
        }
        assert!(resolved(&at("round/x")).is_err());
        let here = Path::new("src/.");
        assert_eq!(resolved(here).unwrap(), Path::new("src"));
        assert_eq!(resolved(Path::new("../none")).unwrap(), Path::new("../none"));
    }

    /// The pages of the superuser went into the folder that another user's link named.
    #[test]
    fn a_folder_that_another_user_planted_is_not_gone_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["own", "shared", "shared/his", "shared/ours", "shared/his/ours"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink(at("own"), at("shared/link")).unwrap();
        symlink(at("own"), at("shared/ours/link")).unwrap();
        if ![at("shared/his"), at("shared/link"), at("shared/ours/link")].iter().all(|path| given_away(path))
        {
            doorbell_skipped::skip("only the superuser can give a folder away");
            return;
        }
        let told = |path: &str| super::folder(&at(path)).unwrap_err().to_string();
        fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        for (path, what) in [
            ("shared/his", "a folder"),
            ("shared/his/ours", "a folder"),
            ("shared/link", "a link"),
            ("shared/link/new", "a link"),
            ("shared/ours/link/new", "a link"),
        ] {
            assert!(told(path).contains(&format!("is {what} of another user (number 65534)")), "{path}");
            assert!(crate::put(&at(path).join("page"), b"page").is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(at("own")).unwrap().count(), 0);
        assert_eq!(super::folder(&at("shared/ours/new")).unwrap(), at("shared/ours/new"));
    }
}
