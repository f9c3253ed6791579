// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of Windows, and whether it is Windows that answers: its clocks, its CPUs, the machine as its calls tell it.
//!
//! CPUs are numbered as 64 for each processor group, which is how many a group may have.

use std::ffi::{CStr, c_char};
use std::{io, mem, ptr};

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::{
    GROUP_AFFINITY, GetLogicalProcessorInformationEx, GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW,
    RelationAll, RelationCache, RelationNumaNode, RelationProcessorCore, RelationProcessorPackage,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumberEx, GetCurrentThread, GetProcessAffinityMask,
    SetThreadGroupAffinity,
};

use crate::counter;
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::kernel::Kernel;
use doorbell_results::machine::memory::Memory;
use doorbell_results::machine::topology::{Cpu, Node, Topology};
use doorbell_results::machine::virtualisation::{TRANSLATOR, Virtualisation};

/// Whether a thread can be kept on a CPU of our choice.
pub const PINS: bool = true;

/// CPUs of a processor group at most ("Processor Groups", Win32).
const GROUP: u32 = 64;

/// The performance counter in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: both write a number of ours, and cannot fail since Windows XP (QueryPerformanceCounter, remarks).
    unsafe {
        QueryPerformanceCounter(&raw mut count);
        QueryPerformanceFrequency(&raw mut frequency);
    }
    (count as u128 * 1_000_000_000 / frequency.max(1) as u128) as u64
}

/// The clock that nothing disciplines: the performance counter ("Acquiring high-resolution time stamps", Win32).
#[inline]
pub(crate) fn raw_ns() -> u64 {
    monotonic_ns()
}

/// Whether the time-stamp counters of all CPUs are in step, which an invariant counter need not be, and Windows, unlike Linux, does not tell. Wine's
/// performance counter is Linux's monotonic clock, and says nothing of what Linux found the counters to be worth.
pub(crate) fn trusts_counter(_counter: &str) -> bool {
    wine().is_none() && in_step(affinity().iter().flat_map(CpuList::iter))
}

/// How far a CPU's counter may be from the first one's, by the performance counter, nanoseconds: that steps by 100.
const IN_STEP_NS: f64 = 2_000.0;

/// Whether the time-stamp counter of each of `cpus` and the performance counter go together; the thread is left where it may run now.
fn in_step(cpus: impl Iterator<Item = u32>) -> bool {
    let mut before = GROUP_AFFINITY { Mask: 0, Group: 0, Reserved: [0; 3] };
    // The shortest of several readings: the thread may be set aside between the two counters.
    let both = || {
        let readings = (0..16).map(|_| {
            let (first, count, last) = (monotonic_ns(), counter::count(), monotonic_ns());
            (last - first, first as f64 + (last - first) as f64 / 2.0, count as f64)
        });
        readings.min_by_key(|(took, ..)| *took).map_or((0.0, 0.0), |(_, ns, count)| (ns, count))
    };
    let (mut readings, mut all) = (Vec::new(), true);
    for cpu in cpus {
        let Some(affinity) = one_cpu(cpu) else { return false };
        let kept = if readings.is_empty() { &raw mut before } else { ptr::null_mut() };
        // SAFETY: the handle names the calling thread, and both structures live through the call.
        if unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, kept) } == 0 {
            all = false;
            break;
        }
        readings.push((cpu, both()));
    }
    let Some(&(first, (ns_0, count_0))) = readings.first() else { return false };
    // Long enough for the rate: a step of the performance counter in it is two hundred-thousandths.
    std::thread::sleep(std::time::Duration::from_millis(5));
    let (ns_1, count_1) = if pin(first).is_ok() { both() } else { (ns_0, count_0) };
    // SAFETY: as above; what was kept is what the thread had.
    unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const before, ptr::null_mut()) };
    let rate = (count_1 - count_0) / (ns_1 - ns_0);
    let off = |(ns, count): (f64, f64)| ((count - count_0) / rate - (ns - ns_0)).abs();
    all && rate > 0.0 && readings.iter().all(|(_, reading)| off(*reading) < IN_STEP_NS)
}

/// `cpu` alone.
fn one_cpu(cpu: u32) -> Option<GROUP_AFFINITY> {
    let (group, bit) = (cpu / GROUP, cpu % GROUP);
    Some(GROUP_AFFINITY { Mask: 1 << bit, Group: u16::try_from(group).ok()?, Reserved: [0; 3] })
}

