// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and bit fields of the six user-interrupt MSRs (§3.1).

/// IA32_UINTR_RR: UIRR.
pub const RR: u32 = 0x985;
/// IA32_UINTR_HANDLER: UIHANDLER.
pub const HANDLER: u32 = 0x986;
/// IA32_UINTR_STACKADJUST: UISTACKADJUST; bit 0 set means "load RSP",
/// clear means "subtract from RSP".
pub const STACKADJUST: u32 = 0x987;
/// IA32_UINTR_MISC: UITTSZ in 31:0, UINV in 39:32.
pub const MISC: u32 = 0x988;
/// IA32_UINTR_PD: UPIDADDR.
pub const PD: u32 = 0x989;
/// IA32_UINTR_TT: UITTADDR, with the SENDUIPI enable in bit 0.
pub const TT: u32 = 0x98A;

/// Reserved bits of MISC on WRMSR. Bit 63 is among them, although the XSAVE image keeps UIF there.
pub const MISC_RESERVED: u64 = 0xFFFF_FF00_0000_0000;
/// Reserved bits of MISC in the XSAVE image: all of 62:40, as bit 63 is UIF.
pub const MISC_IMAGE_RESERVED: u64 = MISC_RESERVED & !(1 << 63);
/// Reserved bits of PD.
pub const PD_RESERVED: u64 = 0x3F;
/// Reserved bits of TT.
pub const TT_RESERVED: u64 = 0xE;
/// SENDUIPI enable, bit 0 of TT.
pub const TT_ENABLE: u64 = 1;
/// The address in TT, without the enable and the reserved bits.
pub const TT_ADDRESS: u64 = !0xF;
