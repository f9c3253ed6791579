// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts a command from a thread whose children are followed from their first instruction on.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A thread that waits until it is told what to start. It keeps the
/// mounts that this process had when it was made.
#[derive(Debug)]
pub struct Starter {
    task: i32,
    order: Sender<Command>,
    started: Receiver<io::Result<Child>>,
}

impl Starter {
    pub fn new() -> io::Result<Self> {
        let (say, task) = channel();
        let (order, ordered) = channel::<Command>();
        let (tell, started) = channel();
        std::thread::Builder::new().name("starter".to_owned()).spawn(move || {
            // Whoever does not listen any more needs nothing started.
            let _ = say.send(rustix::thread::gettid().as_raw_nonzero().get());
            if let Ok(command) = ordered.recv() {
                let _ = tell.send(spawn(command));
            }
        })?;
        let task = task.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(Self { task, order, started })
    }

    /// The thread, of which whatever it makes is the command.
    pub fn task(&self) -> i32 {
        self.task
    }

    /// Starts the command.
    pub fn start(self, command: Command) -> io::Result<Child> {
        self.order.send(command).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.started.recv().map_err(|_| io::ErrorKind::BrokenPipe)?
    }
}

fn spawn(mut command: Command) -> io::Result<Child> {
    // SAFETY: between fork and exec; `signal` may be called there, and takes a number and a constant.
    // JUSTIFICATION: this command ignores the signal for itself (`signals::of_limits`), and nothing
    // safe gives a child its default back.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            Ok(())
        })
    };
    command.spawn()
}
