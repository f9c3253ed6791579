// SPDX-License-Identifier: MIT OR Apache-2.0
//! A name is a service: clients come, go, die, and come again.

#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "common/alone.rs"]
mod alone;
mod common;

use common::{FOREVER, Other, ROLE, me_as};
use doorbell::channel::{RecvError, SendError};
use doorbell::rendezvous::{Join, Reason, RendezvousError};
use doorbell::service::{self, Caller, ListenOptions, Opened, inspect, listen_or_connect, names};
use doorbell::wait::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

fn scratch(name: &str) -> PathBuf {
    env::temp_dir().join(format!("doorbell-service-{name}-{}", std::process::id()))
}

/// Not a test: what a client in another process does. It says hello,
/// and whatever it hears, until the service has gone.
#[test]
fn child() {
    let Some(path) = env::var_os(ROLE) else { return };
    if let Some(path) = path.to_str().and_then(|role| role.strip_prefix("without descriptors ")) {
        return serve_without_descriptors(Path::new(path));
    }
    if let Some(path) = path.to_str().and_then(|role| role.strip_prefix("passes ends on ")) {
        return pass_ends_on(Path::new(path));
    }
    let mut service = doorbell::connect_timeout(path, FOREVER).unwrap();
    service.send(b"hello").unwrap();
    let (mut sender, mut receiver) = service.split();
    while let Ok(message) = receiver.recv() {
        let message = message.into_vec();
        sender.send(&message).unwrap();
    }
}

/// Not a test: a client that sends back the first end it is sent,
/// opens the second, and keeps the third as it is.
fn pass_ends_on(path: &Path) {
    let mut service = doorbell::connect_timeout(path, FOREVER).unwrap();
    let first = service.ends().recv().unwrap();
    service.ends().send(first).unwrap();
    service.send(b"sent back").unwrap();
    let mut opened = service.ends().recv().unwrap().open().unwrap();
    let message = opened.recv().unwrap();
    opened.send(&[b"opened: ", &message[..]].concat()).unwrap();
    let _kept = service.ends().recv().unwrap();
    service.send(b"has all").unwrap();
    drop(service.recv());
}

