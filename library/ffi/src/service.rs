// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three basic calls: a channel between threads, a name that is a service, a connection to it.

use crate::bell::at;
use crate::channel::{doorbell_receiver, doorbell_sender, unless_full};
use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::lock::{Locked, lock};
use crate::options::{doorbell_join_options, doorbell_listen_options, join_options, listen_options};
use crate::pointer::{Out, bytes, free, guard_new, lent, path};
use doorbell::channel;
use doorbell::select::Selectable;
use doorbell::service::{self, ClientId, Duplex, Service};
use std::ffi::{c_char, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::time::Duration;

/// A name, and the clients that came to it. One thread at a time: a
/// second is refused with DOORBELL_IN_USE.
#[derive(Debug)]
pub struct doorbell_service(pub(crate) Mutex<Serving>);

#[derive(Debug)]
pub(crate) struct Serving {
    service: Service,
    /// Received, and too long for the caller's memory.
    kept: Option<(ClientId, Vec<u8>)>,
}

impl Locked for Serving {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        match self.kept {
            None => Ok(&mut self.service),
            Some(_) => {
                Err(Failure::invalid("a message is kept that was too long for its buffer; receive it first"))
            }
        }
    }
}

/// Makes a channel between two threads of this process, with a ring of at least `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_channel(
    capacity: u64,
    sender: *mut *mut doorbell_sender,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (to, from) = unsafe { (Out::new(sender, "sender")?, Out::new(receiver, "receiver")?) };
        let (sender, receiver) = channel::pair(capacity)?;
        to.put_handle(doorbell_sender::of(sender));
        from.put_handle(doorbell_receiver::of(receiver));
        Ok(())
    })
}

/// Listens at the service `name` of this user: a name as `hello`, or a path, if it has a slash.
/// DOORBELL_OWNED if another process serves it. Clients are processes of this user or root; each
/// has memory of its own, and reaches no other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_listen(
    name: *const c_char,
    service: *mut *mut doorbell_service,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { doorbell_listen_with(name, std::ptr::null(), service) }
}

/// As doorbell_listen(), with `options`; NULL means the usual ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_listen_with(
    name: *const c_char,
    options: *const doorbell_listen_options,
    service: *mut *mut doorbell_service,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(service, "service", || {
            let service = listen_options(options)?.at(path(name)?)?;
            Ok(doorbell_service(Mutex::new(Serving { service, kept: None })))
        })
    }
}

/// Copies the path at which it listens to `to`, where `size` bytes are, with a zero byte after it.
/// DOORBELL_TOO_LONG if that is too little; DOORBELL_IN_USE while another thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_path(
    service: *const doorbell_service,
    to: *mut c_char,
    size: usize,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let service = unsafe { lent(service, "service")? };
        if to.is_null() {
            return Err(Failure::null("to"));
        }
        let serving = lock(&service.0)?;
        let path = serving.service.path().as_os_str().as_bytes();
        if path.len() >= size {
            return Err(Failure::too_long(path.len() + 1, size));
        }
        // SAFETY: `size` bytes are valid for writes (contract), and the path has fewer.
        unsafe {
            to.cast::<u8>().copy_from_nonoverlapping(path.as_ptr(), path.len());
            to.cast::<u8>().add(path.len()).write(0);
        }
        Ok(())
    })
}

/// Connects to the service `name`, and waits until `deadline` for it to be there: DOORBELL_NO_OWNER
/// if nobody listens there by then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connect(
    name: *const c_char,
    deadline: u64,
    sender: *mut *mut doorbell_sender,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { doorbell_connect_with(name, std::ptr::null(), deadline, sender, receiver) }
}

/// As doorbell_connect(), with `options`; NULL means the usual ones. DOORBELL_OTHER_USER if the
/// service runs as a user that `options->host` does not allow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_connect_with(
    name: *const c_char,
    options: *const doorbell_join_options,
    deadline: u64,
    sender: *mut *mut doorbell_sender,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (name, join) = unsafe { (path(name)?, join_options(options)?) };
        // SAFETY: the header's contract.
        let (to, from) = unsafe { (Out::new(sender, "sender")?, Out::new(receiver, "receiver")?) };
        let timeout = match deadline {
            crate::bell::DOORBELL_FOREVER => Duration::MAX,
            deadline => Duration::from_nanos(deadline.saturating_sub(crate::bell::now())),
        };
        put(service::connect_by_timeout(name, &join, timeout)?, to, from);
        Ok(())
    })
}

fn put(duplex: Duplex, to: Out<*mut doorbell_sender>, from: Out<*mut doorbell_receiver>) {
    let (sender, receiver) = duplex.split();
    to.put_handle(doorbell_sender::of(sender));
    from.put_handle(doorbell_receiver::of(receiver));
}

/// Waits until `deadline` for the next client, which is the caller's
/// alone: doorbell_service_recv() does not hear of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_accept(
    service: *const doorbell_service,
    deadline: u64,
    sender: *mut *mut doorbell_sender,
    receiver: *mut *mut doorbell_receiver,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (service, to, from) = unsafe {
            (lent(service, "service")?, Out::new(sender, "sender")?, Out::new(receiver, "receiver")?)
        };
        let duplex = lock(&service.0)?.service.accept_deadline(at(deadline))?;
        Ok(came(duplex, |duplex| put(duplex, to, from)))
    })
}

