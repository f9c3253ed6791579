// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Windows tells, and whether it is Windows that answers. CPUs
//! are numbered as 64 for each processor group.

use std::ffi::{CStr, c_char};
use std::{io, mem, ptr};

use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::kernel::Kernel;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::SystemInformation::{GROUP_AFFINITY, OSVERSIONINFOW};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumberEx, GetCurrentThread, GetProcessAffinityMask, GetThreadTimes,
    SetThreadGroupAffinity,
};

/// CPUs of a processor group at most ("Processor Groups", Win32).
const GROUP: u32 = 64;

/// Whether a thread can be kept on a CPU.
pub(crate) const PINS: bool = true;

/// Keeps the calling thread on `cpu`.
pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    let group = u16::try_from(cpu / GROUP).map_err(|_| io::ErrorKind::InvalidInput)?;
    let affinity = GROUP_AFFINITY { Mask: 1 << (cpu % GROUP), Group: group, Reserved: [0; 3] };
    // SAFETY: the handle names the calling thread, and `affinity` lives through the call.
    match unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, ptr::null_mut()) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// CPU time of the calling thread. Windows charges by the timer's tick, 15.6 ms by default.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [made, ended, kernel, user] = &mut times;
    // SAFETY: the handle names the calling thread, and all four are ours.
    unsafe { GetThreadTimes(GetCurrentThread(), made, ended, kernel, user) };
    // In units of 100 ns (FILETIME).
    let ns = |time: &FILETIME| (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) * 100;
    ns(kernel) + ns(user)
}

/// The CPUs that this process may use, of the group it is in: a
/// thread leaves that only where it is told to.
pub(super) fn usable() -> CpuList {
    let (mut own, mut all) = (0_usize, 0);
    let mut here = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
    // SAFETY: the handle names this process; all addresses are of numbers of ours.
    unsafe {
        GetCurrentProcessorNumberEx(&raw mut here);
        GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut all);
    }
    let first = u32::from(here.Group) * GROUP;
    (0..usize::BITS).filter(|bit| own >> bit & 1 == 1).map(|bit| first + bit).collect()
}

pub(super) fn host() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}

pub(super) fn kernel() -> Kernel {
    Kernel { system: Some("Windows".to_owned()), stand_in: wine(), release: release(), ..Kernel::default() }
}

/// The version that the kernel says it is, whatever the program's manifest asks to be told.
fn release() -> Option<String> {
    // SAFETY: numbers and letters only, valid when zero.
    let mut version: OSVERSIONINFOW = unsafe { mem::zeroed() };
    version.dwOSVersionInfoSize = size_of::<OSVERSIONINFOW>() as u32;
    // SAFETY: the structure is ours and says its own length.
    let told = unsafe { RtlGetVersion(&raw mut version) };
    let numbers = [version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber];
    (told == 0).then(|| numbers.map(|number| number.to_string()).join("."))
}

/// Wine, and which, if that is what answers here: it has a function of that name where Windows has
/// none (Wine's developer FAQ).
fn wine() -> Option<String> {
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