/// Servo's and Mojo's channels can do it: processes that have nothing
/// but a channel to a third get one to each other.
#[test]
fn an_end_is_sent_to_a_process_sent_on_and_opened_in_another_one() {
    let path = scratch("ends");
    let mut service = doorbell::listen(&path).unwrap();
    let mut others: Vec<_> = (0..2).map(|_| me_as(format!("passes ends on {}", path.display()))).collect();
    let mut others: Vec<_> = others.iter_mut().map(|other| Other(other.spawn().unwrap())).collect();
    let mut pairs: Vec<_> = (0..2).map(|_| service::pair(4096).unwrap()).collect();
    // In the ring before anybody is there.
    for (ours, _) in &mut pairs {
        ours.send(b"early").unwrap();
    }
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut clients = Vec::new();
    while clients.len() < 2 {
        assert!(service.recv_timeout(Duration::from_millis(10)).unwrap().is_none());
        clients = service.clients().map(|(client, _)| client).collect();
    }
    for client in &clients {
        service.ends(*client).unwrap().send(theirs.pop().unwrap()).unwrap();
    }
    let mut came_back = Vec::new();
    for _ in 0..2 {
        let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
        assert_eq!(message, b"sent back");
        // An end that was sent before a message is there when the message is.
        came_back.push(service.ends(client).unwrap().recv_timeout(Duration::ZERO).unwrap().expect("none"));
    }
    for client in &clients {
        service.ends(*client).unwrap().send(came_back.pop().unwrap()).unwrap();
    }
    for ours in &mut ours {
        assert_eq!(ours.recv_timeout(FOREVER).unwrap().expect("hung"), b"opened: early");
    }
    let kept: Vec<_> = (0..2).map(|_| service::pair(4096).unwrap()).collect();
    let processes: Vec<_> = service.clients().map(|(client, process)| (client, process.pid)).collect();
    for ((mut nobodys, theirs), (client, process)) in kept.into_iter().zip(processes) {
        let other = others.iter_mut().find(|other| other.0.id() == process).unwrap();
        service.ends(client).unwrap().send(theirs).unwrap();
        let (_, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
        assert_eq!(message, b"has all");
        assert_eq!(nobodys.recv_timeout(Duration::from_millis(1)), Ok(None), "it may still be opened");
        other.0.kill().unwrap();
        // Nobody is left who could.
        assert!(matches!(nobodys.recv(), Err(RecvError::PeerGone(_))));
    }
    for ours in &mut ours {
        assert!(matches!(ours.recv(), Err(RecvError::PeerGone(_) | RecvError::Closed)));
    }
}

/// A reply that came late was the next question's.
#[test]
fn a_reply_comes_to_its_request_and_a_late_one_to_none() {
    let path = scratch("calls");
    let mut service = doorbell::listen(&path).unwrap();
    let client = thread::spawn({
        let path = path.clone();
        move || {
            let mut caller = Caller::new(doorbell::connect(path).unwrap());
            assert_eq!(caller.call_timeout(b"late", Duration::ZERO), Ok(None));
            assert_eq!(caller.call(b"next").unwrap(), b"re: next");
            let asked: Vec<_> = (0..10_u8).map(|number| caller.ask(&[number]).unwrap()).collect();
            for (number, asked) in asked.into_iter().enumerate().rev() {
                let reply = caller.reply(asked, Some(doorbell::Deadline::after(FOREVER))).unwrap();
                assert_eq!(reply.unwrap(), [b"re: ", &[number as u8][..]].concat());
            }
            caller
        }
    });
    let until = || Some(doorbell::Deadline::after(FOREVER));
    let mut held = vec![service.recv_request_deadline(until()).unwrap().expect("hung")];
    held.push(service.recv_request_deadline(until()).unwrap().expect("hung"));
    let reply = |service: &mut service::Service, request: &service::Request| {
        service.reply(request, &[b"re: ", &request.body[..]].concat()).unwrap();
    };
    held.iter().for_each(|request| reply(&mut service, request));
    for _ in 0..10 {
        let request = service.recv_request_deadline(until()).unwrap().expect("hung");
        reply(&mut service, &request);
    }
    let mut caller = client.join().unwrap();
    // One that sends what is no request is hung up on, and no other.
    let mut liar = doorbell::connect(&path).unwrap();
    liar.send(b"short").unwrap();
    while service.refusals().is_empty() {
        let soon = Some(doorbell::Deadline::after(Duration::from_millis(10)));
        assert!(service.recv_request_deadline(soon).unwrap().is_none());
    }
    assert_eq!((service.refusals(), service.clients().count()), (vec![Reason::Violation], 1));
    let asked = caller.ask(b"still here").unwrap();
    let request = service.recv_request_deadline(until()).unwrap().expect("hung");
    assert_eq!(request.body, b"still here");
    drop(service);
    assert!(matches!(caller.reply(asked, until()), Err(service::CallError::Recv(_))));
}

#[test]
fn of_those_that_come_at_once_one_is_the_service() {
    let path = scratch("first-is-service");
    for _ in 0..20 {
        let opened: Vec<_> = thread::scope(|scope| {
            let come = || scope.spawn(|| listen_or_connect(&path).unwrap());
            let coming: Vec<_> = (0..2).map(|_| come()).collect();
            // Whoever waits to be let in is let in by a service that is looked after.
            coming.into_iter().map(|coming| coming.join().unwrap()).collect()
        });
        let services = opened.iter().filter(|opened| matches!(opened, Opened::Service(_))).count();
        assert_eq!(services, 1);
    }
}

/// They are kept by the kernel, and not without end.
#[test]
fn ends_that_nobody_receives_are_refused_and_had_again() {
    let (mut ours, theirs) = service::pair(4096).unwrap();
    let mut theirs = theirs.open().unwrap();
    let mut sent = 0;
    let refused = loop {
        let (_, end) = service::pair(0).unwrap();
        match ours.ends().send(end) {
            Ok(()) => sent += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.error, RendezvousError::EndsNotTaken);
    assert!(sent >= 100, "{sent}");
    theirs.ends().recv().unwrap();
    ours.ends().send(refused.end).unwrap();
    ours.send(b"and messages as ever").unwrap();
    assert_eq!(theirs.recv().unwrap(), b"and messages as ever");
    // With one that was dropped here nobody can come.
    let (mut alone, end) = service::pair(4096).unwrap();
    drop(end);
    assert!(matches!(alone.recv(), Err(RecvError::PeerGone(_))));
    assert!(matches!(ours.ends().recv_timeout(Duration::ZERO), Ok(None)));
    drop(theirs);
    assert_eq!(ours.recv(), Err(RecvError::Closed));
    assert!(matches!(ours.ends().recv(), Err(RendezvousError::NoAnswer(_))));
}

#[test]
fn two_lines_on_either_side_are_a_first_message() {
    let path = scratch("first");
    let mut service = doorbell::listen(&path).unwrap();
    let client = thread::spawn({
        let path = path.clone();
        move || doorbell::connect(path).unwrap().send(b"hello")
    });
    let mut client_here = service.accept().unwrap();
    client.join().unwrap().unwrap();
    assert_eq!(client_here.iter().collect::<Result<Vec<_>, _>>().unwrap(), [b"hello"]);
}

#[test]
fn clients_are_answered_each_and_killed_ones_leave_and_come_again() {
    let path = scratch("many");
    let mut service = doorbell::listen(&path).unwrap();
    for round in 0..3 {
        let mut others: Vec<_> = (0..5).map(|_| Other(me_as(&path).spawn().unwrap())).collect();
        let mut here = Vec::new();
        while here.len() < 5 {
            let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
            assert_eq!(message, b"hello");
            here.push(client);
        }
        for (number, client) in here.iter().enumerate() {
            service.send(*client, &[round, number as u8]).unwrap();
        }
        let mut answers = Vec::new();
        while answers.len() < 5 {
            let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
            let number = here.iter().position(|there| *there == client).unwrap();
            assert_eq!(message, [round, number as u8]);
            answers.push(client);
        }
        assert_eq!(service.clients().count(), 5);
        others.iter_mut().for_each(|other| other.0.kill().unwrap());
        drop(others);
        while service.clients().count() > 0 {
            assert!(service.recv_timeout(Duration::from_millis(10)).unwrap().is_none());
        }
        assert_eq!(service.send(here[0], b"late"), Err(SendError::Closed));
    }
    // This machine may have held one of them up.
    assert!(service.refusals().iter().all(|reason| *reason == Reason::TooSlow), "{:?}", service.refusals());
}

#[test]
fn a_client_that_takes_no_answers_keeps_no_other_waiting() {
    let path = scratch("deaf");
    let mut service = ListenOptions { capacity: 4096, ..ListenOptions::default() }.at(&path).unwrap();
    let serving = thread::spawn(move || {
        let mut full = 0;
        loop {
            let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
            if message == b"end" {
                return full;
            }
            full += u32::from(service.send(client, &message) == Err(SendError::Full));
        }
    });
    let mut deaf = doorbell::connect(&path).unwrap();
    let mut other = doorbell::connect(&path).unwrap();
    for _ in 0..20 {
        deaf.send(&[1; 1000]).unwrap();
        other.send(&[2; 1000]).unwrap();
        assert_eq!(other.recv_timeout(FOREVER).unwrap().expect("hung"), [2; 1000]);
    }
    deaf.send(b"end").unwrap();
    assert!(serving.join().unwrap() > 0);
}

/// Whoever always had something to be received was all that was received.
#[test]
fn a_client_that_never_stops_sending_keeps_neither_clients_nor_callers_out() {
    let path = scratch("hog");
    let mut service = doorbell::listen(&path).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let (path, done) = (&path, &done);
        // So many that one of them always has something.
        for _ in 0..6 {
            scope.spawn(move || {
                let mut hog = doorbell::connect_timeout(path, FOREVER).unwrap();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = hog.sender().send_timeout(&[7; 5], Duration::from_millis(10));
                }
            });
        }
        let others = scope.spawn(move || {
            let mut armed = doorbell::connect(path).unwrap();
            for _ in 0..20 {
                armed.send(b"once").unwrap();
                assert_eq!(armed.recv_timeout(FOREVER).unwrap().expect("kept out"), b"once");
                let mut caller = doorbell::connect(path).unwrap();
                caller.send(b"new").unwrap();
                assert_eq!(caller.recv_timeout(FOREVER).unwrap().expect("kept out"), b"new");
            }
        });
        while !others.is_finished() {
            if let Some((client, message)) = service.recv_timeout(Duration::from_millis(10)).unwrap()
                && message != [7; 5]
            {
                service.send(client, &message).unwrap();
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        others.join().unwrap();
    });
}

#[test]
fn a_client_is_told_when_its_service_dies_and_finds_the_next() {
    let path = scratch("again");
    let first = doorbell::listen(&path).unwrap();
    assert_eq!(doorbell::listen(&path).map(drop).unwrap_err(), RendezvousError::Owned { path: path.clone() });
    let serve = |mut service: doorbell::service::Service| {
        thread::spawn(move || {
            let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
            // The second client does not wait for its answer.
            let _ = service.send(client, &message);
        })
    };
    let serving = serve(first);
    let mut client = doorbell::connect(&path).unwrap();
    client.send(b"first").unwrap();
    assert_eq!(client.recv_timeout(FOREVER).unwrap().expect("hung"), b"first");
    serving.join().unwrap();
    let told = client.recv().unwrap_err();
    assert!(matches!(told, RecvError::Closed | RecvError::PeerGone(_)), "{told:?}");
    assert_eq!(
        doorbell::connect(&path).map(drop).unwrap_err(),
        RendezvousError::NoOwner { path: path.clone() }
    );
    let later = thread::spawn({
        let path = path.clone();
        move || doorbell::connect_timeout(path, FOREVER).map(|mut client| client.send(b"second"))
    });
    let second = doorbell::listen(&path).unwrap();
    serve(second).join().unwrap();
    later.join().unwrap().unwrap().unwrap();
}

#[test]
fn more_clients_than_a_service_takes_are_turned_away_and_the_others_stay() {
    let path = scratch("most");
    let mut service = ListenOptions { most_clients: 2, ..ListenOptions::default() }.at(&path).unwrap();
    let serving = thread::spawn(move || {
        for _ in 0..3 {
            let (client, message) = service.recv_timeout(FOREVER).unwrap().expect("hung");
            service.send(client, &message).unwrap();
        }
        (service.turned_away(), service.refusals())
    });
    let mut clients: Vec<_> = (0..2).map(|_| doorbell::connect(&path).unwrap()).collect();
    for client in &mut clients {
        client.send(b"one").unwrap();
        client.recv().unwrap();
    }
    let full = Reason::Full { most: 2 };
    assert_eq!(doorbell::connect(&path).map(drop), Err(RendezvousError::Refused(full)));
    clients[0].send(b"still here").unwrap();
    assert_eq!(serving.join().unwrap(), (1, vec![full]));
}

/// The folder is of this user alone; a name in it is a service of it.
#[test]
fn names_are_listed() {
    let name = format!("doorbell-test-{}", std::process::id());
    let mut service = doorbell::listen(&name).unwrap();
    assert!(names().unwrap().contains(&name));
    let client = thread::spawn({
        let name = name.clone();
        move || doorbell::connect_timeout(name, FOREVER).map(drop)
    });
    service.accept_timeout(FOREVER).unwrap().expect("hung");
    client.join().unwrap().unwrap();
    drop(service);
    assert!(!names().unwrap().contains(&name));
}

#[test]
fn anybody_may_see_who_serves_whom_and_what_lies_between_them() {
    let path = scratch("seen");
    let mut service = doorbell::listen(&path).unwrap();
    let other = Other(me_as(&path).spawn().unwrap());
    let mut client = service.accept_timeout(FOREVER).unwrap().expect("hung");
    let look = || {
        let found = doorbell::service::inspect().unwrap().services;
        found.into_iter().find(|served| served.name == path.to_str().unwrap()).expect("it has a client")
    };
    // Until it was received.
    let requests = loop {
        let served = look();
        assert_eq!(served.process, Some(std::process::id()));
        // And, for a moment, a child that another test has forked and that has not begun its program.
        assert!(served.clients[0].processes.contains(&other.0.id()), "{served:?}");
        if served.clients[0].requests.messages == 1 {
            break served.clients[0].requests;
        }
        thread::yield_now();
    };
    assert_eq!((requests.bytes, requests.dropped), (16, 0));
    assert_eq!(client.recv().unwrap(), b"hello");
    assert_eq!(client.try_recv(), Ok(None));
    assert_eq!(look().clients[0].requests.messages, 0);
    while client.sender().send_or_drop(&[0; 20_000]).unwrap() {}
    assert_eq!(look().clients[0].answers.dropped, 1);
}

/// A look takes no part: what it reads of a ring may be of different moments.
#[test]
fn a_client_is_seen_whatever_moves_in_its_rings_meanwhile() {
    let path = scratch("moving");
    let mut service = doorbell::listen(&path).unwrap();
    let _other = Other(me_as(&path).spawn().unwrap());
    let mut client = service.accept_timeout(FOREVER).unwrap().expect("hung");
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let begun = Instant::now();
            for look in 0..300 {
                if look >= 20 && begun.elapsed() > Duration::from_secs(5) {
                    break;
                }
                let services = doorbell::service::inspect().unwrap().services;
                let found = services.into_iter().find(|served| served.name == path.to_str().unwrap());
                assert_eq!(found.map_or(0, |served| served.clients.len()), 1, "look {look}");
            }
        });
        let mut length = 0;
        while !looking.is_finished() {
            length = (length + 4_001) % 20_000;
            let _sent = client.sender().send_or_drop(&vec![0xA5; length]).unwrap();
            while client.try_recv().unwrap().is_some() {}
        }
    });
}

