// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this process holds to be the cost of sleeping, once that is known.

use crate::profile::{ProfileError, Standing};
use doorbell_core::window::SleepCost;
use std::fmt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What this process holds to be the cost of sleeping, and how it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The cost.
    pub cost: SleepCost,
    /// Where it is from.
    pub source: CostSource,
}

/// Where a process has its [`SleepCost`] from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostSource {
    /// The profile in this file.
    Profile(PathBuf),
    /// A measurement: there is no profile.
    NoProfile,
    /// A measurement: there is a profile, and it cannot be used.
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: ProfileError,
    },
}

impl CostSource {
    /// The same in a word, as [`counters`](crate::counters) publishes it.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Profile(_) => Standing::Used,
            Self::NoProfile => Standing::NoFile,
            Self::Unusable { error, .. } => error.standing(),
        }
    }
}

impl fmt::Display for CostSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(path) => write!(f, "read from {}", path.display()),
            Self::NoProfile => f.write_str(
                "measured when the process began to wait; `doorbell tune` writes a profile instead",
            ),
            Self::Unusable { path, error } => {
                write!(
                    f,
                    "measured when the process began to wait, for {} is not used: {error}",
                    path.display()
                )
            }
        }
    }
}

/// Null until it is known. Set once; what it points to stays.
static CALIBRATION: AtomicPtr<Calibration> = AtomicPtr::new(ptr::null_mut());

/// As [`calibration`](crate::calibration()), if it has been asked for before.
pub(crate) fn known() -> Option<&'static Calibration> {
    // SAFETY: null, or made of a box that is never freed. Acquire: pairs with `set`.
    unsafe { CALIBRATION.load(Ordering::Acquire).as_ref() }
}

/// Makes it known, for good: by the one thread that calibrates.
pub(crate) fn set(calibration: Calibration) {
    // Release: pairs with `known`.
    CALIBRATION.store(Box::into_raw(Box::new(calibration)), Ordering::Release);
}
