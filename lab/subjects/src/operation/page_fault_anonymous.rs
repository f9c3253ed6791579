// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page fault of a first touch: the kernel finds a page, clears it and maps it.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::param::page_size;

use super::alone::{alone, batch};
use super::pages::Pages;
use super::{Explanation, Fault, Form, Operation, PLAIN};
use doorbell_harness::side::{Side, SideError};

pub(super) const OPERATION: Operation = Operation {
    name: "page-fault-anonymous",
    form: Form::alone("page", 256),
    explanation: Explanation {
        summary: "first write to a page of anonymous memory",
        how: "Writes one byte to each page of a mapping that is emptied (MADV_DONTNEED, untimed) \
            between batches. Huge pages are refused for it, so that every page is a fault.",
        kernel: "Exception, look-up of the mapping, a cleared page from the allocator, its \
            entry in the page table, return. Under nested paging the hypervisor may have its \
            own fault on top.",
        limits: "Divided by pages touched; the faults the kernel counted are shown beside it.",
        sources: &["getrusage(2), ru_minflt", "will-it-scale, page_fault1"],
    },
    faults: true,
    open: |_, _| alone(map),
    ..PLAIN
};

/// The mapping of as many pages as are in a batch, none of them huge.
fn map(side: &Side) -> Result<Pages<impl Fn(*mut u8) + use<>>, SideError> {
    let length = batch(side) as usize * page_size();
    // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
    let base = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(|error| Fault::new("mmap", error))?;
    // SAFETY: inside the mapping, which nothing else refers to.
    let pages = Pages { base, length, touch: |byte: *mut u8| unsafe { byte.write_volatile(1) } };
    // SAFETY: the range is this mapping. Advice that changes no content.
    match unsafe { madvise(base, length, Advice::LinuxNoHugepage) } {
        // A kernel without huge pages does not know the advice, and needs none.
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(pages),
        Err(error) => Err(Fault::new("madvise(MADV_NOHUGEPAGE)", error).into()),
    }
}