/// What a hostile client writes there is looked at by whoever lists services, root among them.
#[test]
fn a_look_at_services_ends_well_whatever_lies_in_their_memory() {
    let path = scratch("lies");
    let mut service = doorbell::listen(&path).unwrap();
    let joining = thread::spawn({
        let path = path.clone();
        move || doorbell::raw::Join::default().at(path).unwrap()
    });
    let _client = service.accept_timeout(FOREVER).unwrap().expect("hung");
    let connection = joining.join().unwrap();
    // SAFETY: nothing of it is borrowed: both ends are untrusted.
    let file = unsafe { connection.segment().mapping().file() }.unwrap().try_clone_to_owned().unwrap();
    let file = std::fs::File::from(file);
    let (mut random, length) = (1_u64, file.metadata().unwrap().len());
    for _ in 0..100 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let value = [0, 1, 2, u64::MAX, random, 40 << 2 | 1][(random >> 60) as usize % 6];
        let at = (random >> 20) % (length / 8) * 8;
        std::os::unix::fs::FileExt::write_at(&file, &value.to_ne_bytes(), at).unwrap();
        doorbell::service::inspect().unwrap();
    }
}

#[cfg(feature = "tokio")]
#[test]
fn a_task_accepts_clients_and_receives_from_them_without_a_thread() {
    let path = scratch("task");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let service = doorbell::listen(&path).unwrap();
    let _others: Vec<_> = (0..3).map(|_| Other(me_as(&path).spawn().unwrap())).collect();
    runtime.block_on(async {
        let mut service = doorbell::AsyncService::new(service).unwrap();
        let all = async {
            let mut accepted = service.accept().await.unwrap();
            // Others come and speak while nobody looks.
            let (other, message) = service.recv().await.unwrap();
            assert_eq!(message, b"hello");
            service.get_mut().send(other, b"again").unwrap();
            let mut heard = Vec::new();
            while heard.len() < 2 {
                heard.push(service.recv().await.unwrap().1);
            }
            heard.sort();
            assert_eq!(heard, [b"again".to_vec(), b"hello".to_vec()]);
            assert_eq!(accepted.recv_timeout(FOREVER), Ok(Some(b"hello".to_vec())));
        };
        tokio::time::timeout(FOREVER, all).await.expect("hung");
    });
}

