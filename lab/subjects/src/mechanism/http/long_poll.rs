// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP, asked once an event, the answer kept back until there is one.

use std::time::{Duration, Instant};

use super::server::Server;
use super::{Connection, Protocol, Stream, ask};
use crate::mechanism::{Explanation, Fault, Mechanism, Notifiers, OpenError, Waiter, Woken};

pub(crate) struct HttpLongPoll;

pub(crate) struct Client {
    stream: Stream,
    taken: u64,
    known: u64,
    /// Whether a question is open: one that a timed wait left serves the next.
    asked: bool,
    requests: u64,
}

impl Mechanism for HttpLongPoll {
    type Link = Connection<Self>;
    const NAME: &'static str = "http-long-poll";
    const COALESCES: bool = false;
    const ABOVE_SOCKETS: bool = true;
    const ANSWERS: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "HTTP/1.1: the client asks, and the server answers when there is an event",
        how: "The client sends a GET over an open connection and blocks in read(2). A thread \
            of the server keeps the request until an event is published, at the longest for 25 \
            s, and answers with the number of events there have been.",
        kernel: "The notifier wakes the server's thread by a futex; that thread's write wakes \
            the client as in tcp.",
        limits: "Two wake-ups an event, and a question before each. Events while no question \
            is open wait for the next.",
        sources: &["RFC 6202, section 2.2", "crate httparse"],
    };
}

impl Protocol for HttpLongPoll {
    type Client = Client;
    type Publisher = Server;
    fn client(stream: Stream) -> Result<Client, OpenError> {
        Ok(Client { stream, taken: 0, known: 0, asked: false, requests: 0 })
    }
    fn publisher(stream: Stream) -> Result<Server, OpenError> {
        Server::start(stream, true)
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

    fn requests(&self) -> Option<u64> {
        Some(self.requests)
    }
}
