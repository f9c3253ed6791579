// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a guest, lets it carry out its order, and says how that ended.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::pipe::fcntl_setpipe_size;

use crate::accelerator::Accelerator;
use crate::channel::{Decoder, Frame, Garbled, STOP};
use crate::console::{Console, Tail};
use crate::emulator::Emulator;
use crate::hardware::{Hardware, HardwareError, Port, Wires};
use crate::initramfs::{Contents, archive};
use crate::nobody::{Nobody, apart, copy_in_memory, program_for_all, reach};
use crate::process::{Group, Process};

/// Where KVM is reached.
const KVM: &str = "/dev/kvm";

/// Size of the NVMe device, bytes; memory is taken as it is written.
const DISK: u64 = 64 << 20;

/// How long an interrupt or a deadline may go unheard.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long a guest that has said its last may take to power off, or to print the rest of a panic.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long a file that is on its way may stand still before the guest's time limit holds again.
const STANDSTILL: Duration = Duration::from_secs(30);

/// How long the time limit waits for files in all: a result of 256 MB
/// takes a minute on a busy host.
const WAY_HOME: Duration = Duration::from_secs(5 * 60);

/// Bytes of a guest's files that are usually enough: twice the largest result, of 50,000 records.
pub const USUAL_BYTES: usize = 512 << 20;

/// Bytes of the guest's that wait for us, at most. A port that is full is not ready, the guest
/// waits for it, and how long depends on the host: with instructions as the clock that must not
/// happen. A socket is full after some 280 single bytes; this is the most a pipe of an ordinary
/// user may hold (pipe(7)), some ten seconds of a port that is never read.
const PIPE: usize = 1 << 20;

/// Bytes of the emulator's own complaints that are kept.
const SAID: usize = 4096;

/// A guest before it is booted.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'guest> {
    /// The QEMU that runs it.
    pub emulator: &'guest Emulator,
    /// The kernel's image.
    pub kernel: &'guest Path,
    /// Its hardware.
    pub hardware: &'guest Hardware,
    /// Its file system.
    pub contents: Contents<'guest>,
    /// How long its kernel may be silent before its first process runs.
    pub boot_limit: Duration,
    /// How long it may take in all; a file that is on its way home is waited for.
    pub limit: Duration,
    /// How many bytes of its files are kept at most; it is stopped if it sends more.
    pub most_bytes: usize,
    /// How long its command may take to end after it was told to stop.
    pub grace: Duration,
    /// What people type: it goes to the guest's console once the first process runs. The command is
    /// then the terminal's, and is not told to stop.
    pub keys: Option<BorrowedFd<'guest>>,
}

/// The key that ends a guest whose console has the keys: Ctrl-], as in telnet.
pub const ESCAPE: u8 = 0x1d;

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
    /// Why the command was told to stop, if it was.
    pub stopped: Option<Stop>,
}

