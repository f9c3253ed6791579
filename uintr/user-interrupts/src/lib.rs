// SPDX-License-Identifier: MIT OR Apache-2.0
//! User interrupts: a function of a thread runs between any two of its instructions because another thread, of this
//! process or another, sent it a number from 0 to 63.
//!
//! By the CPU's own means, where it has them and the driver of `uintr/driver` is loaded ([`Backend::Hardware`]: a send is one
//! instruction, and no kernel is entered where the receiver runs); or, if that is asked for, by signals, shared memory and sockets, with the
//! same names, descriptors and outcomes ([`Backend::Signals`], Linux 5.16 or later). It is the interface of the C library
//! `libuintr`, whose sources this crate compiles: `uintr.h` and uintr(3) say the same things.
//!
//! | to | there is |
//! |---|---|
//! | choose, and learn why not | [`start`], [`can_start`], [`backend`], [`reason`] |
//! | let this thread be interrupted | [`Receiver`] |
//! | name a vector to others | [`Receiver::vector`], a descriptor to be passed or inherited |
//! | be told in an event loop, without a handler | [`Polled`] |
//! | interrupt one, or a set | [`Sender`], [`Sender::send_all`] |
//! | be interrupted by a timer, or by what is written to an eventfd | [`Receiver::timer`], [`Receiver::eventfd`] |
//! | hold interrupts off, and sleep until one comes | [`Receiver::mask`], [`Receiver::wait`] |
//!
//! ```
//! use user_interrupts::{Backend, Receiver, Sender, start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! println!("{}", start(&[Backend::Hardware, Backend::Signals])?);
//! let receiver = Receiver::counting()?;
//! let sender = Sender::connect(&receiver.vector(3)?)?;
//! std::thread::spawn(move || sender.send()).join().unwrap();
//! receiver.wait(None)?;
//! receiver.unmask();
//! assert_eq!(receiver.take(), 1 << 3);
//! # Ok(())
//! # }
//! ```

#[cfg(not(target_pointer_width = "64"))]
compile_error!("user-interrupts is of 64 bits; there is no port to 32 bits yet");

mod backend;
mod polled;
mod receiver;
mod sender;
mod sys;

pub use backend::{Backend, StartError, backend, can_start, reason, signal, start};
pub use polled::{Polled, Style};
pub use receiver::{Calls, Pending, Receiver};
pub use sender::Sender;

/// Vectors of a receiver: 0 to 63, of which the highest is delivered first.
pub const VECTORS: u8 = 64;

/// What a process may be connected to at a time.
pub const CONNECTIONS: usize = 256;

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What a call of the C library returned: -1 is a failure that errno tells.
fn result(returned: c_int) -> io::Result<c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// A descriptor that a call has just made.
fn descriptor(returned: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call has made it for its caller, and nobody else knows the number yet.
    result(returned).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}
