// SPDX-License-Identifier: MIT OR Apache-2.0
//! An executable CPU: the user-interrupt state of one logical
//! processor and the functions that change it.
//!
//! Nothing here keeps time, owns memory or knows of other processors. A caller hands in the [`Cpu`]
//! and a [`Memory`], one instruction or event happens, and what leaves the core (an IPI) is in the
//! return value. **On any error the `Cpu` is unchanged** unless the function says otherwise; memory
//! may keep what was written before the fault.
//!
//! | event | function | atomic steps inside |
//! |---|---|---|
//! | SENDUIPI (§5.1) | [`senduipi()`] | [`senduipi::entry_address`], read entry, [`senduipi::target`], locked update [`senduipi::post`], IPI |
//! | acknowledging an interrupt (§6.4) | [`notification::process`] | [`notification::identifies`], clear ON, take PIR, [`notification::absorb`] |
//! | delivery (§6.3) | [`delivery::deliver`] | one |
//! | UIRET (§5.2) | [`uiret()`] | one |
//! | CLUI, STUI, TESTUI (§5) | [`flag`] | one |
//! | RDMSR, WRMSR (§3.1) | [`msr_access`] | one |
//! | XSAVES, XRSTORS of component 14 (§3.2) | [`xsave`] | one |
//!
//! Other processors may run between two atomic steps; the steps exist
//! as functions of their own for that reason.
//!
//! Not modelled, for no caller has them: shadow stacks and IBT at CPL 3, enclaves, TSX, VMX.

pub mod delivery;
pub mod flag;
pub mod msr_access;
pub mod notification;
pub mod senduipi;
pub mod uiret;
pub mod xsave;

pub use delivery::deliver;
pub use senduipi::senduipi;
pub use uiret::uiret;

use crate::msr;

/// Carry flag.
pub const CF: u64 = 1 << 0;
/// Trap flag.
pub const TF: u64 = 1 << 8;
/// Resume flag.
pub const RF: u64 = 1 << 16;

/// How destinations are written into NDST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApicMode {
    /// 8-bit IDs, in bits 15:8 of NDST.
    XApic,
    /// 32-bit IDs, all of NDST.
    #[default]
    X2Apic,
}

impl ApicMode {
    /// NDST for an APIC ID. Bits of `id` that the mode cannot express
    /// are lost, as they are in hardware.
    #[must_use]
    pub const fn ndst(self, id: u32) -> u32 {
        match self {
            Self::XApic => (id & 0xFF) << 8,
            Self::X2Apic => id,
        }
    }

    /// APIC ID that SENDUIPI addresses for an NDST.
    #[must_use]
    pub const fn destination(self, ndst: u32) -> u32 {
        match self {
            Self::XApic => (ndst >> 8) & 0xFF,
            Self::X2Apic => ndst,
        }
    }
}

/// Everything of one logical processor that user interrupts read or
/// change. Reset value: all zero, no feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// CPUID says UINTR.
    pub has_uintr: bool,
    /// CPUID says UIRET_UIF.
    pub has_uiret_uif: bool,
    /// CR4.UINTR.
    pub cr4_uintr: bool,
    /// IA32_EFER.LMA.
    pub long_mode: bool,
    /// CS.L: 64-bit code, not compatibility mode.
    pub code64: bool,
    /// Current privilege level, 0 to 3.
    pub cpl: u8,
    /// Blocking by MOV SS or POP SS is in force at this boundary.
    pub mov_ss_shadow: bool,
    /// Blocking by STI is in force at this boundary. It holds back
    /// ordinary interrupts, not user interrupts.
    pub sti_shadow: bool,
    /// RFLAGS.
    pub rflags: u64,
    /// RIP.
    pub rip: u64,
    /// RSP.
    pub rsp: u64,
    /// Whether linear addresses are 57 bits wide in the current paging mode; otherwise 48.
    pub la57: bool,
    /// Whether the CPU can do 57-bit linear addresses at all: MSR
    /// writes and XRSTORS check against this.
    pub la57_capable: bool,
    /// How destinations are written.
    pub apic: ApicMode,
    /// User-interrupt request register.
    pub uirr: u64,
    /// User-interrupt flag.
    pub uif: bool,
    /// Handler address.
    pub handler: u64,
    /// Stack adjustment, see [`msr::STACKADJUST`].
    pub stack_adjust: u64,
    /// Notification vector this core recognises.
    pub uinv: u8,
    /// Highest valid UITT index.
    pub uitt_size: u32,
    /// Linear address of the running receiver's UPID.
    pub upid_address: u64,
    /// MSR TT: UITT address and SENDUIPI enable.
    pub tt: u64,
}