/// Why a command was told to stop before it had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The user interrupted.
    Interrupted,
    /// Its time was up.
    TimedOut,
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
    /// The kernel cannot be read.
    #[error("cannot read the guest's kernel {}: {cause}", .path.display())]
    Kernel {
        /// Its file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// QEMU does not start.
    #[error("cannot start {}{as_nobody}: {cause}", .path.display())]
    Start {
        /// Its file.
        path: PathBuf,
        /// ` as nobody`, where the superuser's emulator was to be nobody's.
        as_nobody: &'static str,
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
    #[error(
        "the guest's kernel did not reach its first process within {} s{said}{tail}", .after.as_secs()
    )]
    NotUp {
        /// Its age.
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
    /// The guest's files do not end.
    #[error("the guest sends more than {most} bytes of files, of {} at the end, and was stopped", .path.display())]
    TooMuch {
        /// What is kept at most.
        most: usize,
        /// The file that was too much.
        path: PathBuf,
    },
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

/// Boots the guest and stays until its command has ended, it failed,
/// its time is up or `interrupted` is set.
pub fn run(guest: &Guest, interrupted: &AtomicBool, observer: &mut dyn Observer) -> Result<Report, RunError> {
    guest.hardware.check()?;
    let kvm = guest.hardware.accelerator == Accelerator::Kvm;
    #[expect(clippy::disallowed_methods, reason = "a device of the kernel's")]
    if kvm {
        OpenOptions::new().read(true).write(true).open(KVM).map_err(RunError::NoKvm)?;
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
    Stopped(Stop),
    Gone,
}

/// Our ends of the pipes behind a serial port; of a socket, where the emulator takes no two files.
#[derive(Debug)]
struct Wire {
    from: PipeReader,
    to: PipeWriter,
}

/// QEMU's ends; they close when it has them, so that ours see its end.
#[derive(Debug)]
struct WireEnds {
    out: OwnedFd,
    input: OwnedFd,
}

impl Wire {
    fn pair(emulator: &Emulator) -> io::Result<(Self, WireEnds)> {
        if !emulator.input_paths {
            return Self::socket();
        }
        let (from, out) = io::pipe()?;
        let (input, to) = io::pipe()?;
        // A user whose pipes hold too much already gets the usual 64
        // KiB, which are full after a second or so.
        let _ = fcntl_setpipe_size(&from, PIPE);
        // A guest that reads nothing must not hold us up.
        fcntl_setfl(&to, OFlags::NONBLOCK)?;
        Ok((Self { from, to }, WireEnds { out: out.into(), input: input.into() }))
    }

    /// It is full after some hundred single bytes, and a guest then waits for us.
    fn socket() -> io::Result<(Self, WireEnds)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (from, to) = (OwnedFd::from(ours.try_clone()?), OwnedFd::from(ours));
        let (out, input) = (theirs.try_clone()?.into(), theirs.into());
        Ok((Self { from: from.into(), to: to.into() }, WireEnds { out, input }))
    }

    /// Reads what is there; nothing at the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.from.read(buffer) {
            // The emulator went and had not read all that we wrote.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            read => read,
        }
    }

    /// Writes what fits at once.
    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::io::write(&self.to, bytes)
    }
}

impl WireEnds {
    fn port(&self) -> Port {
        Port { out: self.out.as_raw_fd(), input: self.input.as_raw_fd() }
    }
}

/// A guest that runs.
#[derive(Debug)]
struct Watch {
    process: Process,
    started: Instant,
    channel: Wire,
    console_wire: Wire,
    console_open: bool,
    console: Console,
    decoder: Decoder,
    said: Vec<u8>,
    up: bool,
    /// Whether its fate is known: what still comes by the channel is kept no more.
    over: bool,
    /// When either port last said something.
    heard_at: Instant,
    /// When and why the command was told to stop.
    told: Option<(Instant, Stop)>,
    /// Keys that the guest's console has not taken yet.
    typed: Vec<u8>,
    /// Whether the user typed the key that ends the guest.
    escaped: bool,
    file: Option<(PathBuf, Vec<u8>)>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Watch {
    fn start(guest: &Guest) -> Result<Self, RunError> {
        let kvm = guest.hardware.accelerator == Accelerator::Kvm;
        let user = Nobody::instead_of_root(kvm.then(|| Path::new(KVM)))?;
        let kernel = copy_in_memory(guest.kernel)
            .map_err(|cause| RunError::Kernel { path: guest.kernel.to_owned(), cause })?;
        let initramfs = archive(&guest.contents)?;
        let hold = if user.is_some() { apart } else { reach };
        let firmware = guest.emulator.firmware.iter().map(|folder| hold(folder));
        let firmware = firmware.collect::<io::Result<Vec<OwnedFd>>>()?;
        let disk = guest.hardware.nvme.is_some().then(disk).transpose()?;
        let (channel, channel_ends) = Wire::pair(guest.emulator)?;
        let (console_wire, console_ends) = Wire::pair(guest.emulator)?;
        if let Some(user) = &user {
            for ends in [&channel_ends, &console_ends] {
                user.give(&ends.out)?;
                user.give(&ends.input)?;
            }
        }
        let wires = Wires {
            kernel: kernel.as_raw_fd(),
            firmware: firmware.iter().map(AsRawFd::as_raw_fd).collect(),
            initramfs: initramfs.as_raw_fd(),
            channel: channel_ends.port(),
            console: console_ends.port(),
            disk: disk.as_ref().map(AsRawFd::as_raw_fd),
        };
        let mut inherited = vec![wires.kernel, wires.initramfs];
        inherited.extend(&wires.firmware);
        inherited.extend([wires.channel, wires.console].iter().flat_map(|port| [port.out, port.input]));
        inherited.extend(wires.disk);
        let start_error = |cause| RunError::Start {
            path: guest.emulator.path.clone(),
            as_nobody: if user.is_some() { " as nobody" } else { "" },
            cause,
        };
        let (program, held) = program_for_all(&guest.emulator.path).map_err(start_error)?;
        inherited.extend(held.as_ref().map(AsRawFd::as_raw_fd));
        let mut command = Command::new(program);
        // Run by its number, it would be called by that in lists of processes.
        command.args(["-name", "doorbell,process=doorbell-guest"]);
        command
            .args(guest.hardware.arguments(guest.emulator, &wires))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let process =
            Process::start(&mut command, &inherited, Group::Own, user.clone()).map_err(start_error)?;
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
            over: false,
            heard_at: started,
            told: None,
            typed: Vec::new(),
            escaped: false,
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
            if let Some(ending) = self.limits(guest, interrupted)? {
                return Ok(ending);
            }
            let heard = self.listen(observer, guest.keys)?;
            while let Some(frame) = self.decoder.frame()? {
                if let Some(ending) = self.take(frame, guest, observer)? {
                    // It powers off by itself; if it does not, nothing is lost, for everything has arrived.
                    self.over = true;
                    self.listen_out(observer)?;
                    return Ok(ending);
                }
            }
            // What a dying kernel still says belongs to the message; it then ends the emulator by itself.
            if let Some(line) = self.console.panic().map(str::to_owned) {
                self.over = true;
                self.listen_out(observer)?;
                return Ok(Ending::Panicked(line));
            }
            if self.escaped {
                return Ok(Ending::Stopped(Stop::Interrupted));
            }
            if !heard {
                self.listen_out(observer)?;
                // What it said last was still on its way when the end was noticed.
                while let Some(frame) = self.decoder.frame()? {
                    if let Some(ending) = self.take(frame, guest, observer)? {
                        return Ok(ending);
                    }
                }
                return Ok(Ending::Gone);
            }
        }
    }