/// Keeps the calling thread on `cpu`.
pub fn pin(cpu: u32) -> io::Result<()> {
    let affinity = one_cpu(cpu).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the handle names the calling thread, and `affinity` lives through the call.
    match unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, ptr::null_mut()) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The CPUs that this process may use, of the group it is in: a thread leaves that only where it is told to.
pub fn affinity() -> Option<CpuList> {
    let (mut own, mut all) = (0, 0);
    let mut here = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
    // SAFETY: the handle names this process; all addresses are of numbers of ours.
    unsafe { GetCurrentProcessorNumberEx(&raw mut here) };
    // SAFETY: as above.
    let told = unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut all) };
    (told != 0 && own != 0)
        .then(|| cpus(&[GROUP_AFFINITY { Mask: own, Group: here.Group, Reserved: [0; 3] }]))
}

fn cpus(masks: &[GROUP_AFFINITY]) -> CpuList {
    let of = |mask: &GROUP_AFFINITY| {
        let (bits, first) = (mask.Mask, u32::from(mask.Group) * GROUP);
        (0..usize::BITS).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
    };
    masks.iter().flat_map(of).collect()
}

/// What `GetLogicalProcessorInformationEx` says of one thing that CPUs share.
struct Shared {
    kind: i32,
    /// Of a cache.
    level: u8,
    /// Of a node.
    number: u32,
    cpus: CpuList,
}

/// Reads the records of different lengths; none where the call is refused.
fn shared() -> Vec<Shared> {
    let mut length = 0;
    // SAFETY: with no room it only says how much it needs.
    unsafe { GetLogicalProcessorInformationEx(RelationAll, ptr::null_mut(), &raw mut length) };
    // Of words, for the records begin at addresses that are multiples of eight.
    let mut buffer = vec![0_u64; (length as usize).div_ceil(8)];
    // SAFETY: the buffer has room for `length` bytes.
    let told =
        unsafe { GetLogicalProcessorInformationEx(RelationAll, buffer.as_mut_ptr().cast(), &raw mut length) };
    if told == 0 {
        return Vec::new();
    }
    // SAFETY: the buffer holds at least as many initialised bytes.
    let mut bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length as usize) };
    let mut all = Vec::new();
    // SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX: a kind, a length, then what depends on the kind, whose masks of groups come after their number.
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    while let (Some(kind), Some(size)) = (word(bytes, 0), word(bytes, 4)) {
        let Some((record, rest)) = bytes.split_at_checked(size.max(8) as usize) else { break };
        bytes = rest;
        let kind = kind.cast_signed();
        // The number of masks, and where the first stands: PROCESSOR_RELATIONSHIP, NUMA_NODE_RELATIONSHIP, CACHE_RELATIONSHIP. Systems
        // before it was counted leave a zero there, and have one.
        let places = if [RelationProcessorCore, RelationProcessorPackage, RelationNumaNode].contains(&kind) {
            8 + 22..8 + 24
        } else if kind == RelationCache {
            8 + 30..8 + 32
        } else {
            continue;
        };
        let count =
            record.get(places.clone()).map_or(1, |count| u16::from_le_bytes([count[0], count[1]]).max(1));
        let masks = (0..usize::from(count)).filter_map(|number| {
            let at = places.end + number * mem::size_of::<GROUP_AFFINITY>();
            let mask = u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?);
            let group = u16::from_le_bytes(record.get(at + 8..at + 10)?.try_into().ok()?);
            Some(GROUP_AFFINITY { Mask: mask as usize, Group: group, Reserved: [0; 3] })
        });
        let masks: Vec<GROUP_AFFINITY> = masks.collect();
        all.push(Shared {
            kind,
            level: record.get(8).copied().unwrap_or(0),
            number: word(record, 8).unwrap_or(0),
            cpus: cpus(&masks),
        });
    }
    all
}

