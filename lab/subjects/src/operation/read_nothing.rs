// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system call through the file layer that moves no data.

use std::fs::File;

use super::alone::alone;
use super::{Explanation, Fault, Form, OpenError, Operation, PLAIN};

pub(super) const OPERATION: Operation = Operation {
    name: "read-nothing",
    form: Form::alone("call", 1000),
    explanation: Explanation {
        summary: "read of 0 bytes from /dev/zero",
        how: "Calls read with an empty buffer in a loop.",
        kernel: "Enters the kernel, looks up the descriptor, checks access, calls the device's \
            read, returns: what a call on a descriptor costs before it does anything.",
        limits: "Percentiles are those of batch averages.",
        sources: &["lmbench lat_syscall read, which reads one byte of the same device"],
    },
    open: |_, _| {
        #[expect(clippy::disallowed_methods, reason = "a device of the kernel's")]
        let zero = File::open("/dev/zero").map_err(|error| OpenError::call("open(/dev/zero)", error))?;
        alone(move |_| {
            let zero = zero.try_clone().map_err(|error| Fault::new("fcntl(F_DUPFD_CLOEXEC)", error))?;
            Ok(move |count| {
                for _ in 0..count {
                    rustix::io::read(&zero, &mut [0_u8; 0]).map_err(|error| Fault::new("read", error))?;
                }
                Ok(())
            })
        })
    },
    ..PLAIN
};
