// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls by what they mean for waiting and waking.

use doorbell_results::anatomy::program::{File, Wait};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    pub args: [u64; 3],
    pub at: u64,
}

/// What a call does, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Waits or wakes on the word at the address.
    Futex(u64),
    Epoll,
    Poll,
    Select,
    Reads(i32),
    Writes(i32),
    /// Accepts or makes a connection.
    Connects(i32),
    Sleeps,
    WaitsForSignal,
    Signals(i64),
    WaitsForChild,
    IoUring,
    Ends,
    Closes(i32),
    /// Becomes another program, whose open files are not all that there were.
    Executes,
    /// Goes on with the call that a stop or a signal cut off.
    Restarts,
    /// Opens what the returned descriptor is of.
    Opens(Opened),
    Else,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    Eventfd,
    Epoll,
    Timerfd,
    Signalfd,
    /// A socket of the address family and type.
    Socket(u64, u64),
    /// A connection, of the same family as the listening descriptor.
    Accepted(i32),
    /// Another descriptor for the same file.
    Copy(i32),
    Other,
}

/// The numbers of calls that only some architectures have; no call has a negative one.
#[cfg(target_arch = "x86_64")]
mod old {
    pub(super) const POLL: i64 = libc::SYS_poll;
    pub(super) const SELECT: i64 = libc::SYS_select;
    pub(super) const EPOLL_WAIT: i64 = libc::SYS_epoll_wait;
    pub(super) const PAUSE: i64 = libc::SYS_pause;
    pub(super) const EVENTFD: i64 = libc::SYS_eventfd;
    pub(super) const SIGNALFD: i64 = libc::SYS_signalfd;
    pub(super) const EPOLL_CREATE: i64 = libc::SYS_epoll_create;
    pub(super) const OPEN: i64 = libc::SYS_open;
    pub(super) const DUP2: i64 = libc::SYS_dup2;
}
#[cfg(not(target_arch = "x86_64"))]
mod old {
    pub(super) const POLL: i64 = -2;
    pub(super) const SELECT: i64 = -3;
    pub(super) const EPOLL_WAIT: i64 = -4;
    pub(super) const PAUSE: i64 = -5;
    pub(super) const EVENTFD: i64 = -6;
    pub(super) const SIGNALFD: i64 = -7;
    pub(super) const EPOLL_CREATE: i64 = -8;
    pub(super) const OPEN: i64 = -9;
    pub(super) const DUP2: i64 = -10;
}

impl Call {
    pub fn does(&self) -> Does {
        let fd = self.fd();
        match self.number {
            libc::SYS_futex | libc::SYS_futex_waitv => Does::Futex(self.args[0]),
            old::EPOLL_WAIT | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Does::Epoll,
            old::POLL | libc::SYS_ppoll => Does::Poll,
            old::SELECT | libc::SYS_pselect6 => Does::Select,
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg => Does::Reads(fd),
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_sendfile => Does::Writes(fd),
            libc::SYS_accept | libc::SYS_accept4 => Does::Opens(Opened::Accepted(fd)),
            libc::SYS_connect => Does::Connects(fd),
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Does::Sleeps,
            old::PAUSE | libc::SYS_rt_sigtimedwait | libc::SYS_rt_sigsuspend => Does::WaitsForSignal,
            libc::SYS_kill | libc::SYS_tkill | libc::SYS_rt_sigqueueinfo | libc::SYS_pidfd_send_signal => {
                Does::Signals(self.args[1].cast_signed())
            }
            libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => Does::Signals(self.args[2].cast_signed()),
            libc::SYS_wait4 | libc::SYS_waitid => Does::WaitsForChild,
            libc::SYS_io_uring_enter => Does::IoUring,
            libc::SYS_exit | libc::SYS_exit_group => Does::Ends,
            libc::SYS_close => Does::Closes(fd),
            libc::SYS_execve | libc::SYS_execveat => Does::Executes,
            libc::SYS_restart_syscall => Does::Restarts,
            old::EVENTFD | libc::SYS_eventfd2 => Does::Opens(Opened::Eventfd),
            old::EPOLL_CREATE | libc::SYS_epoll_create1 => Does::Opens(Opened::Epoll),
            libc::SYS_timerfd_create => Does::Opens(Opened::Timerfd),
            old::SIGNALFD | libc::SYS_signalfd4 => Does::Opens(Opened::Signalfd),
            libc::SYS_socket => Does::Opens(Opened::Socket(self.args[0], self.args[1])),
            libc::SYS_dup | old::DUP2 | libc::SYS_dup3 => Does::Opens(Opened::Copy(fd)),
            old::OPEN | libc::SYS_openat | libc::SYS_openat2 => Does::Opens(Opened::Other),
            _ => Does::Else,
        }
    }

