// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the kernel's trace files are, mounted for this process alone
//! where nobody has mounted them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Where tracefs is mounted by convention, and where older systems have it (kernel
/// Documentation/trace/ftrace.rst).
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("this kernel has no tracefs; it needs CONFIG_FTRACE and CONFIG_EVENT_TRACING")]
    NoTracefs,
    /// It may not be mounted, or what is mounted may not be used.
    #[error(
        "the kernel's trace events may not be used ({place}: {cause}); run as root, or as root \
         once: mount -t tracefs -o gid=$(id -g),mode=770 nodev /sys/kernel/tracing && chgrp -R \
         $(id -g) /sys/kernel/tracing"
    )]
    Forbidden { place: String, cause: io::Error },
    /// The buffer's clock cannot be joined with the instrument's.
    #[error(
        "this kernel has no trace clock '{wanted}' (it has {has}), so its events cannot be joined \
         with the instrument's stamps"
    )]
    NoClock {
        /// The clock that would be needed.
        wanted: &'static str,
        has: String,
    },
    /// A kind of event without which nothing can be told.
    #[error(
        "this kernel has no trace event {system}:{name}; it needs CONFIG_FTRACE_SYSCALLS and \
         CONFIG_EVENT_TRACING"
    )]
    NoEvent { system: &'static str, name: &'static str },
    /// A file of the instance could not be used.
    #[error("{path}: {cause}; is another tracer using up the memory for trace buffers?")]
    File { path: String, cause: io::Error },
    /// The kernel publishes something in a form this program does not know.
    #[error(
        "{path} reads '{text}', which this program does not understand; please report it with the \
         kernel's version"
    )]
    Unknown { path: String, text: String },
}

impl TraceError {
    pub(super) fn file(path: &Path, cause: io::Error) -> Self {
        Self::File { path: path.display().to_string(), cause }
    }
}

/// The folder with the kernel's trace files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracefs {
    folder: PathBuf,
}

impl Tracefs {
    /// Finds it, and mounts it where it is not mounted: in a mount namespace of this process and
    /// those it starts from then on, so that nothing of the machine changes.
    pub fn reach() -> Result<Self, TraceError> {
        match Self::find() {
            Err(TraceError::NoTracefs) => {
                mount_privately()?;
                Self::find()
            }
            other => other,
        }
    }

    pub fn find() -> Result<Self, TraceError> {
        let mut forbidden = None;
        for place in PLACES {
            let folder = Path::new(place);
            match std::fs::metadata(folder.join("instances")) {
                Ok(_)
                    if rustix::fs::access(folder.join("instances"), rustix::fs::Access::WRITE_OK).is_ok() =>
                {
                    return Ok(Self { folder: folder.to_owned() });
                }
                Ok(_) => forbidden = Some((place, io::Error::from(io::ErrorKind::PermissionDenied))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => forbidden = Some((place, error)),
            }
        }
        match forbidden {
            Some((place, cause)) => Err(TraceError::Forbidden { place: place.to_owned(), cause }),
            None => Err(TraceError::NoTracefs),
        }
    }

    /// A recorded one, for tests.
    #[cfg(test)]
    pub(crate) fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn mount_privately() -> Result<(), TraceError> {
    let target = PLACES.into_iter().find(|place| Path::new(place).is_dir()).ok_or(TraceError::NoTracefs)?;
    let forbidden = |what: &str| {
        let place = format!("{what} {target}");
        move |cause: rustix::io::Errno| TraceError::Forbidden { place, cause: cause.into() }
    };
    // SAFETY: a mount namespace of its own takes no descriptor away from any thread
    // (UnshareFlags::FILES is not asked for).
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(forbidden("a mount namespace to mount tracefs on"))?;
    // What is mounted elsewhere later still arrives here, and nothing goes the other way.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(forbidden("private mounts to mount tracefs on"))?;
    match mount("nodev", target, "tracefs", MountFlags::NOSUID | MountFlags::NOEXEC, c"") {
        Err(rustix::io::Errno::NODEV) => Err(TraceError::NoTracefs),
        other => other.map_err(forbidden("mount -t tracefs nodev")),
    }
}
