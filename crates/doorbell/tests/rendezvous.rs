// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two processes: rendezvous, ringing, dying, stopping, forking, lying.
//!
//! The other process is this test program again, started with a role; see `child`.

use doorbell::peer::{Trusted, Untrusted};
use doorbell::rendezvous::{
    Connection, MOST_EVENTFDS, Offer, RendezvousError, Segment, inherited, named, socket,
};
use doorbell::wait::{Adaptive, Eventfd, Futex, Semaphore, Wait, Yield};
use doorbell::{Bell, PeerViolation, WaitError, counters};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const ROLE: &str = "DOORBELL_TEST_ROLE";
const SOON: Duration = Duration::from_millis(20);
/// Longer than any of these tests takes on the slowest machine: running into it is a hang.
const FOREVER: Duration = Duration::from_secs(60);

const TO_CHILD: u32 = 0;
const TO_PARENT: u32 = 1;

fn me_as(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(ROLE, role).stdout(Stdio::null());
    command
}

/// A child process that is killed and reaped when dropped.
struct Other(Child);

impl Other {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(role: &str, segment: &Arc<Segment>) -> (Connection<Trusted>, Other) {
    let mut command = me_as(role);
    let offer = inherited::offer(&mut command).unwrap();
    let child = Other(command.spawn().unwrap());
    // SAFETY: this program, in another role.
    let connection = unsafe { offer.meet_as(segment, child.0.id()) }.unwrap();
    (connection, child)
}

fn segment() -> Arc<Segment> {
    Arc::new(Segment::new(&Offer::default()).unwrap())
}

/// Not a test: what the other process does.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if let Some(path) = role.strip_prefix("own ") {
        // SAFETY: a process or thread of this program, which follows the protocol.
        let owner = unsafe { named::Owner::new(path, &Offer { eventfds: 0, ..Offer::default() }) }.unwrap();
        let mut bell: Bell = owner.segment().bell_waiting_by(TO_CHILD).unwrap();
        let answer: Bell = owner.segment().bell_waiting_by(TO_PARENT).unwrap();
        loop {
            bell.wait().unwrap();
            answer.ring();
        }
    }
    if let Some(path) = role.strip_prefix("join and leave ") {
        let entries = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
        // SAFETY: a process or thread of this program, which follows the protocol.
        drop(unsafe { named::join(path) }.unwrap());
        let before = (entries("task"), entries("fd"));
        for _ in 0..50 {
            // SAFETY: a process or thread of this program, which follows the protocol.
            drop(unsafe { named::join(path) }.unwrap());
        }
        assert_eq!((entries("task"), entries("fd")), before);
        return;
    }
    if role == "kill a hundred" {
        return kill_a_hundred();
    }
    // SAFETY: a process or thread of this program, which follows the protocol.
    let connection: Connection<Trusted> = unsafe { doorbell::rendezvous::Join::of() }.inherited().unwrap();
    match role.as_str() {
        "serve adaptive" => serve::<Adaptive>(&connection),
        "serve eventfd" => serve::<Eventfd>(&connection),
        "serve futex" => serve::<Futex>(&connection),
        "serve semaphore" => serve::<Semaphore>(&connection),
        "serve yield" => serve::<Yield>(&connection),
        "take the bits and die" => {
            let state = connection.segment().state(TO_PARENT).unwrap();
            while !state.record().wake.has_sleepers() {
                thread::yield_now();
            }
            let duty = state.record().wake.announce();
            assert!(!duty.is_empty());
            std::process::abort();
        }
        "exec" => {
            use std::os::unix::process::CommandExt;
            panic!("{}", Command::new("sleep").arg("60").env_remove(ROLE).exec());
        }
        role => panic!("no role {role}"),
    }
}

/// Answers every ring until the parent goes.
fn serve<W: Wait + Default>(connection: &Connection<Trusted>) {
    let mut bell: Bell<W> = connection.bell_waiting_by(TO_CHILD).unwrap();
    let answer: Bell = connection.bell_waiting_by(TO_PARENT).unwrap();
    // The parent may have rung before this handle was made: one answer for it. A spare one does no harm.
    answer.ring();
    while let Ok(rings) = bell.wait() {
        for _ in 0..rings.get() {
            answer.ring();
        }
    }
}

fn wait<W: Wait>(bell: &mut Bell<W>) -> Result<u32, WaitError> {
    bell.wait_timeout(FOREVER).map(|rings| rings.expect("hung").get())
}

fn ping_pong<W: Wait + Default>(role: &str) {
    let segment = segment();
    let mut bell: Bell<W> = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, _child) = start(role, &segment);
    assert_eq!(wait(&mut bell), Ok(1), "the child is ready");
    let ring: Bell = connection.bell_waiting_by(TO_CHILD).unwrap();
    for _ in 0..2000 {
        ring.ring();
        assert_eq!(wait(&mut bell), Ok(1));
    }
}

#[test]
fn adaptive_processes_answer_each_other() {
    ping_pong::<Adaptive>("serve adaptive");
}

