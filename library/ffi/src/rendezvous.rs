// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments of bells, and how processes come to share them.

use crate::bell::{at, doorbell_bell};
use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::options::{doorbell_join_options, join_options};
use crate::pointer::{Out, bytes, free, guard_into, guard_new, guard_or, lent, path};
use crate::users::{doorbell_users, users};
use doorbell::channel::Lanes;
use doorbell::rendezvous::{Connection, MemoryOptions, Offer, Segment, inherited, socket};
use std::ffi::c_char;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

/// What the side that makes the memory puts into it.
/// doorbell_offer_init() fills it in; change what should differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_offer {
    /// How many bells: 2, one for each direction. With lanes it says nothing: they have their own.
    pub bells: u32,
    /// How many eventfd waiter slots each bell has: 2. At most 8; of all bells together a joiner in
    /// C takes 252. A lane has two bells.
    pub eventfds: u32,
    /// How many bytes beside the bells: 0. With lanes it says nothing.
    pub payload: u64,
    /// How many lanes for messages: 0. Each has one sender and one
    /// receiver; two make a conversation.
    pub lanes: u32,
    /// How many bytes the ring of each lane has: 65536. Rounded up to a power of two; the longest
    /// message takes three eighths of it.
    pub lane_capacity: u64,
    /// Wish: 2 MiB pages from the machine's pool. Such a segment cannot be shared over a
    /// connection, whose peer is not trusted: DOORBELL_HUGE_PAGES.
    pub huge_pages: bool,
    /// Wish: never swapped out.
    pub locked: bool,
    /// Wish: every page there before the first use.
    pub populated: bool,
    /// Wish: on this NUMA node only; -1 for none.
    pub numa_node: i32,
    /// Zero.
    pub reserved: [u64; 4],
}

/// Bells of one mapping, with bytes beside them. All that is written there can be changed by all
/// who share it, at any moment.
#[derive(Debug)]
pub struct doorbell_segment(Arc<Segment>);

/// A path at which processes can meet this one.
#[derive(Debug)]
pub struct doorbell_host(socket::Host);

/// The parent's end of a rendezvous with a child, until the child has been started.
#[derive(Debug)]
pub struct doorbell_pending(Mutex<Option<inherited::Pending>>);

/// One peer met, and the segment shared with it. Freeing it hangs up, once the ends of lanes that
/// were taken over it, and the bells that hold a waiter slot, are freed too.
#[derive(Debug)]
pub struct doorbell_connection(Connection);

impl doorbell_segment {
    pub(crate) fn segment(&self) -> &Segment {
        &self.0
    }
}

impl doorbell_connection {
    /// The connection, with a peer that may be hostile.
    pub(crate) fn connection(&self) -> &Connection {
        &self.0
    }
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<doorbell_segment>();
    shared_by_threads::<doorbell_host>();
    shared_by_threads::<doorbell_pending>();
    shared_by_threads::<doorbell_connection>();
};

/// Who is at the other end, as the kernel says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_peer {
    /// Its number in the order of this process's rendezvous.
    pub number: u32,
    /// Its process number; 0 if it has none in this PID namespace.
    pub process: u32,
    /// The user it ran as when it connected.
    pub user: u32,
    /// The group it ran as when it connected.
    pub group: u32,
    /// A descriptor of the process, which belongs to the connection; -1 if the kernel has none to
    /// give (before Linux 6.5).
    pub pidfd: i32,
}

impl doorbell_offer {
    const DEFAULT: Self = Self {
        bells: 2,
        eventfds: 2,
        payload: 0,
        lanes: 0,
        lane_capacity: 65536,
        huge_pages: false,
        locked: false,
        populated: false,
        numa_node: -1,
        reserved: [0; 4],
    };

    fn read(&self) -> Result<Offer, Failure> {
        if self.reserved != [0; 4] {
            return Err(Failure::invalid("offer.reserved is not zero; doorbell_offer_init() makes it so"));
        }
        let memory = MemoryOptions {
            huge_pages: self.huge_pages,
            locked: self.locked,
            numa_node: u32::try_from(self.numa_node).ok(),
            populated: self.populated,
        };
        if self.lanes == 0 {
            let Self { bells, eventfds, payload, .. } = *self;
            return Ok(Offer { bells, eventfds, payload, memory, ..Offer::default() });
        }
        let Self { lanes, lane_capacity, eventfds, .. } = *self;
        let laid_out = Lanes::new(lanes, lanes, lane_capacity).ok_or_else(|| {
            Failure::invalid(format!(
                "{lanes} lanes of {lane_capacity} bytes cannot be laid out; take fewer or smaller ones"
            ))
        })?;
        Ok(Offer { eventfds, memory, ..Offer::of_lanes(laid_out) })
    }
}

