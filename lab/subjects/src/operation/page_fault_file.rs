// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page fault on a file whose pages are in memory already.

use std::io::Write;

use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::param::page_size;

use super::alone::{alone, batch};
use super::pages::Pages;
use super::{Explanation, Fault, Form, OpenError, Operation, PLAIN};
use doorbell_results::configuration::Pattern;

pub(super) const OPERATION: Operation = Operation {
    name: "page-fault-file",
    form: Form::alone("page", 4096),
    explanation: Explanation {
        summary: "first read of a page of a file that is in the page cache",
        how: "Reads one byte of each page of a mapped file, in order; the mapping is emptied \
            (MADV_DONTNEED, untimed) between batches, the pages stay in the cache.",
        kernel: "Exception, look-up in the page cache, entries in the page table: for up to 16 \
            neighbouring pages at once (fault-around), so pages touched and faults taken \
            differ by that factor.",
        limits: "Per page touched it is what lmbench calls a page fault; per fault counted it \
            is what one costs. Both are shown.",
        sources: &["lmbench lat_pagefault", "Linux mm/memory.c, do_fault_around"],
    },
    faults: true,
    open: |site, configuration| {
        let Pattern::Operation { batch: pages } = configuration.pattern else {
            return Err(OpenError::call("page-fault-file", "the configuration is not an operation"));
        };
        // In the run's folder, which goes with the run.
        let path = site.path("pages");
        let mut file = doorbell_files::create_new(&path, 0o600)
            .map_err(|error| OpenError::call("open", format!("{}: {error}", path.display())))?;
        let _ = std::fs::remove_file(&path);
        let block = vec![1; page_size()];
        for _ in 0..pages.max(1) {
            file.write_all(&block).map_err(|error| {
                OpenError::with_cure(
                    "write",
                    error,
                    "free some space where temporary files go, or set TMPDIR",
                )
            })?;
        }
        // Whole in the page cache by now.
        alone(move |side| {
            let length = batch(side) as usize * page_size();
            // SAFETY: a fresh mapping at an address of the kernel's
            // choice; the file is unlinked and only this program's.
            let base =
                unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, &file, 0) }
                    .map_err(|error| Fault::new("mmap", error))?;
            let touch = |byte: *mut u8| {
                // SAFETY: inside the mapping; the file behind it has its length and is never cut.
                std::hint::black_box(unsafe { byte.read_volatile() });
            };
            Ok(Pages { base, length, touch })
        })
    },
    ..PLAIN
};