#[test]
fn eventfd_processes_answer_each_other() {
    ping_pong::<Eventfd>("serve eventfd");
}

#[test]
fn futex_processes_answer_each_other() {
    ping_pong::<Futex>("serve futex");
}

#[test]
fn semaphore_processes_answer_each_other() {
    ping_pong::<Semaphore>("serve semaphore");
}

#[test]
fn a_yielding_and_an_eventfd_process_answer_each_other() {
    ping_pong::<Yield>("serve eventfd");
}

fn a_killed_peer_is_told<W: Wait + Default>() {
    let segment = segment();
    let mut bell: Bell<W> = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, child) = start("serve futex", &segment);
    assert_eq!(wait(&mut bell), Ok(1));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| wait(&mut bell));
        thread::sleep(SOON);
        child.signal(Signal::KILL);
        assert_eq!(sleeper.join().unwrap(), Err(WaitError::PeerGone(connection.peer().id())));
    });
    assert_eq!(connection.peer().id().pid, child.0.id());
    assert_eq!(
        wait(&mut bell),
        Err(WaitError::PeerGone(connection.peer().id())),
        "nobody is left: told again"
    );
}

#[test]
fn a_futex_waiter_is_told_of_a_killed_peer() {
    a_killed_peer_is_told::<Futex>();
}

#[test]
fn an_adaptive_waiter_is_told_of_a_killed_peer() {
    a_killed_peer_is_told::<Adaptive>();
}

#[test]
fn an_eventfd_waiter_is_told_of_a_killed_peer() {
    a_killed_peer_is_told::<Eventfd>();
}

#[test]
fn a_semaphore_waiter_is_told_of_a_killed_peer() {
    a_killed_peer_is_told::<Semaphore>();
}

/// An eventfd's flags are shared with everybody who has it, and a write to a full one blocks.
#[test]
fn a_peer_that_makes_the_eventfd_block_and_fills_it_does_not_hold_up_a_ring() {
    let segment = segment();
    let (ours, theirs) = socket::pair().unwrap();
    let joining = thread::spawn(move || socket::join_over(theirs).unwrap());
    let connection: Connection<Untrusted> = socket::host_over(ours, &segment).unwrap();
    let hostile: Connection<Untrusted> = joining.join().unwrap();
    // Takes a waiter slot and arms, as an event loop does.
    let mut file = hostile.bell_waiting_by::<Futex>(TO_CHILD).unwrap().into_fd().unwrap();
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty()).unwrap();
    rustix::io::write(&file, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let ring: Bell = connection.bell_waiting_by(TO_CHILD).unwrap();
    let (done, finished) = std::sync::mpsc::channel();
    // More rings than completions fit the kernel's ring.
    thread::spawn(move || {
        for _ in 0..1000 {
            let _ = file.heard();
            rustix::io::write(&file, &(u64::MAX - 1).to_ne_bytes()).unwrap();
            ring.ring();
        }
        done.send(()).unwrap();
    });
    finished.recv_timeout(FOREVER).expect("a ring blocked");
}

/// glibc aborts the process over a semaphore whose inside makes no sense: found by scribbling over the mapping.
#[test]
fn a_semaphore_that_an_untrusted_peer_can_overwrite_is_refused() {
    let segment = segment();
    let (ours, theirs) = socket::pair().unwrap();
    let joining = thread::spawn(move || socket::join_over(theirs).unwrap());
    let connection: Connection<Untrusted> = socket::host_over(ours, &segment).unwrap();
    let _other: Connection<Untrusted> = joining.join().unwrap();
    let mut bell: Bell<Semaphore> = connection.bell_waiting_by(TO_PARENT).unwrap();
    assert!(matches!(bell.wait_timeout(SOON), Err(WaitError::Unsupported { .. })));
}

#[test]
fn an_event_loop_is_told_of_a_killed_peer() {
    use rustix::event::Timespec;
    let segment = segment();
    let (connection, child) = start("serve futex", &segment);
    let mut file = connection.bell_waiting_by::<Futex>(TO_PARENT).unwrap().into_fd().unwrap();
    child.signal(Signal::KILL);
    let forever = Timespec { tv_sec: 60, tv_nsec: 0 };
    loop {
        assert_eq!(poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&forever)).unwrap(), 1, "hung");
        match file.heard() {
            Ok(_) => {}
            Err(error) => break assert_eq!(error, WaitError::PeerGone(connection.peer().id())),
        }
    }
}

#[test]
fn rings_made_before_a_death_are_heard_before_it_is_told() {
    let segment = segment();
    let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, mut child) = start("serve futex", &segment);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let first = wait(&mut bell);
    if first == Ok(1) {
        assert_eq!(wait(&mut bell), Err(WaitError::PeerGone(connection.peer().id())));
    } else {
        assert_eq!(first, Err(WaitError::PeerGone(connection.peer().id())));
    }
}

