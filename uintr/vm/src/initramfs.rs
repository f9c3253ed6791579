// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's file system: a program with its libraries, a shell if
//! wanted, the order. It lives in memory and is handed to the emulator
//! by number, so that nothing is left behind however the host ends.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::carry::Carried;
use crate::cpio::Archive;
use crate::order::{ORDER, Order, PROGRAM};
use crate::program::Program;

/// What goes into the archive.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'contents> {
    /// The program that is the first process.
    pub program: &'contents Program,
    /// A static busybox.
    pub shell: Option<&'contents [u8]>,
    /// What to do.
    pub order: &'contents Order,
    /// Other files.
    pub files: &'contents [Carried],
}

/// Writes the archive, not compressed: unpacking under emulation would take longer than loading.
pub fn archive(contents: &Contents) -> io::Result<OwnedFd> {
    let memory = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
    let mut archive = Archive::new(BufWriter::with_capacity(1 << 20, memory));
    for folder in ["/dev", "/proc", "/sys", "/tmp", "/bin"] {
        archive.folder(Path::new(folder))?;
    }
    archive.program(Path::new(PROGRAM), &contents.program.content)?;
    for (path, library) in &contents.program.libraries {
        archive.program(path, library)?;
    }
    if let Some(shell) = contents.shell {
        archive.program(Path::new("/bin/busybox"), shell)?;
    }
    archive.file(Path::new(ORDER), &serde_json::to_vec(contents.order)?)?;
    for file in contents.files {
        if file.executable {
            archive.program(&file.path, &file.content)?;
        } else {
            archive.file(&file.path, &file.content)?;
        }
    }
    let memory = archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(memory.into())
}
