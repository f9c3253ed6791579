// SPDX-License-Identifier: MIT OR Apache-2.0
//! UIRET (§5.2).

use super::{Cpu, Exception, Memory, Rights};

/// Flags that UIRET loads: CF PF AF ZF SF TF DF OF NT RF AC ID. IF, IOPL, VM, VIF and VIP stay.
pub const RFLAGS_MASK: u64 = 0x25_4DD5;

/// Bit of the popped RFLAGS that becomes UIF where the CPU has UIRET_UIF. Delivery pushes it as 1.
pub const RFLAGS_UIF: u64 = 1 << 1;

/// Returns from a handler that has discarded the vector: RSP points at the saved RIP. RIP, RFLAGS,
/// RSP and UIF change together, so no user interrupt comes between.
///
/// # Errors
/// #UD with the feature off; #SS(0) or #PF with user rights from the reads; #GP(0) for a RIP that is not canonical.
pub fn uiret(cpu: &mut Cpu, memory: &mut impl Memory) -> Result<(), Exception> {
    cpu.check_enabled()?;
    let mut frame = [0; 3];
    for (at, slot) in (0..).zip(&mut frame) {
        let address = cpu.rsp.wrapping_add(8 * at);
        if !cpu.canonical(address) {
            return Err(Exception::StackFault);
        }
        *slot = memory.read8(address, Rights::User)?;
    }
    let [rip, rflags, rsp] = frame;
    if !cpu.canonical(rip) {
        return Err(Exception::GeneralProtection);
    }
    cpu.rip = rip;
    cpu.rflags = cpu.rflags & !RFLAGS_MASK | rflags & RFLAGS_MASK;
    cpu.rsp = rsp;
    cpu.uif = !cpu.has_uiret_uif || rflags & RFLAGS_UIF != 0;
    cpu.mov_ss_shadow = false;
    cpu.sti_shadow = false;
    Ok(())
}

const _: () = {
    let mut mask = 0;
    let bits = [0, 2, 4, 6, 7, 8, 10, 11, 14, 16, 18, 21];
    let mut i = 0;
    while i < bits.len() {
        mask |= 1 << bits[i];
        i += 1;
    }
    assert!(mask == RFLAGS_MASK);
};

#[cfg(test)]
mod tests {
    use super::super::tests::Sparse;
    use super::*;

    fn frame(rip: u64, rflags: u64) -> Sparse {
        let mut memory = Sparse::default().page(0x1000);
        memory.0.extend([(0x1100, rip), (0x1108, rflags), (0x1110, 0x8000)]);
        memory
    }

    #[test]
    fn privileged_flags_of_the_frame_are_ignored() {
        let mut cpu = Cpu { rsp: 0x1100, rflags: 0x3202, ..Cpu::user_mode() };
        uiret(&mut cpu, &mut frame(0x5000, u64::MAX)).unwrap();
        assert_eq!(cpu.rflags, 0x3202 | RFLAGS_MASK);
        assert_eq!((cpu.rip, cpu.rsp, cpu.uif), (0x5000, 0x8000, true));
    }

    #[test]
    fn uif_follows_the_frame_only_where_the_cpu_says_so() {
        for (has_uiret_uif, rflags, uif) in [(false, 0, true), (true, 0, false), (true, RFLAGS_UIF, true)] {
            let mut cpu = Cpu { rsp: 0x1100, has_uiret_uif, ..Cpu::user_mode() };
            uiret(&mut cpu, &mut frame(0x5000, rflags)).unwrap();
            assert_eq!(cpu.uif, uif);
        }
    }

    #[test]
    fn a_fault_changes_no_register() {
        let good = Cpu { rsp: 0x1100, ..Cpu::user_mode() };
        let mut cpu = good;
        assert_eq!(uiret(&mut cpu, &mut frame(1 << 63, 2)), Err(Exception::GeneralProtection));
        assert_eq!(cpu, good);
        assert!(matches!(uiret(&mut cpu, &mut Sparse::default()), Err(Exception::PageFault(_))));
        assert_eq!(cpu, good);
        cpu.rsp = 1 << 63;
        assert_eq!(uiret(&mut cpu, &mut Sparse::default()), Err(Exception::StackFault));
    }
}
