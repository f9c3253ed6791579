// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console: the board's first serial port, a 16550, polled.

use core::fmt::{self, Write};

use crate::page_table::mapped;

const PORT: usize = 0x1000_0000;
const LINE_STATUS: usize = 5;
const ROOM: u8 = 1 << 5;

/// Whoever holds the kernel's lock may write to it.
pub(crate) struct Console;

impl Console {
    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let port: *mut u8 = mapped(PORT);
        for &byte in bytes {
            // SAFETY: the device's registers, which the map of all
            // memory covers; reading the status has no effect.
            unsafe {
                while port.add(LINE_STATUS).read_volatile() & ROOM == 0 {}
                port.write_volatile(byte);
            }
        }
    }
}

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// Says something to whoever watches the machine.
macro_rules! say {
    ($($part:tt)*) => {{
        let _ = core::fmt::Write::write_fmt(&mut $crate::console::Console, format_args!("squall: {}\n", format_args!($($part)*)));
    }};
}

pub(crate) use say;
