// SPDX-License-Identifier: MIT OR Apache-2.0
//! A veth pair whose ends are in network namespaces of their own: a network device with a queue to
//! poll, which the loopback device has not, and nothing of the machine's own network is touched.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrV4, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::OpenError;
use super::descriptor::Ends;

/// The name of either end, each the only one beside `lo` in its namespace.
const NAME: &str = "doorbell";

/// The addresses, of TEST-NET-1 (RFC 5737): of class C, so that
/// SIOCSIFADDR makes the route of the /24 by itself.
const RECEIVES: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SENDS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// The hardware address of both ends, locally administered. Without ARP (IFF_NOARP) the kernel
/// addresses a frame to the sending device's own address (net/ipv4/arp.c, arp_constructor): as both
/// have the same, the other end takes it, and no question of who is where falls into a trial.
pub(super) const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The port of a datagram's receiver. The namespace is fresh, so
/// every port is free; this one is `discard`.
const PORT: u16 = 9;

/// `VETH_INFO_PEER` of linux/veth.h: within, a whole link message of the other end.
const VETH_INFO_PEER: u16 = 1;
/// `ETHTOOL_SGRO` and `ETHTOOL_STSO` of linux/ethtool.h.
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_STSO: u32 = 0x1f;

/// The cure of every refusal here.
const CURE: &str = "it needs root, or CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW";

/// Makes a pair and what either side needs of it: `sending` runs within the sender's namespace,
/// then `receiving` within the receiver's, each with the index of the end there, which is up.
///
/// The namespaces, and with them the pair, live as long as a socket that was made in them.
///
/// # Errors
/// If the kernel refuses a namespace, the pair or its settings, or
/// what `receiving` and `sending` say.
pub(super) fn between<R: Send, S: Send>(
    receiving: impl FnOnce(u32) -> Result<R, OpenError> + Send,
    sending: impl FnOnce(u32) -> Result<S, OpenError> + Send,
) -> Result<(R, S), OpenError> {
    // Namespaces belong to a thread, and this one's are not to change.
    std::thread::scope(|scope| {
        let made = std::thread::Builder::new().spawn_scoped(scope, || {
            let senders = fresh_namespace()?;
            let receivers = fresh_namespace()?;
            make_pair(&senders)?;
            // The receiver's end first: an end without a running peer has no carrier, and waits for a work
            // queue before it sends. The second finds it there.
            let receiver = up(RECEIVES, ETHTOOL_SGRO, 1)?;
            enter(&senders)?;
            let sent = sending(up(SENDS, ETHTOOL_STSO, 0)?)?;
            enter(&receivers)?;
            let received = receiving(receiver)?;
            Ok((received, sent))
        });
        made.map_err(OpenError::of("pthread_create"))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Two UDP sockets, one at each end of a pair of their own.
pub(super) fn udp_pair() -> Result<Ends, OpenError> {
    let (read, write) = between(|_| udp_receiver(), |_| udp_sender())?;
    Ok(Ends { read, write })
}

/// The socket of the receiver's namespace.
pub(super) fn udp_receiver() -> Result<OwnedFd, OpenError> {
    let socket = inet()?;
    bind(&socket, &SocketAddrV4::new(RECEIVES, PORT)).map_err(OpenError::of("bind"))?;
    Ok(socket)
}

/// The socket of the sender's namespace.
pub(super) fn udp_sender() -> Result<OwnedFd, OpenError> {
    let socket = inet()?;
    connect(&socket, &SocketAddrV4::new(RECEIVES, PORT)).map_err(OpenError::of("connect"))?;
    Ok(socket)
}

fn inet() -> Result<OwnedFd, OpenError> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::of("socket"))
}

/// Moves this thread into a fresh network namespace.
fn fresh_namespace() -> Result<OwnedFd, OpenError> {
    // SAFETY: a network namespace of its own takes no descriptor away from any thread
    // (UnshareFlags::FILES is not asked for).
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
        .map_err(|error| OpenError::with_cure("unshare(CLONE_NEWNET)", error, CURE))?;
    rustix::fs::open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(OpenError::of("open(/proc/thread-self/ns/net)"))
}

/// Moves this thread into `namespace`.
fn enter(namespace: &OwnedFd) -> Result<(), OpenError> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(OpenError::of("setns(CLONE_NEWNET)"))
}

/// An attribute of a netlink message, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let head = [(length as u16).to_ne_bytes(), kind.to_ne_bytes()];
    let mut bytes = [head.as_flattened(), value].concat();
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// A link message (`struct ifinfomsg`, all zero for a new link) with
/// the attributes that both ends have.
fn link() -> Vec<u8> {
    let mut name = NAME.as_bytes().to_vec();
    name.push(0);
    [
        vec![0; size_of::<libc::ifinfomsg>()],
        attribute(libc::IFLA_IFNAME, &name),
        attribute(libc::IFLA_ADDRESS, &HARDWARE),
    ]
    .concat()
}

