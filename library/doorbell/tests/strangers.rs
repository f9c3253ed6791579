// SPDX-License-Identifier: MIT OR Apache-2.0
//! Callers who are another user's, who say nothing, or who come in floods.

#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "common/alone.rs"]
mod alone;

use doorbell::Deadline;
use doorbell::rendezvous::{Join, Offer, Reason, RendezvousError, Segment, Users, socket};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// Longer than any of these tests takes on the slowest machine: running into it is a hang.
const FOREVER: Duration = Duration::from_secs(60);
const ROLE: &str = "DOORBELL_TEST_STRANGER";
const NOBODY: u32 = 65534;

fn scratch(name: &str) -> PathBuf {
    env::temp_dir().join(format!("doorbell-strangers-{name}-{}", std::process::id()))
}

fn segment() -> Arc<Segment> {
    Arc::new(Segment::new(&Offer::default()).unwrap())
}

/// Somebody who connects and says nothing.
fn silent(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    while rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).is_err() {
        thread::yield_now();
    }
    socket
}

/// Somebody who says hello, and nothing more.
fn undecided(path: &Path) -> OwnedFd {
    const HELLO: u64 = u64::from_ne_bytes(*b"DBHELLO1");
    let version = u64::from(doorbell_core::layout::MAJOR) << 32;
    let hello = [HELLO, version, u64::MAX].map(u64::to_ne_bytes).concat();
    let socket = silent(path);
    // It may have lost its place to the next by now.
    let _ = rustix::net::send(&socket, &hello, rustix::net::SendFlags::NOSIGNAL);
    socket
}

/// Not a test: what another user's process does, or one that is held up.
#[test]
fn child() {
    let Ok(path) = env::var(ROLE) else { return };
    if let Some(path) = path.strip_prefix("joins ") {
        drop(Join::default().patience(FOREVER).at(path).unwrap());
        return;
    }
    let refused = Join::default().host(Users::Anyone).at(path).unwrap_err();
    let ours = rustix::process::geteuid().as_raw();
    assert_eq!(refused, RendezvousError::Refused(Reason::OtherUser { uid: ours }));
}

