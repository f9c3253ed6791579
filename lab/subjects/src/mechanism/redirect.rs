// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program in the kernel that hands a device's frames of one kind
//! to an AF_XDP socket, loaded by bpf(2).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::OpenError;

pub(super) const KIND: u16 = 0x88b5;

/// Bytes of a frame before its payload: two hardware addresses and the kind.
pub(super) const HEADER: usize = 14;

/// Numbers of linux/bpf.h.
mod number {
    pub(super) const MAP_CREATE: libc::c_int = 0;
    pub(super) const MAP_UPDATE_ELEM: libc::c_int = 2;
    pub(super) const PROG_LOAD: libc::c_int = 5;
    pub(super) const LINK_CREATE: libc::c_int = 28;
    pub(super) const MAP_TYPE_XSKMAP: u32 = 17;
    pub(super) const PROG_TYPE_XDP: u32 = 6;
    /// `BPF_XDP` of `enum bpf_attach_type`.
    pub(super) const ATTACH_XDP: u32 = 37;
    /// `XDP_FLAGS_DRV_MODE` of linux/if_link.h: in the driver, before
    /// the kernel makes a packet of the frame.
    pub(super) const DRIVER: u32 = 1 << 2;
    /// `BPF_FUNC_redirect_map`.
    pub(super) const REDIRECT_MAP: i32 = 51;
    /// `BPF_PSEUDO_MAP_FD`: the constant that is loaded is a map's descriptor.
    pub(super) const MAP_FD: u8 = 1;
    pub(super) const XDP_DROP: i32 = 1;
    pub(super) const XDP_PASS: i32 = 2;
}
use number::*;

/// A program on a device, and the map in which it finds its socket.
pub(super) struct Redirect {
    map: OwnedFd,
    /// The program stays on the device as long as this is open.
    _attached: OwnedFd,
}

/// The parts of `union bpf_attr` that are used here, each as long as
/// it is needed; what is not given counts as zero.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach: u32,
    flags: u32,
}

/// # Safety
/// What `attributes` points to must be what `command` takes, and live.
unsafe fn bpf<A>(call: &'static str, command: libc::c_int, attributes: &A) -> Result<libc::c_int, OpenError> {
    // SAFETY: the attributes live through the call and their size is given; the rest is the caller's
    // promise. JUSTIFICATION: rustix has no bpf(2).
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<A>()) };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(OpenError::with_cure(call, error, "it needs root, or CAP_BPF and CAP_NET_ADMIN"));
    }
    Ok(result as libc::c_int)
}

/// # Safety
/// As for [`bpf`], and `command` must be one that makes a descriptor.
unsafe fn made<A>(call: &'static str, command: libc::c_int, attributes: &A) -> Result<OwnedFd, OpenError> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(call, command, attributes) }?;
    // SAFETY: fresh from the kernel, which closes it at exec, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A number as bpf(2) takes descriptors.
fn number_of(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// One instruction (`struct bpf_insn`): the code, both registers in a byte, an offset, a constant.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> u64 {
    let registers = if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
    let ([c, d], [e, f, g, h]) = (offset.to_ne_bytes(), constant.to_ne_bytes());
    u64::from_ne_bytes([code, registers, c, d, e, f, g, h])
}

/// The program. Codes as in Documentation/bpf/standardization/instruction-set.rst.
fn program(map: &OwnedFd) -> [u64; 14] {
    const LOAD_32: u8 = 0x61;
    const LOAD_16: u8 = 0x69;
    const LOAD_CONSTANT_64: u8 = 0x18;
    const ADD: u8 = 0x07;
    const SET: u8 = 0xb7;
    const COPY: u8 = 0xbf;
    const IF_GREATER: u8 = 0x2d;
    const IF_NOT: u8 = 0x55;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    let of_the_kind = i32::from(KIND.to_be());
    [
        // r2 and r3: where the frame begins and ends (struct xdp_md, data and data_end).
        instruction(LOAD_32, 2, 1, 0, 0),
        instruction(LOAD_32, 3, 1, 4, 0),
        instruction(SET, 0, 0, 0, XDP_PASS),
        // A frame without a whole header is no matter of ours.
        instruction(COPY, 4, 2, 0, 0),
        instruction(ADD, 4, 0, 0, HEADER as i32),
        instruction(IF_GREATER, 4, 3, 7, 0),
        // The kind lies after two hardware addresses.
        instruction(LOAD_16, 4, 2, 12, 0),
        instruction(IF_NOT, 4, 0, 5, of_the_kind),
        // redirect_map(map, key 0, what to do if there is no socket).
        instruction(LOAD_CONSTANT_64, 1, MAP_FD, 0, map.as_raw_fd()),
        0,
        instruction(SET, 2, 0, 0, 0),
        instruction(SET, 3, 0, 0, XDP_DROP),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        // Both branches lead here.
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

impl Redirect {
    /// Puts the program on the device with the number `device` of this thread's namespace. Until a
    /// socket is put in, frames of the kind are dropped.
    ///
    /// # Errors
    /// If the kernel refuses the map, the program or its place.
    pub(super) fn on(device: u32) -> Result<Self, OpenError> {
        let create = MapCreate { kind: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, entries: 1 };
        // SAFETY: these are the attributes of BPF_MAP_CREATE, which makes a descriptor.
        let map = unsafe { made("bpf(BPF_MAP_CREATE)", MAP_CREATE, &create) }?;
        let program = program(&map);
        let load = ProgramLoad {
            kind: PROG_TYPE_XDP,
            count: program.len() as u32,
            instructions: program.as_ptr().expose_provenance() as u64,
            // No function that it calls asks for another.
            license: c"MIT".as_ptr().expose_provenance() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: *b"doorbell\0\0\0\0\0\0\0\0",
            device: 0,
            attach: ATTACH_XDP,
        };
        // SAFETY: these are the attributes of BPF_PROG_LOAD, which makes a descriptor; the program and the
        // licence live through the call.
        let loaded = unsafe { made("bpf(BPF_PROG_LOAD)", PROG_LOAD, &load) }?;
        let link = LinkCreate { program: number_of(&loaded), device, attach: ATTACH_XDP, flags: DRIVER };
        // SAFETY: these are the attributes of BPF_LINK_CREATE, which makes a descriptor.
        let attached = unsafe { made("bpf(BPF_LINK_CREATE)", LINK_CREATE, &link) }?;
        Ok(Self { map, _attached: attached })
    }

    /// Lets the program find `socket`, which must have a ring for
    /// what it receives and be bound to the device.
    ///
    /// # Errors
    /// If the kernel refuses the socket.
    pub(super) fn to(&self, socket: &OwnedFd) -> Result<(), OpenError> {
        let (key, value) = (0_u32, number_of(socket));
        let update = MapUpdate {
            map: number_of(&self.map),
            pad: 0,
            key: (&raw const key).expose_provenance() as u64,
            value: (&raw const value).expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: these are the attributes of BPF_MAP_UPDATE_ELEM; key and value have the sizes the map was
        // made with, and live through the call.
        unsafe { bpf("bpf(BPF_MAP_UPDATE_ELEM)", MAP_UPDATE_ELEM, &update) }.map(drop)
    }
}