    /// Whether it has to end now. A command that runs is first told
    /// to stop, and given time to keep what it has.
    fn limits(&mut self, guest: &Guest, interrupted: &AtomicBool) -> io::Result<Option<Ending>> {
        let silence = self.heard_at.elapsed();
        let waited_for =
            self.started.elapsed() < guest.limit.saturating_add(guest.grace).saturating_add(WAY_HOME);
        let file_on_its_way = self.file.is_some() && silence < STANDSTILL && waited_for;
        let reason = if interrupted.load(Relaxed) {
            Some(Stop::Interrupted)
        } else if self.started.elapsed() >= guest.limit && !file_on_its_way {
            Some(Stop::TimedOut)
        } else {
            None
        };
        Ok(match (self.told, reason) {
            (Some((since, reason)), _) => {
                (since.elapsed() >= guest.grace && !file_on_its_way).then_some(Ending::Stopped(reason))
            }
            (None, Some(reason)) if self.up && guest.keys.is_none() => {
                self.told = Some((Instant::now(), reason));
                // A guest that is gone is noticed where it is listened to.
                let _ = self.channel.write(&[STOP]);
                None
            }
            (None, Some(Stop::TimedOut)) if !self.up => Some(Ending::NotUp),
            (None, Some(reason)) => Some(Ending::Stopped(reason)),
            (None, None) => (!self.up && silence >= guest.boot_limit).then_some(Ending::NotUp),
        })
    }

