// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's first process: makes a system of the bare kernel,
//! carries out its order, tells the host, powers off.

#![expect(clippy::disallowed_methods, reason = "in the guest all files are the order's or the kernel's")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, setsid, wait};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, Winsize, tcdrain, tcgetattr, tcsetattr, tcsetwinsize};

use crate::channel::{Frame, STOP, send_file};
use crate::order::{ORDER, Order, PROGRAM, TerminalSize};

/// The hidden verb under which a program is the first process of a guest.
pub const VERB: &str = "vm-guest";

/// The kernel's console, and the port that only we write to: the
/// architecture's, as it is in `architecture.rs`.
const CONSOLE: &str = if cfg!(target_arch = "aarch64") { "/dev/ttyAMA0" } else { "/dev/ttyS0" };
const CHANNEL: &str = if cfg!(target_arch = "x86_64") { "/dev/ttyS1" } else { "/dev/vport0p1" };

const SHELL: &str = "/bin/busybox";

/// What is mounted where, and whether nothing works without it.
const MOUNTS: [(&str, &str, bool); 8] = [
    ("devtmpfs", "/dev", true),
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devpts", "/dev/pts", false),
    ("tmpfs", "/dev/shm", false),
    ("mqueue", "/dev/mqueue", false),
    ("cgroup2", "/sys/fs/cgroup", false),
    ("debugfs", "/sys/kernel/debug", false),
];

/// The first process's life; fails at once in any other process.
#[expect(clippy::disallowed_methods, reason = "a guest's console has no reader who may leave")]
pub fn main() -> ExitCode {
    if rustix::process::getpid() != Pid::INIT {
        let _ = writeln!(io::stderr(), "{VERB} is the first process of a guest and nothing else");
        return ExitCode::FAILURE;
    }
    // The first process of a container has this number too, and nobody's order.
    if !Path::new(ORDER).exists() {
        let _ =
            writeln!(io::stderr(), "{VERB}: there is no order at {ORDER}: this is no guest of `doorbell vm`");
        return ExitCode::FAILURE;
    }
    let mut channel = None;
    if let Err(problem) = live(&mut channel) {
        // Without a channel the console is the only one left to tell.
        let _ = writeln!(io::stderr(), "{VERB}: {problem}");
        if let Some(channel) = &channel {
            let _ = send(channel, &Frame::Unable(problem));
        }
    }
    if let Some(channel) = &channel {
        let _ = tcdrain(&*channel.lock().unwrap_or_else(PoisonError::into_inner));
    }
    rustix::fs::sync();
    // Fails only for those without privilege; the kernel then panics, and the host reads why.
    let _ = reboot(RebootCommand::PowerOff);
    ExitCode::FAILURE
}

type Channel = Arc<Mutex<File>>;

