// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why something could not be fetched.

use std::io;
use std::path::PathBuf;

use crate::kernel::NoKernelFor;
use crate::process::Failure;

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
    /// A program that failed.
    #[error("{program} {failure}; try again, or name another mirror with DOORBELL_DEBIAN_MIRROR")]
    Program {
        /// The program.
        program: &'static str,
        /// What became of it.
        failure: Failure,
    },
    /// A kernel that there is not.
    #[error(transparent)]
    NoKernel(#[from] NoKernelFor),
    /// A package that the lists do not have.
    #[error("Debian's lists have no usable package {package} of version {series}*; they have: {offered}")]
    NoSuchPackage {
        /// The package.
        package: String,
        /// How its version was to begin.
        series: String,
        /// The versions that are there.
        offered: String,
    },
    /// Headers of another version than the kernel's.
    #[error(
        "Debian no longer offers {package} in version {version}, that of the kernel in the cache; \
         delete {} and build again for a newer kernel with its headers", .cache.display()
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
        wanted: String,
    },
}