    /// Waits a moment for either port, QEMU or `keys` to say
    /// something; false once the guest's channel is closed.
    fn listen(&mut self, observer: &mut dyn Observer, keys: Option<BorrowedFd>) -> io::Result<bool> {
        let errors = self.process.child().stderr.take();
        let keys = keys.filter(|_| self.up && self.console_open && self.typed.is_empty());
        // A port that is closed is ready for ever.
        let mut watched = vec![PollFd::new(&self.channel.from, PollFlags::IN)];
        watched.extend(self.console_open.then(|| PollFd::new(&self.console_wire.from, PollFlags::IN)));
        let typing = !self.typed.is_empty() && self.console_open;
        watched.extend(typing.then(|| PollFd::new(&self.console_wire.to, PollFlags::OUT)));
        watched.extend(keys.as_ref().map(|keys| PollFd::new(keys, PollFlags::IN)));
        watched.extend(errors.as_ref().map(|errors| PollFd::new(errors, PollFlags::IN)));
        let polled = poll(&mut watched, Some(&LOOK_EVERY));
        let mut events = watched.iter().map(PollFd::revents).collect::<Vec<PollFlags>>().into_iter();
        drop(watched);
        let mut next = |asked: bool| asked.then(|| events.next()).flatten().unwrap_or(PollFlags::empty());
        let channel_ready = !next(true).is_empty();
        let console_ready = !next(self.console_open).is_empty();
        // Whether it takes more is asked by writing.
        next(typing);
        let keys_ready = !next(keys.is_some()).is_empty();
        let errors_ready = !next(errors.is_some()).is_empty();
        if let Err(error) = polled {
            self.process.child().stderr = errors;
            // The signal that interrupts us also ends this wait.
            return if error == Errno::INTR { Ok(true) } else { Err(error.into()) };
        }
        let mut buffer = [0; 1 << 16];
        let mut open = true;
        if channel_ready {
            self.heard_at = Instant::now();
            let length = self.channel.read(&mut buffer)?;
            if !self.over {
                self.decoder.feed(&buffer[..length]);
            }
            open = length > 0;
        }
        if console_ready {
            self.heard_at = Instant::now();
            let length = self.console_wire.read(&mut buffer)?;
            self.console.feed(&buffer[..length]);
            observer.console(&buffer[..length]);
            self.console_open = length > 0;
        }
        if let Some(keys) = keys.filter(|_| keys_ready) {
            match rustix::io::read(keys, &mut buffer) {
                // A terminal that hung up: whoever typed is gone.
                Ok(0) | Err(_) => self.escaped = true,
                Ok(length) => {
                    self.escaped = buffer[..length].contains(&ESCAPE);
                    self.typed.extend_from_slice(&buffer[..length]);
                }
            }
        }
        if !self.typed.is_empty() && self.console_open {
            match self.console_wire.write(&self.typed) {
                Ok(length) => drop(self.typed.drain(..length)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The guest is gone, which is noticed where it is listened to.
                Err(_) => self.typed.clear(),
            }
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
            if !self.listen(observer, None)? {
                self.process.ends_by(deadline)?;
            }
        }
        // What was written before the end is still there to be read.
        while self.listen(observer, None)? && Instant::now() < deadline {}
        Ok(())
    }

    fn take(
        &mut self,
        frame: Frame,
        guest: &Guest,
        observer: &mut dyn Observer,
    ) -> Result<Option<Ending>, RunError> {
        match frame {
            Frame::Up => {
                self.up = true;
                observer.up(self.started.elapsed());
            }
            Frame::Stdout(bytes) => observer.stdout(&bytes),
            Frame::Stderr(bytes) => observer.stderr(&bytes),
            // Only what was asked for is taken from a guest, and each once.
            Frame::File(path) => {
                let path = PathBuf::from(path);
                let wanted = guest.contents.order.bring.contains(&path);
                self.file = (wanted && self.files.iter().all(|(there, _)| *there != path))
                    .then(|| (path, Vec::new()));
            }
            Frame::Piece(piece) if piece.is_empty() => self.files.extend(self.file.take()),
            Frame::Piece(piece) => {
                let kept: usize = self.files.iter().map(|(_, content)| content.len()).sum();
                if let Some((path, content)) = &mut self.file {
                    if kept + content.len() + piece.len() > guest.most_bytes {
                        return Err(RunError::TooMuch { most: guest.most_bytes, path: path.clone() });
                    }
                    content.extend(piece);
                }
            }
            Frame::Unable(reason) => return Ok(Some(Ending::Unable(reason))),
            Frame::Ended(status) => return Ok(Some(Ending::Ended(status))),
        }
        Ok(None)
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
                let stopped = self.told.map(|(_, reason)| reason);
                Ok(Report { status, files: self.files, complaints, stopped })
            }
            Ending::Unable(reason) => Err(RunError::Unable(reason)),
            Ending::NotUp => Err(RunError::NotUp { after: self.started.elapsed(), said, tail }),
            Ending::Panicked(line) => Err(RunError::Panicked { line, tail }),
            Ending::Stopped(Stop::TimedOut) => Err(RunError::TimedOut { after: guest.limit, tail }),
            Ending::Stopped(Stop::Interrupted) => Err(RunError::Interrupted),
            Ending::Gone => Err(RunError::Gone { status, said, tail }),
        }
    }
}

/// Memory that QEMU takes for a disk.
fn disk() -> io::Result<OwnedFd> {
    let memory = memfd_create("nvme", MemfdFlags::CLOEXEC)?;
    ftruncate(memory.as_fd(), DISK)?;
    Ok(memory)
}
