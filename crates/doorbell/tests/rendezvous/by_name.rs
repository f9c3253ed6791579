// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment with a name: whoever owns it may go, and another come.

use super::*;

fn own(path: &std::path::Path) -> Other {
    let child = Other(me_as(format!("own {}", path.display())).spawn().unwrap());
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
    let child = me_as(format!("join and leave {}", path.display())).status().unwrap();
    assert!(child.success());
    drop(owner);
    // SAFETY: a process or thread of this program, which follows the protocol.
    assert!(matches!(unsafe { named::join(&path) }, Err(RendezvousError::NoOwner)));
}

#[test]
fn of_many_who_want_to_own_a_name_one_does() {
    let path = scratch("many");
    let own = || me_as(format!("own {}", path.display())).stderr(Stdio::null()).spawn().unwrap();
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