impl Cpu {
    /// A processor in 64-bit mode at CPL 3 with the feature present and enabled, interrupts open,
    /// and all user-interrupt registers zero.
    #[must_use]
    pub const fn user_mode() -> Self {
        Self {
            has_uintr: true,
            has_uiret_uif: false,
            cr4_uintr: true,
            long_mode: true,
            code64: true,
            cpl: 3,
            mov_ss_shadow: false,
            sti_shadow: false,
            rflags: 0x202,
            rip: 0,
            rsp: 0,
            la57: false,
            la57_capable: false,
            apic: ApicMode::X2Apic,
            uirr: 0,
            uif: false,
            handler: 0,
            stack_adjust: 0,
            uinv: 0,
            uitt_size: 0,
            upid_address: 0,
            tt: 0,
        }
    }

    /// A user interrupt is pending (§6.1). The architecture keeps this
    /// as a separate condition; it equals `uirr != 0` after each event
    /// that re-evaluates it, and no event here leaves the two apart.
    #[must_use]
    pub const fn pending(&self) -> bool {
        self.uirr != 0
    }

    /// All the instructions raise #UD outside 64-bit mode, without
    /// the CPUID bit, or with CR4.UINTR clear.
    fn check_enabled(&self) -> Result<(), Exception> {
        if self.long_mode && self.code64 && self.cr4_uintr && self.has_uintr {
            Ok(())
        } else {
            Err(Exception::InvalidOpcode)
        }
    }

    /// Canonical in the current paging mode.
    fn canonical(&self, address: u64) -> bool {
        canonical(address, self.la57)
    }

    /// Canonical for the widest address the CPU supports.
    fn canonical_at_most(&self, address: u64) -> bool {
        canonical(address, self.la57_capable)
    }
}

/// Whether bits 63:47 (63:56 with `la57`) are all equal.
const fn canonical(address: u64, la57: bool) -> bool {
    let spare = if la57 { 7 } else { 16 };
    ((address << spare) as i64 >> spare) as u64 == address
}

/// What an instruction or event raises instead of completing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exception {
    /// #UD.
    InvalidOpcode,
    /// #GP(0).
    GeneralProtection,
    /// #SS(0): a stack access at a non-canonical address.
    StackFault,
    /// #PF.
    PageFault(PageFault),
}

/// The operands of a #PF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageFault {
    /// CR2.
    pub address: u64,
    /// W bit of the error code.
    pub write: bool,
    /// U bit of the error code: the access had user rights.
    pub user: bool,
}

/// The rights an access is made with. They do not follow CPL:
/// SENDUIPI at CPL 3 reads its table as a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rights {
    /// SMAP and SMEP do not apply; a supervisor page is fine.
    Supervisor,
    /// An ordinary access of the program.
    User,
}

/// Memory as seen through the current page tables, by linear address.
/// Each call is one atomic access.
pub trait Memory {
    /// Reads a qword.
    ///
    /// # Errors
    /// The #PF that the access takes.
    fn read8(&mut self, address: u64, rights: Rights) -> Result<u64, PageFault>;

    /// Writes a qword.
    ///
    /// # Errors
    /// The #PF that the access takes; nothing is written then.
    fn write8(&mut self, address: u64, value: u64, rights: Rights) -> Result<(), PageFault>;

