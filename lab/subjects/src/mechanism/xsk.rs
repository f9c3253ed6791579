// SPDX-License-Identifier: MIT OR Apache-2.0
//! An AF_XDP socket: memory for frames and the rings by which this
//! side and the kernel hand them to each other.
//!
//! Each ring has one that puts entries in and one that takes them out, this side and the kernel. An
//! entry is an address of a chunk of the memory, or a descriptor of a frame within one. Whoever has
//! a chunk's address may write to the chunk. There are no more chunks than a ring has places, so
//! that who holds one finds a place.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpMmapOffsets, XdpRingOffset, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with};

use super::redirect::{HEADER, KIND};
use super::{Fault, OpenError, veth};

/// Bytes of a chunk: the least that the kernel takes (`XDP_UMEM_MIN_CHUNK_SIZE`).
const CHUNK: u32 = 2048;

/// Chunks of a receiver: frames that wait for it; further ones are dropped.
pub(super) const WAITING: u32 = 512;

/// Chunks of a sender: frames that the receiving device has not taken yet. Fewer than its ring
/// holds (256, `VETH_RING_SIZE`), so that this ring is never full.
const UNDER_WAY: u32 = 64;

/// Bytes of a frame: the shortest that Ethernet allows. A number follows the header.
const FRAME: usize = 60;

/// The only queue of a veth end.
const QUEUE: u32 = 0;

/// A fresh socket in this thread's network namespace.
///
/// # Errors
/// If the kernel has no AF_XDP or refuses it.
pub(super) fn fresh() -> Result<OwnedFd, OpenError> {
    socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None).map_err(|error| {
        OpenError::with_cure(
            "socket(AF_XDP)",
            error,
            "it needs a kernel with CONFIG_XDP_SOCKETS, and root or CAP_NET_RAW",
        )
    })
}

/// A mapping of this process that goes with its owner.
struct Mapping {
    base: *mut u8,
    length: usize,
}

