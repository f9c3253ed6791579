// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control and status registers.

/// Reads one.
macro_rules! read {
    ($name:literal) => {{
        let value: usize;
        #[allow(unused_unsafe)] // Some places that read one are unsafe themselves.
        // SAFETY: reading one of the registers used here changes nothing.
        unsafe { core::arch::asm!(concat!("csrr {}, ", $name), out(reg) value) };
        value
    }};
}

/// Writes one.
macro_rules! write {
    ($name:literal, $value:expr) => {{
        let value: usize = $value;
        // SAFETY: the places that write one say what they rely on.
        unsafe { core::arch::asm!(concat!("csrw ", $name, ", {}"), in(reg) value) };
    }};
}

pub(crate) use {read, write};