fn live(slot: &mut Option<Channel>) -> Result<(), String> {
    for (kind, folder, needed) in MOUNTS {
        // What the kernel mounted already is as good.
        let mounted = fs::create_dir_all(folder)
            .and_then(|()| Ok(mount(kind, folder, kind, MountFlags::empty(), None::<&std::ffi::CStr>)?));
        if let Err(error) = mounted
            && needed
            && error.kind() != io::ErrorKind::ResourceBusy
        {
            return Err(format!("cannot mount {kind} on {folder}: {error}"));
        }
    }
    let channel: Channel =
        Arc::new(Mutex::new(open_channel().map_err(|error| format!("{CHANNEL}: {error}"))?));
    *slot = Some(Arc::clone(&channel));
    let order = fs::read(ORDER).map_err(|error| format!("{ORDER}: {error}"))?;
    let order: Order = serde_json::from_slice(&order).map_err(|error| format!("{ORDER}: {error}"))?;
    loopback_up().map_err(|error| format!("cannot bring the loopback interface up: {error}"))?;
    furnish(&order).map_err(|error| format!("cannot furnish the file system: {error}"))?;
    send(&channel, &Frame::Up).map_err(|error| format!("{CHANNEL}: {error}"))?;
    let status = carry_out(&order, &channel)?;
    let mut port = channel.lock().unwrap_or_else(PoisonError::into_inner);
    for path in &order.bring {
        match fs::read(path) {
            Ok(content) => send_file(&mut *port, &path.to_string_lossy(), &content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => return Err(format!("cannot bring {}: {error}", path.display())),
        }
        .map_err(|error| format!("{CHANNEL}: {error}"))?;
    }
    port.write_all(&Frame::Ended(status).encode()).map_err(|error| format!("{CHANNEL}: {error}"))
}

/// The port; a serial one without the line discipline's ideas about
/// line ends, of which virtio's have none.
fn open_channel() -> io::Result<File> {
    let port = OpenOptions::new().read(true).write(true).open(CHANNEL)?;
    match tcgetattr(&port) {
        Ok(mut settings) => {
            settings.make_raw();
            tcsetattr(&port, OptionalActions::Now, &settings)?;
        }
        Err(Errno::NOTTY) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(port)
}

fn send(channel: &Channel, frame: &Frame) -> io::Result<()> {
    channel.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame.encode())
}

/// The names of the shell's small programs and of our own, and the
/// folders that files are brought from.
fn furnish(order: &Order) -> io::Result<()> {
    symlink(PROGRAM, "/bin/doorbell")?;
    if Path::new(SHELL).exists() {
        let installed = Command::new(SHELL).args(["--install", "-s", "/bin"]).status()?;
        if !installed.success() {
            return Err(io::Error::other(format!("{SHELL} --install ended with {installed}")));
        }
    }
    fs::create_dir_all("/root")?;
    fs::create_dir_all(&order.folder)?;
    order.bring.iter().filter_map(|path| path.parent()).try_for_each(fs::create_dir_all)
}

/// Runs the command to its end; its status as a shell counts.
fn carry_out(order: &Order, channel: &Channel) -> Result<u8, String> {
    let [program, arguments @ ..] = order.command.as_slice() else {
        return Err("the order has no command".into());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/bin")
        .env("HOME", "/root")
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.folder)
        .stdin(Stdio::null());
    if !order.interactive {
        // As a shell does with what a terminal may interrupt.
        command.process_group(0);
    }
    let failed = |error: io::Error| format!("cannot run {program}: {error}");
    let mut pumps = Vec::new();
    if order.interactive {
        quieten_console();
        on_console(&mut command, order.stdout).map_err(failed)?;
    } else {
        let (out, stdout) = outlet(order.stdout).map_err(failed)?;
        let (err, stderr) = outlet(order.stderr).map_err(failed)?;
        command.stdout(stdout).stderr(stderr);
        pumps.push(pump(out, Arc::clone(channel), Frame::Stdout));
        pumps.push(pump(err, Arc::clone(channel), Frame::Stderr));
    }
    let child = command.spawn().map_err(failed)?;
    let pid = Pid::from_child(&child);
    let running = Arc::new(AtomicBool::new(true));
    if !order.interactive {
        stop_when_told(channel, pid, Arc::clone(&running)).map_err(failed)?;
    }
    // Ours are the outlets' ends that the command writes to: they must close for the pumps to end.
    drop(command);
    let status = reap_until(pid).map_err(failed)?;
    running.store(false, Release);
    // What it left running would keep the outlets open. To the first process -1 means all others.
    kill_all_others();
    for pump in pumps {
        let _ = pump.join();
    }
    Ok(shells_count(status))
}

/// Interrupts the command's group when the host says so, while
/// `running` says that the number is still the command's.
fn stop_when_told(channel: &Channel, command: Pid, running: Arc<AtomicBool>) -> io::Result<()> {
    let mut port = channel.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?;
    // It lives as long as the guest: there is nothing to wait for.
    thread::spawn(move || {
        let mut byte = [0];
        while port.read_exact(&mut byte).is_ok() {
            // Numbers are used again only after thousands of others:
            // what was reaped a moment ago has no successor yet.
            if byte == [STOP] && running.load(Acquire) {
                // The command may have ended just now.
                let _ = kill_process_group(command, Signal::INT);
            }
        }
    });
    Ok(())
}

/// The console shows from now on what is wrong, and no more what is
/// usual (syslog(2)): people read it.
fn quieten_console() {
    const WARNINGS_AND_WORSE: libc::c_int = 5;
    const CONSOLE_LEVEL: libc::c_int = 8;
    // SAFETY: this action takes no buffer.
    // JUSTIFICATION: rustix has no call for it.
    unsafe { libc::klogctl(CONSOLE_LEVEL, std::ptr::null_mut(), WARNINGS_AND_WORSE) };
}

/// Waits for `pid`, and on the way for every orphan, which is the first process's duty.
fn reap_until(pid: Pid) -> io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == pid => return Ok(ExitStatus::from_raw(status.as_raw())),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn kill_all_others() {
    // SAFETY: kill takes no memory.
    // JUSTIFICATION: rustix has no call for all processes.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

fn shells_count(status: ExitStatus) -> u8 {
    let signalled = status.signal().map(|signal| 128 + signal);
    let status = status.code().or(signalled).unwrap_or(1);
    u8::try_from(status).unwrap_or(1)
}

/// Where the command writes and we read: a terminal of the host's
/// size where the host has one, else a pipe.
fn outlet(size: Option<TerminalSize>) -> io::Result<(File, Stdio)> {
    let Some(size) = size else {
        let (read, write) = io::pipe()?;
        return Ok((OwnedFd::from(read).into(), write.into()));
    };
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = OpenOptions::new().read(true).write(true).open(name.to_string_lossy().as_ref())?;
    // Line ends are the business of the host's terminal.
    let mut settings = tcgetattr(&slave)?;
    settings.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    set_size(&slave, size)?;
    Ok((master.into(), slave.into()))
}

fn set_size(terminal: impl AsFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

/// Sends on what comes out; a terminal whose other side closed gives
/// an error where a pipe gives its end.
fn pump(mut from: File, channel: Channel, frame: fn(Vec<u8>) -> Frame) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if send(&channel, &frame(buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    })
}

/// The console becomes the command's controlling terminal.
fn on_console(command: &mut Command, size: Option<TerminalSize>) -> io::Result<()> {
    let console = OpenOptions::new().read(true).write(true).open(CONSOLE)?;
    if let Some(size) = size {
        set_size(&console, size)?;
    }
    command.stdin(console.try_clone()?).stdout(console.try_clone()?).stderr(console);
    let take_terminal = || {
        setsid()?;
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made.
    // JUSTIFICATION: the standard library cannot give a child a controlling terminal.
    unsafe { command.pre_exec(take_terminal) };
    Ok(())
}

/// Without it no mechanism over TCP or UDP finds its other side (netdevice(7)).
fn loopback_up() -> io::Result<()> {
    // Interfaces are not asked for by a protocol of theirs, and a kernel may be small.
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    // SAFETY: all zeroes are a valid ifreq: numbers and unions of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as std::ffi::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the descriptor is open and SIOCSIFFLAGS reads an ifreq, which `request` is.
    // JUSTIFICATION: rustix has no call for an interface's flags.
    match unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_guest_the_first_process_does_nothing() {
        assert_eq!(format!("{:?}", main()), format!("{:?}", ExitCode::FAILURE));
    }

    #[test]
    fn a_command_killed_by_a_signal_counts_as_in_a_shell() {
        assert_eq!(shells_count(ExitStatus::from_raw(9)), 137);
        assert_eq!(shells_count(ExitStatus::from_raw(3 << 8)), 3);
    }

    #[test]
    fn a_terminal_passes_on_what_is_written_as_it_is() {
        let (mut read, write) = outlet(Some(TerminalSize { rows: 24, columns: 80 })).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "printf 'a\\nb'; stty size"])
            .stdin(write)
            .stdout(Stdio::piped())
            .spawn();
        // Only the size is asked of the terminal here; what is written goes through a second one below.
        let output = child.as_mut().unwrap().stdout.take().map(|mut out| {
            let mut text = String::new();
            out.read_to_string(&mut text).map(|_| text).unwrap()
        });
        child.unwrap().wait().unwrap();
        assert_eq!(output.as_deref(), Some("a\nb24 80\n"));
        let mut buffer = [0; 16];
        assert!(matches!(read.read(&mut buffer), Ok(0) | Err(_)), "nothing was written to it");

        let (mut read, write) = outlet(Some(TerminalSize { rows: 24, columns: 80 })).unwrap();
        let mut child = Command::new("printf").arg("a\\nb").stdout(write).spawn().unwrap();
        child.wait().unwrap();
        // One read may bring what one write of printf's wrote; behind
        // the last comes an error, for nobody has the terminal open.
        let mut written = Vec::new();
        let _ = read.read_to_end(&mut written);
        assert_eq!(written, b"a\nb");
    }
}
