// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page fault of a first touch: the kernel finds a page, clears it and maps it.

use std::ffi::c_void;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

use super::alone::{Alone, Bench, Solo, batch};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// First write to a page of anonymous memory.
#[derive(Debug)]
pub(super) struct PageFaultAnonymous;

impl Operation for PageFaultAnonymous {
    fn name(&self) -> &'static str {
        "page-fault-anonymous"
    }
    fn form(&self) -> Form {
        Form::alone("page", 256)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "first write to a page of anonymous memory",
            how: "Writes one byte to each page of a mapping that is emptied (MADV_DONTNEED, \
                untimed) between batches. Huge pages are refused for it, so that every page is a \
                fault.",
            kernel: "Exception, look-up of the mapping, a cleared page from the allocator, its \
                entry in the page table, return. Under nested paging the hypervisor may have its \
                own fault on top.",
            limits: "Divided by pages touched; the faults the kernel counted are shown beside it.",
            sources: &["getrusage(2), ru_minflt", "will-it-scale, page_fault1"],
        }
    }
    fn faults(&self) -> bool {
        true
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        Ok(Box::new(Solo(Self)))
    }
}

impl Alone for PageFaultAnonymous {
    type Bench = Pages;
    fn set_up(&self, side: &Side) -> Result<Pages, SideError> {
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
        let pages = Pages { base, length };
        // SAFETY: the range is this mapping. Advice that changes no content.
        match unsafe { madvise(base, length, Advice::LinuxNoHugepage) } {
            // A kernel without huge pages does not know the advice, and needs none.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(pages),
            Err(error) => Err(Fault::new("madvise(MADV_NOHUGEPAGE)", error).into()),
        }
    }
}

/// A mapping of this process alone.
#[derive(Debug)]
pub(super) struct Pages {
    base: *mut c_void,
    length: usize,
}

impl Bench for Pages {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        let base: *mut u8 = self.base.cast();
        for page in 0..(count as usize).min(self.length / page_size()) {
            // SAFETY: inside the mapping, which nothing else refers to.
            unsafe { base.add(page * page_size()).write_volatile(1) };
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        // SAFETY: the range is this mapping, to whose content no reference exists.
        unsafe { madvise(self.base, self.length, Advice::LinuxDontNeed) }
            .map_err(|error| Fault::new("madvise(MADV_DONTNEED)", error))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more. A failure would only keep memory.
        let _ = unsafe { munmap(self.base, self.length) };
    }
}
