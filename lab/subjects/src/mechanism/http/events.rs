// SPDX-License-Identifier: MIT OR Apache-2.0
//! Server-sent events: asked once, told for ever.

use std::time::{Duration, Instant};

use super::{Connection, Protocol, Stream, ask};
use crate::mechanism::{Explanation, Fault, Mechanism, Notifier, Notifiers, OpenError, Waiter, Woken};

pub(crate) struct HttpEvents;

pub(crate) struct Client {
    stream: Stream,
    /// Whether the head of the answer has been read.
    begun: bool,
}

pub(crate) struct Publisher {
    stream: Stream,
    published: u64,
}

impl Mechanism for HttpEvents {
    type Link = Connection<Self>;
    const NAME: &'static str = "http-sse";
    const COALESCES: bool = false;
    const ABOVE_SOCKETS: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "server-sent events: one GET, whose answer is a stream of events",
        how: "The client asks once. The server answers with a head of text/event-stream and \
            from then on writes a line and an empty line for each event, which the client \
            reads and splits.",
        kernel: "As tcp, once an event.",
        limits: "One way only. The answer is not chunked, as one without a length may be in \
            HTTP/1.1; a proxy might hold it back.",
        sources: &["HTML Living Standard, section 9.2", "crate httparse"],
    };
}

impl Protocol for HttpEvents {
    type Client = Client;
    type Publisher = Publisher;
    fn client(mut stream: Stream) -> Result<Client, OpenError> {
        stream.send(&ask(0)).map_err(|fault| OpenError::of("write")(fault.cause))?;
        Ok(Client { stream, begun: false })
    }
    fn publisher(mut stream: Stream) -> Result<Publisher, OpenError> {
        let mut begin = || -> Result<(), Fault> {
            while stream.request()?.is_none() {
                stream.hear()?;
            }
            stream
                .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\n")
        };
        begin().map_err(|fault| OpenError::of(fault.call)(fault.cause))?;
        Ok(Publisher { stream, published: 0 })
    }
}

impl Notifier for Publisher {
    fn notify(&mut self) -> Result<(), Fault> {
        self.published += 1;
        let event = format!("data: {}\n\n", self.published);
        self.stream.send(&event)
    }
}

impl Client {
    fn take(&mut self) -> Result<bool, Fault> {
        if !self.begun {
            self.begun = self.stream.stream_head()?;
        }
        Ok(self.begun && self.stream.event())
    }
}

impl Waiter for Client {
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take()? {
            self.stream.hear()?;
        }
        Ok(())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let end = Instant::now() + timeout;
        while !self.take()? {
            if !self.stream.ready(end.saturating_duration_since(Instant::now()))? {
                return Ok(Woken::TimedOut);
            }
            self.stream.hear()?;
        }
        Ok(Woken::Notified)
    }

    fn requests(&self) -> Option<u64> {
        Some(1)
    }
}
