// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands for a Parquet file where the crate `parquet` is not built in.

use std::convert::Infallible;
use std::io::{self, Write};
use std::marker::PhantomData;

use crate::long_table::{ColumnType, Value};
use crate::not_built::not_built;

/// There is none.
pub(super) struct File<W: Write + Send>(Infallible, PhantomData<W>);

impl<W: Write + Send> File<W> {
    pub(super) fn new(_: &[(&str, ColumnType)], _: W) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, not_built("Parquet")))
    }

    pub(super) fn group(&mut self, _: &[(&str, ColumnType)], _: &[Vec<Value>]) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn close(self) -> io::Result<()> {
        match self.0 {}
    }
}
