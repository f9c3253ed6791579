// SPDX-License-Identifier: MIT OR Apache-2.0
//! RDMSR and WRMSR of the six user-interrupt MSRs (§3.1). CR4.UINTR does not gate them.

use super::{Cpu, Exception};
use crate::msr;

/// Reads an MSR. That CPL is 0 is the caller's to check.
///
/// # Errors
/// #GP(0) if the CPU lacks the feature or `number` is none of the six.
pub fn rdmsr(cpu: &Cpu, number: u32) -> Result<u64, Exception> {
    if !cpu.has_uintr {
        return Err(Exception::GeneralProtection);
    }
    Ok(match number {
        msr::RR => cpu.uirr,
        msr::HANDLER => cpu.handler,
        msr::STACKADJUST => cpu.stack_adjust,
        msr::MISC => u64::from(cpu.uinv) << 32 | u64::from(cpu.uitt_size),
        msr::PD => cpu.upid_address,
        msr::TT => cpu.tt,
        _ => return Err(Exception::GeneralProtection),
    })
}

/// Writes an MSR. That CPL is 0 is the caller's to check.
///
/// # Errors
/// #GP(0) if the CPU lacks the feature, `number` is none of the six, a reserved bit is set, or an address is not
/// canonical for the widest linear address the CPU supports.
pub fn wrmsr(cpu: &mut Cpu, number: u32, value: u64) -> Result<(), Exception> {
    let refuse = |bad: bool| if bad { Err(Exception::GeneralProtection) } else { Ok(()) };
    refuse(!cpu.has_uintr)?;
    match number {
        msr::RR => cpu.uirr = value,
        msr::HANDLER => {
            refuse(!cpu.canonical_at_most(value))?;
            cpu.handler = value;
        }
        msr::STACKADJUST => {
            refuse(!cpu.canonical_at_most(value))?;
            cpu.stack_adjust = value;
        }
        msr::MISC => {
            refuse(value & msr::MISC_RESERVED != 0)?;
            cpu.uitt_size = value as u32;
            cpu.uinv = (value >> 32) as u8;
        }
        msr::PD => {
            refuse(value & msr::PD_RESERVED != 0 || !cpu.canonical_at_most(value))?;
            cpu.upid_address = value;
        }
        msr::TT => {
            refuse(value & msr::TT_RESERVED != 0 || !cpu.canonical_at_most(value))?;
            cpu.tt = value;
        }
        _ => return Err(Exception::GeneralProtection),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u32; 6] = [msr::RR, msr::HANDLER, msr::STACKADJUST, msr::MISC, msr::PD, msr::TT];

    #[test]
    fn each_msr_refuses_exactly_its_own_bits() {
        let not_canonical = |value: u64| value >> 47 != 0 && value >> 47 != 0x1_FFFF;
        for number in ALL {
            for bit in 0..64 {
                let value = 1 << bit;
                let refused = match number {
                    msr::RR => false,
                    msr::MISC => bit >= 40,
                    msr::PD => bit < 6 || not_canonical(value),
                    msr::TT => (1..4).contains(&bit) || not_canonical(value),
                    _ => not_canonical(value),
                };
                let mut cpu = Cpu::user_mode();
                let outcome = wrmsr(&mut cpu, number, value);
                assert_eq!(outcome.is_err(), refused, "MSR {number:#x}, bit {bit}");
                let expected = if refused { 0 } else { value };
                assert_eq!(rdmsr(&cpu, number), Ok(expected), "MSR {number:#x}, bit {bit}");
            }
        }
    }

    #[test]
    fn none_exists_without_the_feature_and_cr4_does_not_matter() {
        let mut without = Cpu { has_uintr: false, ..Cpu::user_mode() };
        let mut disabled = Cpu { cr4_uintr: false, ..Cpu::user_mode() };
        for number in ALL {
            assert!(rdmsr(&without, number).is_err() && wrmsr(&mut without, number, 0).is_err());
            assert!(rdmsr(&disabled, number).is_ok() && wrmsr(&mut disabled, number, 0).is_ok());
        }
        assert!(rdmsr(&disabled, 0x984).is_err() && wrmsr(&mut disabled, 0x98B, 0).is_err());
    }

    #[test]
    fn the_widest_supported_address_decides_not_the_paging_mode() {
        let mut cpu = Cpu { la57_capable: true, ..Cpu::user_mode() };
        assert!(wrmsr(&mut cpu, msr::HANDLER, 1 << 50).is_ok());
    }
}
