// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delivery of a pending user interrupt (§6.2, §6.3).

use super::{Cpu, Exception, Memory, RF, Rights, TF};

/// Whether a user interrupt is delivered at this instruction
/// boundary. RFLAGS.IF and the STI shadow play no part.
#[must_use]
pub const fn deliverable(cpu: &Cpu) -> bool {
    cpu.cr4_uintr
        && cpu.pending()
        && cpu.uif
        && cpu.cpl == 3
        && cpu.long_mode
        && cpu.code64
        && !cpu.mov_ss_shadow
}

/// Where the frame's old end is: RSP moved or loaded, then aligned down to 16.
#[must_use]
pub const fn frame_top(rsp: u64, stack_adjust: u64) -> u64 {
    let moved = if stack_adjust & 1 != 0 { stack_adjust } else { rsp.wrapping_sub(stack_adjust) };
    moved & !15
}

/// Delivers the highest pending vector and returns it. Call only when [`deliverable`].
///
/// The frame seen by the handler, from RSP upwards: vector, RIP, RFLAGS, RSP.
///
/// # Errors
/// #GP(0) for a handler that is not canonical in the current paging mode; #SS(0) or #PF with user rights from a push.
/// The processor is unchanged, so the interrupt stays pending; pushes
/// made before the fault stay in memory.
///
/// # Panics
/// If nothing is pending.
pub fn deliver(cpu: &mut Cpu, memory: &mut impl Memory) -> Result<u8, Exception> {
    assert!(cpu.pending(), "delivery without a pending user interrupt");
    if !cpu.canonical(cpu.handler) {
        return Err(Exception::GeneralProtection);
    }
    let vector = 63 - cpu.uirr.leading_zeros() as u8;
    let mut rsp = frame_top(cpu.rsp, cpu.stack_adjust);
    for value in [cpu.rsp, cpu.rflags, cpu.rip, u64::from(vector)] {
        rsp = rsp.wrapping_sub(8);
        if !cpu.canonical(rsp) {
            return Err(Exception::StackFault);
        }
        memory.write8(rsp, value, Rights::User)?;
    }
    cpu.rsp = rsp;
    cpu.uirr &= !(1 << vector);
    cpu.uif = false;
    cpu.rflags &= !(TF | RF);
    cpu.rip = cpu.handler;
    cpu.sti_shadow = false;
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Sparse;
    use super::super::{PageFault, uiret};
    use super::*;

    fn ready() -> Cpu {
        Cpu {
            uirr: 1 << 63 | 1,
            uif: true,
            handler: 0x40_0000,
            stack_adjust: 128,
            rsp: 0x7008,
            rip: 0x1234,
            rflags: 0x10702,
            ..Cpu::user_mode()
        }
    }

    #[test]
    fn the_highest_vector_goes_first_and_only_its_bit_is_cleared() {
        let mut memory = Sparse::default().page(0x6000);
        let mut cpu = ready();
        assert!(deliverable(&cpu));
        assert_eq!(deliver(&mut cpu, &mut memory), Ok(63));
        assert_eq!((cpu.uirr, cpu.uif, cpu.rip), (1, false, 0x40_0000));
        assert_eq!(cpu.rflags, 0x602, "TF and RF cleared, DF and IF kept");
        assert_eq!(cpu.rsp, 0x6F80 - 32);
        assert_eq!(cpu.rsp % 16, 0);
        let frame: Vec<u64> = (0..4).map(|i| memory.0[&(cpu.rsp + 8 * i)]).collect();
        assert_eq!(frame, [63, 0x1234, 0x10702, 0x7008]);
        assert!(!deliverable(&cpu));
    }

    #[test]
    fn the_way_back_restores_everything_but_the_pending_bit() {
        let mut memory = Sparse::default().page(0x6000);
        let before = ready();
        let mut cpu = before;
        deliver(&mut cpu, &mut memory).unwrap();
        cpu.rsp += 8;
        uiret(&mut cpu, &mut memory).unwrap();
        assert_eq!(cpu, Cpu { uirr: 1, ..before });
    }

    #[test]
    fn an_absolute_adjustment_loads_the_top_of_another_stack() {
        assert_eq!(frame_top(0x7008, 0x9000 | 1), 0x9000);
        assert_eq!(frame_top(0x7008, 0), 0x7000);
    }

    #[test]
    fn an_absent_stack_page_leaves_the_interrupt_pending() {
        let mut cpu = ready();
        let before = cpu;
        let fault = PageFault { address: 0x6F78, write: true, user: true };
        assert_eq!(deliver(&mut cpu, &mut Sparse::default()), Err(Exception::PageFault(fault)));
        assert_eq!(cpu, before);
    }

    #[test]
    fn a_wild_stack_pointer_is_a_stack_fault() {
        let mut cpu = Cpu { rsp: 1 << 63, ..ready() };
        assert_eq!(deliver(&mut cpu, &mut Sparse::default()), Err(Exception::StackFault));
    }

    #[test]
    fn every_condition_is_needed() {
        let good = ready();
        for cpu in [
            Cpu { cr4_uintr: false, ..good },
            Cpu { uirr: 0, ..good },
            Cpu { uif: false, ..good },
            Cpu { cpl: 0, ..good },
            Cpu { code64: false, ..good },
            Cpu { long_mode: false, ..good },
            Cpu { mov_ss_shadow: true, ..good },
        ] {
            assert!(!deliverable(&cpu));
        }
        assert!(deliverable(&Cpu { rflags: 2, sti_shadow: true, ..good }), "IF and STI play no part");
    }
}
