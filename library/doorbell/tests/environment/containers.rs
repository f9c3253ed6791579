// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another user, in namespaces of its own.

use super::*;

/// In a container, as it looks from inside: the first process of its
/// PID namespace, and another user.
pub(crate) fn visit(path: &Path) {
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
    // Another user need not be allowed to walk to where this machine
    // has its temporary files, nor this program.
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
    // SAFETY: system calls only, which are async-signal-safe; the one
    // that waits touches no memory of the parent's.
    unsafe {
        command.pre_exec(move || {
            // The first process of the new PID namespace is the next that is
            // forked. This one waits for it, with none of the descriptors,
            // of which one tells the test that the program was started.
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