/// The one instant at which a death could leave a sleeper behind for good: the peer took the duty to wake it.
#[test]
fn a_peer_that_dies_between_taking_the_bits_and_waking_leaves_nobody_asleep() {
    let segment = segment();
    let mut bell: Bell<Futex> = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, _child) = start("take the bits and die", &segment);
    assert_eq!(wait(&mut bell), Err(WaitError::PeerGone(connection.peer().id())));
}

#[test]
fn a_successor_gets_the_slots_of_the_dead_and_rings_on() {
    let segment = segment();
    let mut bell: Bell<Eventfd> = segment.bell_waiting_by(TO_PARENT).unwrap();
    for generation in 0..5 {
        // Two eventfd waiter slots at the child's bell: without the repair the third generation would find none.
        let (connection, child) = start("serve eventfd", &segment);
        assert_eq!(wait(&mut bell), Ok(1), "generation {generation}");
        connection.bell_waiting_by::<Futex>(TO_CHILD).unwrap().ring();
        assert_eq!(wait(&mut bell), Ok(1), "generation {generation}");
        child.signal(Signal::KILL);
        assert_eq!(wait(&mut bell), Err(WaitError::PeerGone(connection.peer().id())));
    }
    let (_connection, _child) = start("serve futex", &segment);
    let mut newcomer: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    assert!(
        newcomer.wait_timeout(SOON).is_ok(),
        "a handle made after the deaths is not told of them while somebody lives"
    );
}

#[test]
fn a_connection_dropped_in_this_process_is_a_death_to_the_other() {
    let segment = segment();
    let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, mut child) = start("serve adaptive", &segment);
    assert_eq!(wait(&mut bell), Ok(1));
    drop(connection);
    assert!(child.0.wait().unwrap().success(), "it left its loop by PeerGone");
}

/// Descriptors are close-on-exec: a peer that becomes another program has gone.
#[test]
fn a_peer_that_executes_another_program_has_gone() {
    let segment = segment();
    let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, _child) = start("exec", &segment);
    assert_eq!(wait(&mut bell), Err(WaitError::PeerGone(connection.peer().id())));
}

/// A stopped peer is alive: no death is told, and it hears afterwards what was rung meanwhile.
#[test]
fn a_stopped_peer_is_not_dead_and_hears_when_it_goes_on() {
    let segment = segment();
    let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    let (connection, child) = start("serve futex", &segment);
    assert_eq!(wait(&mut bell), Ok(1));
    child.signal(Signal::STOP);
    thread::sleep(SOON);
    let ring: Bell = connection.bell_waiting_by(TO_CHILD).unwrap();
    for _ in 0..100 {
        ring.ring();
    }
    assert_eq!(bell.wait_timeout(SOON), Ok(None));
    child.signal(Signal::CONT);
    let mut heard = 0;
    while heard < 100 {
        heard += wait(&mut bell).unwrap();
    }
    assert_eq!(heard, 100);
}

/// In a process of its own, where nobody else opens and closes files.
#[test]
fn a_hundred_random_kills_leave_no_hang_and_no_descriptor() {
    assert!(me_as("kill a hundred").status().unwrap().success());
}

