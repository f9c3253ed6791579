// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the kernel, or a filter, knows no `preadv2`: waits by eventfds go on.

#![expect(clippy::unwrap_used, reason = "a test")]

use doorbell::raw::{Offer, Segment};
use doorbell::wait::Eventfd;

/// Lets this thread have ENOSYS for `preadv2`.
fn forbid_preadv2() {
    const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    // Load the call's number; if it is the one, fail with ENOSYS, else allow.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_preadv2 as u32),
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

/// The wait failed with ENOSYS.
#[test]
fn a_wait_by_an_eventfd_that_others_share_needs_no_preadv2() {
    let segment = Segment::new(&Offer::default()).unwrap();
    let mut waiter = segment.bell_waiting_by::<Eventfd>(0).unwrap();
    let ringer = segment.bell(0).unwrap();
    std::thread::spawn(move || {
        forbid_preadv2();
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