impl Mapping {
    /// Where `size` bytes begin at `offset`, if they are within.
    fn at(&self, offset: usize, size: usize) -> Option<*mut u8> {
        let within = offset.checked_add(size)? <= self.length;
        // SAFETY: within the mapping, as was just seen.
        within.then(|| unsafe { self.base.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, nothing of it is lent out, and the kernel holds pages that it still
        // uses. An error would leave it mapped, which harms nobody.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}

/// The memory in which frames lie (UMEM), registered with one socket.
struct Memory(Mapping);

impl Memory {
    fn of(socket: &OwnedFd, chunks: u32) -> Result<Self, OpenError> {
        let length = CHUNK as usize * chunks as usize;
        // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        }
        .map_err(OpenError::of("mmap"))?;
        let memory = Self(Mapping { base: base.cast(), length });
        let register = XdpUmemReg {
            addr: base.expose_provenance() as u64,
            len: length as u64,
            chunk_size: CHUNK,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(socket, register).map_err(|error| {
            OpenError::with_cure(
                "setsockopt(XDP_UMEM_REG)",
                error,
                "raise the limit of locked memory (ulimit -l), or give CAP_IPC_LOCK",
            )
        })?;
        Ok(memory)
    }

    /// The addresses of all chunks.
    fn chunks(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.0.length as u64).step_by(CHUNK as usize)
    }

    /// The four bytes at `address`, if they lie within.
    fn word(&self, address: u64) -> Option<*mut [u8; 4]> {
        self.0.at(usize::try_from(address).ok()?, 4).map(|at| at.cast())
    }
}

/// A ring of entries `T`, plain numbers of which every pattern of bits is one.
struct Ring<T> {
    mapping: Mapping,
    offsets: XdpRingOffset,
    places: u32,
    /// Entries that this side has put in or taken out; only this side changes it.
    own: u32,
    entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, page: u64, offsets: XdpRingOffset, places: u32) -> Result<Self, OpenError> {
        let length = offsets.desc as usize + places as usize * size_of::<T>();
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                socket,
                page,
            )
        }
        .map_err(OpenError::of("mmap(AF_XDP)"))?;
        let mapping = Mapping { base: base.cast(), length };
        let ring = Self { mapping, offsets, places, own: 0, entry: PhantomData };
        let last = [offsets.producer, offsets.consumer].map(|offset| ring.mapping.at(offset as usize, 4));
        if last.contains(&None) {
            return Err(OpenError::call("getsockopt(XDP_MMAP_OFFSETS)", "a counter outside of its ring"));
        }
        Ok(ring)
    }

    /// The counter at `offset`, one of the two of `offsets`.
    #[inline]
    fn counter(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `map` saw that it is within the mapping, which lives as long as `self`; the kernel aligns
        // it, and it too uses atomic accesses alone.
        unsafe { AtomicU32::from_ptr(self.mapping.base.add(offset as usize).cast()) }
    }

    /// Where the next entry lies.
    #[inline]
    fn place(&self) -> *mut T {
        let index = (self.own % self.places) as usize;
        // SAFETY: `map` mapped all places behind `desc`, aligned by the kernel to whole cache lines.
        unsafe { self.mapping.base.add(self.offsets.desc as usize).cast::<T>().add(index) }
    }

    /// Puts `entry` in. The caller holds the chunk that it names, so there is a place: of as many
    /// chunks as places one is not in the ring.
    #[inline]
    fn put(&mut self, entry: T) {
        // SAFETY: the kernel has taken what lay here: it takes in order, and gave back the chunk that the
        // caller holds, by a counter that was acquired, after it had read its entry.
        unsafe { self.place().write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
        // Releases the entry and what was written to its chunk; pairs with the kernel's smp_load_acquire of
        // the producer (B and C in net/xdp/xsk_queue.h).
        self.counter(self.offsets.producer).store(self.own, Release);
    }

    /// Takes the next entry if there is one.
    #[inline]
    fn take(&mut self) -> Option<T> {
        // Pairs with the kernel's smp_store_release of the producer
        // (B and C): the entry is there, and its frame.
        if self.counter(self.offsets.producer).load(Acquire) == self.own {
            return None;
        }
        // SAFETY: the kernel has put it in and writes this place again only after the store below.
        let entry = unsafe { self.place().read_volatile() };
        self.own = self.own.wrapping_add(1);
        // Keeps the read before it; pairs with the kernel's look at the consumer, on which its next write
        // to this place depends (D and A).
        self.counter(self.offsets.consumer).store(self.own, Release);
        Some(entry)
    }
}

/// What both kinds of end have.
struct End {
    socket: OwnedFd,
    memory: Memory,
    offsets: XdpMmapOffsets,
}

impl End {
    /// Registers memory and makes the two rings without which no socket can be bound.
    fn of(socket: OwnedFd, chunks: u32) -> Result<Self, OpenError> {
        let memory = Memory::of(&socket, chunks)?;
        set_xdp_umem_fill_ring_size(&socket, chunks)
            .map_err(OpenError::of("setsockopt(XDP_UMEM_FILL_RING)"))?;
        set_xdp_umem_completion_ring_size(&socket, chunks)
            .map_err(OpenError::of("setsockopt(XDP_UMEM_COMPLETION_RING)"))?;
        let offsets = xdp_mmap_offsets(&socket).map_err(OpenError::of("getsockopt(XDP_MMAP_OFFSETS)"))?;
        Ok(Self { socket, memory, offsets })
    }

    /// Binds it to the device. A veth end has no memory of its own
    /// into which a frame could be put, so it is copied.
    fn bind(&self, device: u32) -> Result<(), OpenError> {
        let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, device, QUEUE);
        bind(&self.socket, &address).map_err(OpenError::of("bind(AF_XDP)"))
    }
}

/// The end at which frames come.
pub(super) struct Receiver {
    end: End,
    /// By which the kernel gets chunks for frames to come.
    fill: Ring<u64>,
    came: Ring<XdpDesc>,
}

impl Receiver {
    /// Makes `socket` one for what comes to `device`.
    ///
    /// # Errors
    /// If the kernel refuses its memory, a ring or the device; also
    /// if the socket is an end already.
    pub(super) fn of(socket: OwnedFd, device: u32) -> Result<Self, OpenError> {
        let end = End::of(socket, WAITING)?;
        set_xdp_rx_ring_size(&end.socket, WAITING).map_err(OpenError::of("setsockopt(XDP_RX_RING)"))?;
        let mut fill = Ring::map(&end.socket, XDP_UMEM_PGOFF_FILL_RING, end.offsets.fr, WAITING)?;
        let came = Ring::map(&end.socket, XDP_PGOFF_RX_RING, end.offsets.rx, WAITING)?;
        end.memory.chunks().for_each(|chunk| fill.put(chunk));
        end.bind(device)?;
        Ok(Self { end, fill, came })
    }

    /// The number in the next frame, if one has come.
    ///
    /// # Errors
    /// If the kernel names a frame that is none of ours.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<u32>, Fault> {
        let Some(XdpDesc { addr, len, .. }) = self.came.take() else { return Ok(None) };
        let number = addr.checked_add(HEADER as u64).and_then(|address| self.end.memory.word(address));
        let Some(number) = number.filter(|_| len as usize >= HEADER + 4) else {
            return Err(Fault::new("AF_XDP", format!("a frame of {len} bytes at {addr} in its ring")));
        };
        // SAFETY: within the memory; the kernel has written it and
        // keeps away until it gets the chunk back below.
        let number = u32::from_le_bytes(unsafe { number.read_volatile() });
        self.fill.put(addr - addr % u64::from(CHUNK));
        Ok(Some(number))
    }

