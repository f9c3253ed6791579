// SPDX-License-Identifier: MIT OR Apache-2.0
//! What surrounds two processes: users and namespaces, closed descriptors, clocks, full disks, memory cgroups, kinds of memory.
//!
//! The other process is this test program again, started with a role; see `child`. What this machine does not let a test
//! have, the test says.

use doorbell::channel::broadcast::{Publisher, WhenSlow};
use doorbell::channel::{Lanes, Receiver, RecvError, Sender, pair_waiting_by};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{
    Connection, MemoryOptions, Offer, RendezvousError, Segment, Users, inherited, named, socket,
};
use doorbell::wait::{Adaptive, Eventfd, Futex, Semaphore, Spin, Wait, Yield};
use doorbell::{Bell, Deadline, WaitError, wait_any};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit, test_kill_process};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ROLE: &str = "DOORBELL_TEST_ROLE";
/// Longer than any of these tests takes on the slowest machine: running into it is a hang.
const FOREVER: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(5);

/// A child process that is killed and reaped when dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn me_as(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", "child", "--nocapture"]).env(ROLE, role).stdout(Stdio::null());
    command
}

fn succeeds(mut command: Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "it says above why: {status}");
}

/// A path that no other test uses, below a directory that every user can enter.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("doorbell-environment-{}-{name}", std::process::id()))
}

/// Not a test: what the other process does.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (verb, path) = role.split_once(' ').unwrap_or((&role, ""));
    match verb {
        "visit" => visit(Path::new(path)),
        "close-in-a-child" => close_in_a_child(),
        "close-everything" => close_everything(),
        "run-without-standard-files" => run_without_standard_files(Path::new(path)),
        "wait-in-time" => wait_in_time(),
        "wait-by-the-wall-clock" => wait_by_the_wall_clock(),
        "fill-the-disk" => fill_the_disk(Path::new(path)),
        "refuse-huge-pages" => refuse_huge_pages(Path::new(path)),
        "use-a-disk-without-reservations" => use_a_disk_without_reservations(Path::new(path)),
        "make-a-large-segment" => make_a_large_segment(path == "true"),
        "send-until-killed" => send_until_killed(),
        "count-descriptors" => count_descriptors(),
        verb => panic!("no role {verb}"),
    }
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// As the pages say it.
fn count_descriptors() {
    let before = open_descriptors();
    // While a process has an end it has one: the memory in which others see its counters.
    let _kept = doorbell::channel(4096).unwrap();
    let none = open_descriptors();
    assert_eq!(none, before + 1);
    let mut pairs: Vec<_> = (0..2000).map(|_| doorbell::channel(4096).unwrap()).collect();
    let mut bells: Vec<_> = (0..100).map(|_| Bell::new().unwrap()).collect();
    thread::scope(|scope| {
        for ((sender, receiver), bell) in pairs.iter_mut().zip(&mut bells) {
            let ringer = bell.clone();
            scope.spawn(move || {
                thread::sleep(SOON);
                sender.send(b"wake up").unwrap();
                ringer.ring();
            });
            receiver.recv().unwrap();
            bell.wait().unwrap();
        }
    });
    assert_eq!(open_descriptors(), none, "of channels and bells between threads, before and after waits");
    let (sender, receiver) = &mut pairs[0];
    receiver.file().unwrap();
    receiver.listen().unwrap();
    assert_eq!(open_descriptors(), none + 1, "who is asked for one makes one");
    sender.file().unwrap();
    let last = bells.pop().unwrap();
    let clone = last.clone();
    let file = last.into_fd().unwrap();
    assert_eq!(open_descriptors(), none + 3);
    drop((pairs, bells, clone, file));
    assert_eq!(open_descriptors(), none);

    // Between processes they are there beforehand: memory, one for each bell, socket and what else tells of a death.
    let segment = segment(3);
    let (bells, memory) = (6, 1);
    assert_eq!(open_descriptors(), none + memory + bells);
    let (ours, theirs) = socket::pair().unwrap();
    let (host, joined) = thread::scope(|scope| {
        let joining = scope.spawn(|| socket::join_over(theirs).unwrap());
        (socket::host_over(ours, &segment).unwrap(), joining.join().unwrap())
    });
    let pidfds = [&host, &joined].iter().filter(|end| end.peer().pidfd().is_some()).count();
    // The watcher's epoll, and for signals that cannot be made to block, nothing in a memfd.
    let of_the_process = 2;
    let both = 2 * (memory + bells + 1) + pidfds + of_the_process;
    assert_eq!(open_descriptors(), none + both, "{pidfds} pidfds");
    drop((host, joined, segment));
    // A client of a service, on both sides: memory, one for each of four bells, socket.
    let path = scratch("count");
    let mut service = doorbell::listen(&path).unwrap();
    let alone = open_descriptors();
    let mut clients = Vec::new();
    for number in 1..=3 {
        let client = thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut client = doorbell::connect(&path).unwrap();
                client.send(b"hello").unwrap();
                client
            });
            assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"hello");
            client.join().unwrap()
        });
        clients.push(client);
        assert_eq!(open_descriptors(), alone + number * 2 * (1 + 4 + 1));
    }
}

