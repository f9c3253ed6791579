// SPDX-License-Identifier: MIT OR Apache-2.0
//! os_sync_wait_on_address: macOS's sleep on the value of a word, public since macOS 14.4 (os/os_sync_wait_on_address.h). Type-checked and
//! never run.

use std::ffi::c_void;
use std::io;
use std::time::Duration;

use crate::mechanism::{Fault, Link, Notifier};
use crate::site::{OpenError, Site, Word};
use crate::watched_word::{WordNotifier, WordReader, WordWaiter};

/// `OS_CLOCK_MACH_ABSOLUTE_TIME` (os/clock.h).
const MACH_ABSOLUTE_TIME: u32 = 32;
/// `OS_SYNC_WAIT_ON_ADDRESS_NONE` and `OS_SYNC_WAKE_BY_ADDRESS_NONE`: threads of one process.
const NONE: u32 = 0;

unsafe extern "C" {
    fn os_sync_wait_on_address(address: *mut c_void, value: u64, size: usize, flags: u32) -> libc::c_int;
    fn os_sync_wait_on_address_with_timeout(
        address: *mut c_void,
        value: u64,
        size: usize,
        flags: u32,
        clock: u32,
        timeout_ns: u64,
    ) -> libc::c_int;
    fn os_sync_wake_by_address_any(address: *mut c_void, size: usize, flags: u32) -> libc::c_int;
}

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
        let woken = unsafe { os_sync_wake_by_address_any(word.as_ptr().cast(), size_of::<u32>(), NONE) };
        let error = io::Error::last_os_error();
        // Nobody waits.
        if woken < 0 && error.raw_os_error() != Some(libc::ENOENT) {
            return Err(Fault::new("os_sync_wake_by_address_any", error));
        }
        Ok(())
    }
}

impl WordWaiter for AddressWaiter {
    #[inline]
    fn word(&mut self) -> &mut WordReader {
        &mut self.0
    }
    #[inline]
    fn pause(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        let (address, seen, size) = (self.0.word.as_ptr().cast(), u64::from(self.0.seen), size_of::<u32>());
        // SAFETY: the word is an atomic of four bytes that lives as long as the trial.
        let waiters = unsafe {
            match timeout {
                None => os_sync_wait_on_address(address, seen, size, NONE),
                // Of no time at all the call makes an error.
                Some(timeout) => {
                    let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1);
                    os_sync_wait_on_address_with_timeout(address, seen, size, NONE, MACH_ABSOLUTE_TIME, ns)
                }
            }
        };
        let error = io::Error::last_os_error();
        let expected = [libc::ETIMEDOUT, libc::EINTR, libc::EFAULT].map(Some);
        if waiters < 0 && !expected.contains(&error.raw_os_error()) {
            return Err(Fault::new("os_sync_wait_on_address", error));
        }
        Ok(())
    }
}
