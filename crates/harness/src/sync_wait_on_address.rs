// SPDX-License-Identifier: MIT OR Apache-2.0
//! os_sync_wait_on_address: macOS's sleep on the value of a word, public since macOS 14.4 (os/os_sync_wait_on_address.h). Type-checked and
//! never run.
//!
//! The calls are asked for when the program runs: a program that was linked with them would not start at all on an older system.

use std::ffi::{CStr, c_void};
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use crate::mechanism::{Fault, Link, Notifier};
use crate::site::{OpenError, Site, Word};
use crate::watched_word::{WordNotifier, WordReader, WordWaiter};

/// `OS_CLOCK_MACH_ABSOLUTE_TIME` (os/clock.h).
const MACH_ABSOLUTE_TIME: u32 = 32;
/// `OS_SYNC_WAIT_ON_ADDRESS_NONE` and `OS_SYNC_WAKE_BY_ADDRESS_NONE`: threads of one process.
const NONE: u32 = 0;

/// Address, value, size, flags.
type Wait = unsafe extern "C" fn(*mut c_void, u64, usize, u32) -> libc::c_int;
/// Address, value, size, flags, clock, nanoseconds.
type WaitFor = unsafe extern "C" fn(*mut c_void, u64, usize, u32, u32, u64) -> libc::c_int;
/// Address, size, flags.
type Wake = unsafe extern "C" fn(*mut c_void, usize, u32) -> libc::c_int;

/// The system's calls.
#[derive(Debug)]
struct Calls {
    wait: Wait,
    wait_for: WaitFor,
    wake: Wake,
}

/// The calls, where the system has them.
fn calls() -> Option<&'static Calls> {
    static CALLS: OnceLock<Option<Calls>> = OnceLock::new();
    fn found(name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the name ends in a zero; the libraries of the system are never unloaded.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
    let ask = || {
        let wait = found(c"os_sync_wait_on_address")?;
        let wait_for = found(c"os_sync_wait_on_address_with_timeout")?;
        let wake = found(c"os_sync_wake_by_address_any")?;
        // SAFETY: the header declares the functions of these names so.
        Some(unsafe {
            Calls {
                wait: std::mem::transmute::<*mut c_void, Wait>(wait),
                wait_for: std::mem::transmute::<*mut c_void, WaitFor>(wait_for),
                wake: std::mem::transmute::<*mut c_void, Wake>(wake),
            }
        })
    };
    CALLS.get_or_init(ask).as_ref()
}

/// Whether the system has the calls.
pub fn available() -> bool {
    calls().is_some()
}

/// The word.
#[derive(Debug, Clone, Copy)]
pub struct AddressLink(&'static Word, &'static Calls);

/// The only writer of the word.
#[derive(Debug)]
pub struct AddressNotifier(WordNotifier, &'static Calls);

/// The sleeper, with the value it saw last.
#[derive(Debug)]
pub struct AddressWaiter(WordReader, &'static Calls);

impl Link for AddressLink {
    type Notifier = AddressNotifier;
    type Waiter = AddressWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let calls = calls()
            .ok_or_else(|| OpenError::call("dlsym", "no os_sync_wait_on_address before macOS 14.4"))?;
        Ok(Self(site.word()?, calls))
    }
    fn waiter(&self) -> Result<AddressWaiter, OpenError> {
        Ok(AddressWaiter(WordReader::new(self.0), self.1))
    }
    fn notifier(&self) -> Result<AddressNotifier, OpenError> {
        Ok(AddressNotifier(WordNotifier::new(self.0), self.1))
    }
}

impl Notifier for AddressNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let word = self.0.ring();
        // SAFETY: takes an address and looks at nothing there.
        let woken = unsafe { (self.1.wake)(word.as_ptr().cast(), size_of::<u32>(), NONE) };
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
                None => (self.1.wait)(address, seen, size, NONE),
                // Of no time at all the call makes an error.
                Some(timeout) => {
                    let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1);
                    (self.1.wait_for)(address, seen, size, NONE, MACH_ABSOLUTE_TIME, ns)
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
