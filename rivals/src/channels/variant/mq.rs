// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two POSIX message queues of ten messages, the depth an ordinary
//! user may have (`fs.mqueue.msg_max`).

use crate::channels::link::{End, Link, Place, link};
use crate::channels::many::{SENDERS, gather};
use std::ffi::CString;
use std::io::Error;

struct Ends<const S: usize> {
    out: libc::mqd_t,
    back: libc::mqd_t,
    buffer: Box<[u8; S]>,
}

impl<const S: usize> Ends<S> {
    fn new(out: libc::mqd_t, back: libc::mqd_t) -> Self {
        Self { out, back, buffer: vec![0; S].try_into().expect("S bytes") }
    }
}

impl<const S: usize> End<S> for Ends<S> {
    fn send(&mut self, message: &[u8; S]) {
        // SAFETY: the buffer has S bytes.
        assert_eq!(
            unsafe { libc::mq_send(self.out, message.as_ptr().cast(), S, 0) },
            0,
            "{}",
            Error::last_os_error()
        );
    }
    fn receive(&mut self, read: impl FnOnce(&[u8; S])) {
        let to = self.buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has S bytes, the message size of the queue.
        let got = unsafe { libc::mq_receive(self.back, to, S, std::ptr::null_mut()) };
        assert_eq!(got, S as isize, "{}", Error::last_os_error());
        read(&self.buffer);
    }
}

impl<const S: usize> Drop for Ends<S> {
    fn drop(&mut self) {
        // SAFETY: open, and not used again by this process.
        unsafe {
            libc::mq_close(self.out);
            if self.back != self.out {
                libc::mq_close(self.back);
            }
        }
    }
}

fn queue<const S: usize>(direction: &str) -> Result<libc::mqd_t, String> {
    let name =
        CString::new(format!("/doorbell-rivals-{}-{S}-{direction}", std::process::id())).expect("no zero");
    // SAFETY: all bytes zero is a value of this plain struct.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = 10;
    attributes.mq_msgsize = S as libc::c_long;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    // SAFETY: the name and the attributes are valid for the calls;
    // the name is not needed once it is open.
    unsafe {
        let queue = libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut attributes);
        let error = Error::last_os_error();
        libc::mq_unlink(name.as_ptr());
        if queue >= 0 {
            return Ok(queue);
        }
        Err(format!(
            "mq_open of 10 messages of {S} bytes (fs.mqueue.msgsize_max and RLIMIT_MSGQUEUE limit it): {error}"
        ))
    }
}

pub fn blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    let (there, back) = (queue::<S>("there")?, queue::<S>("back")?);
    link::<S, _, _>(
        Place::Processes,
        move || Ends::<S>::new(there, back),
        move || Ends::<S>::new(back, there),
    )
}

pub fn many_blocking<const S: usize>() -> Result<Box<dyn Link>, String> {
    let queue = queue::<S>("many")?;
    let theirs = (0..SENDERS).map(|_| move || Ends::<S>::new(queue, queue)).collect();
    gather::<S, _, _>(Place::Processes, move || Ends::<S>::new(queue, queue), theirs)
}