#[test]
fn descriptors_between_threads_are_made_when_they_are_asked_for() {
    let few = || {
        let few = Rlimit { current: Some(64), maximum: Some(64) };
        Ok(setrlimit(Resource::Nofile, few)?)
    };
    let mut command = me_as("count-descriptors");
    // SAFETY: it makes a system call and allocates nothing.
    unsafe { command.pre_exec(few) };
    succeeds(command);
}

fn segment(lanes: u32) -> Arc<Segment> {
    let lanes = Lanes::new(lanes, lanes, 4096).unwrap();
    Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap())
}

/// Moves what `command` starts into namespaces of its own; `flags` are those of unshare(2). Where this process is not
/// root, into a user namespace too, in which it is.
fn unshare(command: &mut Command, flags: libc::c_int) {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let maps = [format!("0 {user} 1"), format!("0 {group} 1")];
    let as_root = user == 0;
    // SAFETY: system calls only, which are async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            if !as_root {
                of_libc(libc::unshare(libc::CLONE_NEWUSER))?;
                for (file, text) in [("setgroups", "deny"), ("uid_map", &maps[0]), ("gid_map", &maps[1])] {
                    let directory = rustix::fs::open("/proc/self", OFlags::PATH, Mode::empty())?;
                    let file = rustix::fs::openat(directory, file, OFlags::WRONLY, Mode::empty())?;
                    rustix::io::write(file, text.as_bytes())?;
                }
            }
            of_libc(libc::unshare(flags))
        });
    }
}

fn of_libc(result: libc::c_int) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Does `error` say that this process may not, or has as many as it may have? Anything else is a fault of the test's.
fn is_not_allowed(error: &std::io::Error) -> bool {
    use libc::{EACCES, ENOSPC, EPERM, EROFS};
    matches!(error.raw_os_error(), Some(EPERM | EACCES | ENOSPC | EROFS))
}

/// Starts it, or says why this machine does not let it have its environment.
fn start_if_allowed(command: &mut Command) -> Option<Other> {
    match command.spawn() {
        Ok(child) => Some(Other(child)),
        Err(error) if is_not_allowed(&error) => {
            doorbell_skipped::skip(format_args!("this process may not have namespaces of its own: {error}"));
            None
        }
        Err(error) => panic!("not started: {error}"),
    }
}

/// How it ended. A hang is found.
fn end_of(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < FOREVER, "hung");
        thread::sleep(Duration::from_millis(1));
    }
}

/// In a container, as it looks from inside: the first process of its PID namespace, and another user.
fn visit(path: &Path) {
    assert_eq!(std::process::id(), 1, "it has a PID namespace of its own");
    let connection = doorbell::rendezvous::Join::default().host(Users::Anyone).at(path).unwrap();
    assert_eq!(connection.peer().id().pid, 0, "the host has no number in here");
    let mut bell: Bell<Futex> = connection.bell_waiting_by(0).unwrap();
    let mut requests: Receiver<_, Eventfd> = Receiver::attach_waiting_by(&connection, 0).unwrap();
    let mut answers: Sender<_, Futex> = Sender::attach_waiting_by(&connection, 1).unwrap();
    answers.send(b"here").unwrap();
    bell.wait().unwrap();
    answers.send(b"heard").unwrap();
    loop {
        let request = requests.recv().unwrap().to_vec();
        answers.send(&request).unwrap();
    }
}