/// A runtime that awaits callers alone was woken again and again by
/// what a client had sent that nobody received.
#[test]
fn the_file_of_callers_says_nothing_of_messages_and_tells_of_who_comes() {
    let path = scratch("callers");
    let mut service = doorbell::listen(&path).unwrap();
    let mut client = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut client = doorbell::connect(&path).unwrap();
            client.send(b"one").unwrap();
            client
        });
        assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"one");
        client.join().unwrap()
    });
    // From here on the client's file tells of its messages.
    assert_eq!(service.try_recv(), Ok(None));
    client.send(b"two").unwrap();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    assert!(service.accept_timeout(Duration::ZERO).unwrap().is_none());
    assert_eq!(poll(&mut [PollFd::new(&service, PollFlags::IN)], Some(&now)), Ok(1));
    assert_eq!(poll(&mut [PollFd::from_borrowed_fd(service.callers(), PollFlags::IN)], Some(&now)), Ok(0));
    let calling = thread::spawn(move || doorbell::connect(path).map(drop));
    let accepted = loop {
        poll(&mut [PollFd::from_borrowed_fd(service.callers(), PollFlags::IN)], None).unwrap();
        if let Some(accepted) = service.accept_timeout(Duration::ZERO).unwrap() {
            break accepted;
        }
    };
    calling.join().unwrap().unwrap();
    drop(accepted);
    assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"two");
}

