// SPDX-License-Identifier: MIT OR Apache-2.0
//! Meeting at a path.

use super::*;

#[test]
fn processes_meet_at_a_path_and_the_path_goes_with_the_host() {
    let path = scratch("path");
    let host = socket::Host::bind(&path).unwrap();
    assert_eq!(socket::Host::bind(&path).unwrap_err(), RendezvousError::Owned { path: path.clone() });
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
    assert_eq!(socket::join(&path).unwrap_err(), RendezvousError::NoOwner { path });
}

#[test]
fn what_the_caller_of_a_trusting_host_sends_is_lent_out_as_it_lies() {
    use doorbell::channel::{Lanes, Receiver, Sender};
    let path = scratch("trusting");
    // SAFETY: its one caller is a thread of this program, which follows the protocol.
    let host = unsafe { socket::Host::bind(&path).unwrap().trusting() };
    let lanes = Lanes::new(1, 1, 4096).unwrap();
    let segment = Arc::new(Segment::new(&Offer::of_lanes(lanes)).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let connection: Connection = socket::join(&path).unwrap();
            let mut sender: Sender = Sender::attach(&connection, 0).unwrap();
            sender.send(b"lent").unwrap();
        });
        let connection: Connection<Trusted> = host.accept(&segment).unwrap();
        let mut receiver: Receiver<Trusted> = Receiver::attach(&connection, 0).unwrap();
        let message = receiver.recv().unwrap();
        let lent: &[u8] = &message;
        assert_eq!(lent, b"lent");
    });
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

/// Each found the stale file, and one removed the socket of the
/// other, which listened where nobody could reach it.
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
        let refused = hosts.iter().filter(|host| matches!(host, Err(RendezvousError::Owned { .. }))).count();
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

/// A machine may hold up a joiner for longer than a host waits for its next packet; the host hangs
/// up, and was not asked twice.
#[test]
fn who_was_hung_up_on_because_it_was_late_comes_again() {
    let path = scratch("late");
    let impatient = socket_that_listens(&path);
    thread::scope(|scope| {
        let joiner = scope.spawn(|| socket::join(&path).map(drop));
        let first = rustix::net::accept(&impatient).unwrap();
        std::fs::remove_file(&path).unwrap();
        let host = socket::Host::bind(&path).unwrap();
        thread::sleep(socket::HOST_PATIENCE);
        drop(first);
        // Which this machine may hold up again, and then the joiner has come in vain.
        let met = host.accept(&segment());
        assert_eq!(joiner.join().unwrap().is_ok(), met.is_ok(), "{met:?}");
        let late = matches!(met, Err(RendezvousError::NoAnswer(_) | RendezvousError::TimedOut { .. }));
        assert!(met.is_ok() || late, "{met:?}");
    });
}

/// A host that says nothing.
fn socket_that_listens(path: &std::path::Path) -> OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen};
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&socket, 1).unwrap();
    socket
}
