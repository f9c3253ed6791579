// SPDX-License-Identifier: MIT OR Apache-2.0
//! With whose processes memory is shared, as Python says it.

use doorbell::rendezvous;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// "same", "anyone", or numbers of users.
#[derive(Debug)]
pub(crate) struct Users(pub(crate) rendezvous::Users);

impl Default for Users {
    fn default() -> Self {
        Self(rendezvous::Users::Same)
    }
}

impl FromPyObject<'_, '_> for Users {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(word) = object.extract::<String>() {
            return match word.as_str() {
                "same" => Ok(Self(rendezvous::Users::Same)),
                "anyone" => Ok(Self(rendezvous::Users::Anyone)),
                _ => Err(PyValueError::new_err(format!(
                    "{word:?} is no choice of users: \"same\", \"anyone\", or a list of their numbers"
                ))),
            };
        }
        Ok(Self(rendezvous::Users::Listed(object.extract::<Vec<u32>>()?.into())))
    }
}
