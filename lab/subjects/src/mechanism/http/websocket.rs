// SPDX-License-Identifier: MIT OR Apache-2.0
//! A WebSocket: a frame an event.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use tungstenite::protocol::Role;
use tungstenite::{Error, Message, WebSocket};

use super::{Connection, Protocol, Stream};
use crate::mechanism::descriptor::readable;
use crate::mechanism::{Explanation, Fault, Mechanism, Notifier, Notifiers, OpenError, Waiter, Woken};

pub(crate) struct Websocket;

pub(crate) struct Client(WebSocket<TcpStream>);

pub(crate) struct Publisher {
    socket: WebSocket<TcpStream>,
    published: u64,
}

/// How long a wait without an end looks at once: what is between two looks costs nothing.
const LONG: Duration = Duration::from_secs(3600);

impl Mechanism for Websocket {
    type Link = Connection<Self>;
    const NAME: &'static str = "websocket";
    const COALESCES: bool = false;
    const ABOVE_SOCKETS: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "WebSocket: a text frame for each event",
        how: "The server sends a text frame. The client, whose socket does not block, waits in \
            ppoll(2) and reads a frame. The opening handshake, once a connection, is left out.",
        kernel: "As tcp, once an event, and a ppoll before each read.",
        limits: "Frames from the server are not masked; a message to it would be, which costs \
            a pass over its bytes.",
        sources: &["RFC 6455", "crate tungstenite"],
    };
}

impl Protocol for Websocket {
    type Client = Client;
    type Publisher = Publisher;
    fn client(stream: Stream) -> Result<Client, OpenError> {
        let tcp = stream.into_tcp();
        // A flag of the open file, which nobody else reads from: the other end has a file of its own.
        tcp.set_nonblocking(true).map_err(OpenError::of("fcntl(O_NONBLOCK)"))?;
        Ok(Client(WebSocket::from_raw_socket(tcp, Role::Client, None)))
    }
    fn publisher(stream: Stream) -> Result<Publisher, OpenError> {
        let tcp = stream.into_tcp();
        Ok(Publisher { socket: WebSocket::from_raw_socket(tcp, Role::Server, None), published: 0 })
    }
}

impl Notifier for Publisher {
    fn notify(&mut self) -> Result<(), Fault> {
        self.published += 1;
        self.socket.send(Message::text(self.published.to_string())).map_err(Fault::of("a WebSocket's frame"))
    }
}

impl Waiter for Client {
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.poll()? {
            readable(self.0.get_ref(), LONG)?;
        }
        Ok(())
    }

    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let end = Instant::now() + timeout;
        loop {
            if self.poll()? {
                return Ok(Woken::Notified);
            }
            if !readable(self.0.get_ref(), end.saturating_duration_since(Instant::now()))? {
                return Ok(Woken::TimedOut);
            }
        }
    }

    fn poll(&mut self) -> Result<bool, Fault> {
        match self.0.read() {
            Ok(Message::Text(_)) => Ok(true),
            // Control frames are tungstenite's own business.
            Ok(_) => Ok(false),
            Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(Fault::new("a WebSocket's frame", error)),
        }
    }

    fn requests(&self) -> Option<u64> {
        Some(0)
    }
}
