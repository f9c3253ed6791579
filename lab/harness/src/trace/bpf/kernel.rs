// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system call bpf(2), as far as it is needed. Numbers are those of include/uapi/linux/bpf.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::BpfError;
use super::object::Shape;

/// What an instruction that loads 64 bits refers to: a map, its only value.
pub const MAP: u8 = 1;
pub const MAP_VALUE: u8 = 2;
/// Where a program of the tracing kind runs: at an event, or over all tasks.
pub const AT_EVENT: u32 = 23;
pub const OVER_TASKS: u32 = 28;

const TASK_STORAGE: u32 = 29;

/// Commands.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROGRAM_LOAD: libc::c_long = 5;
const EVENT_OPEN: libc::c_long = 17;
const TYPES_LOAD: libc::c_long = 18;
const MAP_FREEZE: libc::c_long = 22;
const LINK_CREATE: libc::c_long = 28;
const ITERATOR_CREATE: libc::c_long = 33;

/// What a descriptor is called in what the kernel is handed.
pub fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Carries a command out. The words are what the command's part of `union bpf_attr` has, two of 32
/// bits in each, without a gap.
fn bpf(command: libc::c_long, words: &[u64]) -> io::Result<i32> {
    // SAFETY: the kernel reads as many bytes as it is told; every pointer in `words` is to memory
    // that its caller lends through the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, words.as_ptr(), size_of_val(words)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn opened(command: libc::c_long, words: &[u64]) -> io::Result<OwnedFd> {
    let fd = bpf(command, words)?;
    // SAFETY: the command returns a descriptor that is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Two halves of a word, as they lie in memory.
fn two(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn pointer<T>(to: &[T]) -> u64 {
    to.as_ptr() as u64
}

pub fn map(shape: Shape) -> Result<OwnedFd, BpfError> {
    let Shape { kind, key, value, entries, flags } = shape;
    // The kernel wants to be told what a task's storage is made of.
    let types = if kind == TASK_STORAGE { Some(types_of_storage(value)?) } else { None };
    let (types, of_key, of_value) = types.as_ref().map_or((0, 0, 0), |types| (number(types), 1, 2));
    let words =
        [two(kind, key), two(value, entries), two(flags, 0), 0, 0, 0, two(types, of_key), two(of_value, 0)];
    opened(MAP_CREATE, &words).map_err(|cause| BpfError::refused("a map", cause))
}

/// An int, and an array of such of so many bytes.
fn types_of_storage(bytes: u32) -> Result<OwnedFd, BpfError> {
    const NAMES: &[u8] = b"\0int\0";
    let types: [u32; 10] = [1, 1 << 24, 4, 32, 0, 3 << 24, 0, 1, 1, bytes / 4];
    let length = size_of_val(&types) as u32;
    let head: [u32; 6] = [0x0001_eb9f, 24, 0, length, length, NAMES.len() as u32];
    let mut all: Vec<u8> = head.iter().chain(&types).flat_map(|word| word.to_le_bytes()).collect();
    all.extend(NAMES);
    let words = [pointer(&all), 0, two(all.len() as u32, 0), 0];
    opened(TYPES_LOAD, &words).map_err(|cause| BpfError::refused("the types of a map", cause))
}

/// A map of one value that nobody can change any more: what is there is known when a program is
/// verified.
pub fn constants(words: &[u64]) -> Result<OwnedFd, BpfError> {
    /// `BPF_F_RDONLY_PROG`.
    const READ_ONLY: u32 = 1 << 7;
    let map = map(Shape { flags: READ_ONLY, ..Shape::one_of(size_of_val(words) as u32) })?;
    let key = [0_u32];
    let refused = |cause| BpfError::refused("constants", cause);
    bpf(MAP_UPDATE, &[number(&map).into(), pointer(&key), pointer(words), 0]).map_err(refused)?;
    bpf(MAP_FREEZE, &[number(&map).into()]).map_err(refused)?;
    Ok(map)
}

pub fn put(map: &OwnedFd, key: u32, value: u32) -> Result<(), BpfError> {
    let (key, value) = ([key], [value]);
    let words = [number(map).into(), pointer(&key), pointer(&value), 0];
    bpf(MAP_UPDATE, &words).map(drop).map_err(|cause| BpfError::refused("an entry of a map", cause))
}

pub fn take_out(map: &OwnedFd, key: u32) -> Result<(), BpfError> {
    let key = [key];
    let words = [number(map).into(), pointer(&key), 0, 0];
    bpf(MAP_DELETE, &words)
        .map(drop)
        .map_err(|cause| BpfError::refused("to take out an entry of a map", cause))
}

/// The value of a map at `key`, which has so many words.
pub fn get<const WORDS: usize>(map: &OwnedFd, key: u32) -> Result<[u64; WORDS], BpfError> {
    let (key, mut value) = ([key], [0_u64; WORDS]);
    let words = [number(map).into(), pointer(&key), value.as_mut_ptr() as u64, 0];
    bpf(MAP_LOOKUP, &words).map_err(|cause| BpfError::refused("the value of a map", cause))?;
    Ok(value)
}

/// Loads a program that runs `at` what the kernel knows by the number `of` a type.
pub fn program(code: &[u8], at: u32, of: u32) -> Result<OwnedFd, BpfError> {
    /// `BPF_PROG_TYPE_TRACING`.
    const TRACING: u32 = 26;
    /// The verifier tells of each step it takes: of these programs less.
    const LOG: usize = 1 << 22;
    let load = |log: &mut [u8]| {
        let (level, size) = (u32::from(!log.is_empty()), log.len() as u32);
        let log = if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 };
        let words = [
            two(TRACING, (code.len() / 8) as u32),
            pointer(code),
            c"Dual MIT/GPL".as_ptr() as u64,
            two(level, size),
            log,
            0,
            // Its name.
            u64::from_ne_bytes(*b"doorbell"),
            0,
            two(0, at),
            0,
            0,
            0,
            0,
            two(0, of),
            0,
        ];
        opened(PROGRAM_LOAD, &words)
    };
    load(&mut []).map_err(|cause| match BpfError::refused("a program", cause) {
        BpfError::Refused { what, cause, .. } => {
            let mut log = vec![0; LOG];
            let _ = load(&mut log);
            let text = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = text.trim_matches(['\0', '\n']).lines().collect();
            let last = &lines[lines.len().saturating_sub(4)..];
            BpfError::Refused { what, cause, said: format!(" ({})", last.join("; ")) }
        }
        other => other,
    })
}

/// Has a program run at its event for as long as the descriptor is open.
pub fn attach(program: &OwnedFd) -> Result<OwnedFd, BpfError> {
    opened(EVENT_OPEN, &[0, number(program).into()])
        .map_err(|cause| BpfError::refused("to run a program at an event", cause))
}

pub fn over_tasks(program: &OwnedFd) -> Result<(), BpfError> {
    let refused = |cause| BpfError::refused("to run a program over all tasks", cause);
    let link = opened(LINK_CREATE, &[two(number(program), 0), two(OVER_TASKS, 0)]).map_err(refused)?;
    let tasks = opened(ITERATOR_CREATE, &[two(number(&link), 0)]).map_err(refused)?;
    let mut none = [0; 64];
    loop {
        match rustix::io::read(&tasks, &mut none) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(cause) => return Err(refused(cause.into())),
        }
    }
}
