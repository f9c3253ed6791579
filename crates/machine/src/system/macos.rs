// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of macOS. Written by its manual pages and headers and type-checked; nobody has run it yet (`book/other-systems.md`).

use std::ffi::CStr;
use std::{io, mem, ptr};

use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::kernel::Kernel;
use doorbell_results::machine::memory::Memory;
use doorbell_results::machine::processor::Processor;
use doorbell_results::machine::topology::{Cpu, Topology};
use doorbell_results::machine::virtualisation::Virtualisation;

/// A thread can be asked to stay near others, and on no CPU by number (`THREAD_AFFINITY_POLICY`, mach/thread_policy.h).
pub const PINS: bool = false;

/// The clock that counts while the machine is awake, nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call, which fails for no clock that there is.
    unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock that nothing disciplines: the same (clock_gettime(3), `CLOCK_UPTIME_RAW`).
#[inline]
pub(crate) fn raw_ns() -> u64 {
    monotonic_ns()
}

/// Nothing tells whether the counters of all CPUs agree.
pub(crate) fn trusts_counter(_counter: &str) -> bool {
    false
}

/// Refused, see [`PINS`].
pub fn pin(_cpu: u32) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "macOS keeps no thread on a CPU of its program's choice"))
}

/// Unknown: there is no such mask.
pub fn affinity() -> Option<CpuList> {
    None
}

/// A number that the kernel keeps under `name`.
fn number(name: &CStr) -> Option<u64> {
    let (mut value, mut length) = (0_u64, mem::size_of::<u64>());
    // SAFETY: the name ends in a zero; `length` says how much room there is.
    let told = unsafe {
        libc::sysctlbyname(name.as_ptr(), (&raw mut value).cast(), &raw mut length, ptr::null_mut(), 0)
    };
    // Numbers have four or eight bytes, and both processors are little-endian.
    (told == 0 && length <= mem::size_of::<u64>()).then_some(value)
}

/// A text that the kernel keeps under `name`.
fn text(name: &CStr) -> Option<String> {
    let mut bytes = [0_u8; 256];
    let mut length = bytes.len();
    // SAFETY: as above.
    let told = unsafe {
        libc::sysctlbyname(name.as_ptr(), bytes.as_mut_ptr().cast(), &raw mut length, ptr::null_mut(), 0)
    };
    let text = CStr::from_bytes_until_nul(&bytes).ok().filter(|_| told == 0)?;
    Some(text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
}

/// How many CPUs there are; what they share is not told by number.
pub fn topology() -> Topology {
    let count = number(c"hw.logicalcpu").and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    let online: CpuList = (0..count).collect();
    let cpus = online.iter().map(|id| Cpu { id, ..Cpu::default() }).collect();
    Topology { present: Some(online.clone()), usable: online.clone(), cpus, online, ..Topology::default() }
}

/// This machine, with what `measure` adds.
pub(crate) fn machine(clock: Clock, measure: impl FnOnce(&mut Machine)) -> Machine {
    let mut machine = Machine {
        host: text(c"kern.hostname"),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        topology: topology(),
        processor: Processor { model_name: text(c"machdep.cpu.brand_string"), ..Processor::default() },
        kernel: Kernel {
            system: Some("macOS".to_owned()),
            release: text(c"kern.osproductversion"),
            version: text(c"kern.osrelease"),
            ..Kernel::default()
        },
        virtualisation: Virtualisation {
            guest: number(c"kern.hv_vmm_present").is_some_and(|present| present != 0),
            ..Virtualisation::default()
        },
        memory: Memory { total_bytes: number(c"hw.memsize"), ..Memory::default() },
        binary_sha256: super::binary::sha256(),
        ..Machine::unknown(clock)
    };
    measure(&mut machine);
    machine
}
