// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every waiter of a process does, for anybody who may look.
//!
//! A process that uses the library has one memfd named `doorbell-counters`, which shows as
//! `/memfd:doorbell-counters` among the links in `/proc/PID/fd`. Whoever may read that directory
//! (the same user, or root) can map it; [`processes`] does. The kernel removes it with the process,
//! however that ends: nothing is left behind, and nothing has to be cleaned.
//!
//! The layout, all integers in the machine's byte order:
//!
//! | offset | size | what |
//! |---:|---:|---|
//! | 0 | 8 | `DBCOUNTS` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | process number in its own PID namespace |
//! | 16 | 4 | number of entries |
//! | 20 | 4 | what became of the [profile](crate::profile) ([`Standing`]) |
//! | 24 | 4 | the latency of a sleep that waiters of this process assume, in ns; 0 if none adapts yet |
//! | 28 | 4 | the price of a sleep, in ns; 0 if none adapts yet |
//! | 32 | 4 | how many callers and clients the services of this process have turned away |
//! | 40 | 8 × 8 | why: the words of the last eight [reasons](crate::rendezvous::Reason), number n at place n modulo 8 |
//! | 128 | 128 × entries | the entries |
//!
//! and an entry:
//!
//! | offset | size | what |
//! |---:|---:|---|
//! | 0 | 4 | 1 while a waiter owns it, else 0 |
//! | 8 | 8 | waits that ended while spinning |
//! | 16 | 8 | waits that spun their whole window and then slept |
//! | 24 | 8 | waits that slept |
//! | 32 | 8 | times a sleeper was woken, or woke for no reason |
//! | 64 | 64 | the waiter's name, ended by a zero byte |

use crate::atfork_lock::ForkMutex;
use crate::calibration::{self, Calibration};
use crate::descriptor;
use crate::process::Process as ThisProcess;
use crate::profile::Standing;
use crate::shown_memory::ShownMemory;
use doorbell_core::wake::Waited;
use doorbell_core::window::SleepCost;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

const MAGIC: u64 = u64::from_ne_bytes(*b"DBCOUNTS");
const VERSION: u32 = 1;
const NAME: &str = "doorbell-counters";
/// Waiters beyond this number count in private memory, where nobody sees them.
const ENTRIES: u32 = 511;
/// So many refusals are told, the last ones.
const REASONS: usize = 8;
const SIZE: usize = size_of::<Table>();

#[repr(C, align(128))]
struct Table {
    magic: AtomicU64,
    version: AtomicU32,
    process: AtomicU32,
    entries: AtomicU32,
    standing: AtomicU32,
    latency: AtomicU32,
    price: AtomicU32,
    refused: AtomicU32,
    reserved: AtomicU32,
    reasons: [AtomicU64; REASONS],
    more: [AtomicU32; 6],
    entry: [Entry; ENTRIES as usize],
}

#[repr(C, align(128))]
struct Entry {
    used: AtomicU32,
    reserved: AtomicU32,
    spun_and_hit: AtomicU64,
    spun_in_vain: AtomicU64,
    slept: AtomicU64,
    woken: AtomicU64,
    more: [AtomicU64; 3],
    name: [AtomicU8; 64],
}

const _: () = {
    assert!(SIZE == 65536);
    assert!(offset_of!(Table, entry) == 128);
    assert!(offset_of!(Table, standing) == 20);
    assert!(offset_of!(Table, refused) == 32);
    assert!(offset_of!(Table, reasons) == 40);
    assert!(size_of::<Entry>() == 128);
    assert!(offset_of!(Entry, spun_and_hit) == 8);
    assert!(offset_of!(Entry, name) == 64);
};

/// The table of this process, or memory that only looks like it where no memfd could be had.
#[derive(Debug)]
pub(crate) struct Shared {
    table: NonNull<Table>,
    process: ThisProcess,
    /// Keeps the table to be found. `None`: no descriptor was to be had, and nobody can look.
    _file: Option<OwnedFd>,
}

// SAFETY: the table consists of atomics and lives as long as this value.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn make(process: ThisProcess) -> Option<Arc<Self>> {
        let file = memfd_create(NAME, MemfdFlags::CLOEXEC).and_then(descriptor::kept).ok();
        let sized = file.filter(|file| descriptor::set_size(file, SIZE as u64).is_ok());
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no existing mapping is touched.
        let base = unsafe {
            match &sized {
                Some(file) => mmap(std::ptr::null_mut(), SIZE, rights, MapFlags::SHARED, file, 0),
                None => rustix::mm::mmap_anonymous(std::ptr::null_mut(), SIZE, rights, MapFlags::PRIVATE),
            }
        };
        let table = NonNull::new(base.ok()?.cast::<Table>())?;
        // SAFETY: just mapped, page-aligned, all atomics.
        let header = unsafe { table.as_ref() };
        header.version.store(VERSION, Ordering::Relaxed);
        header.process.store(std::process::id(), Ordering::Relaxed);
        header.entries.store(ENTRIES, Ordering::Relaxed);
        if let Some(calibration) = calibration::known() {
            header.publish(calibration);
        }
        header.magic.store(MAGIC, Ordering::Release);
        Some(Arc::new(Self { table, process, _file: sized }))
    }

    fn table(&self) -> &Table {
        // SAFETY: mapped until `self` is dropped.
        unsafe { self.table.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nobody holds a reference into it: they all borrow `self`.
        let _ = unsafe { munmap(self.table.as_ptr().cast(), SIZE) };
    }
}

