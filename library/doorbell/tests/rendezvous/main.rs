// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two processes: rendezvous, ringing, dying, stopping, forking, lying.
//!
//! The other process is this test program again, started with a role; see `child`.

mod by_path;
#[path = "../common/child.rs"]
mod child;
#[path = "../common/mod.rs"]
mod common;
mod lying;
#[path = "../common/meet.rs"]
mod meet;

use child::{by_fork, came_to_true, child as forked, in_a_child};
use common::{FOREVER, Other, ROLE, me_as};
use doorbell::peer::Trusted;
use doorbell::rendezvous::{
    Connection, MOST_EVENTFDS, Offer, Reason, RendezvousError, Segment, inherited, socket,
};
use doorbell::wait::{Adaptive, Eventfd, Futex, Wait, Yield};
use doorbell::{Bell, PeerViolation, WaitError, counters};
use meet::{meet, try_meet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(20);

const TO_CHILD: u32 = 0;
const TO_PARENT: u32 = 1;

impl Other {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
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
    if role == "kill a hundred" {
        return kill_a_hundred();
    }
    // SAFETY: a process or thread of this program, which follows the protocol.
    let connection: Connection<Trusted> = unsafe { doorbell::rendezvous::Join::of() }.inherited().unwrap();
    match role.as_str() {
        "serve adaptive" => serve::<Adaptive>(&connection),
        "serve eventfd" => serve::<Eventfd>(&connection),
        "serve futex" => serve::<Futex>(&connection),
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
    // The parent may have rung before this handle was made: one
    // answer for it. A spare one does no harm.
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
fn processes_answer_each_other_by_every_way_of_waiting() {
    ping_pong::<Adaptive>("serve adaptive");
    ping_pong::<Eventfd>("serve eventfd");
    ping_pong::<Futex>("serve futex");
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
fn a_waiter_is_told_of_a_killed_peer_by_every_way_of_waiting() {
    a_killed_peer_is_told::<Futex>();
    a_killed_peer_is_told::<Adaptive>();
    a_killed_peer_is_told::<Eventfd>();
}

/// An eventfd's flags are shared with everybody who has it, and a write to a full one blocks.
#[test]
fn a_peer_that_makes_the_eventfd_block_and_fills_it_does_not_hold_up_a_ring() {
    let segment = segment();
    let (connection, hostile) = meet(&segment);
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

/// The one instant at which a death could leave a sleeper behind for
/// good: the peer took the duty to wake it.
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
        // Two eventfd waiter slots at the child's bell: without the
        // repair the third generation would find none.
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
    // All of its threads: until the first of them has heard of it, the others run on.
    let (_, status) = waitpid(Some(Pid::from_child(&child.0)), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
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
    let roles = ["serve adaptive", "serve eventfd", "serve futex"];
    let mut descriptors = usize::MAX;
    let mut seed = 0x9e37_79b9_u32;
    for kill in 0..kills {
        // What is opened once is open by then. The thread that told of the last death may still hold its
        // connection: the least of several counts.
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
    let child = forked(by_fork, || {
        ringer.ring();
        true
    });
    assert_eq!(wait(&mut bell), Ok(1));
    assert!(came_to_true(child));
}

/// A bell made for threads is another bell in the child.
#[test]
fn a_bell_for_threads_is_copied_by_a_fork() {
    let mut bell: Bell<Futex> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    assert!(in_a_child(by_fork, || {
        ringer.ring();
        true
    }));
    assert_eq!(bell.try_wait(), None);
}

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

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("doorbell-test-{}-{name}", std::process::id()))
}

/// Sockets with a time-out return EINTR after any handled signal; the
/// stress met that as a failed rendezvous.
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
    let (refused, too_many) = try_meet(&segment, socket::Join::default());
    // It may hang up before we have read its verdict, on packets that it did not read.
    assert!(
        matches!(refused, Err(RendezvousError::Refused(Reason::TooMany) | RendezvousError::NoAnswer(_))),
        "{refused:?}"
    );
    assert_eq!(
        too_many.unwrap_err(),
        RendezvousError::TooMany { bells: 64, eventfds: 5, most: MOST_EVENTFDS }
    );

    let (host, joined) = try_meet(&segment, socket::Join::default().most_eventfds(320));
    let (host, joined) = (host.unwrap(), joined.unwrap());
    // The last bell has the last of them: all five tell of a ring.
    let waiters: Vec<_> = (0..5).map(|_| joined.bell(63).unwrap().into_fd().unwrap()).collect();
    host.bell(63).unwrap().ring();
    for waiter in waiters {
        poll(&mut [PollFd::new(&waiter, PollFlags::IN)], None).unwrap();
    }
}

/// A child that returned from its function instead of exiting removed
/// the paths at which its parent lives on.
#[test]
fn a_forked_child_that_drops_its_copies_leaves_its_parents_paths_alone() {
    let directory = std::env::temp_dir().join(format!("doorbell-fork-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let mut host = Some(socket::Host::bind(directory.join("host")).unwrap());
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    assert!(in_a_child(by_fork, || {
        drop(host.take());
        true
    }));
    assert_eq!(names(), before);
    drop(host);
    assert_eq!(names(), Vec::<std::ffi::OsString>::new());
    std::fs::remove_dir(&directory).unwrap();
}