    /// Readable while a frame is there.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.end.socket.as_fd()
    }
}

/// The end from which frames go.
pub(super) struct Sender {
    end: End,
    going: Ring<XdpDesc>,
    /// By which the kernel gives back the chunks of frames that are gone.
    gone: Ring<u64>,
    free: Vec<u64>,
}

impl Sender {
    /// Makes `socket` one for what goes from `device`.
    ///
    /// # Errors
    /// As for [`Receiver::of`].
    pub(super) fn of(socket: OwnedFd, device: u32) -> Result<Self, OpenError> {
        let end = End::of(socket, UNDER_WAY)?;
        set_xdp_tx_ring_size(&end.socket, UNDER_WAY).map_err(OpenError::of("setsockopt(XDP_TX_RING)"))?;
        let going = Ring::map(&end.socket, XDP_PGOFF_TX_RING, end.offsets.tx, UNDER_WAY)?;
        let gone = Ring::map(&end.socket, XDP_UMEM_PGOFF_COMPLETION_RING, end.offsets.cr, UNDER_WAY)?;
        let free: Vec<u64> = end.memory.chunks().collect();
        let [a, b, c, d, e, f] = veth::HARDWARE;
        let [g, h] = KIND.to_be_bytes();
        let header: [u8; HEADER] = [a, b, c, d, e, f, a, b, c, d, e, f, g, h];
        for chunk in &free {
            // SAFETY: the chunk lies within the memory and is longer
            // than a header; the kernel has not got it.
            unsafe { end.memory.0.base.add(*chunk as usize).cast::<[u8; HEADER]>().write(header) };
        }
        end.bind(device)?;
        Ok(Self { end, going, gone, free })
    }

    /// Sends a frame with `number` in it. If so many are under way that no chunk is left, it waits
    /// until the receiving device has taken one: for the kernel, not for the receiver.
    ///
    /// # Errors
    /// If the kernel refuses to send, or gives back a chunk that is none of ours.
    #[inline]
    pub(super) fn send(&mut self, number: u32) -> Result<(), Fault> {
        let chunk = loop {
            while let Some(chunk) = self.gone.take() {
                self.free.push(chunk);
            }
            match self.free.pop() {
                Some(chunk) => break chunk,
                None => rustix::thread::sched_yield(),
            }
        };
        let Some(place) = self.end.memory.word(chunk + HEADER as u64) else {
            return Err(Fault::new("AF_XDP", format!("a chunk at {chunk} in its completion ring")));
        };
        // SAFETY: within the memory, and the kernel has given the chunk back.
        unsafe { place.write_volatile(number.to_le_bytes()) };
        self.going.put(XdpDesc { addr: chunk, len: FRAME as u32, options: XdpDescOptions::empty() });
        loop {
            // Bytes are in the ring; the call only says that they are.
            match send(&self.end.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // The frame is still in the ring: the device has taken too few of those before it.
                Err(Errno::AGAIN) => rustix::thread::sched_yield(),
                Err(error) => return Err(Fault::new("sendto(AF_XDP)", error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::redirect::Redirect;

    impl Sender {
        /// Has every chunk begin with the header of a frame of `kind`.
        fn frames_of(&mut self, kind: u16) {
            for chunk in self.end.memory.chunks() {
                let place = self.end.memory.0.at(chunk as usize + 12, 2).unwrap();
                // SAFETY: within the memory; no frame is under way.
                unsafe { place.cast::<[u8; 2]>().write_unaligned(kind.to_be_bytes()) };
            }
        }
    }

    #[test]
    fn a_frame_of_another_kind_reaches_no_socket() {
        let made = veth::between(
            |device| Ok((fresh()?, device, Redirect::on(device)?)),
            |device| Ok((fresh()?, device)),
        );
        let ((receives, receiving, redirect), (sends, sending)) = match made {
            Ok(made) => made,
            Err(error) => return doorbell_skipped::skip(error),
        };
        let socket = receives.try_clone().unwrap();
        let mut receiver = Receiver::of(receives, receiving).unwrap();
        redirect.to(&socket).unwrap();
        let mut sender = Sender::of(sends, sending).unwrap();
        // What is sent through one queue comes in order: after the foreign frame comes one of ours.
        sender.frames_of(KIND + 1);
        sender.send(1).unwrap();
        while sender.free.len() < UNDER_WAY as usize {
            sender.free.extend(sender.gone.take());
        }
        sender.frames_of(KIND);
        sender.send(2).unwrap();
        let first = loop {
            if let Some(number) = receiver.take().unwrap() {
                break number;
            }
        };
        assert_eq!(first, 2);
        assert_eq!(receiver.take().unwrap(), None);
    }
}
