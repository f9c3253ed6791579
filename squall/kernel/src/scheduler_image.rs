// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared scheduler's code, which lies in the kernel's own and is
//! mapped into every process from there.

use squall_scheduler::image::{Entries, IMAGE};

use crate::frames::FRAME;

const BYTES: &[u8] = include_bytes!(env!("SQUALL_SCHEDULER"));

#[repr(C, align(4096))]
struct Pages([u8; BYTES.len().next_multiple_of(FRAME)]);

#[unsafe(link_section = ".text.scheduler")]
static PAGES: Pages = {
    let mut pages = [0; BYTES.len().next_multiple_of(FRAME)];
    let mut at = 0;
    while at < BYTES.len() {
        pages[at] = BYTES[at];
        at += 1;
    }
    Pages(pages)
};

/// Its pages, by the kernel's addresses.
pub(crate) fn pages() -> impl Iterator<Item = usize> {
    let first = (&raw const PAGES).addr();
    (first..first + size_of::<Pages>()).step_by(FRAME)
}

/// Its entries, as processes call them.
pub(crate) fn entries() -> Entries {
    // SAFETY: the image begins with the table, and the pages are aligned.
    unsafe { (&raw const PAGES).cast::<Entries>().read() }
}

/// One of its functions where the kernel can call it.
pub(crate) fn here<F: Copy>(entry: F) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: a function's address, moved by as much as the image is;
    // its code refers to itself by distance.
    unsafe {
        let address: usize = core::mem::transmute_copy(&entry);
        core::mem::transmute_copy(&(address - IMAGE + (&raw const PAGES).addr()))
    }
}
