// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two pipes, as large as they are wished and an ordinary user may
//! have them. Long messages are read in parts.

use super::depth;
use crate::channels::link::{End, Link, Place, link};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};

struct Ends<const S: usize> {
    out: OwnedFd,
    back: OwnedFd,
    buffer: Box<[u8; S]>,
}

impl<const S: usize> Ends<S> {
    fn new(out: OwnedFd, back: OwnedFd) -> Self {
        Self { out, back, buffer: vec![0; S].try_into().expect("S bytes") }
    }
}

impl<const S: usize> End<S> for Ends<S> {
    fn send(&mut self, message: &[u8; S]) {
        let mut sent = 0;
        while sent < S {
            sent += write(&self.out, &message[sent..]).expect("the partner lives");
        }
    }
    fn receive(&mut self, take: impl FnOnce(&[u8; S])) {
        let mut got = 0;
        while got < S {
            let some = read(&self.back, &mut self.buffer[got..]).expect("the partner lives");
            assert!(some > 0, "the partner lives");
            got += some;
        }
        take(&self.buffer);
    }
}

/// `/proc/sys/fs/pipe-max-size`, as kernels have it.
const MOST: usize = 1 << 20;
/// What a pipe has without being asked.
const LEAST: usize = 1 << 16;

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    let pipe = || {
        let ends = rustix::pipe::pipe().map_err(|errno| format!("pipe: {errno}"))?;
        let size = (depth(S) * S).clamp(LEAST, MOST);
        rustix::pipe::fcntl_setpipe_size(&ends.1, size)
            .map_err(|errno| format!("a pipe of {size} bytes: {errno}"))?;
        Ok::<_, String>(ends)
    };
    let ((their_in, out), (back, their_out)) = (pipe()?, pipe()?);
    link::<S, _, _>(Place::Processes, move || Ends::new(out, back), move || Ends::new(their_out, their_in))
}
