// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a guest, lets it carry out its order, and says how that ended.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::accelerator::Accelerator;
use crate::channel::{Decoder, Frame, Garbled};
use crate::console::{Console, Tail};
use crate::emulator::Emulator;
use crate::hardware::{Hardware, HardwareError, Wires};
use crate::initramfs::{Contents, archive};
use crate::process::{Group, Process};

/// Size of the NVMe device, bytes; memory is taken as it is written.
const DISK: u64 = 64 << 20;

/// How long an interrupt or a deadline may go unheard.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long a guest that has said its last may take to power off, or to print the rest of a panic.
const FAREWELL: Duration = Duration::from_secs(10);

/// Bytes of the emulator's own complaints that are kept.
const SAID: usize = 4096;

/// A guest before it is booted.
#[derive(Debug)]
pub struct Guest<'guest> {
    /// The QEMU that runs it.
    pub emulator: &'guest Emulator,
    /// The kernel's image.
    pub kernel: &'guest Path,
    /// Its hardware.
    pub hardware: &'guest Hardware,
    /// Its file system.
    pub contents: Contents<'guest>,
    /// How long it may take until its first process runs.
    pub boot_limit: Duration,
    /// How long it may take in all.
    pub limit: Duration,
}

/// Who is told what the guest does while it does it.
pub trait Observer {
    /// The first process runs, so long after the start.
    fn up(&mut self, after: Duration);
    /// The command wrote to standard output.
    fn stdout(&mut self, bytes: &[u8]);
    /// The command wrote to standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// The kernel wrote to its console.
    fn console(&mut self, bytes: &[u8]);
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The command's exit status as a shell counts: 128 and the signal for one that was killed.
    pub status: u8,
    /// The files that were to be brought and are there.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Stalls, hung tasks and the like that the kernel complained of.
    pub complaints: Vec<String>,
}

