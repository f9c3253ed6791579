// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that several threads or processes see, laid out as `doorbell_core::layout` says.

use crate::descriptor;
use doorbell_core::layout::{BellRecord, FEATURE_CHANNELS, Header, LayoutError, Plan, bell_offset};
use doorbell_core::peer_memory::PeerMemory;
use doorbell_core::violation::PeerViolation;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

/// The seals a mapping between processes must have: its size can never change again.
pub const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Why a mapping could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// A system call failed.
    Os {
        /// The call.
        call: &'static str,
        /// What it reported.
        errno: Errno,
    },
    /// The peer offers more than is taken from one who is not trusted.
    TooMuch {
        /// What it offers.
        bytes: u64,
        /// What is taken.
        most: u64,
    },
    /// Memory in huge pages, and somebody who is not trusted: such memory can be punched out under
    /// us by whoever has it, and is then not there when we touch it.
    HugePages,
    /// The layout does not fit, or is of another version, or the peer lied about it.
    Layout(LayoutError),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { call, errno: errno @ Errno::FBIG } => write!(
                f,
                "no shared memory: {call} failed: {errno}; raise the size that a file may have \
                 (`ulimit -f`), which is memory's too"
            ),
            Self::Os { call, errno } => write!(f, "no shared memory: {call} failed: {errno}"),
            Self::TooMuch { bytes, most } => write!(
                f,
                "the peer offers {bytes} bytes of memory, more than the {most} that are taken from \
                 one who is not trusted; say how much may be taken"
            ),
            Self::HugePages => f.write_str(
                "memory in huge pages is shared with trusted peers only; make the segment without them",
            ),
            Self::Layout(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MapError {}

impl From<(&'static str, Errno)> for MapError {
    fn from((call, errno): (&'static str, Errno)) -> Self {
        Self::Os { call, errno }
    }
}

impl From<LayoutError> for MapError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<PeerViolation> for MapError {
    fn from(violation: PeerViolation) -> Self {
        Self::Layout(LayoutError::Violation(violation))
    }
}

/// Who can reach the memory, and therefore which key the kernel looks a futex up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of one process. A process-private futex costs about half of a shared one.
    Threads,
    /// Several processes.
    Processes,
}

/// A mapping. Unmapped when dropped.
///
/// Invariant: `base` is valid for reads and writes of `length` bytes until the drop; the file
/// behind it cannot shrink; `plan` fits into `length`.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
    plan: Plan,
    scope: Scope,
    file: Option<OwnedFd>,
    huge_pages: bool,
}