#[test]
fn a_process_of_another_user_in_other_namespaces_is_met_rung_answers_and_is_told_of_when_it_is_killed() {
    let directory = scratch("container");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).unwrap();
    let path = directory.join("socket");
    // Whoever may write the socket may join.
    let host = socket::Host::bind_for(&path, Users::Anyone, 0o777).unwrap();
    // Another user need not be allowed to walk to where this machine has its temporary files, nor this program.
    let way = rustix::fs::open(&directory, OFlags::PATH, Mode::empty()).unwrap();
    let program = rustix::fs::open("/proc/self/exe", OFlags::PATH, Mode::empty()).unwrap();
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(["--exact", "child", "--nocapture"]).stdout(Stdio::null());
    command.env(ROLE, format!("visit /proc/self/fd/{}/socket", way.as_raw_fd()));
    unshare(&mut command, libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNET | libc::CLONE_NEWUTS);
    let as_root = rustix::process::getuid().is_root();
    if !as_root {
        doorbell_skipped::skip("only root can be another user");
    }
    // SAFETY: system calls only, which are async-signal-safe; the one that waits touches no memory of the parent's.
    unsafe {
        command.pre_exec(move || {
            // The first process of the new PID namespace is the next that is forked. This one waits for it, with none of
            // the descriptors, of which one tells the test that the program was started.
            let first = libc::fork();
            if first > 0 {
                libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
                libc::waitpid(first, std::ptr::null_mut(), 0);
                libc::_exit(0);
            }
            of_libc(first)?;
            if as_root {
                const NOBODY: u32 = 65534;
                of_libc(libc::setgroups(0, std::ptr::null()))?;
                of_libc(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
                of_libc(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
            }
            of_libc(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))
        });
    }
    if let Some(outer) = start_if_allowed(&mut command) {
        converse_in_the_container(&host, outer);
    }
    drop(host);
    fs::remove_dir(directory).unwrap();
}

