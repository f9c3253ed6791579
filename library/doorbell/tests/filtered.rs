// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the kernel, or a filter, does not know a call.

#![expect(clippy::unwrap_used, reason = "a test")]

use doorbell::raw::{Offer, Segment, socket};
use doorbell::rendezvous::{Reason, RendezvousError};
use doorbell::wait::Eventfd;
use rustix::io::Errno;
use std::sync::Arc;

/// Lets this thread, and those that it starts, have ENOSYS for the call of that number.
fn forbid(call: libc::c_long) {
    const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    // Load the call's number; if it is the one, fail with ENOSYS, else allow.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid for the call, and only this thread is filtered.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// A signal that was never made was taken for one that was: whoever slept on it slept on.
#[test]
fn who_may_make_a_context_for_signals_and_not_use_it_is_told_before_it_meets_anybody() {
    let (ours, theirs) = socket::pair().unwrap();
    let joining = std::thread::spawn(move || socket::join_over(theirs).map(drop));
    let met = std::thread::spawn(move || {
        forbid(libc::SYS_io_submit);
        let segment = Arc::new(Segment::new(&Offer::default()).unwrap());
        socket::host_over(ours, &segment).map(drop)
    });
    let refused = RendezvousError::Os { call: "io_submit", errno: Errno::NOSYS };
    assert_eq!(met.join().unwrap(), Err(refused));
    let reason = Reason::NoSignals { errno: Errno::NOSYS };
    assert_eq!(joining.join().unwrap(), Err(RendezvousError::Refused(reason)), "and so is the other side");
}

/// The wait failed with ENOSYS.
#[test]
fn a_wait_by_an_eventfd_that_others_share_needs_no_preadv2() {
    let segment = Segment::new(&Offer::default()).unwrap();
    let mut waiter = segment.bell_waiting_by::<Eventfd>(0).unwrap();
    let ringer = segment.bell(0).unwrap();
    std::thread::spawn(move || {
        forbid(libc::SYS_preadv2);
        for round in 0..100 {
            if round % 2 == 0 {
                ringer.ring();
                assert_eq!(waiter.wait().unwrap().get(), 1);
            } else {
                let ringer = ringer.clone();
                let ringing = std::thread::spawn(move || ringer.ring());
                assert_eq!(waiter.wait().unwrap().get(), 1);
                ringing.join().unwrap();
            }
        }
    })
    .join()
    .unwrap();
}
