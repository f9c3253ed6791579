// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffer in which the programs leave their records, shared with the kernel (kernel
//! Documentation/bpf/ringbuf.rst).

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::BpfError;

/// Bits of a record's length: still being written, and not meant to be read. Before the record
/// stand its length and a number of the kernel's.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEAD: usize = 8;

/// How far we have read and, after it, how far the kernel has written, then the records, twice in
/// a row, so that each is in one piece.
#[derive(Debug)]
pub struct Ring {
    read: NonNull<u8>,
    written: NonNull<u8>,
    page: usize,
    size: usize,
    /// The buffer is there for as long as this is open.
    _map: OwnedFd,
}

impl Ring {
    /// Of `size` bytes, a power of two.
    pub fn of(map: OwnedFd, size: usize) -> Result<Self, BpfError> {
        let page = rustix::param::page_size();
        let refused = |cause: io::Error| BpfError::refused("to share its buffer", cause);
        let mapped = |length, protection, at| {
            // SAFETY: no address is asked for, so nothing that was there is replaced.
            let memory =
                unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &map, at as u64) };
            let memory = memory.map_err(|cause| refused(cause.into()))?;
            NonNull::new(memory.cast()).ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))
        };
        let read: NonNull<u8> = mapped(page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let written = mapped(page + 2 * size, ProtFlags::READ, page);
        let written = written.inspect_err(|_| {
            // SAFETY: it was mapped above and is used nowhere.
            let _ = unsafe { munmap(read.as_ptr().cast(), page) };
        })?;
        Ok(Self { read, written, page, size, _map: map })
    }

    /// Hands each record that is there to `entry`, and takes it out.
    pub fn drain(&mut self, mut entry: impl FnMut(&[u8])) {
        // SAFETY: both counters are aligned, at the beginning of their pages, and mapped for as
        // long as `self`; the kernel, too, goes to them by atomic instructions.
        let (read, written) =
            unsafe { (self.read.cast::<AtomicU64>().as_ref(), self.written.cast::<AtomicU64>().as_ref()) };
        let mut at = read.load(Relaxed);
        // No further than it was then: who writes as fast as it is read would keep us for ever.
        // Pairs with the kernel's release of it after a record's head is written.
        let end = written.load(Acquire);
        while at < end {
            let offset = at as usize & (self.size - 1);
            // SAFETY: heads lie at multiples of eight within `size` bytes after the page.
            let head = unsafe { self.written.add(self.page + offset).cast::<AtomicU32>().as_ref() };
            // Pairs with the kernel's release when the record is whole.
            let length = head.load(Acquire);
            if length & BUSY != 0 {
                break;
            }
            let size = (length & !DISCARDED) as usize;
            if size > self.size {
                break;
            }
            if length & DISCARDED == 0 {
                // SAFETY: a record is no longer than the buffer, which is mapped twice in a row;
                // the kernel does not write there until it is told below that it was read, and
                // nobody else can.
                entry(unsafe {
                    std::slice::from_raw_parts(self.written.add(self.page + offset + HEAD).as_ptr(), size)
                });
            }
            at += (HEAD + size).next_multiple_of(8) as u64;
            // Pairs with the kernel's acquire of it before it writes there again.
            read.store(at, Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths, and nothing points there any more.
        unsafe {
            let _ = munmap(self.read.as_ptr().cast(), self.page);
            let _ = munmap(self.written.as_ptr().cast(), self.page + 2 * self.size);
        }
    }
}
