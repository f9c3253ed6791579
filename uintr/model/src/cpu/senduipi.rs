// SPDX-License-Identifier: MIT OR Apache-2.0
//! SENDUIPI (§5.1).
//!
//! The index check and the entry read, the locked update of the UPID,
//! and the IPI are three moments: another processor may clear the
//! entry between the first two, or act on PIR between the last two.

use super::{Cpu, Exception, Ipi, Memory};
use crate::{msr, uitt, uitt::UittEntry, upid::UpidValue};

/// What a valid table entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Linear address of the UPID.
    pub upid_address: u64,
    /// User vector, below 64.
    pub vector: u8,
}

/// First step: may this processor send with this index, and where is the entry?
///
/// # Errors
/// #UD if the feature is off or TT does not enable SENDUIPI; #GP(0) if `index` is above UITTSZ.
pub fn entry_address(cpu: &Cpu, index: u64) -> Result<u64, Exception> {
    cpu.check_enabled()?;
    if cpu.tt & msr::TT_ENABLE == 0 {
        return Err(Exception::InvalidOpcode);
    }
    if index > u64::from(cpu.uitt_size) {
        return Err(Exception::GeneralProtection);
    }
    // index < 2^32, so the product fits; the sum wraps like any linear address.
    Ok((cpu.tt & msr::TT_ADDRESS).wrapping_add(index * 16))
}

/// Second step: the entry as it was read.
///
/// # Errors
/// #GP(0) if V is clear, a reserved bit is set, the vector is above 63, or the UPID address is misaligned or not
/// canonical.
pub fn target(cpu: &Cpu, entry: UittEntry) -> Result<Target, Exception> {
    let good = entry.valid()
        && entry.low & uitt::RESERVED == 0
        && entry.vector() < 64
        && entry.upid_address & 63 == 0
        && cpu.canonical(entry.upid_address);
    if good {
        Ok(Target { upid_address: entry.upid_address, vector: entry.vector() })
    } else {
        Err(Exception::GeneralProtection)
    }
}

/// Third step, under the lock: the UPID after the post, and the IPI
/// to send if this post has to notify.
///
/// # Errors
/// #GP(0) if the UPID has a reserved bit set; it must then be left as it was.
pub fn post(cpu: &Cpu, upid: UpidValue, vector: u8) -> Result<(UpidValue, Option<Ipi>), Exception> {
    if upid.reserved() {
        return Err(Exception::GeneralProtection);
    }
    let notify = !upid.on() && !upid.sn();
    let posted = upid.with_pir(upid.pir | 1 << vector).with_on(upid.on() || notify);
    let ipi = Ipi { vector: upid.nv(), destination: cpu.apic.destination(upid.ndst()) };
    Ok((posted, notify.then_some(ipi)))
}

