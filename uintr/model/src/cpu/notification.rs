// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notification identification and processing (§6.4): what happens to
//! an ordinary interrupt whose vector is UINV.

use super::{Cpu, Exception, Memory};
use crate::upid::UpidValue;

/// Whether acknowledging `vector` on this processor is a notification, not an entry through the
/// IDT. Holds at any CPL; that ordinary interrupts are open at all is the caller's to know.
#[must_use]
pub const fn identifies(cpu: &Cpu, vector: u8) -> bool {
    cpu.cr4_uintr && cpu.long_mode && vector == cpu.uinv
}

/// What processing makes of the UPID: ON cleared, PIR taken. Hardware may do this in one locked
/// step or in two, ON first. SN, NV, NDST and the reserved bits are not looked at.
#[must_use]
pub const fn take(upid: UpidValue) -> (UpidValue, u64) {
    (upid.with_on(false).with_pir(0), upid.pir)
}

/// Adds what was taken from PIR to UIRR. ORed: bits that were pending stay pending.
pub fn absorb(cpu: &mut Cpu, requests: u64) {
    cpu.uirr |= requests;
}

/// The whole of it, ON and PIR in one locked step, for a vector that [`identifies`] accepted and
/// that was ended (EOI) at the local APIC.
///
/// # Errors
/// #PF if the UPID is not mapped, #GP(0) if its address is not canonical; the EOI is not undone.
pub fn process(cpu: &mut Cpu, memory: &mut impl Memory) -> Result<(), Exception> {
    if !cpu.canonical(cpu.upid_address) {
        return Err(Exception::GeneralProtection);
    }
    let mut requests = 0;
    memory.update16(cpu.upid_address, &mut |old| {
        let (taken, pir) = take(old.into());
        requests = pir;
        Some(taken.into())
    })?;
    absorb(cpu, requests);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::Sparse;
    use super::*;

    #[test]
    fn requests_are_added_to_those_already_pending() {
        let mut memory = Sparse::default().page(0x1000);
        memory.put16(0x1000, UpidValue::new(0xEC, 9).with_on(true).with_sn(true).with_pir(0b100).into());
        let mut cpu = Cpu { upid_address: 0x1000, uirr: 0b1, cpl: 0, ..Cpu::user_mode() };
        process(&mut cpu, &mut memory).unwrap();
        assert_eq!(cpu.uirr, 0b101);
        assert_eq!(UpidValue::from(memory.get16(0x1000)), UpidValue::new(0xEC, 9).with_sn(true));
    }

    #[test]
    fn only_the_programmed_vector_with_the_feature_on_is_a_notification() {
        let cpu = Cpu { uinv: 0xEC, cpl: 0, ..Cpu::user_mode() };
        assert!(identifies(&cpu, 0xEC) && !identifies(&cpu, 0xEB));
        assert!(!identifies(&Cpu { cr4_uintr: false, ..cpu }, 0xEC));
        assert!(!identifies(&Cpu { long_mode: false, ..cpu }, 0xEC));
    }

    #[test]
    fn an_absent_upid_faults_with_supervisor_rights_and_changes_nothing() {
        let mut cpu = Cpu { upid_address: 0x1000, uirr: 2, ..Cpu::user_mode() };
        let before = cpu;
        let Err(Exception::PageFault(fault)) = process(&mut cpu, &mut Sparse::default()) else {
            panic!("an absent page must fault");
        };
        assert!(!fault.user && fault.write);
        assert_eq!(cpu, before);
    }
}
