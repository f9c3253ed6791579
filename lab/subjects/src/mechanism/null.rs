// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nobody is notified: what remains is the cost of the harness.

use std::time::Duration;

use super::{Explanation, Fault, Link, Mechanism, Notifier, OpenError, Site, Waiter, Waits, Woken};

pub(crate) struct Null;

/// A link along which nothing travels, and either end of it.
pub(crate) struct NullLink;

impl Mechanism for Null {
    type Link = NullLink;
    const NAME: &'static str = "null";
    const WAITS: Waits = Waits::Nothing;
    const COALESCES: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "no notification at all: the cost of the harness",
        how: "The notifier returns at once and so does the waiter; only the initiating side runs.",
        kernel: "Nothing: no system call is made and no shared memory is touched.",
        limits: "Its figures are the primitive cost under every other row: two clock reads and \
            the histogram.",
        sources: &["fio's `null` engine, which exists to test fio itself"],
    };
}

impl Link for NullLink {
    type Notifier = Self;
    type Waiter = Self;
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self)
    }
    fn waiter(&self) -> Result<Self, OpenError> {
        Ok(Self)
    }
    fn notifier(&self) -> Result<Self, OpenError> {
        Ok(Self)
    }
}

impl Notifier for NullLink {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Waiter for NullLink {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    #[inline]
    fn wait_for(&mut self, _: Duration) -> Result<Woken, Fault> {
        Ok(Woken::Notified)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(true)
    }
}