fn kill_a_hundred() {
    let kills: u32 = std::env::var("DOORBELL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(100);
    let segment = segment();
    let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
    let roles = ["serve adaptive", "serve eventfd", "serve futex", "serve semaphore"];
    let mut descriptors = usize::MAX;
    let mut seed = 0x9e37_79b9_u32;
    for kill in 0..kills {
        // What is opened once is open by then. The thread that told of the last death may still hold its connection: the
        // least of several counts.
        if (5..12).contains(&kill) {
            descriptors = descriptors.min(open_descriptors());
        }
        let (connection, child) = start(roles[kill as usize % roles.len()], &segment);
        let ring: Bell = connection.bell_waiting_by(TO_CHILD).unwrap();
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let after = Duration::from_micros(u64::from(seed >> 19));
        thread::scope(|scope| {
            let killer = scope.spawn(|| {
                thread::sleep(after);
                child.signal(Signal::KILL);
            });
            loop {
                ring.ring();
                match wait(&mut bell) {
                    Ok(_) => {}
                    Err(error) => break assert_eq!(error, WaitError::PeerGone(connection.peer().id())),
                }
            }
            killer.join().unwrap();
        });
        drop((connection, child, ring));
    }
    let begun = Instant::now();
    while open_descriptors() > descriptors {
        let now = open_descriptors();
        assert!(begun.elapsed() < FOREVER, "descriptors leak: {descriptors} were open at first, then {now}");
        thread::yield_now();
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A bell made for children is one bell in parent and child.
#[test]
fn a_bell_for_children_is_shared_across_a_fork() {
    let mut bell: Bell<Futex> = Bell::for_children(0).unwrap().waiting_by();
    let ringer = bell.clone();
    // SAFETY: the child only makes system calls and touches atomics before it ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        ringer.ring();
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    assert_eq!(wait(&mut bell), Ok(1));
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// A bell made for threads is another bell in the child.
#[test]
fn a_bell_for_threads_is_copied_by_a_fork() {
    let mut bell: Bell<Futex> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        ringer.ring();
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(bell.try_wait(), None);
}

mod counting {
    use super::*;

    /// `doorbell top` finds processes so.
    #[test]
    fn the_counters_of_another_process_are_found_while_it_lives() {
        let segment = segment();
        let mut bell: Bell = segment.bell_waiting_by(TO_PARENT).unwrap();
        let (connection, mut child) = start("serve futex", &segment);
        assert_eq!(wait(&mut bell), Ok(1));
        let ring: Bell = connection.bell_waiting_by(TO_CHILD).unwrap();
        for _ in 0..50 {
            thread::sleep(Duration::from_millis(1));
            ring.ring();
            wait(&mut bell).unwrap();
        }
        let pid = child.0.id();
        let found = counters::processes().processes;
        let found = found.into_iter().find(|process| process.process == pid).expect("not found");
        let waiter = found.waiters.iter().find(|waiter| waiter.name == "futex").expect("no futex waiter");
        let counts = waiter.counts;
        assert!(counts.slept > 0 && counts.woken >= counts.slept, "{counts:?}");
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        assert_eq!(counters::process(pid).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("doorbell-test-{}-{name}", std::process::id()))
}

mod by_path {
    use super::*;

    #[test]
    fn processes_meet_at_a_path_and_the_path_goes_with_the_host() {
        let path = scratch("path");
        let host = socket::Host::bind(&path).unwrap();
        assert_eq!(socket::Host::bind(&path).unwrap_err(), RendezvousError::Owned);
        thread::scope(|scope| {
            scope.spawn(|| {
                let connection: Connection = socket::join(&path).unwrap();
                assert_eq!(connection.peer().id().pid, std::process::id());
                connection.bell_waiting_by::<Futex>(0).unwrap().ring();
            });
            let segment = segment();
            let mut bell: Bell = segment.bell_waiting_by(0).unwrap();
            let connection: Connection = loop {
                match host.accept(&segment) {
                    // The other host's look whether we live.
                    Err(RendezvousError::NoAnswer(_)) => {}
                    result => break result.unwrap(),
                }
            };
            assert_eq!(wait(&mut bell), Ok(1));
            assert!(connection.peer().pidfd().is_some() || connection.peer().id().pid != 0);
        });
        drop(host);
        assert!(!path.exists());
        assert_eq!(socket::join(&path).unwrap_err(), RendezvousError::NoOwner);
    }

    #[test]
    fn a_socket_file_left_by_a_dead_host_is_replaced() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket as new_socket};
        let path = scratch("stale");
        let dead = new_socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&dead, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        drop(dead);
        assert!(path.exists());
        socket::Host::bind(&path).unwrap();
    }

    /// Each found the stale file, and one removed the socket of the other, which listened where nobody could reach it.
    #[test]
    fn of_many_who_replace_a_dead_hosts_file_one_does_and_can_be_reached() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, socket as new_socket};
        let path = scratch("race");
        let address = SocketAddrUnix::new(&path).unwrap();
        for _ in 0..30 {
            let dead = new_socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            bind(&dead, &address).unwrap();
            drop(dead);
            let hosts: Vec<_> = thread::scope(|scope| {
                let binding: Vec<_> = (0..4).map(|_| scope.spawn(|| socket::Host::bind(&path))).collect();
                binding.into_iter().map(|host| host.join().unwrap()).collect()
            });
            let refused = hosts.iter().filter(|host| matches!(host, Err(RendezvousError::Owned))).count();
            assert_eq!((refused, hosts.iter().flatten().count()), (3, 1));
            let visitor = new_socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            connect(&visitor, &address).unwrap();
            drop(hosts);
            assert!(!path.exists());
        }
        assert!(!PathBuf::from(format!("{}.lock", path.display())).exists());
    }

    #[test]
    fn a_host_whose_path_was_taken_from_it_leaves_its_successors_alone() {
        let path = scratch("taken");
        let first = socket::Host::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = socket::Host::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}

/// Sockets with a time-out return EINTR after any handled signal; the stress met that as a failed rendezvous.
#[test]
fn a_signal_during_the_rendezvous_does_not_end_it() {
    use std::os::unix::thread::JoinHandleExt;
    extern "C" fn nothing(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let (ours, theirs) = socket::pair().unwrap();
    let joiner = thread::spawn(move || socket::join_over(theirs));
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(2));
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(joiner.as_pthread_t() as libc::pthread_t, libc::SIGUSR1) };
    }
    let segment = segment();
    let _connection: Connection = socket::host_over(ours, &segment).unwrap();
    joiner.join().unwrap().unwrap();
}

mod by_name {
    use super::*;

    fn own(path: &std::path::Path) -> Other {
        let child = Other(me_as(&format!("own {}", path.display())).spawn().unwrap());
        // SAFETY: a process or thread of this program, which follows the protocol.
        while unsafe { named::join(path) }.is_err() {
            thread::sleep(Duration::from_millis(1));
        }
        child
    }

