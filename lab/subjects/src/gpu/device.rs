// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first device: whether there is one, how it is called, and where it is.

use doorbell::gpu::GpuError;
use doorbell::gpu::driver::Driver;
use doorbell_machine::pci;
use doorbell_machine::root::Root;
use std::ffi::{CStr, c_char, c_int};

/// What is lacking here for a GPU to be waited for, or its name.
pub fn device() -> Result<String, String> {
    Driver::of_process().and_then(name).map_err(|error| error.to_string())
}

/// At which NUMA node it is, where the kernel tells; what is lacking for it to be asked.
pub fn node() -> Result<Option<u32>, String> {
    let bus_id = |driver: &'static Driver| {
        // SAFETY: the pointer is good for the call, and the text has the length that is said.
        text(driver, |text, length, device| unsafe { driver.device_bus_id(text, length, device) })
    };
    let id = Driver::of_process().and_then(bus_id).map_err(|error| error.to_string())?;
    Ok(pci::node(&Root::live(), &id))
}

/// Its name.
pub(super) fn name(driver: &'static Driver) -> Result<String, GpuError> {
    // SAFETY: the pointer is good for the call, and the text has the length that is said.
    text(driver, |text, length, device| unsafe { driver.device_name(text, length, device) })
}

fn text(
    driver: &Driver,
    ask: impl FnOnce(*mut c_char, c_int, c_int) -> Result<(), GpuError>,
) -> Result<String, GpuError> {
    let mut text = [0 as c_char; 128];
    let mut device = 0;
    // SAFETY: the pointer is good for the call.
    unsafe { driver.device_get(&raw mut device, 0) }?;
    ask(text.as_mut_ptr(), text.len() as c_int - 1, device)?;
    // SAFETY: the last byte is zero, whatever was written before it.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}
