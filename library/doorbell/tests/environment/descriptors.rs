// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many descriptors there are, and what becomes of those that are
//! closed behind the library's back.

use super::*;

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// As the pages say it.
pub(crate) fn count_descriptors() {
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

    // Between processes they are there beforehand: memory, one for
    // each bell, socket and what else tells of a death.
    let segment = segment(3);
    let (bells, memory) = (6, 1);
    assert_eq!(open_descriptors(), none + memory + bells);
    let (host, joined) = meet(&segment);
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

/// As a server that starts helpers: forks, closes everything in the
/// child, and runs another program there.
pub(crate) fn close_in_a_child() {
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
pub(crate) fn close_everything() {
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
pub(crate) fn run_without_standard_files(path: &Path) {
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
    let _subscriber = publisher.subscribe_waiting_by::<Adaptive>(WhenSlow::HoldBack).unwrap();
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
    succeeds(me_as(format!("run-without-standard-files {}", path.display())));
}