fn converse_in_the_container(host: &socket::Host, mut outer: Other) {
    let segment = segment(2);
    let begun = Instant::now();
    let connection: Connection = loop {
        assert!(outer.0.try_wait().unwrap().is_none(), "it says above why");
        assert!(begun.elapsed() < FOREVER, "hung");
        let soon = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        if poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&soon)).unwrap() == 0 {
            continue;
        }
        match host.accept(&segment) {
            // It has not said anything yet, on a busy machine.
            Err(RendezvousError::NoAnswer(_)) => {}
            result => break result.unwrap(),
        }
    };
    let gone = connection.peer().id();
    assert!(gone.pid > 1, "it has another number out here");
    let mut requests: Sender = Sender::attach(&connection, 0).unwrap();
    let mut answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    assert_eq!(answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec(), b"here");
    connection.bell_waiting_by::<Futex>(0).unwrap().ring();
    assert_eq!(answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec(), b"heard");
    for number in 0..200_u64 {
        requests.send_timeout(&number.to_ne_bytes(), FOREVER).unwrap();
        let answer = answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec();
        assert_eq!(answer, number.to_ne_bytes());
    }
    kill_process(Pid::from_raw(gone.pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    let told = answers.recv_timeout(FOREVER).map(|message| message.is_some());
    assert_eq!(told, Err(RecvError::PeerGone(gone)));
}

fn close_range(first: libc::c_uint) {
    // SAFETY: nothing that is used afterwards has a descriptor that is closed.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    assert_eq!(closed, 0);
}

/// A process that is killed when this is dropped.
struct Helper(Pid);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// As a server that starts helpers: forks, closes everything in the child, and runs another program there.
fn close_in_a_child() {
    let connection: Connection = inherited::join().unwrap();
    let mut requests: Receiver = Receiver::attach(&connection, 0).unwrap();
    let mut answers: Sender = Sender::attach(&connection, 1).unwrap();
    let (closed, held) = rustix::pipe::pipe().unwrap();
    // SAFETY: the child makes system calls and runs another program.
    let helper = unsafe { libc::fork() };
    if helper == 0 {
        close_range(3);
        let program = [c"sleep".as_ptr(), c"600".as_ptr(), std::ptr::null()];
        // SAFETY: a list of strings that ends with a null.
        unsafe { libc::execvp(program[0], program.as_ptr()) };
        // SAFETY: no precondition.
        unsafe { libc::_exit(1) };
    }
    // If this process fails. The helper is to outlive it otherwise: it is killed.
    let _helper = Helper(Pid::from_raw(helper).unwrap());
    drop(held);
    assert_eq!(rustix::io::read(&closed, &mut [0; 1]), Ok(0), "the helper has closed its copies");
    answers.send(&helper.to_ne_bytes()).unwrap();
    loop {
        let request = requests.recv().unwrap().to_vec();
        answers.send(&request).unwrap();
    }
}

#[test]
fn a_helper_whose_copies_close_range_closed_is_no_death_and_hides_none() {
    let segment = segment(2);
    let (connection, mut other) = start::<doorbell::peer::Untrusted>("close-in-a-child", &segment);
    let mut requests: Sender = Sender::attach(&connection, 0).unwrap();
    let mut answers: Receiver = Receiver::attach(&connection, 1).unwrap();
    let helper = answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec();
    let helper = Helper(Pid::from_raw(i32::from_ne_bytes(helper.try_into().unwrap())).unwrap());
    for number in 0..200_u64 {
        requests.send_timeout(&number.to_ne_bytes(), FOREVER).unwrap();
        let answer = answers.recv_timeout(FOREVER).unwrap().expect("hung").to_vec();
        assert_eq!(answer, number.to_ne_bytes(), "closing there took nothing away here");
    }
    other.0.kill().unwrap();
    let told = answers.recv_timeout(FOREVER).map(|message| message.is_some());
    let helper_lives = test_kill_process(helper.0).is_ok();
    assert_eq!(told, Err(RecvError::PeerGone(connection.peer().id())));
    assert!(helper_lives, "it was the server's death that was told");
}

fn start<T: doorbell::peer::Trust>(role: &str, segment: &Arc<Segment>) -> (Connection<T>, Other) {
    let mut command = me_as(role);
    command.stdin(Stdio::piped());
    let offer = inherited::offer(&mut command).unwrap();
    let child = Other(command.spawn().unwrap());
    // SAFETY: this program, in another role.
    let connection = unsafe { offer.meet_as(segment, child.0.id()) }.unwrap();
    (connection, child)
}

/// As a program that makes a daemon of itself too late.
fn close_everything() {
    // SAFETY: a process or thread of this program, which follows the protocol.
    let connection: Connection<Trusted> = unsafe { doorbell::rendezvous::Join::of() }.inherited().unwrap();
    let mut futex: Bell<Futex> = connection.bell_waiting_by(0).unwrap();
    let mut eventfd: Bell<Eventfd> = connection.bell_waiting_by(0).unwrap();
    assert_eq!(eventfd.wait_timeout(SOON), Ok(None));
    close_range(3);
    // What is left of it hangs nowhere and panics nowhere, until its parent has been told.
    let parent = thread::spawn(|| std::io::stdin().read_line(&mut String::new()).unwrap());
    while !parent.is_finished() {
        connection.bell_waiting_by::<Adaptive>(1).unwrap().ring();
        assert_eq!(futex.wait_timeout(SOON), Ok(None));
        assert!(matches!(eventfd.wait_timeout(SOON), Ok(None) | Err(WaitError::Os { .. })));
    }
    // Its descriptors are closed already.
    // SAFETY: no precondition.
    unsafe { libc::_exit(0) };
}

#[test]
fn a_process_that_closes_everything_behind_the_librarys_back_has_gone_for_its_peer_and_does_not_hang() {
    let segment = Arc::new(Segment::new(&Offer::default()).unwrap());
    let mut bell: Bell<Futex> = segment.bell_waiting_by(1).unwrap();
    let (connection, mut other) = start::<Trusted>("close-everything", &segment);
    let told = loop {
        match bell.wait_timeout(FOREVER) {
            Ok(rings) => assert!(rings.is_some(), "hung"),
            Err(error) => break error,
        }
    };
    assert_eq!(told, WaitError::PeerGone(connection.peer().id()));
    assert!(other.0.try_wait().unwrap().is_none(), "it was told while the process lived");
    drop(other.0.stdin.take());
    assert!(other.0.wait().unwrap().success());
}

/// What a daemon does that has closed the three, and what its library does then.
fn run_without_standard_files(path: &Path) {
    let said = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
    for number in 0..3 {
        // SAFETY: nothing of this program keeps them.
        unsafe { libc::close(number) };
    }
    let (mut sender, mut receiver) = doorbell::channel(4096).unwrap();
    sender.file().unwrap();
    receiver.file().unwrap();
    let mut service = doorbell::listen(path).unwrap();
    let mut publisher: Publisher = Publisher::new(4096).unwrap();
    let _subscriber = publisher.subscribe::<Adaptive>(WhenSlow::HoldBack).unwrap();
    let (ours, theirs) = socket::pair().unwrap();
    let client = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut client = doorbell::connect(path).unwrap();
            client.send(b"hello").unwrap();
            client
        });
        assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"hello");
        client.join().unwrap()
    });
    let taken: Vec<_> =
        (0..3).filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok()).collect();
    // SAFETY: for whoever reads what fails.
    unsafe { libc::dup2(said.as_raw_fd(), 2) };
    // The look itself has the first free one.
    let taken: Vec<_> = taken.iter().filter(|file| !file.starts_with("/proc")).collect();
    assert!(taken.is_empty(), "what is printed goes into a file of the library: {taken:?}");
    drop((client, ours, theirs));
}