/// This program, in a part that `user` plays, to whom the folder it lies in may be closed; and the
/// file by which it is found, until then.
fn as_user(user: u32, part: &str, role: &Path) -> (Command, OwnedFd) {
    let (path, mode) = (rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
    let program = rustix::fs::open("/proc/self/exe", path, mode).unwrap();
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(["--exact", part]).env(ROLE, role).stdout(Stdio::null()).uid(user).gid(user);
    (command, program)
}

/// Somebody who joins, however long that takes.
fn join(path: &Path) -> thread::JoinHandle<Result<(), RendezvousError>> {
    let path = path.to_owned();
    thread::spawn(move || Join::default().patience(FOREVER).at(path).map(drop))
}

/// Serves `host` until `met` of its callers were met. Errors are about callers who are gone then.
fn serve(host: &socket::Host, met: usize) -> Vec<doorbell::rendezvous::Connection> {
    let until = Deadline::after(FOREVER);
    let mut connections = Vec::new();
    while connections.len() < met {
        match host.accept_with(Some(until), |_| Ok(segment())) {
            Ok(Some(connection)) => connections.push(connection),
            Ok(None) => panic!("locked out: {} of {met} were met", connections.len()),
            Err(_) => {}
        }
    }
    connections
}

/// One that connected and said nothing locked everyone out, for as
/// long as others wait: they gave up first.
#[test]
fn a_caller_that_says_nothing_keeps_nobody_out() {
    let path = scratch("silent");
    let host = socket::Host::bind(&path).unwrap();
    let _silent = silent(&path);
    let joining = join(&path);
    // With one segment for whoever comes, as well.
    let shared = segment();
    assert!(host.accept_until(&shared, Some(Deadline::after(FOREVER))).unwrap().is_some(), "locked out");
    joining.join().unwrap().unwrap();
}

/// More of them than there are places, and than the kernel's queue
/// holds, and each comes again when it is turned away.
#[test]
fn a_flood_of_callers_that_say_nothing_keeps_nobody_out() {
    let path = scratch("flood");
    let host = socket::Host::bind(&path).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let (path, done) = (&path, &done);
        scope.spawn(move || {
            let mut callers = std::collections::VecDeque::new();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let socket =
                    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                        .unwrap();
                if rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).is_ok() {
                    callers.push_back(socket);
                }
                if callers.len() > 300 {
                    callers.pop_front();
                }
            }
        });
        // Asking for somebody without waiting comes back, flood or not.
        (0..100).for_each(|_| drop(host.try_accept(&segment())));
        let joining: Vec<_> =
            (0..4).map(|_| scope.spawn(move || Join::default().patience(FOREVER).at(path))).collect();
        let met = serve(&host, 4);
        for joined in joining {
            let joined = joined.join().unwrap().unwrap();
            assert!(met.iter().any(|connection| !Arc::ptr_eq(connection.segment(), joined.segment())));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Whoever takes its offer and says nothing more was waited for alone.
#[test]
fn callers_that_never_say_whether_they_take_what_they_are_offered_keep_nobody_out() {
    let path = scratch("undecided");
    let host = socket::Host::bind(&path).unwrap();
    let undecided: Vec<_> = (0..socket::MOST_CALLERS + 10)
        .map(|_| {
            thread::spawn({
                let path = path.clone();
                move || undecided(&path)
            })
        })
        .collect();
    let joining = join(&path);
    serve(&host, 1);
    joining.join().unwrap().unwrap();
    undecided.into_iter().for_each(|caller| drop(caller.join().unwrap()));
}

/// Its place was given to another while it was held up, and it took that for the host's end.
#[test]
fn who_lost_its_place_with_the_offer_at_hand_comes_again() {
    let path = scratch("held-up");
    let host = socket::Host::bind(&path).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child"]).env(ROLE, format!("joins {}", path.display())).stdout(Stdio::null());
    let mut held_up = command.spawn().unwrap();
    let pid = Pid::from_child(&held_up);
    assert_eq!(poll(&mut [PollFd::new(&host, PollFlags::IN)], None), Ok(1));
    // It has said hello by then, unless this machine holds it up already.
    thread::sleep(Duration::from_millis(50));
    kill_process(pid, Signal::STOP).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    let others: Vec<_> = (0..socket::MOST_CALLERS + 10).map(|_| undecided(&path)).collect();
    // All are offered theirs, and none of them answers.
    for _ in 0..2 * others.len() {
        assert!(host.try_accept(&segment()).ok().flatten().is_none());
    }
    kill_process(pid, Signal::CONT).unwrap();
    serve(&host, 1);
    assert!(held_up.wait().unwrap().success());
}

#[test]
fn accepting_ends_at_its_deadline_and_the_file_tells_when_somebody_comes() {
    let path = scratch("deadline");
    let host = socket::Host::bind(&path).unwrap();
    let soon = Deadline::after(Duration::from_millis(1));
    assert!(host.accept_until(&segment(), Some(soon)).unwrap().is_none());
    assert!(host.try_accept(&segment()).unwrap().is_none());
    let joining = join(&path);
    let (shared, begun) = (segment(), Instant::now());
    while host.try_accept(&shared).unwrap().is_none() {
        assert!(begun.elapsed() < FOREVER, "hung");
        poll(&mut [PollFd::new(&host, PollFlags::IN)], None).unwrap();
    }
    joining.join().unwrap().unwrap();
}

/// The listener stayed readable, and each `accept` came back at once.
#[test]
fn a_host_without_descriptors_turns_callers_away_and_goes_on_when_it_has_some() {
    // Others would run out too.
    let name = "a_host_without_descriptors_turns_callers_away_and_goes_on_when_it_has_some";
    alone::alone(name, run_out_of_descriptors);
}

fn run_out_of_descriptors() {
    let path = scratch("descriptors");
    let host = socket::Host::bind(&path).unwrap();
    // The caller's end, which is open already.
    let caller = silent(&path);
    let mut all = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        all.push(file);
    }
    let refused = host.accept_until(&segment_given(&mut all), None).unwrap_err();
    assert!(matches!(refused, RendezvousError::Os { call: "accept4", .. }), "{refused:?}");
    // It was hung up on, and the listener is not readable any more.
    poll(&mut [PollFd::new(&caller, PollFlags::RDHUP)], None).unwrap();
    let shared = segment_given(&mut all);
    while let Ok(file) = fs::File::open("/dev/null") {
        all.push(file);
    }
    let soon = Deadline::after(Duration::from_millis(1));
    assert!(host.accept_until(&shared, Some(soon)).unwrap().is_none());
    all.clear();
    let joining = join(&path);
    assert!(host.accept_until(&shared, Some(Deadline::after(FOREVER))).unwrap().is_some());
    joining.join().unwrap().unwrap();
}

