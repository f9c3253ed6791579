// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that are kept for one wait.

use crate::handle::Held;
use doorbell::select::Selectable;
use pyo3::prelude::*;

/// What a handle guards, as one of the ends of a wait.
pub(crate) trait Locked {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable>;
}

impl<T: Locked> Locked for Held<'_, T> {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        (**self).selectable()
    }
}

impl Locked for doorbell::Bell {
    fn selectable(&mut self) -> PyResult<&mut dyn Selectable> {
        Ok(self)
    }
}