/// Fills in an offer: two bells with two eventfd waiter slots each,
/// and nothing beside them. NULL is left alone.
// Cannot panic: copies a constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_offer_init(offer: *mut doorbell_offer) {
    // SAFETY: the header's contract.
    unsafe { crate::pointer::put_if_wanted(offer, doorbell_offer::DEFAULT) };
}

/// Makes the memory that `offer` asks for; NULL asks for what doorbell_offer_init() fills in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_new(
    offer: *const doorbell_offer,
    segment: *mut *mut doorbell_segment,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(segment, "segment", || {
            let offer = offer.as_ref().unwrap_or(&doorbell_offer::DEFAULT).read()?;
            Ok(doorbell_segment(Arc::new(Segment::new(&offer)?)))
        })
    }
}

/// Frees a handle of a segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_free(segment: *mut doorbell_segment) {
    // SAFETY: the header's contract.
    unsafe { free(segment) };
}

/// Makes a handle of bell number `index`, which waits by `way`. It has heard all rings so far: make
/// it before the other side can ring.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_bell(
    segment: *const doorbell_segment,
    index: u32,
    way: u32,
    bell: *mut *mut doorbell_bell,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_new(bell, "bell", || bell_of(&lent(segment, "segment")?.0, index, way)) }
}

fn bell_of(segment: &Segment, index: u32, way: u32) -> Result<doorbell_bell, Failure> {
    let bells = segment.mapping().plan().bells;
    let state = segment.state(index).ok_or_else(|| {
        Failure::invalid(format!("there is no bell {index}: the segment has {bells}, from 0 on"))
    })?;
    doorbell_bell::at(state, way)
}

/// Which wishes about memory could not be granted, and why: one line each, cut to `size` bytes with
/// the zero byte. `refused` becomes their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_refused(
    segment: *const doorbell_segment,
    text: *mut c_char,
    size: usize,
    refused: *mut usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (segment, out) = unsafe { (lent(segment, "segment")?, Out::new(refused, "refused")?) };
        let lines: Vec<_> = segment.0.refused().iter().map(ToString::to_string).collect();
        if !text.is_null() && size > 0 {
            let all = lines.join("\n");
            let length = all.len().min(size - 1);
            // SAFETY: `size` bytes are valid for writes (contract), and `length` is less.
            unsafe {
                text.cast::<u8>().copy_from_nonoverlapping(all.as_ptr(), length);
                text.add(length).write(0);
            }
        }
        out.put(lines.len());
        Ok(())
    })
}

/// How many bytes lie beside the bells; 0 for NULL.
// Cannot panic: reads a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_payload_size(segment: *const doorbell_segment) -> u64 {
    // SAFETY: the header's contract.
    unsafe { segment.as_ref() }.map_or(0, |segment| segment.0.payload().len())
}

/// Copies `length` bytes into the memory beside the bells, `offset` bytes from its beginning. Ring
/// afterwards to say so. Who reads meanwhile may see a part: agree on who writes when.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_write(
    segment: *const doorbell_segment,
    offset: u64,
    from: *const u8,
    length: usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (segment, from) = unsafe { (lent(segment, "segment")?, bytes(from, length)?) };
        segment.0.payload().write(offset, from).map_err(|_| beyond(&segment.0, offset, length))
    })
}

/// Copies `length` bytes out of the memory beside the bells, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_segment_read(
    segment: *const doorbell_segment,
    offset: u64,
    to: *mut u8,
    length: usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let segment = unsafe { lent(segment, "segment") }?;
        if to.is_null() && length > 0 {
            return Err(Failure::null("to"));
        }
        let all = segment.0.payload();
        // Before there is memory for a copy: the length may be anything.
        let part = all.part(offset, length as u64).map_err(|_| beyond(&segment.0, offset, length))?;
        let mut copy = vec![0; length];
        part.read(0, &mut copy)?;
        // SAFETY: `length` bytes are valid for writes (contract); NULL
        // only if none are written. JUSTIFICATION: what C lends may be
        // uninitialised, of which no `&mut [u8]` can be made to read into.
        unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), to, length) };
        Ok(())
    })
}

fn beyond(segment: &Segment, offset: u64, length: usize) -> Failure {
    let size = segment.payload().len();
    Failure::invalid(format!("{length} bytes at {offset} reach beyond the {size} bytes beside the bells"))
}

/// Listens at `path`, which becomes a Unix socket for processes of this one's user and root's. One
/// that a dead host left is replaced; DOORBELL_OWNED if a process listens there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_bind(
    path: *const c_char,
    host: *mut *mut doorbell_host,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_new(host, "host", || Ok(doorbell_host(socket::Host::bind(self::path(path)?)?))) }
}