/// A segment, made of descriptors that are given up for it and taken again.
fn segment_given(all: &mut Vec<fs::File>) -> Arc<Segment> {
    all.truncate(all.len() - 20);
    let segment = segment();
    while let Ok(file) = fs::File::open("/dev/null") {
        all.push(file);
    }
    segment
}

/// Hosts and joiners of any user were met, and handed memory before anyone could look.
#[test]
fn a_process_of_a_user_who_is_not_asked_for_is_sent_nothing_and_joined_by_nobody() {
    let others = || Users::Listed([rustix::process::geteuid().as_raw() + 1].into());
    let ours = rustix::process::geteuid().as_raw();
    let path = scratch("listed");
    let host = socket::Host::bind_for(&path, others(), 0o600).unwrap();
    let joining = join(&path);
    let refused = host.accept(&segment()).unwrap_err();
    assert_eq!(refused, RendezvousError::OtherUser { uid: ours });
    let told = RendezvousError::Refused(Reason::OtherUser { uid: ours });
    assert_eq!(joining.join().unwrap(), Err(told), "and why, and nothing else");
    // The other way round: the host is one whom the joiner does not want.
    let refused = Join::default().host(others()).at(&path).map(drop).unwrap_err();
    assert_eq!(refused, RendezvousError::OtherUser { uid: ours });
    // And by a function.
    drop(host);
    let chosen = Users::Chosen(Arc::new(|peer| peer.id().pid == std::process::id()));
    let host = socket::Host::bind_for(&path, chosen, 0o600).unwrap();
    let joining = join(&path);
    host.accept(&segment()).unwrap();
    joining.join().unwrap().unwrap();
}

#[test]
fn another_users_process_is_hung_up_on_though_the_path_lets_it_through() {
    if !rustix::process::geteuid().is_root() {
        println!("not tried: to start another user's process takes root");
        return;
    }
    let path = PathBuf::from(format!("/tmp/doorbell-strangers-nobody-{}", std::process::id()));
    let host = socket::Host::bind_for(&path, Users::Same, 0o666).unwrap();
    let mut stranger = as_user(NOBODY, "child", &path).0.spawn().unwrap();
    let refused = host.accept(&segment()).unwrap_err();
    assert_eq!(refused, RendezvousError::OtherUser { uid: NOBODY });
    assert!(stranger.wait().unwrap().success());
}

/// Not a test: what a process does that the kernel shows everybody as one user, itself among them.
#[test]
fn child_that_knows_nobody() {
    let Ok(path) = env::var(ROLE) else { return };
    let refused = Join::default().at(&path).map(drop).unwrap_err();
    assert!(matches!(refused, RendezvousError::UnknownUser { .. }), "{refused:?}");
    // Said by number it may be anybody too.
    let listed = Users::Listed([rustix::process::geteuid().as_raw()].into());
    let refused = Join::default().host(listed).at(&path).map(drop).unwrap_err();
    assert!(matches!(refused, RendezvousError::UnknownUser { .. }), "{refused:?}");
    Join::default().host(Users::Anyone).at(path).map(drop).unwrap();
}

