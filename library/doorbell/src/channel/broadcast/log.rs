// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a broadcast's log.

use crate::channel::bulk;
use crate::descriptor;
use crate::mapping::{MapError, SEALS, check_from_peer, os};
use doorbell_core::channel::arithmetic::{place, until_wrap};
use doorbell_core::channel::broadcast::Log;
use doorbell_core::channel::layout::{LARGEST_RING, LOG_RING, LogHeader, SMALLEST_RING};
use doorbell_core::fault;
use doorbell_core::index::Capacity;
use doorbell_core::layout::{LayoutError, PAGE};
use doorbell_core::violation::PeerViolation;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of a log, as its publisher or as a subscriber maps it.
///
/// Invariant: `base` is valid for `length` bytes, which are a [`LogHeader`] and, from [`LOG_RING`]
/// on, `capacity` bytes; for writes only if this process made it. The file cannot shrink.
#[derive(Debug)]
pub(super) struct LogMemory {
    base: NonNull<u8>,
    length: usize,
    capacity: Capacity,
    file: OwnedFd,
}

// SAFETY: only reached through atomics.
unsafe impl Send for LogMemory {}
// SAFETY: as above.
unsafe impl Sync for LogMemory {}

impl LogMemory {
    /// Makes a log that nobody else can ever map writable: the seal comes after our own mapping.
    pub(super) fn new(capacity: u64) -> Result<Self, MapError> {
        let too_large = || MapError::from(LayoutError::TooLarge { bells: 0, payload: capacity });
        if capacity > LARGEST_RING {
            return Err(too_large());
        }
        let capacity =
            Capacity::new(capacity.max(SMALLEST_RING).next_power_of_two()).ok_or_else(too_large)?;
        let length = (LOG_RING + capacity.get()).next_multiple_of(PAGE);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("doorbell-log", flags).map_err(os("memfd_create"))?;
        descriptor::set_size(&file, length).map_err(os("ftruncate"))?;
        let log = Self::map(file, length, capacity, ProtFlags::READ | ProtFlags::WRITE)?;
        fcntl_add_seals(&log.file, SEALS | SealFlags::FUTURE_WRITE).map_err(os("F_ADD_SEALS"))?;
        log.header().write(capacity);
        Ok(log)
    }

    /// Maps the log in `file`, which another process made, for reading. See [`check_from_peer`].
    pub(super) fn from_peer(file: OwnedFd, most: u64, trusted: bool) -> Result<Self, MapError> {
        check_from_peer(&file, most, trusted)?;
        let size = u64::try_from(fstat(&file).map_err(os("fstat"))?.st_size).unwrap_or(0);
        if size < LOG_RING {
            return Err(PeerViolation::TooSmall { size, needed: LOG_RING }.into());
        }
        let mut log = Self::map(file, size, Capacity::SMALLEST, ProtFlags::READ)?;
        log.capacity = log.header().read(size)?;
        Ok(log)
    }

    fn map(file: OwnedFd, length: u64, capacity: Capacity, rights: ProtFlags) -> Result<Self, MapError> {
        let file = descriptor::kept(file).map_err(os("fcntl(F_DUPFD_CLOEXEC)"))?;
        let length = usize::try_from(length)
            .map_err(|_| MapError::from(LayoutError::TooLarge { bells: 0, payload: length }))?;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let base = unsafe { mmap(std::ptr::null_mut(), length, rights, MapFlags::SHARED, &file, 0) };
        let base = NonNull::new(base.map_err(os("mmap"))?.cast());
        let base = base.ok_or(MapError::Os { call: "mmap", errno: Errno::INVAL })?;
        Ok(Self { base, length, capacity, file })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn header(&self) -> &LogHeader {
        // SAFETY: by the invariant; all its fields are atomics.
        unsafe { self.base.cast().as_ref() }
    }

    /// Publisher: copies a payload in. `offset` is a multiple of 8,
    /// and the record in which it lies is in the ring.
    pub(super) fn write(&self, offset: u64, from: &[u8]) {
        // SAFETY: it lies in the log, which this process made and writes through this one handle.
        if self.is_in_one_piece(offset, from.len()) && unsafe { bulk::store(self.at(offset), from) } {
            return;
        }
        let mut to = offset;
        for part in from.chunks(8) {
            // The padding of the record is ours too.
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            fault::point();
            self.word(to).store(u64::from_ne_bytes(word), Ordering::Relaxed);
            to += 8;
        }
    }

    /// Publisher: copies a part of a payload in, which lies in a record in the ring.
    pub(super) fn write_part(&self, offset: u64, from: &[u8]) {
        // Up to a multiple of 8 by changing the word that this publisher alone writes.
        let lead = ((8 - offset % 8) % 8).min(from.len() as u64) as usize;
        let (lead, rest) = from.split_at(lead);
        let (whole, tail) = rest.split_at(rest.len() & !7);
        self.change_word(offset, lead);
        let offset = offset + lead.len() as u64;
        self.write(offset, whole);
        self.change_word(offset + whole.len() as u64, tail);
    }

    /// Copies fewer than eight bytes into one word.
    fn change_word(&self, offset: u64, from: &[u8]) {
        if !from.is_empty() {
            let word = self.word(offset);
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes[offset as usize % 8..][..from.len()].copy_from_slice(from);
            fault::point();
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// Copies a payload out. `offset` is a multiple of 8.
    pub(super) fn read(&self, offset: u64, to: &mut [u8]) {
        // SAFETY: it lies in the log, into which the publisher writes by words or in the same way.
        if self.is_in_one_piece(offset, to.len()) && unsafe { bulk::load(self.at(offset), to) } {
            return;
        }
        let mut from = offset;
        for part in to.chunks_mut(8) {
            let word = self.word(from).load(Ordering::Relaxed).to_ne_bytes();
            part.copy_from_slice(&word[..part.len()]);
            from += 8;
        }
    }

    /// Do `length` bytes from `offset` on end before the ring does?
    fn is_in_one_piece(&self, offset: u64, length: usize) -> bool {
        length as u64 <= until_wrap(offset, self.capacity.get())
    }

    /// The address of byte `offset` of the ring.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        // In the ring, hence in the address space.
        self.base.as_ptr().wrapping_add(LOG_RING as usize + place(offset, self.capacity.get()) as usize)
    }
}

impl Log for LogMemory {
    #[inline(always)]
    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: in the ring whatever the offset, a multiple of 8
        // from a page; the mapping lives as long as `self`.
        unsafe { &*self.at(offset & !7).cast::<AtomicU64>() }
    }

    fn tail(&self) -> &AtomicU64 {
        &self.header().tail
    }

    fn floor(&self) -> &AtomicU64 {
        &self.header().floor
    }
}

impl Drop for LogMemory {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference into it: they all borrow `self`.
        // Failing to unmap leaks address space; there is nobody to tell.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
