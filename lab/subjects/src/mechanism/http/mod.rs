// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a message one layer up: a client that asks a server again and again, one that asks
//! and is kept waiting, one that is sent events, and one with a WebSocket.
//!
//! Client and server hold the two ends of one connection over loopback, made before they part and
//! kept open: what is measured is the waiting and not the connecting. Heads are parsed by the crate
//! httparse, frames by tungstenite. Where all mechanisms are measured, these are left out:
//! `doorbell io --net` runs them.

use std::io::{Read, Write};
use std::marker::PhantomData;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::descriptor::{Ends, again, readable};
use super::socket::tcp_pair;
use super::{Fault, Link, Notifier, OpenError, Site, Unavailable, Waiter};

pub(crate) mod events;
pub(crate) mod long_poll;
mod server;
pub(crate) mod short_poll;
pub(crate) mod websocket;

/// A way to bring events from a server to a client.
pub(crate) trait Protocol: Send + Sync + 'static {
    type Client: Waiter;
    type Publisher: Notifier;
    fn client(stream: Stream) -> Result<Self::Client, OpenError>;
    fn publisher(stream: Stream) -> Result<Self::Publisher, OpenError>;
}

/// The two ends of a connection.
pub(crate) struct Connection<P> {
    ends: Ends,
    /// Whether somebody serves it. Of two, either would answer what was asked of the other, and
    /// both would count events from one.
    served: AtomicBool,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Link for Connection<P> {
    type Notifier = P::Publisher;
    type Waiter = P::Client;
    fn available() -> Result<(), Unavailable> {
        tcp_pair()?;
        Ok(())
    }
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self { ends: tcp_pair()?, served: AtomicBool::new(false), protocol: PhantomData })
    }
    fn waiter(&self) -> Result<P::Client, OpenError> {
        P::client(Stream::new(again(&self.ends.read)?))
    }
    fn notifier(&self) -> Result<P::Publisher, OpenError> {
        if self.served.swap(true, Relaxed) {
            return Err(OpenError::HasNotifier);
        }
        P::publisher(Stream::new(again(&self.ends.write)?))
    }
}

/// One end, with what has been received and not yet been used.
pub(crate) struct Stream {
    tcp: TcpStream,
    received: Vec<u8>,
}

impl Stream {
    fn new(fd: OwnedFd) -> Self {
        Self { tcp: TcpStream::from(fd), received: Vec::with_capacity(4096) }
    }

    pub(super) fn into_tcp(self) -> TcpStream {
        self.tcp
    }

    pub(super) fn send(&mut self, text: &str) -> Result<(), Fault> {
        self.tcp.write_all(text.as_bytes()).map_err(Fault::of("write to the connection"))
    }

    /// Receives more; false at the end of the stream.
    pub(super) fn receive(&mut self) -> Result<bool, Fault> {
        let mut bytes = [0; 4096];
        loop {
            match self.tcp.read(&mut bytes) {
                Ok(length) => {
                    self.received.extend_from_slice(&bytes[..length]);
                    return Ok(length > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::new("read from the connection", error)),
            }
        }
    }

    /// Receives more; the end of the stream is an error.
    pub(super) fn hear(&mut self) -> Result<(), Fault> {
        if self.receive()? {
            Ok(())
        } else {
            Err(Fault::new("read from the connection", "the other side is gone"))
        }
    }

    /// Whether something can be received within `timeout`.
    pub(super) fn ready(&self, timeout: Duration) -> Result<bool, Fault> {
        readable(&self.tcp, timeout)
    }

    /// The number that the next whole request asks after, if one has been received.
    pub(super) fn request(&mut self) -> Result<Option<u64>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(&self.received).map_err(Fault::of("a request"))?;
        let httparse::Status::Complete(length) = parsed else { return Ok(None) };
        let after = request.path.and_then(|path| path.rsplit_once("after=")?.1.parse().ok());
        self.received.drain(..length);
        Ok(Some(after.unwrap_or(0)))
    }

    /// The number in the body of the next whole answer, if one has been received.
    pub(super) fn answer(&mut self) -> Result<Option<u64>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.received).map_err(Fault::of("an answer"))?;
        let httparse::Status::Complete(head) = parsed else { return Ok(None) };
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.trim().parse::<u64>().ok();
        let length =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| text(header.value)).unwrap_or(0) as usize;
        let Some(body) = self.received.get(head..head + length) else { return Ok(None) };
        let number = text(body).ok_or_else(|| Fault::new("an answer", "its body is no number"))?;
        self.received.drain(..head + length);
        Ok(Some(number))
    }

    /// The head of the answer that begins a stream of events, once.
    pub(super) fn stream_head(&mut self) -> Result<bool, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let parsed =
            httparse::Response::new(&mut headers).parse(&self.received).map_err(Fault::of("an answer"))?;
        let httparse::Status::Complete(head) = parsed else { return Ok(false) };
        self.received.drain(..head);
        Ok(true)
    }

    /// Whether a whole event has been received, which is then used
    /// up: an empty line ends it (HTML Living Standard 9.2).
    pub(super) fn event(&mut self) -> bool {
        let end = self.received.windows(2).position(|pair| pair == b"\n\n");
        if let Some(end) = end {
            self.received.drain(..end + 2);
        }
        end.is_some()
    }
}

/// What asks for everything after number `after`.
pub(super) fn ask(after: u64) -> String {
    format!("GET /events?after={after} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n")
}

/// What answers with the number of events there have been.
pub(super) fn tell(published: u64) -> String {
    let body = published.to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_an_answer_are_told_however_they_are_cut() {
        let pair = tcp_pair().unwrap();
        let mut stream = Stream::new(pair.read);
        for byte in ask(41).bytes() {
            assert_eq!(stream.request(), Ok(None));
            stream.received.push(byte);
        }
        assert_eq!(stream.request(), Ok(Some(41)));
        for byte in tell(1042).bytes() {
            assert_eq!(stream.answer(), Ok(None));
            stream.received.push(byte);
        }
        assert_eq!((stream.answer(), stream.received.len()), (Ok(Some(1042)), 0));
        stream.received.extend_from_slice(b"data: 1\n\ndata: 2\n\ndat");
        assert!(stream.event() && stream.event() && !stream.event());
        assert!(Stream::new(pair.write).request().is_ok());
    }
}