    #[test]
    fn a_joiner_rings_and_is_told_of_the_owners_death_and_the_next_owner_replaces_the_file() {
        let path = PathBuf::from(format!("/dev/shm/doorbell-test-{}", std::process::id()));
        for _ in 0..2 {
            let child = own(&path);
            let nothing = Offer { eventfds: 0, ..Offer::default() };
            // SAFETY: a process or thread of this program, which follows the protocol.
            assert_eq!(unsafe { named::Owner::new(&path, &nothing) }.unwrap_err(), RendezvousError::Owned);
            // SAFETY: a process or thread of this program, which follows the protocol.
            let joined = unsafe { named::join(&path) }.unwrap();
            let mut bell: Bell<Futex> = joined.segment().bell_waiting_by(TO_PARENT).unwrap();
            // It may not have made its handle yet.
            while bell.wait_timeout(SOON).unwrap().is_none() {
                joined.segment().bell_waiting_by::<Futex>(TO_CHILD).unwrap().ring();
            }
            child.signal(Signal::KILL);
            loop {
                match wait(&mut bell) {
                    Ok(_) => {}
                    Err(error) => break assert!(matches!(error, WaitError::PeerGone(_))),
                }
            }
            drop(child);
            // SAFETY: a process or thread of this program, which follows the protocol.
            assert!(matches!(unsafe { named::join(&path) }, Err(RendezvousError::NoOwner)));
        }
        // SAFETY: a process or thread of this program, which follows the protocol.
        let owner = unsafe { named::Owner::new(&path, &Offer { eventfds: 0, ..Offer::default() }) }.unwrap();
        drop(owner);
        assert!(!path.exists());
    }

    /// Joining once had a thread of its own, which slept until the owner died, whatever became of the joiner.
    #[test]
    fn joining_and_leaving_again_and_again_leaves_no_thread_and_no_descriptor() {
        let path = scratch("leaving");
        // SAFETY: a process or thread of this program, which follows the protocol.
        let owner = unsafe { named::Owner::new(&path, &Offer { eventfds: 0, ..Offer::default() }) }.unwrap();
        // SAFETY: a process or thread of this program, which follows the protocol.
        drop(unsafe { named::join(&path) }.unwrap());
        let child = me_as(&format!("join and leave {}", path.display())).status().unwrap();
        assert!(child.success());
        drop(owner);
        // SAFETY: a process or thread of this program, which follows the protocol.
        assert!(matches!(unsafe { named::join(&path) }, Err(RendezvousError::NoOwner)));
    }

    #[test]
    fn of_many_who_want_to_own_a_name_one_does() {
        let path = scratch("many");
        let own = || me_as(&format!("own {}", path.display())).stderr(Stdio::null()).spawn().unwrap();
        let mut children: Vec<_> = (0..8).map(|_| Other(own())).collect();
        let start = Instant::now();
        while children.len() > 1 {
            assert!(start.elapsed() < FOREVER, "{} own it", children.len());
            thread::sleep(Duration::from_millis(1));
            children.retain_mut(|child| child.0.try_wait().unwrap().is_none());
        }
        // The one that is left answers, and its end is heard.
        // SAFETY: a process or thread of this program, which follows the protocol.
        let joined = unsafe { named::join(&path) }.unwrap();
        let mut bell: Bell<Futex> = joined.segment().bell_waiting_by(TO_PARENT).unwrap();
        while bell.wait_timeout(SOON).unwrap().is_none() {
            joined.segment().bell_waiting_by::<Futex>(TO_CHILD).unwrap().ring();
        }
        children.clear();
        while wait(&mut bell).is_ok() {}
        // SAFETY: a process or thread of this program, which follows the protocol.
        drop(unsafe { named::Owner::new(&path, &Offer { eventfds: 0, ..Offer::default() }) }.unwrap());
        assert!(!path.exists());
    }

