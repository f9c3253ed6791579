// SPDX-License-Identifier: MIT OR Apache-2.0
//! XSAVE component 14, the user-interrupt state (§3.2): 48 bytes,
//! supervisor, compacted format only.

/// Number of the component in IA32_XSS, XSTATE_BV and XCOMP_BV.
pub const COMPONENT: u32 = 14;

/// Bit of [`UintrState::misc`] that holds UIF in the image.
pub const MISC_UIF: u64 = 1 << 63;

/// The component as XSAVES stores it.
///
/// The qword at offset 16 is the image of MISC with UIF in bit 63: UITTSZ at offset 16 (4 bytes),
/// UINV at 20, zeros at 21 and 22, UIF in bit 7 of byte 23.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UintrState {
    /// UIHANDLER.
    pub handler: u64,
    /// UISTACKADJUST.
    pub stack_adjust: u64,
    /// UITTSZ, UINV and UIF.
    pub misc: u64,
    /// Image of MSR PD.
    pub upid_address: u64,
    /// UIRR.
    pub uirr: u64,
    /// Image of MSR TT.
    pub tt: u64,
}

impl UintrState {
    /// UITTSZ, the highest valid index.
    #[must_use]
    pub const fn uitt_size(&self) -> u32 {
        self.misc as u32
    }

    /// UINV as it was when the state was saved. A kernel that restores it trusts a field that a
    /// second XSAVES turns into zero (hazard H6).
    #[must_use]
    pub const fn uinv(&self) -> u8 {
        (self.misc >> 32) as u8
    }

    /// UIF.
    #[must_use]
    pub const fn uif(&self) -> bool {
        self.misc & MISC_UIF != 0
    }
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<UintrState>() == 48);
    assert!(offset_of!(UintrState, handler) == 0);
    assert!(offset_of!(UintrState, stack_adjust) == 8);
    assert!(offset_of!(UintrState, misc) == 16);
    assert!(offset_of!(UintrState, upid_address) == 24);
    assert!(offset_of!(UintrState, uirr) == 32);
    assert!(offset_of!(UintrState, tt) == 40);
};
