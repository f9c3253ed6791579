// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that lie to a joiner.

use super::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use std::io::IoSlice;
use std::mem::MaybeUninit;

const OFFER: u64 = u64::from_ne_bytes(*b"DBOFFER1");
const VERSION: u64 = (doorbell_core::layout::MAJOR as u64) << 32;

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
        let (hosting, joining) = try_meet(&segment, socket::Join::default().most_memory(most));
        (hosting.map(drop), joining.map(drop))
    };
    let too_much = doorbell::mapping::MapError::TooMuch { bytes, most: bytes - 1 };
    assert_eq!(
        meet(bytes - 1),
        (Err(RendezvousError::Refused(Reason::TooMuchMemory)), Err(RendezvousError::Map(too_much)))
    );
    assert_eq!(meet(bytes), (Ok(()), Ok(())));
    let sparse = memory(doorbell::rendezvous::MOST_MEMORY + 4096, doorbell::mapping::SEALS);
    assert!(matches!(
        offered(&[OFFER, VERSION, 0, 0, 2], &[sparse.as_fd()]),
        RendezvousError::Map(doorbell::mapping::MapError::TooMuch { .. })
    ));
}

/// Whoever has such memory can punch a hole into it, sealed as it is;
/// with the pool used up we die of SIGBUS.
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
        Err(errno) => doorbell_skipped::skip(format_args!("this kernel has no huge pages of 2 MiB: {errno}")),
    }
    let memory = doorbell::rendezvous::MemoryOptions { huge_pages: true, ..Default::default() };
    let segment = Arc::new(Segment::new(&Offer { memory, ..Offer::default() }).unwrap());
    if !segment.refused().is_empty() {
        doorbell_skipped::skip(segment.refused()[0]);
        return;
    }
    // SAFETY: a thread of this program, which follows the protocol.
    let trusting = || unsafe { socket::Join::<Trusted>::of() };
    let (ours, theirs) = socket::pair().unwrap();
    let joining = thread::spawn(move || trusting().over(theirs).map(drop));
    let refused = socket::host_over(ours, &segment).unwrap_err();
    assert_eq!(refused, RendezvousError::Map(doorbell::mapping::MapError::HugePages));
    assert_eq!(joining.join().unwrap(), Err(RendezvousError::Refused(Reason::Unusable)));
    let (host, joined) = try_meet(&segment, trusting());
    assert!(host.is_ok() && joined.is_ok());
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
                let word = (seed >> 8) as usize % 64;
                // SAFETY: the record is 256 bytes of atomics.
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