    /// A service has the same number at every start of its container, and was shut out by what it had left.
    #[test]
    fn an_owner_is_not_shut_out_by_what_one_of_its_number_left_when_it_was_killed() {
        let path = scratch("again");
        let left = PathBuf::from(format!("{}.{}.new", path.display(), std::process::id()));
        std::fs::write(&left, b"").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&left).unwrap());
        let fifo = PathBuf::from(format!("{}.{inode}", path.display()));
        std::fs::write(&fifo, b"").unwrap();
        // SAFETY: a process or thread of this program, which follows the protocol.
        let owner = unsafe { named::Owner::new(&path, &Offer { eventfds: 0, ..Offer::default() }) }.unwrap();
        assert!(!left.exists() && path.exists());
        drop(owner);
        assert!(!fifo.exists(), "its FIFO went with it");
        // Two names that differ in what looks like an extension have nothing in common.
        let [one, two] = ["again.one", "again.two"].map(scratch);
        std::fs::write(format!("{}.{}.new", one.display(), std::process::id()), b"").unwrap();
        let nothing = Offer { eventfds: 0, ..Offer::default() };
        drop((
            // SAFETY: a process or thread of this program, which follows the protocol.
            unsafe { named::Owner::new(&two, &nothing) }.unwrap(),
            // SAFETY: a process or thread of this program, which follows the protocol.
            unsafe { named::Owner::new(&one, &nothing) }.unwrap(),
        ));
    }

    /// Room was taken before the lock: one took the other's file for a dead owner's, and both owned the name.
    #[test]
    fn of_two_threads_that_want_to_own_a_name_one_does_however_long_taking_the_room_takes() {
        let path = PathBuf::from(format!("/dev/shm/doorbell-test-{}-threads", std::process::id()));
        for _ in 0..20 {
            let large = Offer { eventfds: 0, payload: 16 << 20, ..Offer::default() };
            let together = std::sync::Barrier::new(2);
            let own = || {
                together.wait();
                // SAFETY: a process or thread of this program, which follows the protocol.
                unsafe { named::Owner::new(&path, &large) }
            };
            let owners = thread::scope(|scope| {
                let other = scope.spawn(own);
                [own(), other.join().unwrap()]
            });
            let refused: Vec<_> = owners.iter().filter_map(|owner| owner.as_ref().err()).collect();
            assert_eq!(refused, [&RendezvousError::Owned]);
            // SAFETY: a process or thread of this program, which follows the protocol.
            drop(unsafe { named::join(&path) }.unwrap());
            drop(owners);
            assert!(!path.exists());
        }
    }

    #[test]
    fn an_owner_whose_file_was_removed_leaves_the_next_owners_alone() {
        let path = scratch("removed");
        let nothing = Offer { eventfds: 0, ..Offer::default() };
        // SAFETY: a process or thread of this program, which follows the protocol.
        let first = unsafe { named::Owner::new(&path, &nothing) }.unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: a process or thread of this program, which follows the protocol.
        let second = unsafe { named::Owner::new(&path, &nothing) }.unwrap();
        drop(first);
        // SAFETY: a process or thread of this program, which follows the protocol.
        drop(unsafe { named::join(&path) }.unwrap());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn eventfds_cannot_be_had_by_name() {
        let path = scratch("named");
        assert!(matches!(
            // SAFETY: a process or thread of this program, which follows the protocol.
            unsafe { named::Owner::new(&path, &Offer::default()) },
            Err(RendezvousError::TooMany { .. })
        ));
        assert!(!path.exists());
    }
}

/// Hosts that lie to a joiner.
mod lying {
    use super::*;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
    use std::io::IoSlice;
    use std::mem::MaybeUninit;

    const OFFER: u64 = u64::from_ne_bytes(*b"DBOFFER1");
    const VERSION: u64 = 2 << 32;

    fn offered(words: &[u64], files: &[rustix::fd::BorrowedFd<'_>]) -> RendezvousError {
        let (ours, theirs) = socket::pair().unwrap();
        thread::scope(|scope| {
            let joiner = scope.spawn(|| socket::join_over(theirs).unwrap_err());
            let mut hello = [0; 64];
            recv(&ours, &mut hello, RecvFlags::empty()).unwrap();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !files.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(files));
            }
            sendmsg(&ours, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
            joiner.join().unwrap()
        })
    }

    fn memory(size: u64, seals: SealFlags) -> OwnedFd {
        let memory = memfd_create("lie", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, size).unwrap();
        fcntl_add_seals(&memory, seals).unwrap();
        memory
    }

    #[test]
    fn memory_without_seals_is_a_violation() {
        let memory = memory(8192, SealFlags::GROW);
        assert!(matches!(
            offered(&[OFFER, VERSION, 0, 0, 2], &[memory.as_fd()]),
            RendezvousError::Violation(PeerViolation::NotSealed { .. })
        ));
    }

    #[test]
    fn memory_that_is_too_short_or_empty_of_a_header_is_a_violation() {
        let short = memory(100, doorbell::mapping::SEALS);
        assert!(matches!(
            offered(&[OFFER, VERSION, 0, 0, 2], &[short.as_fd()]),
            RendezvousError::Violation(PeerViolation::TooSmall { size: 100, .. })
        ));
        let zeroes = memory(8192, doorbell::mapping::SEALS);
        assert!(matches!(
            offered(&[OFFER, VERSION, 0, 0, 2], &[zeroes.as_fd()]),
            RendezvousError::Violation(PeerViolation::BadValue { field: "magic", value: 0 })
        ));
    }