impl Table {
    fn publish(&self, calibration: &Calibration) {
        self.latency.store(calibration.cost.latency, Ordering::Relaxed);
        self.price.store(calibration.cost.price, Ordering::Relaxed);
        self.standing.store(calibration.source.standing() as u32, Ordering::Relaxed);
    }
}

/// Puts what this process assumes where others see it, if it has a
/// table. One made later has it from the start.
pub(crate) fn publish(calibration: &Calibration) {
    let ours = OURS.lock();
    if let Some(shared) = ours.upgrade() {
        shared.table().publish(calibration);
    }
}

/// The table of this process while any of its waiters lives.
static OURS: ForkMutex<Weak<Shared>> = ForkMutex::new(Weak::new());

fn ours() -> Option<Arc<Shared>> {
    let mut ours = OURS.lock();
    let process = ThisProcess::current();
    // A forked child finds its parent's table here and makes its own.
    if let Some(shared) = ours.upgrade().filter(|shared| shared.process == process) {
        return Some(shared);
    }
    let shared = Shared::make(process)?;
    *ours = Arc::downgrade(&shared);
    Some(shared)
}

/// Where others see whom the services of this process turned away, and why.
#[derive(Debug)]
pub(crate) struct Refused(Option<Arc<Shared>>);

impl Default for Refused {
    fn default() -> Self {
        Self(ours())
    }
}

impl Refused {
    /// `word` is that of a reason.
    pub(crate) fn add(&self, word: u64) {
        if let Some(shared) = &self.0 {
            let number = shared.table().refused.fetch_add(1, Ordering::Relaxed);
            shared.table().reasons[number as usize % REASONS].store(word, Ordering::Relaxed);
        }
    }
}

/// The counters of one waiter. Written by that waiter alone, read by anybody.
#[derive(Debug)]
pub struct Counters {
    /// The table and the entry in it. `None` if the table is full or
    /// could not be made: then nothing is counted.
    place: Option<(Arc<Shared>, usize)>,
}

impl Counters {
    /// Takes an entry, named `name` (cut to 63 bytes).
    pub(crate) fn register(name: &str) -> Self {
        let place = ours().and_then(|shared| {
            let free = shared.table().entry.iter().position(|entry| {
                entry.used.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            })?;
            let entry = &shared.table().entry[free];
            for counter in [&entry.spun_and_hit, &entry.spun_in_vain, &entry.slept, &entry.woken] {
                counter.store(0, Ordering::Relaxed);
            }
            let padded = name.bytes().take(63).chain(std::iter::repeat(0));
            for (to, byte) in entry.name.iter().zip(padded) {
                to.store(byte, Ordering::Relaxed);
            }
            Some((shared, free))
        });
        Self { place }
    }

    fn entry(&self) -> Option<&Entry> {
        let (shared, index) = self.place.as_ref()?;
        shared.table().entry.get(*index)
    }

    #[inline]
    pub(crate) fn spun_and_hit(&self) {
        if let Some(entry) = self.entry() {
            add(&entry.spun_and_hit, 1);
        }
    }

    pub(crate) fn spun_in_vain(&self) {
        if let Some(entry) = self.entry() {
            add(&entry.spun_in_vain, 1);
        }
    }

    pub(crate) fn slept(&self, waited: Waited) {
        if let (Some(entry), true) = (self.entry(), waited.sleeps > 0) {
            add(&entry.slept, 1);
            add(&entry.woken, u64::from(waited.sleeps));
        }
    }

    /// A task goes to sleep: again, if it has slept before in the same wait.
    #[cfg(feature = "tokio")]
    pub(crate) fn awaited(&self, again: bool) {
        if let Some(entry) = self.entry() {
            add(&entry.slept, u64::from(!again));
            add(&entry.woken, 1);
        }
    }

    /// What they are now. All zero if the waiter found no place in the table.
    pub fn read(&self) -> Counts {
        self.entry().map(Entry::read).unwrap_or_default()
    }
}

/// One writer, so a load and a store do what a locked addition would, for a tenth of the price.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Drop for Counters {
    fn drop(&mut self) {
        // A forked child's copy is of an entry of its parent, who counts on.
        if let Some((shared, _)) = &self.place
            && shared.process.is_current_generation()
            && let Some(entry) = self.entry()
        {
            entry.used.store(0, Ordering::Release);
        }
    }
}

