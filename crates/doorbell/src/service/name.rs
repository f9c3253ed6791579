// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a service of a name listens.

use crate::rendezvous::RendezvousError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, mkdirat, statat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The folder in which this user's services listen, if it is not `/run/user/UID/doorbell` or `/tmp/doorbell-UID`. For tests, and
/// for services that several users share.
pub const VARIABLE: &str = "DOORBELL_RUNTIME_DIR";

/// What a service's socket is called behind its name.
const SUFFIX: &str = ".sock";

/// The path of a service. A name with a slash is a path already; any other is looked for in the folder of this user.
pub(super) fn path(name: &Path) -> Result<PathBuf, RendezvousError> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Ok(name.to_owned());
    }
    let mut file = name.as_os_str().to_owned();
    file.push(SUFFIX);
    Ok(folder()?.join(file))
}

/// The folder, which is made if it is not there. Nobody but this user can have put anything into it.
///
/// Which of two it is does not depend on the environment, but on whether this user is logged in: `/run/user/UID` comes with the
/// first login and goes with the last. A service that was started without one (by cron) is not found by a client in a terminal,
/// unless the user lingers (`loginctl enable-linger`) or both name the folder, or a path.
fn folder() -> Result<PathBuf, RendezvousError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let user = rustix::process::geteuid().as_raw();
    let runtime = PathBuf::from(format!("/run/user/{user}"));
    let folder = match is_ours(&runtime) {
        Ok(true) => runtime.join("doorbell"),
        _ => PathBuf::from(format!("/tmp/doorbell-{user}")),
    };
    match mkdirat(CWD, &folder, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(RendezvousError::Os { call: "mkdir", errno }),
    }
    // Whoever came first in /tmp may be another user.
    match is_ours(&folder) {
        Ok(true) => Ok(folder),
        Ok(false) => Err(RendezvousError::Os {
            call: "stat: the folder of the names is another user's",
            errno: Errno::PERM,
        }),
        Err(errno) => Err(RendezvousError::Os { call: "stat", errno }),
    }
}

/// Is it a folder, no link, that nobody but this user may write?
fn is_ours(folder: &Path) -> Result<bool, Errno> {
    let there = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(there.st_mode) == FileType::Directory
        && there.st_uid == rustix::process::geteuid().as_raw()
        && !Mode::from_raw_mode(there.st_mode).intersects(Mode::WGRP | Mode::WOTH))
}

/// The names of this user's services, those of dead ones among them.
///
/// # Errors
/// [`RendezvousError::Os`] if the folder cannot be read.
pub fn names() -> Result<Vec<String>, RendezvousError> {
    let failed = |error: std::io::Error| RendezvousError::Os {
        call: "readdir",
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder()?).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
