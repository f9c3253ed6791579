// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that may be set.

use super::*;

/// Kills this process when a thread of it begins a sleep that a step
/// of the wall clock would stretch or cut short.
fn forbid_sleeps_by_the_wall_clock() {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
    const LOAD: u16 = (BPF_LD | BPF_W | BPF_ABS) as u16;
    const IF_EQUAL: u16 = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
    const IF_SET: u16 = (BPF_JMP | BPF_JSET | BPF_K) as u16;
    const RETURN: u16 = (BPF_RET | BPF_K) as u16;
    /// Where `struct seccomp_data` has the low half of an argument, on a little-endian machine.
    fn argument(number: u32) -> u32 {
        16 + 8 * number
    }
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let number = |call: libc::c_long| u32::try_from(call).unwrap();
    let realtime = u32::try_from(libc::CLOCK_REALTIME).unwrap();
    let mut filter = Vec::new();
    // Each rule: is it this call, is there a time at all, and does that argument name the wall clock?
    // Then kill. (glibc names it for sleeps without a time.)
    for (call, time, clock, code, value) in [
        (libc::SYS_futex, 3, 1, IF_SET, u32::try_from(libc::FUTEX_CLOCK_REALTIME).unwrap()),
        (libc::SYS_futex_waitv, 3, 4, IF_EQUAL, realtime),
        (libc::SYS_clock_nanosleep, 2, 0, IF_EQUAL, realtime),
    ] {
        filter.push(step(LOAD, 0, 0, 0));
        filter.push(step(IF_EQUAL, number(call), 0, 5));
        filter.push(step(LOAD, argument(time), 0, 0));
        filter.push(step(IF_EQUAL, 0, 3, 0));
        filter.push(step(LOAD, argument(clock), 0, 0));
        filter.push(step(code, value, 0, 1));
        filter.push(step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog { len: filter.len().try_into().unwrap(), filter: filter.as_mut_ptr() };
    // SAFETY: a program of that many steps, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

pub(crate) fn wait_by_the_wall_clock() {
    forbid_sleeps_by_the_wall_clock();
    let (word, until) = (0_u32, libc::timespec { tv_sec: 1, tv_nsec: 0 });
    // As glibc's `sem_timedwait` does it. SAFETY: a word and a time
    // of this function's own, which is past.
    unsafe {
        let call = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
        libc::syscall(libc::SYS_futex, &raw const word, call, 0, &raw const until, 0, u32::MAX);
    }
}

pub(crate) fn wait_in_time() {
    forbid_sleeps_by_the_wall_clock();
    fn bell<W: Wait + Default>() {
        let mut bell: Bell<W> = Bell::new().unwrap().waiting_by();
        assert_eq!(bell.wait_timeout(SOON), Ok(None));
        let (mut sender, mut receiver) = pair_waiting_by::<W>(64).unwrap();
        assert!(receiver.recv_timeout(SOON).unwrap().is_none());
        while sender.try_send(&[0; 16]).is_ok() {}
        assert!(sender.send_timeout(&[0; 16], SOON).is_err());
    }
    bell::<Adaptive>();
    bell::<Futex>();
    bell::<Eventfd>();
    bell::<Spin>();
    bell::<Yield>();
    let deadline = || Some(Deadline::after(SOON));
    let mut bells: [Bell<Futex>; 2] = std::array::from_fn(|_| Bell::new().unwrap().waiting_by());
    assert_eq!(wait_any(&mut bells.each_mut(), deadline()), Ok(None));
    let mut bells: [Bell<Eventfd>; 2] = std::array::from_fn(|_| Bell::new().unwrap().waiting_by());
    assert_eq!(wait_any(&mut bells.each_mut(), deadline()), Ok(None));
    let mut publisher: Publisher<Futex> = Publisher::waiting_by(64).unwrap();
    let _subscriber = publisher.subscribe_waiting_by::<Futex>(WhenSlow::HoldBack).unwrap();
    while publisher.publish_deadline(&[0; 8], deadline()).is_ok() {}
    // A rendezvous waits for its answer, too.
    let (ours, theirs) = socket::pair().unwrap();
    let leaving = thread::spawn(move || {
        thread::sleep(SOON);
        drop(theirs);
    });
    // SAFETY: a process or thread of this program, which follows the protocol.
    assert!(unsafe { doorbell::rendezvous::Join::<Trusted>::of() }.over(ours).is_err());
    leaving.join().unwrap();
}

/// A step of the wall clock cannot be tried without taking it from everybody
/// on the machine. That nothing sleeps by it can. (`wait::IoUring` names no
/// clock, and the kernel's own choice is not seen in its calls.)
#[test]
fn no_wait_with_a_deadline_sleeps_by_the_wall_clock_which_may_be_set() {
    let caught = me_as("wait-by-the-wall-clock").status().unwrap();
    assert_eq!(caught.signal(), Some(libc::SIGSYS), "such a sleep is caught: {caught}");
    succeeds(me_as("wait-in-time"));
}