/// As doorbell_host_bind(), for processes of `users`; the socket file gets the rights `mode`, or
/// those that follow from `users` if that is negative, as with doorbell_listen_with().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_bind_for(
    path: *const c_char,
    users: *const doorbell_users,
    mode: i32,
    host: *mut *mut doorbell_host,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(host, "host", || {
            let users = self::users(users)?;
            let mode = u32::try_from(mode).unwrap_or_else(|_| users.mode());
            Ok(doorbell_host(socket::Host::bind_for(self::path(path)?, users, mode)?))
        })
    }
}

/// Stops listening and removes the path. Connections go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_free(host: *mut doorbell_host) {
    // SAFETY: the header's contract.
    unsafe { free(host) };
}

/// The listening socket, readable when a process wants to meet; -1
/// for NULL. It belongs to the handle.
// Cannot panic: reads a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_fd(host: *const doorbell_host) -> i32 {
    use std::os::fd::AsFd;
    // SAFETY: the header's contract.
    unsafe { host.as_ref() }.map_or(-1, |host| host.0.as_fd().as_raw_fd())
}

/// Waits for the next process and offers it `segment`. After any
/// error, the host can go on accepting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_accept(
    host: *const doorbell_host,
    segment: *const doorbell_segment,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || {
            let (host, segment) = (lent(host, "host")?, lent(segment, "segment")?);
            Ok(doorbell_connection(host.0.accept(&segment.0)?))
        })
    }
}

/// As doorbell_host_accept(), but waits no longer than until `deadline`: DOORBELL_TIMED_OUT if
/// nobody was met. A caller that says nothing keeps no other waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_accept_until(
    host: *const doorbell_host,
    segment: *const doorbell_segment,
    deadline: u64,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (host, segment, out) =
            unsafe { (lent(host, "host")?, lent(segment, "segment")?, Out::new(connection, "connection")?) };
        let met = host.0.accept_until(&segment.0, at(deadline))?;
        Ok(came(met, |met| out.put_handle(doorbell_connection(met))))
    })
}

/// Meets the host that listens at `path`; DOORBELL_NO_OWNER if nobody does. DOORBELL_TOO_LARGE if
/// it offers more than 1 GiB of memory; doorbell_join_with() takes more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_join(
    path: *const c_char,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || Ok(doorbell_connection(socket::join(self::path(path)?)?)))
    }
}

/// As doorbell_join(), with `options`; NULL means the usual ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_join_with(
    path: *const c_char,
    options: *const doorbell_join_options,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || {
            Ok(doorbell_connection(join_options(options)?.at(self::path(path)?)?))
        })
    }
}

/// The host's part over a connected SOCK_SEQPACKET socket, which belongs to the connection from the
/// call on, whatever it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_host_over(
    fd: i32,
    segment: *const doorbell_segment,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    let socket = owned(fd);
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || {
            Ok(doorbell_connection(socket::host_over(socket?, &lent(segment, "segment")?.0)?))
        })
    }
}

/// The joiner's part over a connected SOCK_SEQPACKET socket, which belongs to the connection from
/// the call on, whatever it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_join_over(
    fd: i32,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    let socket = owned(fd);
    // SAFETY: the header's contract.
    unsafe { guard_new(connection, "connection", || Ok(doorbell_connection(socket::join_over(socket?)?))) }
}

/// As doorbell_join_over(), with `options`; NULL means the usual ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_join_over_with(
    fd: i32,
    options: *const doorbell_join_options,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    let socket = owned(fd);
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || Ok(doorbell_connection(join_options(options)?.over(socket?)?)))
    }
}

fn owned(fd: i32) -> Result<OwnedFd, Failure> {
    if fd < 0 {
        return Err(Failure::invalid(format!("{fd} is no descriptor")));
    }
    // SAFETY: the header says that it belongs to the connection from now on; a number that is not open
    // fails in the first system call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Prepares a rendezvous with a child: fork, call doorbell_pending_in_child() in the child and
/// execute its program, and call doorbell_pending_meet() in the parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_new(pending: *mut *mut doorbell_pending) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_new(pending, "pending", || Ok(doorbell_pending(Mutex::new(Some(inherited::prepare()?))))) }
}

/// In the forked child, before its program is executed: leaves the child's end open and names it in
/// the environment variable DOORBELL_FD. With posix_spawn(), do the same with doorbell_pending_fd()
/// and doorbell_pending_variable().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_in_child(pending: *const doorbell_pending) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let pending = unsafe { lent(pending, "pending") }?;
        pending.with(|pending| {
            let end = pending.childs_end();
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty())
                .map_err(|errno| doorbell::rendezvous::RendezvousError::Os { call: "F_SETFD", errno })?;
            // SAFETY: the child of a fork has one thread.
            unsafe { std::env::set_var(inherited::VARIABLE, pending.variable(end.as_raw_fd())?) };
            Ok(())
        })
    })
}

