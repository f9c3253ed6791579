// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time-outs of nothing and of all time.

#![expect(clippy::unwrap_used, reason = "a test")]

use doorbell::rendezvous::{Join, RendezvousError};
use doorbell::wait::{Eventfd, Futex, Spin, Wait, Yield};
use doorbell::{Bell, Notify, Select};
use std::path::PathBuf;
use std::thread::{scope, sleep};
use std::time::Duration;

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("doorbell-extremes-{name}-{}", std::process::id()))
}

/// Runs `later` when the other side has most likely begun to wait for ever.
fn meanwhile<R>(later: impl FnOnce() + Send, wait: impl FnOnce() -> R) -> R {
    scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(30));
            later();
        });
        wait()
    })
}

fn bell_waits_for_ever<W: Wait + Default>() {
    let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
    let ringer = bell.clone();
    assert_eq!(bell.wait_timeout(Duration::ZERO), Ok(None));
    assert!(meanwhile(|| ringer.ring(), || bell.wait_timeout(Duration::MAX)).unwrap().is_some());
}

#[test]
fn a_time_out_of_all_time_ends_with_what_is_waited_for_and_none_ends_at_once() {
    bell_waits_for_ever::<doorbell::wait::Adaptive>();
    bell_waits_for_ever::<Futex>();
    bell_waits_for_ever::<Eventfd>();
    bell_waits_for_ever::<Spin>();
    bell_waits_for_ever::<Yield>();
    let (mut sender, mut receiver) = doorbell::channel(4096).unwrap();
    assert!(receiver.recv_timeout(Duration::ZERO).unwrap().is_none());
    meanwhile(|| sender.send(b"").unwrap(), || receiver.recv_timeout(Duration::MAX).map(drop)).unwrap();
    let notify = Notify::new();
    assert_eq!(notify.wait_timeout(Duration::ZERO), Ok(false));
    assert_eq!(meanwhile(|| notify.notify_one(), || notify.wait_timeout(Duration::MAX)), Ok(true));
    let work = doorbell::queue(1);
    assert!(work.pop_timeout(Duration::ZERO).is_err());
    assert_eq!(meanwhile(|| work.push(7).unwrap(), || work.pop_timeout(Duration::MAX)), Ok(7));
    let (mut select, for_ever) = (Select::new(), Some(doorbell::Deadline::after(Duration::MAX)));
    let chosen = meanwhile(|| sender.send(b"").unwrap(), || select.wait(&mut [&mut receiver], for_ever));
    assert_eq!(chosen, Ok(Some(0)));
}

#[test]
fn a_service_waits_for_ever_and_not_at_all() {
    let path = scratch("service");
    let mut service = doorbell::listen(&path).unwrap();
    assert_eq!(service.recv_timeout(Duration::ZERO), Ok(None));
    assert!(service.accept_timeout(Duration::ZERO).unwrap().is_none());
    let came = meanwhile(
        || doorbell::connect_timeout(&path, Duration::MAX).unwrap().send(b"hello").unwrap(),
        || service.recv_timeout(Duration::MAX),
    );
    assert_eq!(came.unwrap().unwrap().1, b"hello");
    let calling = || drop(doorbell::connect_timeout(&path, Duration::ZERO).unwrap());
    assert!(meanwhile(calling, || service.accept_timeout(Duration::MAX)).unwrap().is_some());
}

/// A patience of nothing is for ever to the kernel, and one of all time is more than it takes: both
/// were errors of a system call.
#[test]
fn a_joiner_has_no_patience_or_all_of_it() {
    let path = scratch("patience");
    // A host that has not been asked to serve anybody.
    let host = doorbell::raw::socket::Host::bind(&path).unwrap();
    let refused = Join::default().patience(Duration::ZERO).at(&path).map(drop);
    assert_eq!(refused, Err(RendezvousError::TimedOut { after: Duration::ZERO }));
    drop(host);
    let mut service = doorbell::listen(&path).unwrap();
    let joining = || drop(Join::default().patience(Duration::MAX).at(&path).unwrap());
    assert!(meanwhile(joining, || service.accept()).is_ok());
}
