// SPDX-License-Identifier: MIT OR Apache-2.0
//! `uintr.h`: see there, and uintr(3), for what each promises.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) const HARDWARE: c_int = 1;
pub(crate) const SIGNALS: c_int = 2;
pub(crate) const WAITING_ANY: c_uint = 0x3000;
pub(crate) const RESUMES: c_uint = 0x10000;
pub(crate) const SEMAPHORE: c_uint = 1 << 8;
pub(crate) const NONBLOCK: c_uint = 1 << 9;

pub(crate) type Handler = extern "C" fn(vector: c_uint, argument: *mut c_void);

unsafe extern "C" {
    #[cfg(target_arch = "x86_64")]
    pub(crate) static uintr_chosen: c_int;
    pub(crate) safe fn uintr_start(backends: c_uint) -> c_int;
    pub(crate) safe fn uintr_can_start(backends: c_uint) -> c_int;
    pub(crate) safe fn uintr_backend() -> c_int;
    pub(crate) safe fn uintr_backend_reason() -> *const c_char;
    pub(crate) safe fn uintr_signal() -> c_int;
    pub(crate) fn uintr_handle(handler: Handler, argument: *mut c_void, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_unregister_handler(flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_vector_fd(vector: u64, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_vector_eventfd(vector: u64, eventfd: c_int, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_revoke(vector: u64, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_wait_until(deadline: i64, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_wait_fd(fd: c_int, deadline: i64, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_timer(vector: u64, first: u64, period: u64) -> c_int;
    pub(crate) safe fn uintr_poll_fd(flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_register_sender(fd: c_int, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_unregister_sender(index: c_int, flags: c_uint) -> c_int;
    pub(crate) safe fn uintr_send_call(index: u64);
    pub(crate) safe fn uintr_mask_call();
    pub(crate) safe fn uintr_unmask_call();
    pub(crate) safe fn uintr_unmasked_call() -> c_int;
}
