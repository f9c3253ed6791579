// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of the two, once for a process.

use std::ffi::{CStr, c_int, c_uint};
use std::fmt::{self, Display, Formatter};
use std::io;

use crate::sys;

/// What user interrupts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// SENDUIPI, and the driver behind `/dev/uintr`. x86-64 only.
    Hardware,
    /// Signals, shared memory and sockets: Linux 5.16 or later, any processor.
    Signals,
}

impl Backend {
    fn bit(self) -> c_int {
        match self {
            Self::Hardware => sys::HARDWARE,
            Self::Signals => sys::SIGNALS,
        }
    }

    fn of(bit: c_int) -> Option<Self> {
        [Self::Hardware, Self::Signals].into_iter().find(|backend| backend.bit() == bit)
    }
}

impl Display for Backend {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hardware => "hardware",
            Self::Signals => "signals",
        })
    }
}

/// Why there is none of the backends that were asked for.
#[derive(Debug)]
pub enum StartError {
    /// None of them is to be had here.
    None {
        /// For each, why: `neither: hardware: /dev/uintr: No such file or directory (this CPU has no user interrupts); …`.
        reason: String,
        /// The system's answer: `ENOSYS` where the CPU, the driver or the kernel lacks it, `EACCES` where this user may not.
        cause: io::Error,
    },
    /// This process has chosen another one before, and the choice is for good.
    Other(Backend),
    /// The list was empty.
    NothingAsked,
}

impl Display for StartError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { reason, .. } => f.write_str(reason),
            Self::Other(chosen) => {
                write!(
                    f,
                    "this process has chosen user interrupts by {chosen} before, and the choice is for good"
                )
            }
            Self::NothingAsked => f.write_str("no backend was named: name hardware, signals or both"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::None { cause, .. } = self { Some(cause) } else { None }
    }
}

/// Chooses what user interrupts are made of among `backends`, hardware first, for the whole process and for good. Whoever asks again
/// gets the same answer. Nothing is emulated that was not asked for: a process that calls anything else first gets what the
/// environment's `UINTR_BACKEND` says (`hardware`, `signals`, `any`), and without it hardware alone.
///
/// # Errors
///
/// See [`StartError`]. After [`StartError::None`] another call may ask for another backend.
pub fn start(backends: &[Backend]) -> Result<Backend, StartError> {
    asks(sys::uintr_start, backends)
}

/// What [`start`] would choose; nothing is chosen.
///
/// # Errors
///
/// As [`start`].
pub fn can_start(backends: &[Backend]) -> Result<Backend, StartError> {
    asks(sys::uintr_can_start, backends)
}

fn asks(call: extern "C" fn(c_uint) -> c_int, backends: &[Backend]) -> Result<Backend, StartError> {
    let asked = backends.iter().fold(0, |asked, backend| asked | backend.bit());
    if asked == 0 {
        return Err(StartError::NothingAsked);
    }
    let chosen = call(asked.unsigned_abs());
    if let Some(chosen) = Backend::of(chosen) {
        return Ok(chosen);
    }
    let cause = io::Error::last_os_error();
    match backend() {
        Some(other) => Err(StartError::Other(other)),
        None => Err(StartError::None { reason: reason(), cause }),
    }
}

/// The choice, or none as long as there is none.
pub fn backend() -> Option<Backend> {
    Backend::of(sys::uintr_backend())
}

/// A line for people: the choice, and why; or why there is none.
pub fn reason() -> String {
    // SAFETY: never null, and a string in static memory that is written before the choice is told, by calls of `start` alone.
    unsafe { CStr::from_ptr(sys::uintr_backend_reason()) }.to_string_lossy().into_owned()
}

/// The signal that carries an interrupt with the signals backend; none with hardware. It must not
/// be blocked or given another handler.
pub fn signal() -> Option<i32> {
    Some(sys::uintr_signal()).filter(|number| *number != 0)
}
