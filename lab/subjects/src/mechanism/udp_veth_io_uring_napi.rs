// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP over a veth pair, received through an io_uring that polls the
//! device's queue before it sleeps.

use std::os::fd::AsRawFd;

use super::busy_poll::{POLL_US, has_queue};
use super::descriptor::{Descriptors, Ends};
use super::udp_veth::of_a_pair;
use super::uring::Ring;
use super::uring_read::{ReadByRing, ReadLink};
use super::{Carries, Explanation, Link, Mechanism, OpenError, Unavailable, Waits, veth};

pub(crate) struct UdpVethIoUringNapi;

/// `struct io_uring_napi` of linux/io_uring.h. `operation` and `tracking` came with Linux 6.13;
/// before it they were reserved and had to be zero, which they are: register, and follow the
/// sockets that are waited for.
#[repr(C)]
struct Napi {
    busy_poll_us: u32,
    prefer_busy_poll: u8,
    operation: u8,
    pad: [u8; 2],
    tracking: u32,
    reserved: u32,
}

/// `IORING_REGISTER_NAPI` of linux/io_uring.h.
const REGISTER_NAPI: libc::c_uint = 27;

impl Descriptors for UdpVethIoUringNapi {
    const TOKEN: usize = 4;
    const NUMBERED: bool = true;
    const SOCKET: bool = true;
    fn open() -> Result<Ends, OpenError> {
        veth::udp_pair()
    }
}

impl ReadByRing for UdpVethIoUringNapi {
    fn prepare(ring: &Ring) -> Result<(), OpenError> {
        let mut napi = Napi {
            busy_poll_us: POLL_US.cast_unsigned(),
            prefer_busy_poll: 0,
            operation: 0,
            pad: [0; 2],
            tracking: 0,
            reserved: 0,
        };
        // SAFETY: the structure is the one the call takes (one of it) and writes the former settings to; it
        // lives through it. JUSTIFICATION: the io-uring crate has no IORING_REGISTER_NAPI.
        let result = unsafe {
            libc::syscall(libc::SYS_io_uring_register, ring.0.as_raw_fd(), REGISTER_NAPI, &raw mut napi, 1)
        };
        if result == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(OpenError::with_cure(
            "io_uring_register(IORING_REGISTER_NAPI)",
            error,
            "it needs Linux 6.9 with CONFIG_NET_RX_BUSY_POLL",
        ))
    }
}

impl Mechanism for UdpVethIoUringNapi {
    type Link = ReadLink<Self>;
    const NAME: &'static str = "udp-veth-io-uring-napi";
    const WAITS: Waits = Waits::Adapts;
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DROPS: bool = true;
    const USUAL: bool = false;

    const EXPLANATION: Explanation = Explanation {
        summary: "UDP over a veth pair, read by an io_uring that polls the device first \
            (IORING_REGISTER_NAPI)",
        how: "As udp-veth-io-uring. The ring was told to poll for 50 µs the device queues of \
            the sockets it waits for, before it sleeps.",
        kernel: "The ring notes the NAPI instance by which the socket's last packet came. A \
            waiter in io_uring_enter(2) runs that instance itself, on its own CPU: while it \
            does, the notifier's call leaves the packet in the device's ring and is done, and \
            the waiter takes it through UDP. If nothing comes in time, the waiter sleeps, and \
            the next packet comes as without.",
        limits: concat!(
            of_a_pair!(),
            "Linux 6.9. Drops as udp-veth. Keeps a CPU busy for as long as it polls; on a CPU \
             that both sides share, the notifier waits for the end of it. Listed as \
             unavailable where the socket's packets come through no queue that can be polled \
             (SO_INCOMING_NAPI_ID is 0). A look polls nothing."
        ),
        sources: &[
            "io_uring_register_napi(3), socket(7)",
            "Linux io_uring/napi.c, io_napi_busy_loop; net/core/dev.c, __napi_busy_loop; \
             drivers/net/veth.c, veth_poll",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        Self::Link::available()?;
        if has_queue(&veth::udp_pair()?)? {
            return Ok(());
        }
        Err(Unavailable::because(
            "packets over the veth pair come through no queue that can be polled \
             (SO_INCOMING_NAPI_ID is 0): the ring would sleep as without IORING_REGISTER_NAPI",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::thread;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;
    use crate::mechanism::udp_veth::UdpVeth;
    use crate::mechanism::{Contexts, Notifier, Site, Waiter};
    use doorbell_harness::arena::Arena;
    use doorbell_harness::run_dir::RunDir;

    const PACKETS: u32 = 2000;

    /// Two CPUs of this process, or as many as there are.
    fn two_cpus() -> Vec<usize> {
        let allowed = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(2).collect()
    }

    fn pin(cpu: usize) {
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only).unwrap();
    }

    /// Packets of [`PACKETS`] that their receiver took from the device by polling it. The kernel
    /// counts them for each namespace.
    fn polled<D: ReadByRing>(cpus: &[usize]) -> u64 {
        let run_dir = RunDir::create().unwrap();
        let site = Site::new(Contexts::Threads, Arena::map(1 << 16).unwrap(), &run_dir);
        // Whoever opens it decides whose counters it tells.
        let counters = || File::open("/proc/thread-self/net/netstat").map_err(OpenError::of("open"));
        let ((read, mut counters), write) =
            veth::between(|_| Ok((veth::udp_receiver()?, counters()?)), |_| veth::udp_sender()).unwrap();
        let link = ReadLink::<D>::of(Ends { read, write }, &site).unwrap();
        let seen = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                pin(cpus[0]);
                let mut waiter = link.waiter().unwrap();
                for packet in 1..=PACKETS {
                    waiter.wait().unwrap();
                    assert_eq!(waiter.number(), Some(packet));
                    seen.store(packet, SeqCst);
                }
            });
            scope.spawn(|| {
                pin(cpus[1]);
                let mut notifier = link.notifier().unwrap();
                for before in 0..PACKETS {
                    // The waiter is then back at its wait, or soon. Whoever
                    // yielded here would often come too late for it.
                    while seen.load(SeqCst) != before {
                        std::hint::spin_loop();
                    }
                    notifier.notify().unwrap();
                }
            });
        });
        let mut text = String::new();
        counters.read_to_string(&mut text).unwrap();
        // A line of names, then one of numbers.
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, numbers) = (lines.next().unwrap(), lines.next().unwrap());
        let at = names.split(' ').position(|name| name == "BusyPollRxPackets").unwrap();
        numbers.split(' ').nth(at).unwrap().parse().unwrap()
    }

    #[test]
    fn its_waiter_takes_packets_by_polling_and_a_plain_ring_takes_none() {
        if let Err(lack) = UdpVethIoUringNapi::available() {
            return doorbell_skipped::skip(lack);
        }
        let cpus = two_cpus();
        if cpus.len() < 2 {
            return doorbell_skipped::skip("with one CPU nobody sends while somebody polls");
        }
        let (with, without) = (polled::<UdpVethIoUringNapi>(&cpus), polled::<UdpVeth>(&cpus));
        println!(
            "of {PACKETS} packets {with} were taken by polling with IORING_REGISTER_NAPI, {without} without"
        );
        assert!(with > 0);
        assert_eq!(without, 0);
    }
}