/// The whole instruction with nothing between its steps. RIP is the caller's business.
///
/// # Errors
/// Those of the steps, and #PF on the entry or the UPID.
///
/// ```
/// use doorbell_uintr::cpu::{Cpu, Exception, Memory, PageFault, Rights, senduipi};
/// struct Absent;
/// impl Memory for Absent {
///     fn read8(&mut self, a: u64, _: Rights) -> Result<u64, PageFault> { Err(PageFault { address: a, write: false, user: false }) }
///     fn write8(&mut self, a: u64, _: u64, _: Rights) -> Result<(), PageFault> { Err(PageFault { address: a, write: true, user: false }) }
///     fn read16(&mut self, a: u64) -> Result<u128, PageFault> { Err(PageFault { address: a, write: false, user: false }) }
///     fn update16(&mut self, a: u64, _: &mut dyn FnMut(u128) -> Option<u128>) -> Result<(), PageFault> { Err(PageFault { address: a, write: true, user: false }) }
/// }
/// let mut cpu = Cpu::user_mode();
/// assert_eq!(senduipi(&cpu, &mut Absent, 0), Err(Exception::InvalidOpcode));
/// cpu.tt = 0x1000 | 1;
/// assert_eq!(senduipi(&cpu, &mut Absent, 1), Err(Exception::GeneralProtection));
/// assert!(matches!(senduipi(&cpu, &mut Absent, 0), Err(Exception::PageFault(_))));
/// ```
pub fn senduipi(cpu: &Cpu, memory: &mut impl Memory, index: u64) -> Result<Option<Ipi>, Exception> {
    let address = entry_address(cpu, index)?;
    let target = target(cpu, memory.read16(address)?.into())?;
    let mut outcome = Ok(None);
    memory.update16(target.upid_address, &mut |old| match post(cpu, old.into(), target.vector) {
        Ok((posted, ipi)) => {
            outcome = Ok(ipi);
            Some(posted.into())
        }
        Err(fault) => {
            outcome = Err(fault);
            None
        }
    })?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::super::tests::Sparse;
    use super::*;

    const UITT: u64 = 0x10_0000;
    const UPID: u64 = 0x20_0040;

    fn machine() -> (Cpu, Sparse) {
        let mut memory = Sparse::default().page(UITT).page(0x20_0000);
        memory.put16(UITT + 16, UittEntry::new(UPID, 33).into());
        memory.put16(UPID, UpidValue::new(0xEC, 3).into());
        (Cpu { tt: UITT | 1, uitt_size: 1, ..Cpu::user_mode() }, memory)
    }

    fn upid(memory: &Sparse) -> UpidValue {
        memory.get16(UPID).into()
    }

    #[test]
    fn the_first_post_notifies_and_the_second_only_sets_its_bit() {
        let (cpu, mut memory) = machine();
        assert_eq!(senduipi(&cpu, &mut memory, 1), Ok(Some(Ipi { vector: 0xEC, destination: 3 })));
        assert_eq!(upid(&memory), UpidValue::new(0xEC, 3).with_on(true).with_pir(1 << 33));
        assert_eq!(senduipi(&cpu, &mut memory, 1), Ok(None));
    }

    #[test]
    fn a_suppressed_post_sets_its_bit_but_not_on() {
        let (cpu, mut memory) = machine();
        memory.put16(UPID, UpidValue::new(0xEC, 3).with_sn(true).into());
        assert_eq!(senduipi(&cpu, &mut memory, 1), Ok(None));
        assert_eq!(upid(&memory), UpidValue::new(0xEC, 3).with_sn(true).with_pir(1 << 33));
    }

    #[test]
    fn the_index_bound_is_inclusive() {
        let (cpu, mut memory) = machine();
        assert!(senduipi(&cpu, &mut memory, 1).is_ok());
        assert_eq!(senduipi(&cpu, &mut memory, 2), Err(Exception::GeneralProtection));
        assert_eq!(senduipi(&cpu, &mut memory, 1 << 32 | 1), Err(Exception::GeneralProtection));
    }

    #[test]
    fn every_bad_entry_is_a_general_protection_fault() {
        let (cpu, _) = machine();
        let good = UittEntry::new(UPID, 63);
        assert!(target(&cpu, good).is_ok());
        for bit in (1..8).chain(14..64) {
            let bad = UittEntry { low: good.low ^ 1 << bit, ..good };
            assert_eq!(target(&cpu, bad), Err(Exception::GeneralProtection), "bit {bit}");
        }
        for upid_address in [UPID + 32, UPID | 1 << 47] {
            assert!(target(&cpu, UittEntry { upid_address, ..good }).is_err(), "{upid_address:#x}");
        }
        assert!(target(&cpu, UittEntry { low: good.low & !uitt::VALID, ..good }).is_err());
    }

    #[test]
    fn a_reserved_bit_in_the_upid_faults_and_leaves_it_alone() {
        for bit in (2..16).chain(24..32) {
            let (cpu, mut memory) = machine();
            let bad = UpidValue { low: UpidValue::new(0xEC, 3).low | 1 << bit, pir: 4 };
            memory.put16(UPID, bad.into());
            assert_eq!(senduipi(&cpu, &mut memory, 1), Err(Exception::GeneralProtection), "bit {bit}");
            assert_eq!(upid(&memory), bad);
        }
    }

    #[test]
    fn each_gate_alone_makes_the_opcode_invalid() {
        let (good, _) = machine();
        for cpu in [
            Cpu { cr4_uintr: false, ..good },
            Cpu { has_uintr: false, ..good },
            Cpu { long_mode: false, ..good },
            Cpu { code64: false, ..good },
            Cpu { tt: good.tt & !1, ..good },
        ] {
            assert_eq!(entry_address(&cpu, 0), Err(Exception::InvalidOpcode));
        }
        assert!(entry_address(&Cpu { cpl: 0, ..good }, 0).is_ok(), "any CPL may send");
    }
}
