// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server's side of polling: how many events there have been, and a
//! thread that answers whoever asks.

use std::os::unix::thread::JoinHandleExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Stream, tell};
use crate::mechanism::{Fault, Notifier, OpenError};

/// The longest that a request is kept waiting: below what intermediaries allow.
const LONGEST: Duration = Duration::from_secs(25);

/// How many events there have been.
#[derive(Debug, Default)]
struct Events {
    published: Mutex<u64>,
    changed: Condvar,
}

impl Events {
    fn published(&self) -> MutexGuard<'_, u64> {
        // A number is whole whoever died while holding it.
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server: the count of events, and the thread that answers.
pub(crate) struct Server {
    events: Arc<Events>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Answers requests on `stream` from now on; `patient` keeps
    /// those waiting that ask for what is still to come.
    pub(super) fn start(mut stream: Stream, patient: bool) -> Result<Self, OpenError> {
        let events = Arc::new(Events::default());
        let own = Arc::clone(&events);
        let thread = std::thread::Builder::new()
            .name("http-server".to_owned())
            .spawn(move || {
                // An error is the client's end: nobody is left to answer.
                let _ = serve(&mut stream, &own, patient);
            })
            .map_err(OpenError::of("pthread_create"))?;
        Ok(Self { events, thread })
    }
}

impl Notifier for Server {
    fn notify(&mut self) -> Result<(), Fault> {
        *self.events.published() += 1;
        self.events.changed.notify_one();
        Ok(())
    }

    /// That of the thread that answers.
    fn helper_ns(&self) -> u64 {
        let mut clock = 0;
        // SAFETY: the thread has not been joined, so its identifier is valid; `clock` is ours.
        // JUSTIFICATION: no crate here gives another thread's clock.
        if unsafe { libc::pthread_getcpuclockid(self.thread.as_pthread_t(), &raw mut clock) } != 0 {
            return 0;
        }
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

fn serve(stream: &mut Stream, events: &Events, patient: bool) -> Result<(), Fault> {
    loop {
        let after = loop {
            match stream.request()? {
                Some(after) => break after,
                None if stream.receive()? => {}
                None => return Ok(()),
            }
        };
        let mut published = events.published();
        if patient {
            let waited =
                events.changed.wait_timeout_while(published, LONGEST, |published| *published <= after);
            published = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let answer = tell(*published);
        drop(published);
        stream.send(&answer)?;
    }
}
