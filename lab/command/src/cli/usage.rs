// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error of arguments that cannot be carried out.

/// Arguments that each make sense and do not go together, or name what this machine has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// What somebody else says of the arguments.
    pub fn of(told: impl std::fmt::Display) -> Self {
        Self(told.to_string())
    }
}

/// Refuses arguments.
pub fn refuse<T, E: From<Usage>>(what: impl Into<String>) -> Result<T, E> {
    Err(Usage(what.into()).into())
}