impl Entry {
    fn read(&self) -> Counts {
        Counts {
            spun_and_hit: self.spun_and_hit.load(Ordering::Relaxed),
            spun_in_vain: self.spun_in_vain.load(Ordering::Relaxed),
            slept: self.slept.load(Ordering::Relaxed),
            woken: self.woken.load(Ordering::Relaxed),
        }
    }
}

/// What one waiter did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Waits that ended while spinning.
    pub spun_and_hit: u64,
    /// Waits that spun their whole window and then slept.
    pub spun_in_vain: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Times a sleeper was woken, or woke for no reason. A wait that sleeps twice counts two.
    pub woken: u64,
}

/// A process that uses the library, and its waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number in this process's PID namespace.
    pub process: u32,
    /// What became of the profile there. `None` if a later release
    /// wrote something this one has no word for.
    pub profile: Option<Standing>,
    /// What its adapting waiters assume. Zero until one began to wait.
    pub cost: SleepCost,
    /// How many callers and clients its services have turned away.
    pub turned_away: u32,
    /// Why the last of them were, the last one last: the words of the reasons.
    pub(crate) reasons: Vec<u64>,
    /// Its waiters, in the order of its table.
    pub waiters: Vec<Waiter>,
}

/// A waiter of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Its place in the table, which another waiter may take when it is gone.
    pub place: u32,
    /// Its name: the way it waits.
    pub name: String,
    /// What it did so far.
    pub counts: Counts,
}

/// What [`processes`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that use the library, by process number.
    pub processes: Vec<Process>,
    /// How many processes may not be looked into: other users', or
    /// protected ones. Some may use the library.
    pub closed: usize,
}

/// Every process using the library whose counters this one may read.
///
/// Processes that end meanwhile are left out: there is nothing to read of them. So are those that
/// this process cannot name: in other PID namespaces, or hidden by the mount option `hidepid` of
/// `/proc`. What is read was written by those processes and is as true as they are.
pub fn processes() -> Found {
    let mut found = Found::default();
    let numbers = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers {
        match process(number) {
            Ok(Some(process)) => found.processes.push(process),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => found.closed += 1,
            // Ended meanwhile, or does not use the library.
            Ok(None) | Err(_) => {}
        }
    }
    found.processes.sort_by_key(|process| process.process);
    found
}

/// The waiters of one process. `None` if it does not use the library.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] if it may not be looked into;
/// [`ErrorKind::NotFound`] if there is no such process.
pub fn process(process: u32) -> io::Result<Option<Process>> {
    let links = fs::read_dir(format!("/proc/{process}/fd"))?;
    let number = own_number(process)?;
    for link in links {
        // A forked child that does not wait itself still holds its parent's table.
        if let Some(table) = table_behind(&link?.path(), number) {
            return Ok(Some(read(process, &table)));
        }
    }
    Ok(None)
}

/// The number that a process has for itself, in its own PID namespace.
fn own_number(process: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
    // A kernel without PID namespaces has no such line.
    Ok(innermost.unwrap_or(process))
}

fn read(process: u32, table: &[u8; SIZE]) -> Process {
    let short = |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| table[at + index]));
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| table[at + index]));
    let waiters = (0..ENTRIES)
        .map(|place| (place, 128 * (place as usize + 1)))
        .filter(|&(_, at)| short(at) == 1)
        .map(|(place, at)| {
            let name = &table[at + 64..at + 128];
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            let counts = Counts {
                spun_and_hit: long(at + 8),
                spun_in_vain: long(at + 16),
                slept: long(at + 24),
                woken: long(at + 32),
            };
            Waiter { place, name: String::from_utf8_lossy(&name[..end]).into_owned(), counts }
        })
        .collect();
    let cost = SleepCost { latency: short(24), price: short(28) };
    let turned_away = short(32);
    let reasons =
        (0..turned_away).rev().take(REASONS).map(|number| long(40 + 8 * (number as usize % REASONS)));
    let mut reasons: Vec<_> = reasons.collect();
    reasons.reverse();
    Process { process, profile: Standing::of(short(20)), cost, turned_away, reasons, waiters }
}

/// The bytes of the counter table behind a link in `/proc/PID/fd`, if
/// it is one of the process that calls itself `number`.
fn table_behind(link: &Path, number: u32) -> Option<Box<[u8; SIZE]>> {
    let file = ShownMemory::behind(link, NAME)?.open()?;
    let mut head = [0; 16];
    file.read_exact_at(&mut head, 0).ok()?;
    // Who has many that are another's costs whoever looks no more than this.
    if head[..8] != MAGIC.to_ne_bytes() || head[8..] != [VERSION.to_ne_bytes(), number.to_ne_bytes()].concat()
    {
        return None;
    }
    let mut table = Box::new([0; SIZE]);
    file.read_exact_at(&mut table[..], 0).ok()?;
    Some(table)
}