/// The child's end, which belongs to the handle and is close-on-exec;
/// -1 for NULL or after the rendezvous.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_fd(pending: *const doorbell_pending) -> i32 {
    guard_or(-1, || {
        // SAFETY: the header's contract.
        unsafe { lent(pending, "pending") }?.with(|pending| Ok(pending.childs_end().as_raw_fd()))
    })
}

/// What DOORBELL_FD must be in the environment of a child in which the
/// child's end is descriptor `fd`: `text` becomes that, with a zero
/// byte. DOORBELL_TOO_LONG if it has no `size` bytes; 80 are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_variable(
    pending: *const doorbell_pending,
    fd: i32,
    text: *mut c_char,
    size: usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let pending = unsafe { lent(pending, "pending") }?;
        if text.is_null() {
            return Err(Failure::null("text"));
        }
        pending.with(|pending| {
            let value = pending.variable(fd)?;
            if value.len() >= size {
                return Err(Failure::too_long(value.len() + 1, size));
            }
            // SAFETY: `size` bytes are valid for writes (contract),
            // and the value with its zero byte is not longer.
            unsafe {
                text.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len());
                text.add(value.len()).write(0);
            }
            Ok(())
        })
    })
}

/// Meets the child, which is process number `child`. Once;
/// DOORBELL_NO_ANSWER if it ended or did not join.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_meet(
    pending: *const doorbell_pending,
    segment: *const doorbell_segment,
    child: u32,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || {
            let (pending, segment) = (lent(pending, "pending")?, lent(segment, "segment")?);
            let pending = pending.lock().take().ok_or_else(met_already)?;
            Ok(doorbell_connection(pending.meet(&segment.0, child)?))
        })
    }
}

/// Frees a handle of a rendezvous with a child. The connection goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_pending_free(pending: *mut doorbell_pending) {
    // SAFETY: the header's contract.
    unsafe { free(pending) };
}

impl doorbell_pending {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<inherited::Pending>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn with<T>(&self, run: impl FnOnce(&inherited::Pending) -> Result<T, Failure>) -> Result<T, Failure> {
        run(self.lock().as_ref().ok_or_else(met_already)?)
    }
}

fn met_already() -> Failure {
    Failure::invalid("the child was met already; prepare another rendezvous for another child")
}

/// The child's part. Once; DOORBELL_NOTHING_INHERITED if the parent offered nothing.
/// DOORBELL_TOO_LARGE if it offers more than 1 GiB of memory; doorbell_inherit_with() takes more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_inherit(connection: *mut *mut doorbell_connection) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_new(connection, "connection", || Ok(doorbell_connection(inherited::join()?))) }
}

/// As doorbell_inherit(), with `options`; NULL means the usual ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_inherit_with(
    options: *const doorbell_join_options,
    connection: *mut *mut doorbell_connection,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(connection, "connection", || Ok(doorbell_connection(join_options(options)?.inherited()?)))
    }
}

/// Hangs up, unless ends of lanes that were taken over it are still held, or bells of a segment
/// that was joined over it which hold a waiter slot (eventfd, a descriptor): then the last of them
/// does. Other bells of the connection still ring and wait, but hear of no deaths, and get no
/// waiter slot any more (DOORBELL_HUNG_UP).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_free(connection: *mut doorbell_connection) {
    // SAFETY: the header's contract.
    unsafe { free(connection) };
}

/// Makes a handle of the connection's segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_segment(
    connection: *const doorbell_connection,
    segment: *mut *mut doorbell_segment,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(segment, "segment", || {
            Ok(doorbell_segment(Arc::clone(lent(connection, "connection")?.0.segment())))
        })
    }
}

/// As doorbell_segment_bell(), on the connection's segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_bell(
    connection: *const doorbell_connection,
    index: u32,
    way: u32,
    bell: *mut *mut doorbell_bell,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { guard_new(bell, "bell", || bell_of(lent(connection, "connection")?.0.segment(), index, way)) }
}

/// Says who is at the other end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connection_peer(
    connection: *const doorbell_connection,
    peer: *mut doorbell_peer,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(peer, "peer", || {
            let peer = lent(connection, "connection")?.0.peer();
            Ok(doorbell_peer {
                number: peer.id().number,
                process: peer.id().pid,
                user: peer.uid(),
                group: peer.gid(),
                pidfd: peer.pidfd().map_or(-1, |pidfd| pidfd.as_raw_fd()),
            })
        })
    }
}