/// Whoever had no number here had the same as this process, which took it for its own user's.
#[test]
fn who_has_no_number_in_our_user_namespace_is_not_taken_for_our_user() {
    let mut command = Command::new(env::current_exe().unwrap());
    let path = scratch("nobody-known");
    command.args(["--exact", "child_that_knows_nobody"]).env(ROLE, &path).stdout(Stdio::null());
    // SAFETY: one system call, which is async-signal-safe; an error
    // made of an error number takes no memory.
    unsafe {
        // A user namespace without a map: everybody in it and outside has one number.
        command.pre_exec(|| Ok(rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWUSER)?));
    }
    let host = socket::Host::bind(&path).unwrap();
    let mut stranger = match command.spawn() {
        Ok(stranger) => stranger,
        Err(error) => return doorbell_skipped::skip(format!("no user namespace can be made: {error}")),
    };
    // The kernel shows the host whose it is: this user's. The first two hang up.
    assert_eq!(serve(&host, 1).len(), 1);
    assert!(stranger.wait().unwrap().success());
}

/// Not a test: what a user does whose folder in /tmp another user made first.
#[test]
fn child_whose_folder_is_taken() {
    let Ok(taken) = env::var(ROLE) else { return };
    let mut service = doorbell::listen("clock").unwrap();
    let here = Path::new(&env::var("HOME").unwrap()).join(".local/state/doorbell/services");
    assert!(service.path().starts_with(here), "{}", service.path().display());
    let client = thread::spawn(|| doorbell::connect("clock").unwrap().send(b"hello"));
    assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"hello");
    client.join().unwrap().unwrap();
    assert!(doorbell::service::names().unwrap().contains(&"clock".to_owned()));
    let folders = doorbell::service::folders();
    let seen = folders.iter().find(|folder| folder.path == Path::new(&taken)).unwrap();
    assert_eq!(seen.state, doorbell::service::FolderState::OtherUsers { uid: NOBODY });
    // Without a home of its own it is told whose folder it is.
    // SAFETY: this process runs this test alone, and no other thread of it looks at the environment.
    unsafe { env::set_var("HOME", "/nowhere") };
    let told = doorbell::listen("clock").map(drop).unwrap_err();
    assert!(matches!(told, RendezvousError::NoFolder { .. }), "{told:?}");
    assert!(told.to_string().contains(&format!("{taken} is user {NOBODY}'s")), "{told}");
}

/// Whoever made the folder first took all names of another user from it.
#[test]
fn a_folder_that_a_stranger_made_keeps_nobodys_services_from_their_clients() {
    use std::os::unix::fs::{DirBuilderExt, chown};
    if !rustix::process::geteuid().is_root() {
        return doorbell_skipped::skip("to start another user's process takes root");
    }
    // A user whom nobody else has, and its home.
    let user = 100_000 + std::process::id();
    let taken = PathBuf::from(format!("/tmp/doorbell-{user}"));
    let home = PathBuf::from(format!("/tmp/doorbell-home-{user}"));
    for (folder, owner) in [(&taken, NOBODY), (&home, user)] {
        fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
        chown(folder, Some(owner), Some(owner)).unwrap();
    }
    let (mut command, _program) = as_user(user, "child_whose_folder_is_taken", &taken);
    command.args(["--test-threads", "1"]).env("HOME", &home).env_remove("DOORBELL_RUNTIME_DIR");
    let served = command.status().unwrap();
    for folder in [&taken, &home] {
        fs::remove_dir_all(folder).unwrap();
    }
    assert!(served.success());
}

#[test]
fn the_socket_file_is_its_users_alone_unless_it_is_said_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = scratch("mode");
    let host = socket::Host::bind(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    drop(host);
    let _host = socket::Host::bind_for(&path, Users::Anyone, 0o666).unwrap();
    assert_eq!(mode(&path), 0o666);
}