/// Receives the next message of any client to `to`, where `size` bytes are, and the client's
/// number, which is never used again. Waits until `deadline`. DOORBELL_TOO_LONG if `size` is less
/// than `length`: the message is received again by the next call. What is wrong with a client ends
/// that client, and is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_recv(
    service: *const doorbell_service,
    deadline: u64,
    to: *mut c_void,
    size: usize,
    length: *mut usize,
    client: *mut u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (service, length, client) =
            unsafe { (lent(service, "service")?, Out::new(length, "length")?, Out::new(client, "client")?) };
        if to.is_null() && size > 0 {
            return Err(Failure::null("to"));
        }
        let mut serving = lock(&service.0)?;
        let (who, message) = match serving.kept.take() {
            Some(kept) => kept,
            None => {
                let mut message = Vec::new();
                match serving.service.recv_into(&mut message, at(deadline))? {
                    Some(who) => (who, message),
                    None => return Ok(came(None::<()>, |()| {})),
                }
            }
        };
        length.put(message.len());
        if message.len() > size {
            let failure = Failure::too_long(message.len(), size);
            serving.kept = Some((who, message));
            return Err(failure);
        }
        if !message.is_empty() {
            // SAFETY: `size` bytes are valid for writes (contract), and the message has no more.
            unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), to.cast::<u8>(), message.len()) };
        }
        client.put(who.number());
        Ok(came(Some(()), |()| {}))
    })
}

/// Sends `length` bytes to client number `client`. Waits while there is no room, because
/// the client does not take its answers, until `deadline`: then DOORBELL_TIMED_OUT. 0
/// never waits. While this call waits, no other client is served. DOORBELL_CLOSED if the client
/// has gone, DOORBELL_PEER_GONE if its process goes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_send(
    service: *const doorbell_service,
    client: u64,
    message: *const c_void,
    length: usize,
    deadline: u64,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let (service, message) = unsafe { (lent(service, "service")?, bytes(message.cast(), length)?) };
        let mut serving = lock(&service.0)?;
        let there = serving.service.clients().map(|(there, _)| there).find(|there| there.number() == client);
        let sender = there.and_then(|there| serving.service.sender(there));
        let sent = sender.ok_or(channel::SendError::Closed)?.send_deadline(message, at(deadline));
        Ok(came(unless_full(sent)?, |()| {}))
    })
}

/// A file that is readable when there may be something to receive, or somebody to accept, once a
/// call that does not wait has said that there was nothing. It belongs to the handle; -1 for NULL,
/// or while another thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_fd(service: *const doorbell_service) -> i32 {
    // SAFETY: the header's contract.
    let service = unsafe { service.as_ref() };
    service.and_then(|service| Some(lock(&service.0).ok()?.service.as_fd().as_raw_fd())).unwrap_or(-1)
}

/// Stops listening, removes the name, and hangs up on the clients,
/// but for those that were accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_service_free(service: *mut doorbell_service) {
    // SAFETY: the header's contract.
    unsafe { free(service) };
}

#[cfg(test)]
mod tests {
    use super::{doorbell_listen, doorbell_service_free, doorbell_service_recv, doorbell_service_send};
    use crate::bell::{DOORBELL_FOREVER, doorbell_after};
    use crate::error::doorbell_status::{DOORBELL_CLOSED, DOORBELL_OK, DOORBELL_TIMED_OUT};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::ptr::null_mut;
    use std::sync::mpsc;
    use std::thread;

    /// Once it did not wait at all.
    #[test]
    fn a_service_waits_until_the_deadline_for_a_client_to_make_room() {
        const ANSWERS: usize = 100;
        let path = std::env::temp_dir().join(format!("doorbell-ffi-{}.sock", std::process::id()));
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let (go, goes) = mpsc::channel();
        let (mut service, mut message) = (null_mut(), [0_u8; 10_000]);
        let (mut length, mut who) = (0, 0);
        // SAFETY: the header's contract: what is pointed to lives on
        // this thread's stack, and the handle until it is freed.
        unsafe {
            assert_eq!(doorbell_listen(name.as_ptr(), &raw mut service), DOORBELL_OK);
            let taking = thread::spawn(move || {
                let mut client = doorbell::connect(&path).unwrap();
                client.send(b"hello").unwrap();
                goes.recv().unwrap();
                (0..ANSWERS).filter(|_| client.recv().unwrap().len() == 10_000).count()
            });
            let to = message.as_mut_ptr().cast();
            let came =
                doorbell_service_recv(service, DOORBELL_FOREVER, to, 10_000, &raw mut length, &raw mut who);
            assert_eq!(came, DOORBELL_OK);
            let send = |deadline| {
                doorbell_service_send(service, who, message.as_ptr().cast(), message.len(), deadline)
            };
            let sent = (0..).take_while(|_| send(0) == DOORBELL_OK).count();
            assert!(0 < sent && sent < ANSWERS);
            assert_eq!(send(doorbell_after(1_000_000)), DOORBELL_TIMED_OUT);
            go.send(()).unwrap();
            (sent..ANSWERS).for_each(|_| assert_eq!(send(DOORBELL_FOREVER), DOORBELL_OK));
            assert_eq!(taking.join().unwrap(), ANSWERS);
            let nobody = doorbell_service_send(service, who + 1, to, 1, DOORBELL_FOREVER);
            assert_eq!(nobody, DOORBELL_CLOSED);
            doorbell_service_free(service);
        }
    }
}
