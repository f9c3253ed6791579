// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why nothing came of a call that concerns the GPU.

use rustix::io::Errno;
use std::fmt;
use std::path::PathBuf;

/// Names another file than the driver's own library.
pub const VARIABLE: &str = "DOORBELL_CUDA_LIBRARY";

/// Why nothing came of a call that concerns the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be opened.
    NoLibrary {
        /// Which file.
        file: PathBuf,
        /// Why, as the dynamic linker says.
        cause: String,
    },
    /// The driver is too old: it lacks a function that is used.
    NoFunction {
        /// Which.
        name: &'static str,
    },
    /// The driver refused. That a device is lost, or that a kernel
    /// failed, is told by every call from then on.
    Call {
        /// The driver's function.
        call: &'static str,
        /// What it returned.
        code: i32,
        /// The same by its name; empty where the driver knows none.
        name: String,
    },
    /// The system refused.
    Os {
        /// The call.
        call: &'static str,
        /// What it reported.
        errno: Errno,
    },
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary { file, cause } => write!(
                f,
                "the GPU's driver cannot be opened ({}): {cause}; install NVIDIA's driver, or name \
                 its library in {}",
                file.display(),
                VARIABLE
            ),
            Self::NoFunction { name } => {
                write!(f, "the GPU's driver has no {name}; it needs one of CUDA 12.0 or later")
            }
            Self::Call { call, code, name } if name.is_empty() => write!(f, "{call} failed: error {code}"),
            Self::Call { call, code, name } => write!(f, "{call} failed: {name} ({code})"),
            Self::Os { call, errno } => write!(f, "{call} failed: {errno}"),
        }
    }
}

impl std::error::Error for GpuError {}