/// Half a minute, and then "Resource temporarily unavailable": it waited for itself.
#[test]
fn one_thread_can_be_a_service_and_its_client() {
    let path = scratch("alone");
    let mut service = doorbell::listen(&path).unwrap();
    let mut client = doorbell::connect_timeout(&path, FOREVER).unwrap();
    client.send(b"hello").unwrap();
    let (who, hello) = service.recv_timeout(FOREVER).unwrap().expect("hung");
    assert_eq!(hello, b"hello");
    service.send(who, b"and hello").unwrap();
    assert_eq!(client.recv_timeout(FOREVER).unwrap().expect("hung"), b"and hello");
    // However short it may wait, and where each client is handed out.
    let mut other = doorbell::connect_timeout(&path, Duration::ZERO).unwrap();
    let mut here = service.accept_timeout(FOREVER).unwrap().expect("hung");
    here.send(b"you are apart").unwrap();
    assert_eq!(other.recv().unwrap(), b"you are apart");
    assert_eq!((service.clients().count(), service.turned_away()), (1, 0));
}

/// A socket at which somebody listens and never answers, as a stopped process does.
fn stopped(path: &Path) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    socket
}

/// The time that may be waited for a service to be there was all that was kept: who was there and
/// did not answer was waited for as long again as a joiner waits that says nothing.
#[test]
fn who_waits_for_a_stopped_service_is_told_so_when_its_time_is_up() {
    let path = scratch("stopped");
    let _service = stopped(&path);
    let after = Duration::from_millis(20);
    assert_eq!(doorbell::connect_timeout(&path, after).map(drop), Err(RendezvousError::TimedOut { after }));
    let told = Join::default().patience(after).at(&path).map(drop).unwrap_err();
    assert_eq!(told, RendezvousError::TimedOut { after });
    assert!(told.to_string().contains("20ms"), "{told}");
    fs::remove_file(path).unwrap();
}