/// A process that had closed its standard output had a segment there, and printed over it.
#[test]
fn no_file_of_the_library_takes_the_number_of_a_standard_one_that_is_closed() {
    let path = scratch("standard");
    succeeds(me_as(&format!("run-without-standard-files {}", path.display())));
}

/// Kills this process when a thread of it begins a sleep that a step of the wall clock would stretch or cut short.
fn forbid_sleeps_by_the_wall_clock() {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
    const LOAD: u16 = (BPF_LD | BPF_W | BPF_ABS) as u16;
    const IF_EQUAL: u16 = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
    const IF_SET: u16 = (BPF_JMP | BPF_JSET | BPF_K) as u16;
    const RETURN: u16 = (BPF_RET | BPF_K) as u16;
    /// Where `struct seccomp_data` has the low half of an argument, on a little-endian machine.
    fn argument(number: u32) -> u32 {
        16 + 8 * number
    }
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let number = |call: libc::c_long| u32::try_from(call).unwrap();
    let realtime = u32::try_from(libc::CLOCK_REALTIME).unwrap();
    let mut filter = Vec::new();
    // Each rule: is it this call, is there a time at all, and does that argument name the wall clock? Then kill. (glibc
    // names it for sleeps without a time.)
    for (call, time, clock, code, value) in [
        (libc::SYS_futex, 3, 1, IF_SET, u32::try_from(libc::FUTEX_CLOCK_REALTIME).unwrap()),
        (libc::SYS_futex_waitv, 3, 4, IF_EQUAL, realtime),
        (libc::SYS_clock_nanosleep, 2, 0, IF_EQUAL, realtime),
    ] {
        filter.push(step(LOAD, 0, 0, 0));
        filter.push(step(IF_EQUAL, number(call), 0, 5));
        filter.push(step(LOAD, argument(time), 0, 0));
        filter.push(step(IF_EQUAL, 0, 3, 0));
        filter.push(step(LOAD, argument(clock), 0, 0));
        filter.push(step(code, value, 0, 1));
        filter.push(step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog { len: filter.len().try_into().unwrap(), filter: filter.as_mut_ptr() };
    // SAFETY: a program of that many steps, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

fn wait_by_the_wall_clock() {
    forbid_sleeps_by_the_wall_clock();
    let (word, until) = (0_u32, libc::timespec { tv_sec: 1, tv_nsec: 0 });
    // As glibc's `sem_timedwait` does it. SAFETY: a word and a time of this function's own, which is past.
    unsafe {
        let call = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
        libc::syscall(libc::SYS_futex, &raw const word, call, 0, &raw const until, 0, u32::MAX);
    }
}

fn wait_in_time() {
    forbid_sleeps_by_the_wall_clock();
    fn bell<W: Wait + Default>() {
        let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
        assert_eq!(bell.wait_timeout(SOON), Ok(None));
        let (mut sender, mut receiver) = pair_waiting_by::<W, W>(64).unwrap();
        assert!(receiver.recv_timeout(SOON).unwrap().is_none());
        while sender.try_send(&[0; 16]).is_ok() {}
        assert!(sender.send_timeout(&[0; 16], SOON).is_err());
    }
    bell::<Adaptive>();
    bell::<Futex>();
    bell::<Eventfd>();
    bell::<Semaphore>();
    bell::<Spin>();
    bell::<Yield>();
    let deadline = || Some(Deadline::after(SOON));
    let mut bells: [Bell<Futex>; 2] = std::array::from_fn(|_| Bell::new().unwrap().waiting_by());
    assert_eq!(wait_any(&mut bells.each_mut(), deadline()), Ok(None));
    let mut bells: [Bell<Eventfd>; 2] = std::array::from_fn(|_| Bell::new().unwrap().waiting_by());
    assert_eq!(wait_any(&mut bells.each_mut(), deadline()), Ok(None));
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(64).unwrap();
    let _subscriber = publisher.subscribe::<Futex>(WhenSlow::HoldBack).unwrap();
    while publisher.publish_deadline(&[0; 8], deadline()).is_ok() {}
    // A rendezvous waits for its answer, too.
    let (ours, theirs) = socket::pair().unwrap();
    let leaving = thread::spawn(move || {
        thread::sleep(SOON);
        drop(theirs);
    });
    // SAFETY: a process or thread of this program, which follows the protocol.
    assert!(unsafe { doorbell::rendezvous::Join::<Trusted>::of() }.over(ours).is_err());
    leaving.join().unwrap();
}

/// A step of the wall clock cannot be tried without taking it from everybody on the machine. That nothing sleeps by it can.
/// (`wait::IoUring` names no clock, and the kernel's own choice is not seen in its calls.)
#[test]
fn no_wait_with_a_deadline_sleeps_by_the_wall_clock_which_may_be_set() {
    let caught = me_as("wait-by-the-wall-clock").status().unwrap();
    assert_eq!(caught.signal(), Some(libc::SIGSYS), "such a sleep is caught: {caught}");
    succeeds(me_as("wait-in-time"));
}

/// Mounts a file system of its own at `path`, which only this process sees.
fn mount(path: &Path, kind: &str, options: &str) {
    let [path, kind, options] =
        [path.to_str().unwrap(), kind, options].map(|text| std::ffi::CString::new(text).unwrap());
    // SAFETY: strings that end with a zero byte.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let null = std::ptr::null();
        of_libc(libc::mount(null, c"/".as_ptr(), null, private, null.cast())).unwrap();
        let options = options.as_ptr().cast();
        of_libc(libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, options)).unwrap();
    }
}

fn entries(path: &Path) -> usize {
    fs::read_dir(path).unwrap().count()
}

fn offer(payload: u64) -> Offer {
    Offer { eventfds: 0, payload, ..Offer::default() }
}

fn fill_the_disk(path: &Path) {
    mount(path, "tmpfs", "size=64k");
    let full = |result: Result<named::Owner, RendezvousError>| {
        let told = result.map(drop).unwrap_err();
        assert_eq!(told, RendezvousError::Os { call: "fallocate", errno: Errno::NOSPC });
    };
    // More than fits, though the first page would.
    // SAFETY: a process or thread of this program, which follows the protocol.
    full(unsafe { named::Owner::new(path.join("name"), &offer(1 << 20)) });
    assert_eq!(entries(path), 0, "nothing is left of it");
    let mut rest = fs::File::create(path.join("rest")).unwrap();
    while rest.write_all(&[1; 4096]).is_ok() {}
    // SAFETY: a process or thread of this program, which follows the protocol.
    full(unsafe { named::Owner::new(path.join("name"), &offer(0)) });
    assert_eq!(entries(path), 1, "nothing is left of it");
    drop(rest);
    fs::remove_file(path.join("rest")).unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let owner = unsafe { named::Owner::new(path.join("name"), &offer(32 << 10)) }.unwrap();
    // Every page of it is there, though the rest of the disk is full again.
    let mut rest = fs::File::create(path.join("rest")).unwrap();
    while rest.write_all(&[1; 4096]).is_ok() {}
    owner.segment().payload().write(0, &[1; 32 << 10]).unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let joined = unsafe { named::join(path.join("name")) }.unwrap();
    joined.segment().bell_waiting_by::<Futex>(0).unwrap().ring();
}

fn use_a_disk_without_reservations(path: &Path) {
    mount(path, "ramfs", "");
    // SAFETY: a process or thread of this program, which follows the protocol.
    let owner = unsafe { named::Owner::new(path.join("name"), &offer(100_000)) }.unwrap();
    // SAFETY: a process or thread of this program, which follows the protocol.
    let joined = unsafe { named::join(path.join("name")) }.unwrap();
    let mut bell: Bell<Futex> = owner.segment().bell_waiting_by(0).unwrap();
    joined.segment().bell_waiting_by::<Futex>(0).unwrap().ring();
    assert_eq!(bell.try_wait().map(u32::from), Some(1));
    let file = fs::metadata(path.join("name")).unwrap();
    let room = 512 * std::os::unix::fs::MetadataExt::blocks(&file);
    assert!(room >= file.len(), "{room} of {} bytes have their room", file.len());
}

fn refuse_huge_pages(path: &Path) {
    mount(path, "hugetlbfs", "");
    // SAFETY: a process or thread of this program, which follows the protocol.
    let refused = unsafe { named::Owner::new(path.join("name"), &offer(0)) }.unwrap_err();
    assert_eq!(refused, RendezvousError::Os { call: "fallocate(hugetlbfs)", errno: Errno::OPNOTSUPP });
    assert_eq!(entries(path), 0, "nothing is left of it");
}

/// Runs `role` with a directory of its own in a mount namespace of its own.
fn on_a_disk_of_its_own(role: &str) {
    let path = scratch(role);
    fs::create_dir(&path).unwrap();
    let mut command = me_as(&format!("{role} {}", path.display()));
    unshare(&mut command, libc::CLONE_NEWNS);
    if let Some(mut other) = start_if_allowed(&mut command) {
        let status = end_of(&mut other.0);
        assert!(status.success(), "it says above why: {status}");
    }
    fs::remove_dir(&path).unwrap();
}

/// The first touch of a page for which the disk had no room was a SIGBUS.
#[test]
fn a_name_on_a_full_disk_is_refused_and_one_that_was_had_has_all_its_room() {
    on_a_disk_of_its_own("fill-the-disk");
}

/// Such a file took any size, and its mapping could not be unmapped.
#[test]
fn a_name_in_huge_pages_is_refused() {
    if rustix::process::getuid().is_root() {
        on_a_disk_of_its_own("refuse-huge-pages");
    } else {
        doorbell_skipped::skip("only root mounts hugetlbfs");
    }
}

#[test]
fn a_name_can_be_had_where_the_disk_knows_no_reservations() {
    on_a_disk_of_its_own("use-a-disk-without-reservations");
}

/// A memory cgroup below this process's own. Removed when dropped, empty by then.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None`, with the reason said, if this process may not have one.
    fn new(most: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = |kind: &str, option: &str| {
            let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            mounts.find(|mount| mount[2] == kind && mount[3].contains(option)).map(|mount| mount[1])
        };
        // Version 1 has a tree for memory alone, version 2 one for all.
        let (line, mount, limit) = match groups.lines().find(|line| line.contains(":memory:")) {
            Some(line) => (line, at("cgroup", "memory"), "memory.limit_in_bytes"),
            None => (
                groups.lines().find(|line| line.starts_with("0::")).unwrap(),
                at("cgroup2", ""),
                "memory.max",
            ),
        };
        let own = line.rsplit(':').next().unwrap().trim_start_matches('/');
        let Some(mount) = mount else {
            doorbell_skipped::skip("no memory cgroups are mounted");
            return None;
        };
        // Several tests have one at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("doorbell-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let group = Path::new(mount).join(own).join(name);
        let mut swap_is_limited = false;
        let limited = fs::create_dir(&group).map(|()| Self(group)).and_then(|group| {
            fs::write(group.0.join(limit), most.to_string())?;
            for (swap, most) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", most)] {
                swap_is_limited |= fs::write(group.0.join(swap), most.to_string()).is_ok();
            }
            Ok(group)
        });
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        match limited {
            Ok(_) if !swap_is_limited && swaps.lines().count() > 1 => {
                doorbell_skipped::skip("this kernel does not count what of a memory cgroup is in swap");
                None
            }
            Ok(group) => Some(group),
            // Version 2 allows no limit in a group below one that has processes of its own, but at the root.
            Err(error) if is_not_allowed(&error) => {
                doorbell_skipped::skip(format_args!(
                    "this process may not have a memory cgroup below its own: {error}"
                ));
                None
            }
            Err(error) => panic!("no memory cgroup: {error}"),
        }
    }

    fn hold(&self, command: &mut Command) {
        let members = self.0.join("cgroup.procs");
        // SAFETY: system calls only, which are async-signal-safe; the path takes no memory that is not there.
        unsafe {
            command.pre_exec(move || {
                let file = rustix::fs::open(members.as_path(), OFlags::WRONLY, Mode::empty())?;
                rustix::io::write(file, b"0")?;
                Ok(())
            });
        }
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The kernel may be counting the last member still.
        for _ in 0..1000 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What a memory cgroup may have in which a process of ours runs, but no large segment.
const LITTLE: u64 = 48 << 20;

fn send_until_killed() {
    let connection: Connection = inherited::join().unwrap();
    let mut sender: Sender = Sender::attach(&connection, 0).unwrap();
    let mut message = vec![0; 1 << 16];
    for number in 0_u64.. {
        message[..8].copy_from_slice(&number.to_ne_bytes());
        message[(1 << 16) - 8..].copy_from_slice(&number.to_ne_bytes());
        sender.send(&message).unwrap();
    }
}

/// The pages of a ring are counted where they are touched first.
#[test]
fn a_sender_killed_by_its_full_memory_cgroup_is_told_of_behind_its_last_message() {
    let Some(group) = MemoryGroup::new(LITTLE) else { return };
    let lanes = Lanes::new(1, 1, 4 * LITTLE).unwrap();
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap());
    let mut command = me_as("send-until-killed");
    group.hold(&mut command);
    let offer = inherited::offer(&mut command).unwrap();
    let mut child = Other(command.spawn().unwrap());
    let connection: Connection = offer.meet(&segment, child.0.id()).unwrap();
    assert_eq!(end_of(&mut child.0).signal(), Some(libc::SIGKILL), "the kernel killed it");
    let mut receiver: Receiver = Receiver::attach(&connection, 0).unwrap();
    let (mut next, mut bytes) = (0_u64, Vec::new());
    let told = loop {
        match receiver.recv_timeout(FOREVER) {
            Ok(message) => message.expect("hung").copy_to_vec(&mut bytes),
            Err(error) => break error,
        }
        let at = |from: usize| u64::from_ne_bytes(bytes[from..from + 8].try_into().unwrap());
        assert_eq!((bytes.len(), at(0), at((1 << 16) - 8)), (1 << 16, next, next));
        next += 1;
    };
    assert_eq!(told, RecvError::PeerGone(connection.peer().id()));
    assert!(next > 0 && next << 16 < LITTLE, "{next} messages");
}

