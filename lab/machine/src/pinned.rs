// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads pinned to CPUs, for short measurements of the machine itself.

use std::io;
use std::sync::mpsc::channel;
use std::thread::Builder;

/// Runs `act` on a thread of its own, pinned to `cpu`.
pub fn on<T: Send>(cpu: u32, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    Ok(both([cpu, cpu], act, || ())?.0)
}

/// Runs `first` and `second` at the same time on threads of their
/// own, pinned to one of `cpus` each.
///
/// A thread that cannot be pinned still does its part, for the other
/// may wait for it; the answer is then the error.
pub fn both<A: Send, B: Send>(
    cpus: [u32; 2],
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> io::Result<(A, B)> {
    let ((pinned_first, first), (pinned_second, second)) =
        together(|| (pin(cpus[0]), first()), || (pin(cpus[1]), second()))?;
    pinned_first.and(pinned_second).map(|()| (first, second))
}

/// Runs `first` and `second` at the same time on threads of their own. Neither begins before both
/// threads are there, since one may wait for the other; a thread that cannot be had is the error.
pub fn together<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> io::Result<(A, B)> {
    let lacking = |error: io::Error| {
        io::Error::new(error.kind(), format!("two threads are needed and one cannot be started: {error}"))
    };
    std::thread::scope(|scope| {
        let (begin, begun) = channel::<()>();
        // Where the other thread cannot be had, `begin` is dropped, and this one leaves.
        let second = move || begun.recv().is_ok().then(second);
        let second = Builder::new().spawn_scoped(scope, second).map_err(lacking)?;
        let first = Builder::new().spawn_scoped(scope, first).map_err(lacking)?;
        let panicked = || io::Error::other("a measuring thread panicked");
        // It waits for that in `recv`, whatever comes of it.
        let _ = begin.send(());
        let first = first.join().map_err(|_| panicked())?;
        let second = second.join().ok().flatten().ok_or_else(panicked)?;
        Ok((first, second))
    })
}

pub fn pin(cpu: u32) -> io::Result<()> {
    crate::system::pin(cpu)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run on CPU {cpu}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_cannot_be_had_is_an_error_that_names_it_and_hangs_nobody() {
        assert!(both([0, 8191], || (), || ()).unwrap_err().to_string().contains("8191"));
    }
}