/// Ctrl-C was not heard while somebody connected.
#[test]
fn a_signal_ends_the_wait_for_a_service_where_that_was_asked_for() {
    static HEARD: AtomicBool = AtomicBool::new(false);
    extern "C" fn heard(_: libc::c_int) {
        HEARD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = heard as *const () as usize;
        // As most programs have it.
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let path = scratch("signal");
    let _service = stopped(&path);
    let (told, tells) = channel();
    let waiting = thread::spawn({
        let path = path.clone();
        move || {
            // SAFETY: names the calling thread.
            told.send(unsafe { libc::pthread_self() } as usize).unwrap();
            let connect = || doorbell::service::connect_by_timeout(path, &Join::default(), FOREVER).map(drop);
            Arc::new(Interrupt::asking(|| HEARD.load(Ordering::Relaxed))).during(connect)
        }
    });
    let thread = tells.recv().unwrap();
    // It may not sleep yet.
    while !waiting.is_finished() {
        // SAFETY: not joined yet.
        unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) };
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(waiting.join().unwrap(), Err(RendezvousError::Interrupted));
    fs::remove_file(path).unwrap();
}

/// A signal just before the system call does not end that: whoever handles it elsewhere is asked.
#[test]
fn whoever_is_asked_ends_the_wait_for_a_service_without_a_signal() {
    let path = scratch("asked");
    let _service = stopped(&path);
    let connect = || doorbell::service::connect_by_timeout(&path, &Join::default(), FOREVER).map(drop);
    let interrupt = Arc::new(Interrupt::asking(|| true));
    assert_eq!(interrupt.during(connect), Err(RendezvousError::Interrupted));
    fs::remove_file(path).unwrap();
}

