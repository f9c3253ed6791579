// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that end a run early: from when on they are heard, and what they then do.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::out::Out;

static HEARD: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the first signal to end sets the flag that is returned, and the second ends the
/// command at once; a trial's processes die with it. Whoever calls this brings what was begun to an
/// end once the flag is set.
pub fn listen() -> io::Result<Arc<AtomicBool>> {
    if let Some(heard) = HEARD.get() {
        return Ok(Arc::clone(heard));
    }
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup()) {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&heard))?;
        signal_hook::flag::register(signal, Arc::clone(&heard))?;
    }
    Ok(Arc::clone(HEARD.get_or_init(|| heard)))
}

/// Set for a program that is measured beside another one: it measures
/// for whoever compares the two, and for nobody else.
pub const COMPARED: &str = "DOORBELL_COMPARED";

/// From now on a run ends, as if it were interrupted, once nobody is left to read standard output.
/// This waits for it in a thread, and costs nothing meanwhile.
pub fn listen_to_reader() -> io::Result<()> {
    let heard = listen()?;
    let ends = move || {
        if Out::new().outlive_reader().is_ok() {
            heard.store(true, Relaxed);
        }
    };
    std::thread::Builder::new().name("reader".to_owned()).spawn(ends).map(drop)
}

/// The signal that the terminal is gone. Whoever started the command by nohup(1) wants it to go on.
fn hangup() -> Option<i32> {
    (!ignores_hangup()).then_some(SIGHUP)
}

/// Lets this process hear of its children.
pub(super) fn of_children() {
    // Where it is ignored, as `trap '' CHLD` leaves it, nobody learns
    // how a child ended, nor when (wait(2), NOTES). SAFETY: the default
    // action runs no code of ours. JUSTIFICATION: signal-hook and rustix
    // install handlers; neither gives a signal its default action back.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Makes a limit on the size of files an error of the write, after
/// which the result goes elsewhere, and no sudden end.
pub(super) fn of_limits() {
    // SAFETY: ignoring a signal runs no code of ours.
    // JUSTIFICATION: signal-hook and rustix install handlers; neither ignores a signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Whether this process was started with SIGHUP ignored (proc(5),
/// `SigIgn`: bit n - 1 stands for signal n).
fn ignores_hangup() -> bool {
    let status = doorbell_files::kernel("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