// SAFETY: the memory is only reached through atomics (`BellRecord`, `PeerMemory`).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this process's own. A forked child gets a copy: its bells are other bells.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn for_threads(plan: Plan) -> Result<Self, MapError> {
        Self::anonymous(plan, MapFlags::PRIVATE, Scope::Threads)
    }

    /// Memory that this process shares with the children it forks from now on.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn for_children(plan: Plan) -> Result<Self, MapError> {
        Self::anonymous(plan, MapFlags::SHARED, Scope::Processes)
    }

    fn anonymous(plan: Plan, flags: MapFlags, scope: Scope) -> Result<Self, MapError> {
        let length = length(&plan)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, rights, flags) };
        let mapping = Self::at(base, length, plan, scope, None)?;
        mapping.header().write(&plan);
        Ok(mapping)
    }

    /// A sealed memfd: memory for processes that get the descriptor,
    /// and gone with the last of them.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn sealed(plan: Plan, huge_pages: bool) -> Result<Self, MapError> {
        Self::sealed_as("doorbell", plan, huge_pages)
    }

    /// As `sealed`, in a file of that name.
    pub(crate) fn sealed_as(name: &str, plan: Plan, huge_pages: bool) -> Result<Self, MapError> {
        let mut flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut length = plan.size();
        if huge_pages {
            flags |= MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
            length = length.next_multiple_of(HUGE_PAGE);
        }
        let file = memfd_create(name, flags).map_err(os("memfd_create"))?;
        descriptor::set_size(&file, length).map_err(os("ftruncate"))?;
        let mapping = Self::of_file(file, plan, length, READ_AND_WRITE)?;
        mapping.header().write(&plan);
        fcntl_add_seals(mapping.file.as_ref().expect("just given"), SEALS).map_err(os("F_ADD_SEALS"))?;
        Ok(mapping)
    }

    /// A file another process made: checks that it is sealed, that it has at most `most` bytes, and
    /// that its header fits it. In huge pages only from one who is `trusted`.
    ///
    /// # Errors
    /// [`MapError::Layout`] if the other side uses another version or lied; [`MapError::TooMuch`],
    /// [`MapError::HugePages`], [`MapError::Os`].
    pub fn from_peer(file: OwnedFd, most: u64, trusted: bool) -> Result<Self, MapError> {
        check_from_peer(&file, most, trusted)?;
        Self::of_existing(file, READ_AND_WRITE)
    }

    /// As `from_peer`, of one who is not trusted, for those who only
    /// look: whoever writes there ends by SIGSEGV.
    pub(crate) fn read_only(file: OwnedFd, most: u64) -> Result<Self, MapError> {
        check_from_peer(&file, most, false)?;
        Self::of_existing(file, ProtFlags::READ)
    }

    /// Can a page of it be taken away from us, sealed as it is?
    pub(crate) fn can_be_punched(&self) -> bool {
        self.huge_pages
    }

    fn of_existing(file: OwnedFd, rights: ProtFlags) -> Result<Self, MapError> {
        let size = u64::try_from(fstat(&file).map_err(os("fstat"))?.st_size).unwrap_or(0);
        let smallest = Plan::new(0, 0, 0)?;
        if size < smallest.size() {
            return Err(PeerViolation::TooSmall { size, needed: smallest.size() }.into());
        }
        let mut mapping = Self::of_file(file, smallest, size, rights)?;
        mapping.plan = mapping.header().read(size)?;
        Ok(mapping)
    }

    fn of_file(file: OwnedFd, plan: Plan, length: u64, rights: ProtFlags) -> Result<Self, MapError> {
        let file = descriptor::kept(file).map_err(os("fcntl(F_DUPFD_CLOEXEC)"))?;
        let length = usize::try_from(length).map_err(|_| too_large(&plan))?;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let base = unsafe { mmap(std::ptr::null_mut(), length, rights, MapFlags::SHARED, &file, 0) };
        Self::at(base, length, plan, Scope::Processes, Some(file))
    }

    fn at(
        base: rustix::io::Result<*mut c_void>,
        length: usize,
        plan: Plan,
        scope: Scope,
        file: Option<OwnedFd>,
    ) -> Result<Self, MapError> {
        let base = base.map_err(os("mmap"))?;
        let base = NonNull::new(base.cast()).ok_or(MapError::Os { call: "mmap", errno: Errno::INVAL })?;
        // From here on it is unmapped, whatever fails.
        let mut mapping = Self { base, length, plan, scope, file, huge_pages: false };
        if let Some(file) = &mapping.file {
            mapping.huge_pages = is_huge(file)?;
        }
        Ok(mapping)
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is at least a page long, page-aligned, and only touched atomically.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// A number for one who joins.
    pub(crate) fn next_holder(&self) -> u32 {
        self.header().next_holder()
    }

    /// What lies where.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Who can reach it.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The file behind it. `None` for anonymous memory.
    ///
    /// # Safety
    /// By the file one can write what is lent out as a `&[u8]`:
    /// nobody does who has it from the caller.
    pub unsafe fn file(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor()
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Bell number `index`. `None` if there is none.
    pub fn bell(&self, index: u32) -> Option<&BellRecord> {
        if index >= self.plan.bells {
            return None;
        }
        let offset = usize::try_from(bell_offset(index)).ok()?;
        // SAFETY: in bounds, for the plan fits the mapping (invariant) and
        // the index is in the plan; aligned, for the mapping is page-aligned
        // and the offset a multiple of 128; only touched atomically.
        Some(unsafe { self.base.add(offset).cast::<BellRecord>().as_ref() })
    }

    /// What the bells' users keep beside them. Empty if that is
    /// channels, which nobody else may touch.
    pub fn payload(&self) -> PeerMemory<'_> {
        let whole = self.whole_payload();
        if self.plan.features & FEATURE_CHANNELS == 0 {
            return whole;
        }
        // SAFETY: nothing of it can be touched.
        unsafe { PeerMemory::new(whole.as_ptr(), 0) }
    }

    pub(crate) fn whole_payload(&self) -> PeerMemory<'_> {
        // Both fit: the plan lies within the mapping (invariant), whose length is a usize.
        let offset = usize::try_from(self.plan.payload_offset).unwrap_or(0);
        let length = usize::try_from(self.plan.payload_size).unwrap_or(0);
        // SAFETY: within the mapping (invariant), valid as long as the borrow of it; this crate touches the
        // payload only through `PeerMemory`.
        unsafe { PeerMemory::new(self.base.as_ptr().wrapping_add(offset), length) }
    }

    /// Where it begins, and how many bytes it is.
    pub(crate) fn whole(&self) -> (*mut c_void, usize) {
        (self.base.as_ptr().cast(), self.length)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference into it: they all borrow `self`.
        // Failing to unmap leaks address space; there is nobody to tell.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// What can be said of a peer's file before it is mapped.
pub(crate) fn check_from_peer(file: &OwnedFd, most: u64, trusted: bool) -> Result<(), MapError> {
    let seals = fcntl_get_seals(file).map_err(os("F_GET_SEALS"))?;
    if !seals.contains(SEALS) {
        let violation = PeerViolation::NotSealed { seals: seals.bits(), required: SEALS.bits() };
        return Err(violation.into());
    }
    if !trusted && is_huge(file)? {
        return Err(MapError::HugePages);
    }
    let bytes = u64::try_from(fstat(file).map_err(os("fstat"))?.st_size).unwrap_or(u64::MAX);
    if bytes > most {
        return Err(MapError::TooMuch { bytes, most });
    }
    Ok(())
}

/// Does it live in huge pages? Their reservation goes with a hole that is punched
/// (`FALLOC_FL_PUNCH_HOLE`), which no seal forbids that lets others write; when the machine's pool
/// is used up then, the next touch is a SIGBUS.
fn is_huge(file: &OwnedFd) -> Result<bool, MapError> {
    // `HUGETLBFS_MAGIC` of linux/magic.h.
    const HUGETLBFS: u32 = 0x9584_58f6;
    // Its type differs from machine to machine; the number has 32 bits on all.
    Ok(fstatfs(file).map_err(os("fstatfs"))?.f_type as u32 == HUGETLBFS)
}

const READ_AND_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// The size of the huge pages that are asked for.
const HUGE_PAGE: u64 = 2 << 20;

fn length(plan: &Plan) -> Result<usize, MapError> {
    usize::try_from(plan.size()).map_err(|_| too_large(plan))
}

fn too_large(plan: &Plan) -> MapError {
    LayoutError::TooLarge { bells: u64::from(plan.bells), payload: plan.payload_size }.into()
}

pub(crate) fn os(call: &'static str) -> impl Fn(Errno) -> MapError {
    move |errno| MapError::Os { call, errno }
}
