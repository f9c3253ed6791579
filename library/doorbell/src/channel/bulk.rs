// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long copies between private memory and memory that another process may be writing.
//!
//! Such memory is copied with atomic accesses, which the compiler neither merges nor widens: eight
//! bytes at a time. One string instruction, or vectors where there is none, copy as many bytes at
//! once as the processor can. To the language it is bytes loaded and stored one by one, in some
//! order, relaxed: whatever another process does meanwhile, the copy mixes old and new and nothing
//! else happens. What is stored after the instruction is stored after all of it (Intel SDM vol. 3A,
//! 9.2.4.1), so that a word which commits a message goes last here too; what is loaded before and
//! after keeps its place, as every `memcpy` made of this instruction relies on. Without that order
//! elsewhere, the word's release and its acquire order all the same.

/// Fewer bytes are copied faster by words: a string instruction takes
/// some ten nanoseconds to get going.
const LEAST: usize = 1024;

/// Copies `from` to `to` if it is so long that this is faster than by words, and this processor
/// can. Otherwise does nothing and returns false.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and nobody in this process touches them
/// meanwhile except atomically.
#[inline(always)]
pub(super) unsafe fn store(to: *mut u8, from: &[u8]) -> bool {
    // SAFETY: by contract, and a slice is valid for reads.
    from.len() >= LEAST && unsafe { copy(to, from.as_ptr(), from.len()) }
}

/// Copies from `from` to `to` under the same conditions.
///
/// # Safety
/// `from` is valid for reads of `to.len()` bytes, and nobody in this
/// process touches them meanwhile except atomically.
#[inline(always)]
pub(super) unsafe fn load(from: *const u8, to: &mut [u8]) -> bool {
    // SAFETY: by contract, and a mutable slice is valid for writes.
    to.len() >= LEAST && unsafe { copy(to.as_mut_ptr(), from, to.len()) }
}

/// # Safety
/// `from` is valid for reads and `to` for writes of `length` bytes.
#[cfg(all(target_arch = "x86_64", not(any(miri, feature = "fault_injection"))))]
#[inline(never)]
unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> bool {
    if !std::arch::is_x86_feature_detected!("ermsb") {
        // There the instruction goes byte by byte.
        return false;
    }
    // SAFETY: by contract; the direction flag is clear on entry to
    // inline assembly. JUSTIFICATION: a copy by the language would be
    // a data race, and one by atomics moves eight bytes at a time.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    true
}

/// Pairs of vector registers, 64 bytes a turn. The architecture makes each access single-copy
/// atomic in its aligned eight bytes at the least (Arm ARM, B2.2), and a later store-release or an
/// earlier load-acquire orders all of them as it orders any others.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `length` bytes, which are at least [`LEAST`].
#[cfg(all(target_arch = "aarch64", not(any(miri, feature = "fault_injection"))))]
#[inline(never)]
unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> bool {
    // What is left is less than a turn: the last 64 bytes are copied once more.
    let last = length - 64;
    // SAFETY: by contract: whole turns and the last 64 bytes lie in
    // both. JUSTIFICATION: a copy by the language would be a data
    // race, and one by atomics moves eight bytes at a time.
    unsafe {
        std::arch::asm!(
            "2:",
            "ldp q0, q1, [{from}], #32",
            "ldp q2, q3, [{from}], #32",
            "stp q0, q1, [{to}], #32",
            "stp q2, q3, [{to}], #32",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            "ldp q0, q1, [{last_from}]",
            "ldp q2, q3, [{last_from}, #32]",
            "stp q0, q1, [{last_to}]",
            "stp q2, q3, [{last_to}, #32]",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            turns = inout(reg) length / 64 => _,
            last_from = in(reg) from.wrapping_add(last),
            last_to = in(reg) to.wrapping_add(last),
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            options(nostack),
        );
    }
    true
}

/// Nothing to copy with: elsewhere words are all there is, and fault injection counts each of them.
///
/// # Safety
/// None is needed.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, feature = "fault_injection"))
)))]
#[inline(always)]
unsafe fn copy(_: *mut u8, _: *const u8, _: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::{LEAST, load, store};

    #[test]
    fn what_was_copied_in_bulk_is_what_was_there_at_every_alignment_and_nothing_else_changes() {
        let from: Vec<u8> = (0..4 * LEAST).map(|index| (index * 7 % 251) as u8).collect();
        for (start, length) in
            (0..9).flat_map(|start| [LEAST, LEAST + 1, 3 * LEAST - 5].map(|length| (start, length)))
        {
            let mut there = vec![0xa5_u8; 4 * LEAST];
            // SAFETY: both lie in their vectors.
            let stored = unsafe { store(there[start..].as_mut_ptr(), &from[..length]) };
            // It copies where it can: else nothing is tested here.
            #[cfg(all(target_arch = "x86_64", not(any(miri, feature = "fault_injection"))))]
            assert_eq!(stored, std::arch::is_x86_feature_detected!("ermsb"));
            #[cfg(all(target_arch = "aarch64", not(any(miri, feature = "fault_injection"))))]
            assert!(stored);
            let expected: Vec<u8> =
                (0..4 * LEAST)
                    .map(|at| {
                        if stored && (start..start + length).contains(&at) { from[at - start] } else { 0xa5 }
                    })
                    .collect();
            assert_eq!(there, expected);
            let mut back = vec![0; length];
            // SAFETY: as above.
            if unsafe { load(there[start..].as_ptr(), &mut back) } {
                assert_eq!(back, from[..length]);
            }
        }
    }

    #[test]
    fn a_short_copy_is_left_to_the_caller() {
        let mut there = vec![1_u8; LEAST];
        // SAFETY: both lie in their vectors.
        assert!(!unsafe { store(there.as_mut_ptr(), &[0; LEAST - 1]) });
        assert!(there.iter().all(|byte| *byte == 1));
    }
}
