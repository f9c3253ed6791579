// SPDX-License-Identifier: MIT OR Apache-2.0
//! CLUI, STUI and TESTUI (§5): the user-interrupt flag, which no MSR shows.

use super::{CF, Cpu, Exception};

/// Flags that TESTUI clears: OF SF ZF AF PF.
const CLEARED_BY_TESTUI: u64 = 1 << 11 | 1 << 7 | 1 << 6 | 1 << 4 | 1 << 2;

/// CLUI: no delivery from the next boundary on.
///
/// # Errors
/// #UD with the feature off.
pub fn clui(cpu: &mut Cpu) -> Result<(), Exception> {
    cpu.check_enabled()?;
    cpu.uif = false;
    Ok(())
}

/// STUI: delivery is possible at the very next boundary; unlike STI
/// there is no shadow of one instruction.
///
/// # Errors
/// #UD with the feature off.
pub fn stui(cpu: &mut Cpu) -> Result<(), Exception> {
    cpu.check_enabled()?;
    cpu.uif = true;
    Ok(())
}

/// TESTUI: CF := UIF, and OF SF ZF AF PF := 0.
///
/// # Errors
/// #UD with the feature off.
pub fn testui(cpu: &mut Cpu) -> Result<(), Exception> {
    cpu.check_enabled()?;
    cpu.rflags = cpu.rflags & !(CLEARED_BY_TESTUI | CF) | if cpu.uif { CF } else { 0 };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn testui_reports_what_stui_and_clui_set() {
        let mut cpu = Cpu { rflags: 0xFFFF_FFFF, ..Cpu::user_mode() };
        stui(&mut cpu).unwrap();
        testui(&mut cpu).unwrap();
        assert_eq!(cpu.rflags, 0xFFFF_FFFF & !CLEARED_BY_TESTUI);
        clui(&mut cpu).unwrap();
        testui(&mut cpu).unwrap();
        assert_eq!(cpu.rflags & CF, 0);
    }

    #[test]
    fn all_three_are_invalid_with_the_feature_off() {
        let mut cpu = Cpu { cr4_uintr: false, ..Cpu::user_mode() };
        for instruction in [clui, stui, testui] {
            assert_eq!(instruction(&mut cpu), Err(Exception::InvalidOpcode));
        }
    }
}