/// Somebody who has connected and said hello.
fn greeted(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    let version = u64::from(doorbell_core::layout::MAJOR) << 32;
    let words = [u64::from_ne_bytes(*b"DBHELLO1"), version, u64::MAX];
    let hello: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    rustix::net::send(&socket, &hello, SendFlags::empty()).unwrap();
    socket
}

/// All that came were served before a client was looked at, and while
/// more came all the time, nobody was.
#[test]
fn callers_take_turns_with_clients_however_many_come() {
    let path = scratch("flood");
    let mut service = doorbell::listen(&path).unwrap();
    let mut client = doorbell::connect(&path).unwrap();
    client.send(b"first").unwrap();
    assert_eq!(service.recv_timeout(FOREVER).unwrap().expect("hung").1, b"first");
    assert_eq!(service.try_recv(), Ok(None));
    let callers: Vec<_> = (0..50).map(|_| greeted(&path)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let offered = || {
        let is_offered =
            |caller: &&OwnedFd| poll(&mut [PollFd::new(caller, PollFlags::IN)], Some(&now)).unwrap() == 1;
        callers.iter().filter(is_offered).count()
    };
    client.send(b"question").unwrap();
    assert_eq!(service.try_recv().unwrap().expect("it is there").1, b"question");
    assert!(offered() <= 8, "{} callers went first", offered());
    // And none of them is forgotten, also by one who asks only when the service's file tells it
    // something new, as tokio does.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut service = doorbell::AsyncService::new(service).unwrap();
        while offered() < 50 {
            let _ = tokio::time::timeout(Duration::from_millis(1), service.recv()).await;
        }
    });
}

/// What a service does that has no descriptor left for a client, until its parent ends it.
fn serve_without_descriptors(path: &Path) {
    let mut service = doorbell::listen(path).unwrap();
    let here = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    // Those that are open, of which the directory was one, and the caller's socket.
    setrlimit(Resource::Nofile, Rlimit { current: Some(here), maximum: Some(here) }).unwrap();
    assert_eq!(service.most_clients(), 0, "it can be known before a client comes");
    while service.recv_timeout(FOREVER).unwrap().is_none() {}
}

/// It hung up, as on one whose user it does not let in, and looked alive.
#[test]
fn a_service_without_descriptors_tells_its_callers_so_and_everybody_who_looks() {
    let path = scratch("none-left");
    let _service = Other(me_as(format!("without descriptors {}", path.display())).spawn().unwrap());
    let told = doorbell::connect_timeout(&path, FOREVER).map(drop).unwrap_err();
    assert_eq!(told, RendezvousError::Refused(Reason::NoDescriptors));
    assert!(told.to_string().contains("ulimit -n"), "{told}");
    // Without a client it has no memory by which it could be found, but in a folder of names.
    let service = _service.0.id();
    let turned_away = || doorbell::counters::process(service).unwrap().expect("it counts").turned_away;
    // It counts after telling.
    while turned_away() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(turned_away(), 1);
    drop(inspect().unwrap());
}

/// What did not fit was taken for a lie: "it announced 5 descriptors and sent 3".
#[test]
fn a_client_without_descriptors_is_told_that_it_is_its_own_fault() {
    let name = "a_client_without_descriptors_is_told_that_it_is_its_own_fault";
    alone::alone(name, connect_with_ever_more_descriptors);
}

fn connect_with_ever_more_descriptors() {
    let path = scratch("few");
    let mut service = doorbell::listen(&path).unwrap();
    let mut kept = doorbell::connect(&path).unwrap();
    kept.send(b"all that a process opens once is open").unwrap();
    service.recv_timeout(FOREVER).unwrap().expect("hung");
    let mut said = Vec::new();
    // The service's side of each takes some, and of the client's a part fits, or all.
    for free in 1..=20 {
        let mut files: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
        files.truncate(files.len() - free);
        if let Err(told) = doorbell::connect(&path) {
            said.push(told.to_string());
        }
        drop(files);
        // Gives up what those have who have gone.
        while service.recv_timeout(Duration::from_millis(1)).unwrap().is_some() {}
    }
    for told in &said {
        assert!(told.contains("ulimit -n") && !told.contains("protocol"), "{told}");
    }
    assert!(said.iter().any(|told| told.contains("recvmsg")), "{said:#?}");
    doorbell::connect(&path).unwrap();
}