/// Which CPUs there are, and what they share.
pub fn topology() -> Topology {
    let shared = shared();
    let of = |kind| shared.iter().filter(move |shared| shared.kind == kind);
    let affinity = affinity();
    let mut online: CpuList = of(RelationProcessorCore).flat_map(|core| core.cpus.iter()).collect();
    if online.is_empty() {
        online = affinity.clone().unwrap_or_default();
    }
    let usable = affinity.as_ref().map_or_else(|| online.clone(), |affinity| online.and(affinity));
    let place = |kind, cpu| of(kind).position(|shared| shared.cpus.contains(cpu)).map(|place| place as i32);
    let cache = |level, cpu| {
        let mut caches = of(RelationCache).filter(move |cache| cache.level == level);
        caches.find(|cache| cache.cpus.contains(cpu)).map(|cache| cache.cpus.clone())
    };
    let cpu = |id| Cpu {
        id,
        package: place(RelationProcessorPackage, id),
        core: place(RelationProcessorCore, id),
        node: of(RelationNumaNode).find(|node| node.cpus.contains(id)).map(|node| node.number),
        smt: of(RelationProcessorCore).find(|core| core.cpus.contains(id)).map(|core| core.cpus.clone()),
        l2: cache(2, id),
        l3: cache(3, id),
        ..Cpu::default()
    };
    let node = |node: &Shared| Node { id: node.number, cpus: node.cpus.clone(), distances: Vec::new() };
    Topology {
        present: Some(online.clone()),
        affinity,
        cpuset: None,
        usable,
        isolated: None,
        smt_control: None,
        cpus: online.iter().map(cpu).collect(),
        nodes: of(RelationNumaNode).map(node).collect(),
        online,
    }
}

/// The version that the kernel says it is, whatever the program's manifest asks to be told.
fn release() -> Option<String> {
    // SAFETY: numbers and letters only, valid when zero.
    let mut version: OSVERSIONINFOW = unsafe { mem::zeroed() };
    version.dwOSVersionInfoSize = mem::size_of::<OSVERSIONINFOW>() as u32;
    // SAFETY: the structure is ours and says its own length.
    let told = unsafe { RtlGetVersion(&raw mut version) };
    let numbers = [version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber];
    (told == 0).then(|| numbers.map(|number| number.to_string()).join("."))
}

/// Wine, and which, if that is what answers here: it has a function of that name where Windows has none (Wine's developer FAQ).
pub fn wine() -> Option<String> {
    let ntdll: Vec<u16> = "ntdll.dll\0".encode_utf16().collect();
    // SAFETY: both names end in a zero; ntdll is in every process and never unloaded.
    let found =
        unsafe { GetProcAddress(GetModuleHandleW(ntdll.as_ptr()), c"wine_get_version".as_ptr().cast()) }?;
    // SAFETY: Wine declares it as `const char * CDECL wine_get_version(void)` (dlls/ntdll/version.c).
    let version = unsafe {
        let version: unsafe extern "C" fn() -> *const c_char = mem::transmute(found);
        CStr::from_ptr(version())
    };
    Some(format!("Wine {}", version.to_string_lossy()))
}

fn memory() -> Memory {
    // SAFETY: numbers only, valid when zero.
    let mut status: MEMORYSTATUSEX = unsafe { mem::zeroed() };
    status.dwLength = mem::size_of::<MEMORYSTATUSEX>() as u32;
    // SAFETY: the structure is ours and says its own length.
    let told = unsafe { GlobalMemoryStatusEx(&raw mut status) } != 0;
    Memory {
        total_bytes: told.then_some(status.ullTotalPhys),
        available_bytes: told.then_some(status.ullAvailPhys),
        swap_used_bytes: None,
    }
}

/// This machine, with what `measure` adds.
pub(crate) fn machine(clock: Clock, measure: impl FnOnce(&mut Machine)) -> Machine {
    let signature = super::virtualisation::signature();
    let mut machine = Machine {
        host: std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty()),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        topology: topology(),
        processor: super::processor::asked(),
        kernel: Kernel {
            system: Some("Windows".to_owned()),
            stand_in: wine(),
            release: release(),
            ..Kernel::default()
        },
        virtualisation: Virtualisation {
            guest: signature.is_some(),
            emulated: signature.as_deref() == Some(TRANSLATOR),
            hypervisor: signature,
            ..Virtualisation::default()
        },
        memory: memory(),
        binary_sha256: super::binary::sha256(),
        ..Machine::unknown(clock)
    };
    measure(&mut machine);
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_the_kernel_below_trusts_are_in_step_and_the_thread_may_run_where_it_could() {
        let before = affinity();
        // A busy machine may set the thread aside in each reading of a try.
        assert!((0..100).any(|_| in_step(before.iter().flat_map(CpuList::iter))));
        assert_eq!(affinity(), before);
        assert!(!in_step(std::iter::empty()), "of no CPU nothing was seen");
        assert!(wine().is_none() || !trusts_counter("tsc"), "Wine tells nothing of counters");
    }
}
