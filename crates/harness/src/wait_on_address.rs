// SPDX-License-Identifier: MIT OR Apache-2.0
//! WaitOnAddress: a word in memory, and a queue of this process for those who sleep on its value. To Windows what the bare futex is to Linux,
//! for threads of one process.

use std::time::Duration;

use windows_sys::Win32::Foundation::{ERROR_TIMEOUT, GetLastError};
use windows_sys::Win32::System::Threading::{INFINITE, WaitOnAddress, WakeByAddressSingle};

use crate::mechanism::{Fault, Link, Notifier};
use crate::site::{OpenError, Site, Word};
use crate::watched_word::{WordNotifier, WordReader, WordWaiter};

/// The word.
#[derive(Debug, Clone, Copy)]
pub struct AddressLink(&'static Word);

/// The only writer of the word.
#[derive(Debug)]
pub struct AddressNotifier(WordNotifier);

/// The sleeper, with the value it saw last.
#[derive(Debug)]
pub struct AddressWaiter(WordReader);

impl Link for AddressLink {
    type Notifier = AddressNotifier;
    type Waiter = AddressWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self(site.word()?))
    }
    fn waiter(&self) -> Result<AddressWaiter, OpenError> {
        Ok(AddressWaiter(WordReader::new(self.0)))
    }
    fn notifier(&self) -> Result<AddressNotifier, OpenError> {
        Ok(AddressNotifier(WordNotifier::new(self.0)))
    }
}

impl Notifier for AddressNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let word = self.0.ring();
        // SAFETY: takes an address and looks at nothing there.
        unsafe { WakeByAddressSingle(word.as_ptr().cast()) };
        Ok(())
    }
}

/// Milliseconds of a time as Windows takes it, rounded up: a wait that ran out must not have been too short.
pub fn milliseconds(timeout: Option<Duration>) -> u32 {
    let whole =
        |timeout: Duration| u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE - 1);
    timeout.map_or(INFINITE, |timeout| whole(timeout).min(INFINITE - 1))
}

impl WordWaiter for AddressWaiter {
    #[inline]
    fn word(&mut self) -> &mut WordReader {
        &mut self.0
    }
    #[inline]
    fn pause(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        let seen = self.0.seen;
        // SAFETY: both addresses are of four bytes that live through the call; the word is an atomic, read by the system as one.
        let woken = unsafe {
            WaitOnAddress(
                self.0.word.as_ptr().cast(),
                (&raw const seen).cast(),
                size_of::<u32>(),
                milliseconds(timeout),
            )
        };
        // SAFETY: takes nothing.
        if woken == 0 && unsafe { GetLastError() } != ERROR_TIMEOUT {
            return Err(Fault::new("WaitOnAddress", std::io::Error::last_os_error()));
        }
        Ok(())
    }
}