/// Makes a segment for which its memory cgroup is too small, says when it has it, and uses all of it.
fn make_a_large_segment(populated: bool) {
    let memory = MemoryOptions { populated, ..MemoryOptions::default() };
    let segment = Segment::new(&Offer { payload: 4 * LITTLE, memory, ..Offer::default() }).unwrap();
    println!("made, without {} wishes", segment.refused().len());
    (0..4 * LITTLE).step_by(4096).for_each(|page| segment.payload().write(page, &[1]).unwrap());
}

/// What the kernel says of the memory of `segment`, in `file` of this process in /proc.
fn kernels_word(file: &str, segment: &Segment) -> Vec<String> {
    let header = std::ptr::from_ref(segment.state(0).unwrap().record()) as usize - 128;
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let start = format!("{header:x}");
    let is_header =
        |line: &&str| line.starts_with(|first: char| first.is_ascii_hexdigit() && !first.is_uppercase());
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let first = lines.next().expect("the segment is mapped").to_owned();
    std::iter::once(first).chain(lines.take_while(|line| !is_header(line)).map(str::to_owned)).collect()
}

/// A number of smaps, in bytes.
fn bytes(segment: &Segment, name: &str) -> u64 {
    let lines = kernels_word("smaps", segment);
    let line = lines.iter().find(|line| line.starts_with(name)).expect("smaps has it");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A segment with this wish alone, if it was granted, and one without any.
fn with_and_without(memory: MemoryOptions) -> Option<(Segment, Segment)> {
    let make = |memory| Segment::new(&Offer { payload: 4 << 20, memory, ..Offer::default() }).unwrap();
    let segment = make(memory);
    if let Some(refusal) = segment.refused().first() {
        doorbell_skipped::skip(refusal);
        return None;
    }
    Some((segment, make(MemoryOptions::default())))
}

#[test]
fn memory_that_is_wished_to_be_there_from_the_start_is() {
    let populated = MemoryOptions { populated: true, ..MemoryOptions::default() };
    let (with, without) = with_and_without(populated).expect("Linux 5.14 has it");
    assert_eq!(bytes(&with, "Rss:"), bytes(&with, "Size:"));
    assert!(bytes(&without, "Rss:") < bytes(&without, "Size:"), "else this shows nothing");
}

#[test]
fn memory_that_is_wished_to_be_locked_is() {
    let locked = MemoryOptions { locked: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(locked) else { return };
    assert_eq!(bytes(&with, "Locked:"), bytes(&with, "Size:"));
    assert_eq!(bytes(&without, "Locked:"), 0);
}

#[test]
fn memory_that_is_wished_on_a_node_is_bound_to_it() {
    let bound = MemoryOptions { numa_node: Some(0), populated: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(bound) else { return };
    let policy = |segment| kernels_word("numa_maps", segment)[0].split(' ').nth(1).unwrap().to_owned();
    assert_eq!(policy(&with), "bind:0");
    assert_eq!(policy(&without), "default");
}

#[test]
fn memory_that_is_wished_in_huge_pages_is() {
    let huge = MemoryOptions { huge_pages: true, ..MemoryOptions::default() };
    let Some((with, without)) = with_and_without(huge) else { return };
    assert_eq!(bytes(&with, "KernelPageSize:"), 2 << 20);
    assert_eq!(bytes(&without, "KernelPageSize:"), 4096);
}

/// The kernel kills for it, and gives no error: better before there is any traffic.
#[test]
fn a_memory_cgroup_too_small_for_a_segment_ends_its_maker_at_once_if_it_wished_for_all_of_it_and_later_if_not()
 {
    for populated in [true, false] {
        let Some(group) = MemoryGroup::new(LITTLE) else { return };
        let mut command = me_as(&format!("make-a-large-segment {populated}"));
        group.hold(&mut command);
        let output = command.stdout(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.contains("made, without 0 wishes"), !populated, "{said}");
        assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    }
}
