// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every function of the GPU's driver that is used, in one table, opened when the program runs.
//!
//! WHY a table of our own and not a crate of bindings: some forty functions are
//! used, of several hundred; the library that has them is looked for when it is
//! needed, so that a program built here runs where there is none, and no build
//! needs CUDA. Tests open a library made for tests in its place, by the same way.
//!
//! The driver's names stand after each function; those that end in `_v2` are the ones that
//! `cuda.h` gives the plain name.

use super::error::GpuError;
pub use super::error::VARIABLE;
use crate::environment::variable;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// What the driver hands out: a context, a stream, an event, a module, a function, a graph.
pub type Handle = *mut c_void;

/// A function that the driver calls in a thread of its own.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// The call succeeded.
const SUCCESS: c_int = 0;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: u32 = 2;
/// What is asked about is not over (`CUDA_ERROR_NOT_READY`).
const NOT_READY: c_int = 600;

macro_rules! table {
    ($($(#[$said:meta])* $name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)*) => {
        #[derive(Debug)]
        struct Table { $($name: unsafe extern "C" fn($($type),*) -> c_int,)* }

        impl Table {
            fn find(look: impl Fn(&'static CStr) -> Result<*mut c_void, GpuError>) -> Result<Self, GpuError> {
                Ok(Self { $($name: {
                    const NAME: &CStr = match CStr::from_bytes_with_nul(concat!($symbol, "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a symbol has no zero in it"),
                    };
                    let found = look(NAME)?;
                    // SAFETY: the library's function of this name has this signature, in every version that has it; it is a pointer
                    // to a function, as wide as this one, and not null.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(found) }
                },)* })
            }
        }

        impl Driver {
            $(
                $(#[$said])*
                ///
                /// # Errors
                /// [`GpuError::Call`], with what the driver returned.
                ///
                /// # Safety
                /// Handles must be of this driver and alive, and pointers be what the driver's manual asks of this function.
                #[allow(clippy::too_many_arguments, reason = "the driver's function has as many")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), GpuError> {
                    // SAFETY: as the caller promises.
                    let code = unsafe { (self.table.$name)($($argument),*) };
                    if code == SUCCESS { Ok(()) } else { Err(self.failed($symbol, code)) }
                }
            )*
        }
    };
}

table! {
    /// Makes the driver ready in this process.
    init = "cuInit" (flags: u32);
    /// The newest CUDA that the driver knows: 13000 is 13.0.
    driver_version = "cuDriverGetVersion" (version: *mut c_int);
    /// How many devices there are.
    device_count = "cuDeviceGetCount" (count: *mut c_int);
    /// Device number `ordinal`.
    device_get = "cuDeviceGet" (device: *mut c_int, ordinal: c_int);
    /// Its name.
    device_name = "cuDeviceGetName" (name: *mut c_char, length: c_int, device: c_int);
    /// Where it is on the bus.
    device_bus_id = "cuDeviceGetPCIBusId" (id: *mut c_char, length: c_int, device: c_int);
    /// How threads wait for it.
    context_flags = "cuDevicePrimaryCtxSetFlags_v2" (device: c_int, flags: u32);
    /// The context that the CUDA runtime uses too.
    context_retain = "cuDevicePrimaryCtxRetain" (context: *mut Handle, device: c_int);
    /// Gives it back.
    context_release = "cuDevicePrimaryCtxRelease_v2" (device: c_int);
    /// Makes a context this thread's.
    context_set = "cuCtxSetCurrent" (context: Handle);
    /// The context of this thread, or null.
    context_get = "cuCtxGetCurrent" (context: *mut Handle);
    /// Compiles kernels.
    module_load = "cuModuleLoadData" (module: *mut Handle, image: *const c_void);
    /// A kernel of a module.
    module_function = "cuModuleGetFunction" (function: *mut Handle, module: Handle, name: *const c_char);
    /// Starts a kernel.
    launch_kernel = "cuLaunchKernel" (
        function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32,
        stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    /// Calls a function in a thread of the driver's, after what is in the stream.
    launch_host_function = "cuLaunchHostFunc" (stream: Handle, function: HostFunction, argument: *mut c_void);
    /// A new stream.
    stream_create = "cuStreamCreate" (stream: *mut Handle, flags: u32);
    /// Gives a stream up; what is in it is still done.
    stream_destroy = "cuStreamDestroy_v2" (stream: Handle);
    /// Waits until all that is in a stream is done.
    stream_synchronize = "cuStreamSynchronize" (stream: Handle);
    /// Has a stream wait for an event.
    stream_wait_event = "cuStreamWaitEvent" (stream: Handle, event: Handle, flags: u32);
    /// Has a stream wait until a word of memory is as asked.
    stream_wait_value = "cuStreamWaitValue32_v2" (stream: Handle, address: u64, value: u32, flags: u32);
    /// Has a stream write a word of memory.
    stream_write_value = "cuStreamWriteValue32_v2" (stream: Handle, address: u64, value: u32, flags: u32);
    /// Begins to put into a graph what is put into a stream.
    capture_begin = "cuStreamBeginCapture_v2" (stream: Handle, mode: u32);
    /// How this thread's calls stand to captures of others; leaves what it was.
    capture_mode = "cuThreadExchangeStreamCaptureMode" (mode: *mut u32);
    /// The graph.
    capture_end = "cuStreamEndCapture" (stream: Handle, graph: *mut Handle);
    /// Makes a graph ready to be launched.
    graph_instantiate = "cuGraphInstantiateWithFlags" (executable: *mut Handle, graph: Handle, flags: u64);
    /// Starts a graph.
    graph_launch = "cuGraphLaunch" (executable: Handle, stream: Handle);
    /// A new event.
    event_create = "cuEventCreate" (event: *mut Handle, flags: u32);
    /// Gives an event up.
    event_destroy = "cuEventDestroy_v2" (event: Handle);
    /// Records an event after what is in a stream.
    event_record = "cuEventRecord" (event: Handle, stream: Handle);
    /// Waits for an event.
    event_synchronize = "cuEventSynchronize" (event: Handle);
    /// Memory of this process that the device sees.
    host_alloc = "cuMemHostAlloc" (memory: *mut *mut c_void, bytes: usize, flags: u32);
    /// Gives it back.
    host_free = "cuMemFreeHost" (memory: *mut c_void);
    /// Where the device sees it.
    host_device_pointer = "cuMemHostGetDevicePointer_v2" (address: *mut u64, memory: *mut c_void, flags: u32);
}

/// A driver that was opened.
#[derive(Debug)]
pub struct Driver {
    table: Table,
    /// Not in the table: that an event is not over yet is no failure.
    query: unsafe extern "C" fn(Handle) -> c_int,
    error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

/// The library of NVIDIA's driver, as the dynamic linker finds it.
pub const LIBRARY: &str = "libcuda.so.1";

impl Driver {
    /// The driver of this process: the file that `$DOORBELL_CUDA_LIBRARY` names, else [`LIBRARY`].
    /// It is opened once and stays.
    ///
    /// # Errors
    /// [`GpuError::NoLibrary`], [`GpuError::NoFunction`], and
    /// [`GpuError::Call`] where it cannot be made ready.
    pub fn of_process() -> Result<&'static Self, GpuError> {
        let named = || variable(VARIABLE).filter(|name| !name.is_empty());
        Self::opened(|| named().unwrap_or_else(|| LIBRARY.into()))
    }

    /// As [`of_process`](Self::of_process), from `file`, unless one was opened before.
    ///
    /// # Errors
    /// As there.
    pub fn at(file: &Path) -> Result<&'static Self, GpuError> {
        Self::opened(|| file.into())
    }

    fn opened(file: impl FnOnce() -> OsString) -> Result<&'static Self, GpuError> {
        static OPENED: OnceLock<Result<Driver, GpuError>> = OnceLock::new();
        OPENED.get_or_init(|| Self::open(file())).as_ref().map_err(Clone::clone)
    }

    fn open(file: OsString) -> Result<Self, GpuError> {
        let failed = |cause: String| GpuError::NoLibrary { file: file.clone().into(), cause };
        let path = CString::new(file.as_bytes()).map_err(|error| failed(error.to_string()))?;
        // SAFETY: the path is a string that ends in zero; what the library does when it is opened is what
        // the machine's own driver does.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure it returns a string, or null,
            // that stays until the next call of this thread.
            let said = unsafe { libc::dlerror() };
            // SAFETY: not null, so a string.
            let cause = (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) });
            return Err(failed(
                cause.map_or_else(|| "no reason given".into(), |cause| without_file(cause, path.as_c_str())),
            ));
        }
        let look = |name: &'static CStr| {
            // SAFETY: the library was opened and is never closed; the name ends in zero.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            let name = name.to_str().unwrap_or_default();
            if found.is_null() { Err(GpuError::NoFunction { name }) } else { Ok(found) }
        };
        // SAFETY: these functions have these signatures in every
        // version of the library, and the pointers are not null.
        let (query, error_name) = unsafe {
            (
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle) -> c_int>(look(
                    c"cuEventQuery",
                )?),
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(
                    look(c"cuGetErrorName")?,
                ),
            )
        };
        let driver = Self { table: Table::find(look)?, query, error_name };
        // SAFETY: its only parameter must be 0.
        unsafe { driver.init(0) }?;
        Ok(driver)
    }

    fn failed(&self, call: &'static str, code: c_int) -> GpuError {
        let mut name = ptr::null();
        // SAFETY: takes any number, and leaves a string that stays, or null.
        let known = unsafe { (self.error_name)(code, &raw mut name) } == SUCCESS && !name.is_null();
        let name = if known {
            // SAFETY: a string of the driver's, which stays.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        } else {
            String::new()
        };
        GpuError::Call { call, code, name }
    }

    /// Whether what was recorded in `event` is done.
    ///
    /// # Errors
    /// [`GpuError::Call`]: the work before it failed, or the device is lost.
    ///
    /// # Safety
    /// `event` must be an event of this driver that is alive.
    #[inline]
    pub unsafe fn is_done(&self, event: Handle) -> Result<bool, GpuError> {
        // SAFETY: as the caller promises.
        match unsafe { (self.query)(event) } {
            SUCCESS => Ok(true),
            NOT_READY => Ok(false),
            code => Err(self.failed("cuEventQuery", code)),
        }
    }

    /// Until it is dropped calls of this thread may be made while another captures a
    /// graph, which they would break otherwise (`CU_STREAM_CAPTURE_MODE_RELAXED`):
    /// that is so of asking about an event, too.
    pub(super) fn beside_captures(&self) -> BesideCaptures<'_> {
        let mut mode = RELAXED;
        // SAFETY: the pointer is good for the call.
        let exchanged = unsafe { self.capture_mode(&raw mut mode) }.is_ok();
        BesideCaptures { driver: self, before: exchanged.then_some(mode) }
    }

    /// The context of this thread; where it has none, the first device's that the CUDA runtime
    /// would take, which it then has.
    ///
    /// # Errors
    /// [`GpuError::Call`].
    pub fn context(&self) -> Result<Handle, GpuError> {
        let mut context = ptr::null_mut();
        // SAFETY: the pointer is good for the call.
        unsafe { self.context_get(&raw mut context) }?;
        if !context.is_null() {
            return Ok(context);
        }
        let mut device = 0;
        // SAFETY: the pointers are good for the calls; the context is
        // held for good, as the runtime holds it.
        unsafe {
            self.device_get(&raw mut device, 0)?;
            self.context_retain(&raw mut context, device)?;
            self.context_set(context)?;
        }
        Ok(context)
    }
}

/// See [`Driver::beside_captures`].
#[derive(Debug)]
pub(super) struct BesideCaptures<'a> {
    driver: &'a Driver,
    before: Option<u32>,
}

impl Drop for BesideCaptures<'_> {
    fn drop(&mut self) {
        if let Some(mut mode) = self.before {
            // SAFETY: the pointer is good for the call.
            let _ = unsafe { self.driver.capture_mode(&raw mut mode) };
        }
    }
}

/// What the dynamic linker says of `file`, which it names first and the error names too.
fn without_file(said: &CStr, file: &CStr) -> String {
    let (said, file) = (said.to_string_lossy(), file.to_string_lossy());
    said.strip_prefix(&*file).map_or(&*said, |rest| rest.trim_start_matches(": ")).to_owned()
}
