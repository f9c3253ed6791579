// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP, asked again and again.

use std::time::{Duration, Instant};

use super::server::Server;
use super::{Connection, Protocol, Stream, ask};
use crate::mechanism::{Explanation, Fault, Mechanism, Notifiers, OpenError, Waiter, Woken};

pub(crate) struct HttpShortPoll;

/// How long the client sleeps before it asks again. Pages ask once in some seconds; a millisecond
/// is what the other ways are held against.
const INTERVAL: Duration = Duration::from_millis(1);

pub(crate) struct Client {
    stream: Stream,
    taken: u64,
    known: u64,
    requests: u64,
}

impl Mechanism for HttpShortPoll {
    type Link = Connection<Self>;
    const NAME: &'static str = "http-short-poll";
    const COALESCES: bool = false;
    const ABOVE_SOCKETS: bool = true;
    const ANSWERS: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "HTTP/1.1: the client asks once a millisecond",
        how: "The client sends a GET over an open connection, and the server answers at once \
            with the number of events there have been. If there is none that is new, the \
            client sleeps for a millisecond and asks again.",
        kernel: "As tcp, twice for each question.",
        limits: "A look costs a question, so CPU time is spent by the clock and not by the \
            event. An event waits half an interval in the mean before anybody asks.",
        sources: &["RFC 6202, section 2.1", "crate httparse"],
    };
}

impl Protocol for HttpShortPoll {
    type Client = Client;
    type Publisher = Server;
    fn client(stream: Stream) -> Result<Client, OpenError> {
        Ok(Client { stream, taken: 0, known: 0, requests: 0 })
    }
    fn publisher(stream: Stream) -> Result<Server, OpenError> {
        Server::start(stream, false)
    }
}

impl Waiter for Client {
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.poll()? {
            std::thread::sleep(INTERVAL);
        }
        Ok(())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let end = Instant::now() + timeout;
        loop {
            if self.poll()? {
                return Ok(Woken::Notified);
            }
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(Woken::TimedOut);
            }
            std::thread::sleep(rest.min(INTERVAL));
        }
    }

    fn poll(&mut self) -> Result<bool, Fault> {
        if self.known == self.taken {
            self.stream.send(&ask(self.taken))?;
            self.requests += 1;
            self.known = loop {
                match self.stream.answer()? {
                    Some(known) => break known,
                    None => self.stream.hear()?,
                }
            };
        }
        let new = self.known > self.taken;
        self.taken += u64::from(new);
        Ok(new)
    }

    fn requests(&self) -> Option<u64> {
        Some(self.requests)
    }
}
