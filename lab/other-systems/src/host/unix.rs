// SPDX-License-Identifier: MIT OR Apache-2.0
//! What POSIX tells.

use std::ffi::CStr;
use std::{io, mem};

use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::kernel::Kernel;

/// Whether a thread can be kept on a CPU.
pub(crate) const PINS: bool = false;

/// Refused: macOS keeps no thread on a CPU of its program's choice
/// (`THREAD_AFFINITY_POLICY`, mach/thread_policy.h).
pub(crate) fn pin(_cpu: u32) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system keeps no thread on a CPU of its program's choice",
    ))
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call, which fails for no thread that runs.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(super) fn usable() -> CpuList {
    (0..std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)).collect()
}

/// A field of `uname`.
fn name(field: impl Fn(&libc::utsname) -> *const libc::c_char) -> Option<String> {
    // SAFETY: letters alone, valid when zero; the call fills them and ends each field with a zero.
    let (answer, names) = unsafe {
        let mut names: libc::utsname = mem::zeroed();
        (libc::uname(&raw mut names), names)
    };
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(field(&names)) }.to_string_lossy().into_owned();
    Some(text).filter(|text| answer == 0 && !text.is_empty())
}

pub(super) fn host() -> Option<String> {
    name(|names| names.nodename.as_ptr())
}

pub(super) fn kernel() -> Kernel {
    Kernel {
        // Linux is what has no name in a result.
        system: (!cfg!(target_os = "linux")).then(|| "macOS".to_owned()),
        release: name(|names| names.release.as_ptr()),
        ..Kernel::default()
    }
}