    /// How a task waits that sleeps in this call.
    pub fn wait(&self) -> Wait {
        match self.does() {
            Does::Futex(_) => Wait::Futex,
            Does::Epoll => Wait::Epoll,
            Does::Poll => Wait::Poll,
            Does::Select => Wait::Select,
            Does::Reads(_) => Wait::Read,
            Does::Writes(_) => Wait::Write,
            Does::Connects(_) | Does::Opens(Opened::Accepted(_)) => Wait::Connection,
            Does::Sleeps => Wait::Sleep,
            Does::WaitsForSignal => Wait::Signal,
            Does::WaitsForChild => Wait::Child,
            Does::IoUring => Wait::IoUring,
            Does::Signals(_)
            | Does::Ends
            | Does::Executes
            | Does::Restarts
            | Does::Closes(_)
            | Does::Opens(_)
            | Does::Else => Wait::Call { number: self.number },
        }
    }

    /// The descriptor on which a task waits that sleeps in this call, or that it reads or writes.
    pub fn descriptor(&self) -> Option<i32> {
        match self.does() {
            Does::Reads(fd) | Does::Writes(fd) | Does::Connects(fd) => Some(fd),
            Does::Opens(Opened::Accepted(fd)) => Some(fd),
            _ => None,
        }
    }

    /// Whether it asked if there was something to do, and there was nothing, as `value` says.
    pub fn asks(&self, value: i64) -> bool {
        match self.does() {
            Does::Epoll | Does::Poll | Does::Select => value == 0,
            Does::Reads(_) | Does::Opens(Opened::Accepted(_)) => value == -i64::from(libc::EAGAIN),
            _ => self.number == libc::SYS_sched_yield,
        }
    }

    /// Whether it is the same wait as `other`.
    pub fn repeats(&self, other: &Self) -> bool {
        (self.number, self.args[0]) == (other.number, other.args[0])
    }

    /// Its first argument as a descriptor, which the kernel takes from its lower half.
    fn fd(&self) -> i32 {
        self.args[0] as u32 as i32
    }
}

/// What a call returns, seen from inside the kernel, that `restart_syscall` is to go on with:
/// `ERESTART_RESTARTBLOCK` (kernel include/linux/errno.h).
pub const CUT_OFF: i64 = -516;

/// What a new socket is, before its address is known.
pub fn socket(family: u64, kind: u64) -> File {
    /// Flags stand above a socket's type (socket(2)).
    const TYPE: u64 = 0xf;
    let family = match (i32::try_from(family), i32::try_from(kind & TYPE)) {
        (Ok(libc::AF_UNIX), _) => "unix",
        (Ok(libc::AF_INET | libc::AF_INET6), Ok(libc::SOCK_STREAM)) => "tcp",
        (Ok(libc::AF_INET | libc::AF_INET6), Ok(libc::SOCK_DGRAM)) => "udp",
        _ => "socket",
    };
    File::Socket { family: family.to_owned(), address: None }
}

/// Whether a wait that returned `value` ended because its time had run out.
pub fn ran_out(wait: Wait, value: i64) -> bool {
    match wait {
        Wait::Epoll | Wait::Poll | Wait::Select => value == 0,
        Wait::Futex | Wait::IoUring => [-libc::ETIMEDOUT, -libc::ETIME].contains(&(value as i32)),
        Wait::Read | Wait::Write | Wait::Connection | Wait::Signal => value as i32 == -libc::EAGAIN,
        Wait::Sleep | Wait::Child | Wait::Call { .. } | Wait::Elsewhere | Wait::Unseen => false,
    }
}