    /// A sealed file without content costs its maker nothing, and who reads it pays for every page.
    #[test]
    fn more_memory_than_the_joiner_takes_is_refused() {
        let segment = Arc::new(Segment::new(&Offer { payload: 8 << 20, ..Offer::default() }).unwrap());
        let bytes = segment.mapping().plan().size();
        let meet = |most| {
            let (ours, theirs) = socket::pair().unwrap();
            let joining =
                thread::spawn(move || doorbell::rendezvous::Join::default().most_memory(most).over(theirs));
            let hosting = socket::host_over(ours, &segment);
            (hosting.map(drop), joining.join().unwrap().map(drop))
        };
        let too_much = doorbell::mapping::MapError::TooMuch { bytes, most: bytes - 1 };
        assert_eq!(meet(bytes - 1), (Err(RendezvousError::Refused), Err(RendezvousError::Map(too_much))));
        assert_eq!(meet(bytes), (Ok(()), Ok(())));
        let sparse = memory(doorbell::rendezvous::MOST_MEMORY + 4096, doorbell::mapping::SEALS);
        assert!(matches!(
            offered(&[OFFER, VERSION, 0, 0, 2], &[sparse.as_fd()]),
            RendezvousError::Map(doorbell::mapping::MapError::TooMuch { .. })
        ));
    }

    /// Whoever has such memory can punch a hole into it, sealed as it is; with the pool used up we die of SIGBUS.
    #[test]
    fn memory_in_huge_pages_is_refused_from_and_for_the_untrusted() {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        match memfd_create("huge", flags) {
            // No pages are needed for a file that nobody maps.
            Ok(memory) => {
                ftruncate(&memory, 2 << 20).unwrap();
                fcntl_add_seals(&memory, doorbell::mapping::SEALS).unwrap();
                let refused = offered(&[OFFER, VERSION, 0, 0, 2], &[memory.as_fd()]);
                assert_eq!(refused, RendezvousError::Map(doorbell::mapping::MapError::HugePages));
            }
            Err(errno) => {
                doorbell_skipped::skip(format_args!("this kernel has no huge pages of 2 MiB: {errno}"))
            }
        }
        let memory = doorbell::rendezvous::MemoryOptions { huge_pages: true, ..Default::default() };
        let segment = Arc::new(Segment::new(&Offer { memory, ..Offer::default() }).unwrap());
        if !segment.refused().is_empty() {
            doorbell_skipped::skip(segment.refused()[0]);
            return;
        }
        let meet = || {
            let (ours, theirs) = socket::pair().unwrap();
            let joining = thread::spawn(move || {
                // SAFETY: a process or thread of this program, which follows the protocol.
                unsafe { doorbell::rendezvous::Join::<Trusted>::of() }.over(theirs).map(drop)
            });
            (ours, joining)
        };
        let (ours, joining) = meet();
        let refused = socket::host_over(ours, &segment).unwrap_err();
        assert_eq!(refused, RendezvousError::Map(doorbell::mapping::MapError::HugePages));
        assert_eq!(joining.join().unwrap(), Err(RendezvousError::Refused));
        let (ours, joining) = meet();
        // SAFETY: a process or thread of this program, which follows the protocol.
        unsafe { socket::host_over_as::<Trusted>(ours, &segment) }.unwrap();
        assert_eq!(joining.join().unwrap(), Ok(()));
    }

    #[test]
    fn another_file_than_memory_is_refused() {
        let (pipe, _end) = rustix::pipe::pipe().unwrap();
        assert!(matches!(
            offered(&[OFFER, VERSION, 0, 0, 2], &[pipe.as_fd()]),
            RendezvousError::Map(doorbell::mapping::MapError::Os { call: "F_GET_SEALS", .. })
        ));
    }

    #[test]
    fn a_pipe_in_place_of_an_eventfd_is_a_violation() {
        let segment = Segment::new(&Offer { bells: 1, eventfds: 1, ..Offer::default() }).unwrap();
        let (_end, pipe) = rustix::pipe::pipe().unwrap();
        // SAFETY: nothing of it is lent out.
        let memory = unsafe { segment.mapping().file() }.unwrap();
        assert!(matches!(
            offered(&[OFFER, VERSION, 1, 1, 2], &[memory, pipe.as_fd()]),
            RendezvousError::Violation(PeerViolation::BadValue { field: "eventfd", .. })
        ));
    }

    #[test]
    fn fewer_descriptors_than_announced_are_a_violation() {
        let segment = Segment::new(&Offer { bells: 1, eventfds: 1, ..Offer::default() }).unwrap();
        // SAFETY: nothing of it is lent out.
        let memory = unsafe { segment.mapping().file() }.unwrap();
        assert_eq!(
            offered(&[OFFER, VERSION, 1, 1, 2], &[memory]),
            RendezvousError::Violation(PeerViolation::Descriptors { got: 1, announced: 2 })
        );
        assert_eq!(
            offered(&[OFFER, VERSION, u64::MAX, 8, 2], &[memory]),
            RendezvousError::TooMany { bells: u32::MAX, eventfds: 8, most: MOST_EVENTFDS }
        );
    }

    #[test]
    fn another_version_and_another_protocol_are_told_apart() {
        assert!(matches!(offered(&[OFFER, 9 << 32, 1, 1, 2], &[]), RendezvousError::Map(_)));
        assert!(matches!(
            offered(&[7, VERSION, 1, 1, 2], &[]),
            RendezvousError::Violation(PeerViolation::BadValue { field: "offer", value: 7 })
        ));
        assert!(matches!(
            offered(&[OFFER], &[]),
            RendezvousError::Violation(PeerViolation::LengthOutOfRange { .. })
        ));
    }

