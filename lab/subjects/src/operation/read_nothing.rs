// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system call through the file layer that moves no data.

use std::fs::File;

use super::alone::{Alone, Bench, Solo};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::Configuration;

/// `read` of 0 bytes.
#[derive(Debug)]
pub(super) struct ReadNothing;

impl Operation for ReadNothing {
    fn name(&self) -> &'static str {
        "read-nothing"
    }
    fn form(&self) -> Form {
        Form::alone("call", 1000)
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "read of 0 bytes from /dev/zero",
            how: "Calls read with an empty buffer in a loop.",
            kernel: "Enters the kernel, looks up the descriptor, checks access, calls the device's \
                read, returns: what a call on a descriptor costs before it does anything.",
            limits: "Percentiles are those of batch averages.",
            sources: &["lmbench lat_syscall read, which reads one byte of the same device"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
        #[expect(clippy::disallowed_methods, reason = "a device of the kernel's")]
        let zero = File::open("/dev/zero").map_err(|error| OpenError::call("open(/dev/zero)", error))?;
        Ok(Box::new(Solo(Device(zero))))
    }
}

#[derive(Debug)]
struct Device(File);

impl Alone for Device {
    type Bench = Reads;
    fn set_up(&self, _: &Side) -> Result<Reads, SideError> {
        let zero = self
            .0
            .try_clone()
            .map_err(|error| SideError::Fault(Fault::new("fcntl(F_DUPFD_CLOEXEC)", error)))?;
        Ok(Reads(zero))
    }
}

/// The device to read from.
#[derive(Debug)]
pub(super) struct Reads(File);

impl Bench for Reads {
    fn run(&mut self, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            rustix::io::read(&self.0, &mut [0_u8; 0]).map_err(|error| Fault::new("read", error))?;
        }
        Ok(())
    }
}