/// Makes the pair by rtnetlink(7): one end here, the other in `sender`.
fn make_pair(sender: &OwnedFd) -> Result<(), OpenError> {
    const CALL: &str = "RTM_NEWLINK (veth)";
    let there = attribute(libc::IFLA_NET_NS_FD, &sender.as_raw_fd().to_ne_bytes());
    let peer = attribute(VETH_INFO_PEER, &[link(), there].concat());
    let kind = attribute(libc::IFLA_INFO_KIND, b"veth");
    let info = attribute(libc::IFLA_LINKINFO, &[kind, attribute(libc::IFLA_INFO_DATA, &peer)].concat());
    let body = [link(), info].concat();

    // struct nlmsghdr: length, kind and flags, number, sender.
    let length = size_of::<libc::nlmsghdr>() + body.len();
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let head = [
        &(length as u32).to_ne_bytes()[..],
        &libc::RTM_NEWLINK.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &1_u32.to_ne_bytes(),
        &0_u32.to_ne_bytes(),
    ];
    // NETLINK_ROUTE is protocol 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::of("socket(AF_NETLINK)"))?;
    send(&socket, &[&head.concat()[..], &body].concat(), SendFlags::empty()).map_err(OpenError::of(CALL))?;
    let mut answer = [0; 1024];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty()).map_err(OpenError::of(CALL))?;
    // struct nlmsgerr: the header, then the error, negative.
    match answer[..length].get(16..20).map(|code| i32::from_ne_bytes([code[0], code[1], code[2], code[3]])) {
        Some(0) => Ok(()),
        Some(code) => Err(OpenError::with_cure(CALL, std::io::Error::from_raw_os_error(-code), CURE)),
        None => Err(OpenError::call(CALL, format!("an answer of {length} bytes"))),
    }
}

/// Gives this namespace's end `address`, sets `feature` of ethtool to
/// `value`, and brings it up. Its index.
///
/// A veth end passes what comes through a queue of its own (NAPI) if it
/// gathers packets (GRO), and if the sender does not leave segmenting to
/// it (TSO): drivers/net/veth.c, veth_skb_is_eligible_for_gro. Otherwise
/// packets go through the CPU's backlog, as on the loopback device.
fn up(address: Ipv4Addr, feature: u32, value: u32) -> Result<u32, OpenError> {
    let socket = inet()?;
    // struct ethtool_value: the command, the value.
    let mut setting = [feature, value];
    ask(&socket, "ioctl(SIOCETHTOOL)", libc::SIOCETHTOOL as _, |request| {
        request.ifr_ifru.ifru_data = setting.as_mut_ptr().cast();
    })?;
    ask(&socket, "ioctl(SIOCSIFADDR)", libc::SIOCSIFADDR as _, |request| {
        let [a, b, c, d] = address.octets().map(|byte| byte as libc::c_char);
        // struct sockaddr_in: family, port, address.
        request.ifr_ifru.ifru_addr = libc::sockaddr {
            sa_family: libc::AF_INET as _,
            sa_data: [0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0],
        };
    })?;
    ask(&socket, "ioctl(SIOCSIFFLAGS)", libc::SIOCSIFFLAGS as _, |request| {
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short;
    })?;
    name_to_index(&socket, NAME).map_err(OpenError::of("ioctl(SIOCGIFINDEX)"))
}

/// One of the calls of netdevice(7) for this namespace's end.
fn ask(
    socket: &OwnedFd,
    call: &'static str,
    number: libc::Ioctl,
    fill: impl FnOnce(&mut libc::ifreq),
) -> Result<(), OpenError> {
    // SAFETY: plain data, valid when zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.bytes()) {
        *to = from as libc::c_char;
    }
    fill(&mut request);
    // SAFETY: the request is the one that the call takes, and lives through it with all it points to.
    // JUSTIFICATION: rustix has none of these requests.
    if unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw mut request) } == 0 {
        return Ok(());
    }
    Err(OpenError::with_cure(call, std::io::Error::last_os_error(), CURE))
}

#[cfg(test)]
mod tests {
    use std::fs::read_link;

    use super::*;

    fn namespace() -> Result<std::path::PathBuf, OpenError> {
        read_link("/proc/thread-self/ns/net").map_err(OpenError::of("readlink"))
    }

    #[test]
    fn either_end_has_a_namespace_of_its_own_and_the_callers_stays_as_it_was() {
        let before = namespace().unwrap();
        let (receiver, sender) = match between(|_| namespace(), |_| namespace()) {
            Ok(namespaces) => namespaces,
            Err(error) => return doorbell_skipped::skip(error),
        };
        assert_ne!(receiver, sender);
        assert!(receiver != before && sender != before, "{before:?}");
        assert_eq!(namespace().unwrap(), before);
        assert!(name_to_index(inet().unwrap(), NAME).is_err(), "{NAME} is in the caller's namespace");
    }

    #[test]
    fn what_either_side_says_is_why_there_is_no_pair() {
        if let Err(error) = udp_pair() {
            return doorbell_skipped::skip(error);
        }
        let refused = || OpenError::call("a call", "its cause");
        assert_eq!(between(|_| Err::<(), _>(refused()), |_| Ok(())).unwrap_err(), refused());
        assert_eq!(between(|_| Ok(()), |_| Err::<(), _>(refused())).unwrap_err(), refused());
    }
}