    /// Reads 16 aligned bytes with supervisor rights.
    ///
    /// # Errors
    /// The #PF that the access takes.
    fn read16(&mut self, address: u64) -> Result<u128, PageFault>;

    /// Replaces 16 aligned bytes under a lock with supervisor rights: `change` sees the old value,
    /// and nothing is written if it returns `None`.
    ///
    /// # Errors
    /// The #PF that the access takes, read or write; `change` is not called then.
    fn update16(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u128) -> Option<u128>,
    ) -> Result<(), PageFault>;
}

impl From<PageFault> for Exception {
    fn from(fault: PageFault) -> Self {
        Self::PageFault(fault)
    }
}

/// An ordinary IPI: fixed delivery, physical destination, edge triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipi {
    /// Interrupt vector. Below 16 the APIC refuses it
    /// (send-illegal-vector), and nobody is notified.
    pub vector: u8,
    /// APIC ID.
    pub destination: u32,
}

const _: () = assert!(msr::TT_ENABLE | msr::TT_RESERVED == !msr::TT_ADDRESS);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Sparse memory of qwords; a page without any is absent.
    #[derive(Default)]
    pub(crate) struct Sparse(pub(crate) BTreeMap<u64, u64>);

    impl Sparse {
        pub(crate) fn page(mut self, base: u64) -> Self {
            self.0.extend((0..512).map(|i| (base + 8 * i, 0)));
            self
        }

        pub(crate) fn put16(&mut self, at: u64, value: u128) {
            self.0.insert(at, value as u64);
            self.0.insert(at + 8, (value >> 64) as u64);
        }

        pub(crate) fn get16(&self, at: u64) -> u128 {
            u128::from(self.0[&(at + 8)]) << 64 | u128::from(self.0[&at])
        }
    }

    impl Memory for Sparse {
        fn read8(&mut self, address: u64, rights: Rights) -> Result<u64, PageFault> {
            let fault = PageFault { address, write: false, user: rights == Rights::User };
            self.0.get(&address).copied().ok_or(fault)
        }

        fn write8(&mut self, address: u64, value: u64, rights: Rights) -> Result<(), PageFault> {
            let fault = PageFault { address, write: true, user: rights == Rights::User };
            *self.0.get_mut(&address).ok_or(fault)? = value;
            Ok(())
        }

        fn read16(&mut self, address: u64) -> Result<u128, PageFault> {
            self.read8(address, Rights::Supervisor)?;
            Ok(self.get16(address))
        }

        fn update16(
            &mut self,
            address: u64,
            change: &mut dyn FnMut(u128) -> Option<u128>,
        ) -> Result<(), PageFault> {
            if !self.0.contains_key(&address) {
                return Err(PageFault { address, write: true, user: false });
            }
            if let Some(new) = change(self.get16(address)) {
                self.put16(address, new);
            }
            Ok(())
        }
    }

    #[test]
    fn canonical_addresses_are_sign_extended_from_bit_47_or_56() {
        assert!(canonical(0x7FFF_FFFF_FFFF, false) && canonical(0xFFFF_8000_0000_0000, false));
        assert!(!canonical(0x8000_0000_0000, false) && canonical(0x8000_0000_0000, true));
        assert!(!canonical(0x0100_0000_0000_0000, true) && canonical(0xFF00_0000_0000_0000, true));
    }

    #[test]
    fn an_xapic_destination_lives_in_bits_15_to_8() {
        assert_eq!(ApicMode::XApic.ndst(5), 0x500);
        assert_eq!(ApicMode::XApic.destination(0x500), 5);
        assert_eq!(ApicMode::XApic.destination(5), 0, "an unshifted ID addresses APIC 0");
        assert_eq!(ApicMode::X2Apic.destination(ApicMode::X2Apic.ndst(0x1_0005)), 0x1_0005);
    }
}
