// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP, asked once an event, the answer kept back until there is one.

use std::time::{Duration, Instant};

use super::server::Server;
use super::{Connection, Stream, ask, probe};
use crate::mechanism::{
    Explanation, Fault, Link, Mechanism, Notifier, Notifiers, OpenError, Site, Unavailable, Waiter, Woken,
};

/// The server answers when there is something to tell.
#[derive(Debug)]
pub struct HttpLongPoll;

#[derive(Debug)]
pub struct Client {
    stream: Stream,
    taken: u64,
    known: u64,
    /// Whether a question is open: one that a timed wait left serves the next.
    asked: bool,
    requests: u64,
}

#[derive(Debug)]
pub struct Publisher(Server);

/// The connection between the two.
#[derive(Debug)]
pub struct LongPollLink(Connection);

impl Mechanism for HttpLongPoll {
    type Link = LongPollLink;
    const NAME: &'static str = "http-long-poll";
    const COALESCES: bool = false;
    const ABOVE_SOCKETS: bool = true;
    const ANSWERS: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    fn explanation() -> Explanation {
        Explanation {
            summary: "HTTP/1.1: the client asks, and the server answers when there is an event",
            how: "The client sends a GET over an open connection and blocks in read(2). A thread \
                of the server keeps the request until an event is published, at the longest for 25 \
                s, and answers with the number of events there have been.",
            kernel: "The notifier wakes the server's thread by a futex; that thread's write wakes \
                the client as in tcp.",
            limits: "Two wake-ups an event, and a question before each. Events while no question \
                is open wait for the next.",
            sources: &["RFC 6202, section 2.2", "crate httparse"],
        }
    }

    fn available() -> Result<(), Unavailable> {
        probe()
    }
}

impl Link for LongPollLink {
    type Notifier = Publisher;
    type Waiter = Client;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Connection::open(site).map(Self)
    }
    fn waiter(&self) -> Result<Client, OpenError> {
        Ok(Client { stream: self.0.client()?, taken: 0, known: 0, asked: false, requests: 0 })
    }
    fn notifier(&self) -> Result<Publisher, OpenError> {
        Ok(Publisher(Server::start(self.0.server()?, true)?))
    }
}

impl Notifier for Publisher {
    fn notify(&mut self) -> Result<(), Fault> {
        self.0.publish();
        Ok(())
    }
    fn helper_ns(&self) -> u64 {
        self.0.helper_ns()
    }
}

impl Client {
    /// Takes what is known, or asks.
    fn take_or_ask(&mut self) -> Result<bool, Fault> {
        if self.known > self.taken {
            self.taken += 1;
            return Ok(true);
        }
        if !self.asked {
            self.stream.send(&ask(self.taken))?;
            self.requests += 1;
            self.asked = true;
        }
        Ok(false)
    }

    /// Receives once; an answer without news is a question to be asked again.
    fn hear(&mut self) -> Result<(), Fault> {
        self.stream.hear()?;
        if let Some(known) = self.stream.answer()? {
            self.known = known;
            self.asked = false;
        }
        Ok(())
    }
}

impl Waiter for Client {
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take_or_ask()? {
            self.hear()?;
        }
        Ok(())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let end = Instant::now() + timeout;
        while !self.take_or_ask()? {
            let rest = end.saturating_duration_since(Instant::now());
            if !self.stream.ready(rest)? {
                return Ok(Woken::TimedOut);
            }
            self.hear()?;
        }
        Ok(Woken::Notified)
    }

    fn poll(&mut self) -> Result<bool, Fault> {
        self.wait_for(Duration::ZERO).map(|woken| woken == Woken::Notified)
    }

    fn requests(&self) -> Option<u64> {
        Some(self.requests)
    }
}