    #[test]
    fn a_host_or_a_joiner_that_hangs_up_is_no_violation() {
        let (ours, theirs) = socket::pair().unwrap();
        drop(ours);
        assert!(matches!(socket::join_over(theirs), Err(RendezvousError::NoAnswer(_))));
        let (ours, theirs) = socket::pair().unwrap();
        drop(theirs);
        assert!(matches!(socket::host_over(ours, &segment()), Err(RendezvousError::NoAnswer(_))));
    }

    /// Garbage in every word of the bells, while this side rings and waits with deadlines.
    #[test]
    fn a_peer_that_scribbles_over_the_bells_causes_no_panic_and_no_hang() {
        use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
        let segment = segment();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut seed = 1_u32;
                let record = segment.state(0).unwrap().record();
                let words = std::ptr::from_ref(record).cast::<AtomicU32>();
                while !stop.load(Ordering::Relaxed) {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Not the semaphores: their content is the C library's affair.
                    let word = (seed >> 8) as usize % 64;
                    // SAFETY: the record is 512 bytes of atomics; the word is within its first 256.
                    unsafe { &*words.add(word) }.store(seed, Ordering::Relaxed);
                }
            });
            let mut futex: Bell<Futex> = segment.bell_waiting_by(0).unwrap();
            let mut adaptive: Bell<Adaptive> = segment.bell_waiting_by(0).unwrap();
            let mut eventfd: Bell<Eventfd> = segment.bell_waiting_by(0).unwrap();
            for _ in 0..2000 {
                futex.ring();
                futex.wait_timeout(Duration::from_micros(50)).unwrap();
                adaptive.wait_timeout(Duration::from_micros(50)).unwrap();
                // The waiter slots are overwritten too: none may be free.
                let _ = eventfd.wait_timeout(Duration::from_micros(50));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn wishes_about_memory_that_cannot_be_granted_are_named() {
    let memory = doorbell::rendezvous::MemoryOptions {
        huge_pages: true,
        locked: true,
        numa_node: Some(1000),
        populated: true,
    };
    let segment = Segment::new(&Offer { memory, ..Offer::default() }).unwrap();
    let refused: Vec<_> = segment.refused().iter().map(|refusal| refusal.option).collect();
    assert!(refused.contains(&"numa_node"), "no machine has node 1000: {refused:?}");
    assert!(!refused.contains(&"populated"), "{refused:?}");
    for refusal in segment.refused() {
        assert!(refusal.to_string().contains(refusal.option));
    }
}

/// A segment had no more eventfds than one packet carries: 252, of 126 lanes.
#[test]
fn more_eventfds_than_one_packet_carries_are_taken_by_who_says_so() {
    let offer = Offer { bells: 64, eventfds: 5, ..Offer::default() };
    let segment = Arc::new(Segment::new(&offer).unwrap());
    let meet = |join: socket::Join| {
        let (ours, theirs) = socket::pair().unwrap();
        thread::scope(|scope| {
            let joiner = scope.spawn(move || join.over(theirs));
            (socket::host_over(ours, &segment), joiner.join().unwrap())
        })
    };
    let (refused, too_many) = meet(socket::Join::default());
    // It may hang up before we have read its verdict, on packets that it did not read.
    assert!(matches!(refused, Err(RendezvousError::Refused | RendezvousError::NoAnswer(_))), "{refused:?}");
    assert_eq!(
        too_many.unwrap_err(),
        RendezvousError::TooMany { bells: 64, eventfds: 5, most: MOST_EVENTFDS }
    );

    let (host, joined) = meet(socket::Join::default().most_eventfds(320));
    let (host, joined) = (host.unwrap(), joined.unwrap());
    // The last bell has the last of them: all five tell of a ring.
    let waiters: Vec<_> = (0..5).map(|_| joined.bell(63).unwrap().into_fd().unwrap()).collect();
    host.bell(63).unwrap().ring();
    for waiter in waiters {
        poll(&mut [PollFd::new(&waiter, PollFlags::IN)], None).unwrap();
    }
}

/// A child that returned from its function instead of exiting removed the paths at which its parent lives on.
#[test]
fn a_forked_child_that_drops_its_copies_leaves_its_parents_paths_alone() {
    let directory = std::env::temp_dir().join(format!("doorbell-fork-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let host = socket::Host::bind(directory.join("host")).unwrap();
    let owner =
        // SAFETY: a process or thread of this program, which follows the protocol.
        unsafe { named::Owner::new(directory.join("owner"), &Offer { eventfds: 0, ..Offer::default() }) }
            .unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    // SAFETY: the child only drops, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop((host, owner));
        // SAFETY: no precondition.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a child of ours, and a valid place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(names(), before);
    drop((host, owner));
    assert_eq!(names(), Vec::<std::ffi::OsString>::new());
    std::fs::remove_dir(&directory).unwrap();
}
