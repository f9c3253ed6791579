// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page fault on a file whose pages are in memory already.

use std::ffi::c_void;
use std::fs::File;
use std::io::Write;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;

use super::alone::{Alone, Bench, Solo, batch};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::{Configuration, Pattern};

/// First read of a page of a cached file.
#[derive(Debug)]
pub(super) struct PageFaultFile;

impl Operation for PageFaultFile {
    fn name(&self) -> &'static str {
        "page-fault-file"
    }
    fn form(&self) -> Form {
        Form::alone("page", 4096)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "first read of a page of a file that is in the page cache",
            how: "Reads one byte of each page of a mapped file, in order; the mapping is emptied \
                (MADV_DONTNEED, untimed) between batches, the pages stay in the cache.",
            kernel: "Exception, look-up in the page cache, entries in the page table: for up to 16 \
                neighbouring pages at once (fault-around), so pages touched and faults taken \
                differ by that factor.",
            limits: "Per page touched it is what lmbench calls a page fault; per fault counted it \
                is what one costs. Both are shown.",
            sources: &["lmbench lat_pagefault", "Linux mm/memory.c, do_fault_around"],
        }
    }
    fn faults(&self) -> bool {
        true
    }
    fn open(&self, site: &Site, configuration: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        let Pattern::Operation { batch } = configuration.pattern else {
            return Err(OpenError::call("page-fault-file", "the configuration is not an operation"));
        };
        // In the run's folder, which goes with the run.
        let path = site.path("pages");
        let mut file = doorbell_files::create_new(&path, 0o600)
            .map_err(|error| OpenError::call("open", format!("{}: {error}", path.display())))?;
        let _ = std::fs::remove_file(&path);
        let block = vec![1; page_size()];
        for _ in 0..batch.max(1) {
            file.write_all(&block).map_err(|error| {
                OpenError::with_cure(
                    "write",
                    error,
                    "free some space where temporary files go, or set TMPDIR",
                )
            })?;
        }
        Ok(Box::new(Solo(Cached(file))))
    }
}

/// The file, whole in the page cache.
#[derive(Debug)]
struct Cached(File);

impl Alone for Cached {
    type Bench = Pages;
    fn set_up(&self, side: &Side) -> Result<Pages, SideError> {
        let length = batch(side) as usize * page_size();
        // SAFETY: a fresh mapping at an address of the kernel's
        // choice; the file is unlinked and only this program's.
        let base =
            unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &self.0, 0) }
                .map_err(|error| Fault::new("mmap", error))?;
        Ok(Pages { base, length })
    }
}

#[derive(Debug)]
pub(super) struct Pages {
    base: *mut c_void,
    length: usize,
}

impl Bench for Pages {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        let base: *const u8 = self.base.cast_const().cast();
        for page in 0..(count as usize).min(self.length / page_size()) {
            // SAFETY: inside the mapping; the file behind it has this length and is never cut.
            std::hint::black_box(unsafe { base.add(page * page_size()).read_volatile() });
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        // SAFETY: the range is this mapping; its pages stay in the file.
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