/// A guest that did not carry out its order.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Hardware that cannot be.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// A system call of the host.
    #[error("cannot prepare the guest: {0}")]
    System(#[from] io::Error),
    /// QEMU does not start.
    #[error("cannot start {}: {cause}", .path.display())]
    Start {
        /// Its file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The host offers no KVM.
    #[error("/dev/kvm cannot be opened: {0}")]
    NoKvm(io::Error),
    /// KVM is there and no guest came up under it.
    #[error("KVM is not available here, because {0}")]
    KvmUnfit(Box<RunError>),
    /// The first process did not run in time.
    #[error("the guest's kernel did not reach its first process within {} s{said}{tail}", .after.as_secs())]
    NotUp {
        /// How long it was given.
        after: Duration,
        /// What QEMU said.
        said: Said,
        /// What the kernel said last.
        tail: Tail,
    },
    /// The kernel panicked.
    #[error("the guest's kernel panicked: {line}{tail}")]
    Panicked {
        /// Its own words.
        line: String,
        /// What it said last.
        tail: Tail,
    },
    /// The command did not end in time.
    #[error("the guest did not end within {} s and was stopped; --timeout gives it more{tail}", .after.as_secs())]
    TimedOut {
        /// How long it was given.
        after: Duration,
        /// What the kernel said last.
        tail: Tail,
    },
    /// QEMU ended before the command did.
    #[error("the guest was gone before its command ended ({status}){said}{tail}")]
    Gone {
        /// How QEMU ended.
        status: ExitStatus,
        /// What QEMU said.
        said: Said,
        /// What the kernel said last.
        tail: Tail,
    },
    /// The user interrupted.
    #[error("interrupted; the guest was stopped")]
    Interrupted,
    /// The guest could not do what it was ordered.
    #[error("in the guest: {0}")]
    Unable(String),
    /// The channel carried something else.
    #[error(transparent)]
    Garbled(#[from] Garbled),
}

/// What QEMU itself said, as a part of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said(String);

impl std::fmt::Display for Said {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.trim();
        if text.is_empty() { Ok(()) } else { write!(to, "; QEMU said: {text}") }
    }
}

/// Boots the guest and stays until its command has ended, it failed, its time is up or `interrupted` is set.
pub fn run(guest: &Guest, interrupted: &AtomicBool, observer: &mut dyn Observer) -> Result<Report, RunError> {
    guest.hardware.check()?;
    let kvm = guest.hardware.accelerator == Accelerator::Kvm;
    if kvm {
        OpenOptions::new().read(true).write(true).open("/dev/kvm").map_err(RunError::NoKvm)?;
    }
    let mut watch = Watch::start(guest)?;
    let ending = watch.follow(guest, interrupted, observer)?;
    let up = watch.up;
    watch.conclude(ending, guest).map_err(|error| match error {
        RunError::NotUp { .. } | RunError::Gone { .. } | RunError::Panicked { .. } if kvm && !up => {
            RunError::KvmUnfit(Box::new(error))
        }
        error => error,
    })
}

/// Why a guest is watched no longer.
#[derive(Debug)]
enum Ending {
    Ended(u8),
    Unable(String),
    NotUp,
    Panicked(String),
    TimedOut,
    Gone,
    Interrupted,
}

/// A guest that runs.
#[derive(Debug)]
struct Watch {
    process: Process,
    started: Instant,
    channel: UnixStream,
    console_wire: UnixStream,
    console_open: bool,
    console: Console,
    decoder: Decoder,
    said: Vec<u8>,
    up: bool,
    file: Option<(PathBuf, Vec<u8>)>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Watch {
    fn start(guest: &Guest) -> Result<Self, RunError> {
        let initramfs = archive(&guest.contents)?;
        let disk = guest.hardware.nvme.is_some().then(disk).transpose()?;
        let (channel, channel_end) = UnixStream::pair()?;
        let (console_wire, console_end) = UnixStream::pair()?;
        let wires = Wires {
            initramfs: initramfs.as_raw_fd(),
            channel: channel_end.as_raw_fd(),
            console: Some(console_end.as_raw_fd()),
            disk: disk.as_ref().map(AsRawFd::as_raw_fd),
        };
        let mut inherited = vec![wires.initramfs, wires.channel, console_end.as_raw_fd()];
        inherited.extend(wires.disk);
        let kernel = guest.kernel.to_string_lossy();
        let mut command = Command::new(&guest.emulator.path);
        command
            .args(guest.hardware.arguments(guest.emulator, &kernel, true, &wires))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let process = Process::start(&mut command, &inherited, Group::Own)
            .map_err(|cause| RunError::Start { path: guest.emulator.path.clone(), cause })?;
        Ok(Self {
            process,
            started,
            channel,
            console_wire,
            console_open: true,
            console: Console::default(),
            decoder: Decoder::default(),
            said: Vec::new(),
            up: false,
            file: None,
            files: Vec::new(),
        })
    }

    /// Listens until the guest's fate is known.
    fn follow(
        &mut self,
        guest: &Guest,
        interrupted: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Ending, RunError> {
        loop {
            if interrupted.load(Relaxed) {
                return Ok(Ending::Interrupted);
            }
            let age = self.started.elapsed();
            if age >= guest.limit {
                return Ok(Ending::TimedOut);
            }
            if !self.up && age >= guest.boot_limit {
                return Ok(Ending::NotUp);
            }
            let heard = self.listen(observer)?;
            while let Some(frame) = self.decoder.frame()? {
                if let Some(ending) = self.take(frame, guest, observer) {
                    // It powers off by itself; if it does not, nothing is lost, for everything has arrived.
                    self.listen_out(observer)?;
                    return Ok(ending);
                }
            }
            // What a dying kernel still says belongs to the message; it then ends the emulator by itself.
            if let Some(line) = self.console.panic().map(str::to_owned) {
                self.listen_out(observer)?;
                return Ok(Ending::Panicked(line));
            }
            if !heard {
                self.listen_out(observer)?;
                // What it said last was still on its way when the end was noticed.
                while let Some(frame) = self.decoder.frame()? {
                    if let Some(ending) = self.take(frame, guest, observer) {
                        return Ok(ending);
                    }
                }
                return Ok(Ending::Gone);
            }
        }
    }

    /// Waits a moment for either port or QEMU to say something; false once the guest's channel is closed.
    fn listen(&mut self, observer: &mut dyn Observer) -> io::Result<bool> {
        let errors = self.process.child().stderr.take();
        // A port that is closed is ready for ever.
        let mut watched = vec![PollFd::new(&self.channel, PollFlags::IN)];
        watched.extend(self.console_open.then(|| PollFd::new(&self.console_wire, PollFlags::IN)));
        watched.extend(errors.as_ref().map(|errors| PollFd::new(errors, PollFlags::IN)));
        let polled = poll(&mut watched, Some(&LOOK_EVERY));
        let mut ready = watched.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>().into_iter();
        drop(watched);
        let channel_ready = ready.next().unwrap_or(false);
        let console_ready = self.console_open && ready.next().unwrap_or(false);
        let errors_ready = ready.next().unwrap_or(false);
        if let Err(error) = polled {
            self.process.child().stderr = errors;
            // The signal that interrupts us also ends this wait.
            return if error == rustix::io::Errno::INTR { Ok(true) } else { Err(error.into()) };
        }
        let mut buffer = [0; 1 << 16];
        let mut open = true;
        if channel_ready {
            let length = self.channel.read(&mut buffer)?;
            self.decoder.feed(&buffer[..length]);
            open = length > 0;
        }
        if console_ready {
            let length = self.console_wire.read(&mut buffer)?;
            self.console.feed(&buffer[..length]);
            observer.console(&buffer[..length]);
            self.console_open = length > 0;
        }
        if let Some(mut errors) = errors {
            let length = if errors_ready { errors.read(&mut buffer)? } else { 1 };
            if errors_ready && self.said.len() < SAID {
                self.said.extend_from_slice(&buffer[..length]);
            }
            self.process.child().stderr = (length > 0).then_some(errors);
        }
        Ok(open)
    }

    /// Listens until QEMU has ended or its farewell has taken too long.
    fn listen_out(&mut self, observer: &mut dyn Observer) -> io::Result<()> {
        let deadline = Instant::now() + FAREWELL;
        while !self.process.ends_by(Instant::now())? && Instant::now() < deadline {
            if !self.listen(observer)? {
                self.process.ends_by(deadline)?;
            }
        }
        // What was written before the end is still there to be read.
        while self.listen(observer)? && Instant::now() < deadline {}
        Ok(())
    }

    fn take(&mut self, frame: Frame, guest: &Guest, observer: &mut dyn Observer) -> Option<Ending> {
        match frame {
            Frame::Up => {
                self.up = true;
                observer.up(self.started.elapsed());
            }
            Frame::Stdout(bytes) => observer.stdout(&bytes),
            Frame::Stderr(bytes) => observer.stderr(&bytes),
            Frame::File(path) => self.file = Some((PathBuf::from(path), Vec::new())),
            Frame::Piece(piece) if piece.is_empty() => {
                // Only what was asked for is taken from a guest.
                self.files
                    .extend(self.file.take().filter(|(path, _)| guest.contents.order.bring.contains(path)));
            }
            Frame::Piece(piece) => {
                if let Some((_, content)) = &mut self.file {
                    content.extend(piece);
                }
            }
            Frame::Unable(reason) => return Some(Ending::Unable(reason)),
            Frame::Ended(status) => return Some(Ending::Ended(status)),
        }
        None
    }

    /// Ends what still runs and makes a report or an error of it.
    fn conclude(mut self, ending: Ending, guest: &Guest) -> Result<Report, RunError> {
        let status = self.process.end()?;
        self.console.close();
        let tail = self.console.tail();
        let said = Said(String::from_utf8_lossy(&self.said).into_owned());
        match ending {
            Ending::Ended(status) => {
                let complaints = self.console.complaints().to_vec();
                Ok(Report { status, files: self.files, complaints })
            }
            Ending::Unable(reason) => Err(RunError::Unable(reason)),
            Ending::NotUp => Err(RunError::NotUp { after: guest.boot_limit, said, tail }),
            Ending::Panicked(line) => Err(RunError::Panicked { line, tail }),
            Ending::TimedOut => Err(RunError::TimedOut { after: guest.limit, tail }),
            Ending::Gone => Err(RunError::Gone { status, said, tail }),
            Ending::Interrupted => Err(RunError::Interrupted),
        }
    }
}

/// Memory that QEMU takes for a disk.
pub(crate) fn disk() -> io::Result<OwnedFd> {
    let memory = memfd_create("nvme", MemfdFlags::CLOEXEC)?;
    ftruncate(memory.as_fd(), DISK)?;
    Ok(memory)
}
