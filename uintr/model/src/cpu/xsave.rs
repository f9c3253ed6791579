// SPDX-License-Identifier: MIT OR Apache-2.0
//! XSAVES and XRSTORS of component 14 (§3.2). CR4.UINTR does not gate them.

use super::{Cpu, Exception};
use crate::{
    msr,
    xstate::{MISC_UIF, UintrState},
};

/// XINUSE\[14\] in its exact form. A processor may also report the component in use when it is not.
#[must_use]
pub fn in_use(cpu: &Cpu) -> bool {
    image(cpu) != UintrState::default()
}

/// XSAVES with the component requested: the image it stores, **after which UINV is zero**. From
/// then on no IPI is a notification on this processor and PIR gathers in memory.
pub fn xsaves(cpu: &mut Cpu) -> UintrState {
    let image = image(cpu);
    cpu.uinv = 0;
    image
}

/// XRSTORS with the component requested and present in the image.
///
/// # Errors
/// #GP(0) with nothing loaded if UINV is not zero, or if the image holds an address that is not canonical or a
/// reserved bit. The architecture allows a fault to leave other fields loaded; this model loads
/// none, and UINV is zero in either case only if it was before.
pub fn xrstors(cpu: &mut Cpu, image: &UintrState) -> Result<(), Exception> {
    check_unarmed(cpu)?;
    let bad = image.misc & msr::MISC_IMAGE_RESERVED != 0
        || image.upid_address & msr::PD_RESERVED != 0
        || image.tt & msr::TT_RESERVED != 0
        || [image.handler, image.stack_adjust, image.upid_address, image.tt]
            .iter()
            .any(|&address| !cpu.canonical_at_most(address));
    if bad {
        return Err(Exception::GeneralProtection);
    }
    load(cpu, image);
    Ok(())
}

/// XRSTORS with the component requested and absent from the image (XSTATE_BV\[14\] = 0): every
/// field becomes zero, UIF included.
///
/// # Errors
/// #GP(0) if UINV is not zero.
pub fn xrstors_initial(cpu: &mut Cpu) -> Result<(), Exception> {
    check_unarmed(cpu)?;
    load(cpu, &UintrState::default());
    Ok(())
}

fn check_unarmed(cpu: &Cpu) -> Result<(), Exception> {
    if cpu.uinv == 0 { Ok(()) } else { Err(Exception::GeneralProtection) }
}

fn image(cpu: &Cpu) -> UintrState {
    UintrState {
        handler: cpu.handler,
        stack_adjust: cpu.stack_adjust,
        misc: u64::from(cpu.uif) << 63 | u64::from(cpu.uinv) << 32 | u64::from(cpu.uitt_size),
        upid_address: cpu.upid_address,
        uirr: cpu.uirr,
        tt: cpu.tt,
    }
}

fn load(cpu: &mut Cpu, image: &UintrState) {
    cpu.handler = image.handler;
    cpu.stack_adjust = image.stack_adjust;
    cpu.uif = image.misc & MISC_UIF != 0;
    cpu.uinv = image.uinv();
    cpu.uitt_size = image.uitt_size();
    cpu.upid_address = image.upid_address;
    cpu.uirr = image.uirr;
    cpu.tt = image.tt;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Cpu {
        Cpu {
            uirr: 6,
            uif: true,
            handler: 0x40_0000,
            stack_adjust: 128,
            uinv: 0xEC,
            uitt_size: 255,
            upid_address: 0xFFFF_8880_0000_0040,
            tt: 0xFFFF_8880_0000_1001,
            ..Cpu::user_mode()
        }
    }

    #[test]
    fn saving_clears_uinv_and_nothing_else() {
        let mut cpu = busy();
        let image = xsaves(&mut cpu);
        assert_eq!(cpu, Cpu { uinv: 0, ..busy() });
        assert_eq!((image.uinv(), image.uitt_size(), image.uif()), (0xEC, 255, true));
        assert_eq!(image.misc, 0x8000_00EC_0000_00FF);
    }

    #[test]
    fn a_second_save_stores_a_zero_vector() {
        let mut cpu = busy();
        xsaves(&mut cpu);
        assert_eq!(xsaves(&mut cpu).uinv(), 0);
    }

    #[test]
    fn what_was_saved_comes_back() {
        let mut cpu = busy();
        let image = xsaves(&mut cpu);
        xrstors_initial(&mut cpu).unwrap();
        assert!(!in_use(&cpu));
        assert_eq!(cpu, Cpu::user_mode());
        xrstors(&mut cpu, &image).unwrap();
        assert_eq!(cpu, busy());
    }

    #[test]
    fn restoring_over_an_armed_vector_is_a_fault() {
        let mut cpu = busy();
        assert_eq!(xrstors(&mut cpu, &UintrState::default()), Err(Exception::GeneralProtection));
        assert_eq!(xrstors_initial(&mut cpu), Err(Exception::GeneralProtection));
        assert_eq!(cpu, busy());
    }

    #[test]
    fn every_bad_image_is_refused() {
        let mut cpu = busy();
        let good = xsaves(&mut cpu);
        for bit in 40..63 {
            assert!(xrstors(&mut cpu, &UintrState { misc: 1 << bit, ..good }).is_err(), "MISC bit {bit}");
        }
        for bit in 0..6 {
            assert!(xrstors(&mut cpu, &UintrState { upid_address: 1 << bit, ..good }).is_err());
        }
        for bit in 1..4 {
            assert!(xrstors(&mut cpu, &UintrState { tt: 1 << bit, ..good }).is_err());
        }
        let wild = 1 << 50;
        for image in [
            UintrState { handler: wild, ..good },
            UintrState { stack_adjust: wild, ..good },
            UintrState { upid_address: wild, ..good },
            UintrState { tt: wild, ..good },
        ] {
            assert!(xrstors(&mut cpu, &image).is_err());
        }
    }
}
