// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sockperf ping-pong --tcp`: one connection, both ways.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::{read, retry_on_intr, write};

use super::exchange::{End, exchange};
use super::{Explanation, Fault, Form, OpenError, Operation, PLAIN};

/// Bytes of a message: sockperf's least, and its default.
const MESSAGE: usize = 14;

pub(super) const OPERATION: Operation = Operation {
    name: "echo-tcp",
    form: Form::two_sides("round", 1),
    explanation: Explanation {
        summary: "the protocol of sockperf ping-pong --tcp: 14 bytes there and back over one connection",
        how: "Each side writes 14 bytes into one connection over 127.0.0.1 with TCP_NODELAY \
            and reads 14 from it.",
        kernel: "The answer carries the acknowledgement of the question. The mechanism tcp has \
            a connection for each direction, as every mechanism has a line for each: there \
            acknowledgements travel alone, and a round trip costs more.",
        limits: "sockperf prints half a round trip unless given --full-rtt.",
        sources: &["sockperf 3.7, client.cpp", "tcp(7)"],
    },
    usual: false,
    open: |_, _| {
        let connect = || -> std::io::Result<(TcpStream, TcpStream)> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            for end in [&client, &server] {
                end.set_nodelay(true)?;
            }
            Ok((client, server))
        };
        let (client, server) = connect().map_err(|error| {
            OpenError::with_cure("connect(127.0.0.1)", error, "bring loopback up: `ip link set lo up`")
        })?;
        exchange(move |role| {
            let own = if role.index() == 0 { &client } else { &server };
            let own = own.try_clone().map_err(|error| Fault::new("fcntl(F_DUPFD_CLOEXEC)", error))?;
            Ok(Socket(own.into()))
        })
    },
    ..PLAIN
};

/// One side's end of the connection.
struct Socket(OwnedFd);

impl End for Socket {
    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        // A stream takes so short a message whole: at most one is under way.
        match retry_on_intr(|| write(&self.0, &[0; MESSAGE])) {
            Ok(MESSAGE) => Ok(()),
            Ok(written) => Err(Fault::new("write", format!("{written} of {MESSAGE} bytes"))),
            Err(error) => Err(Fault::new("write", error)),
        }
    }

    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        let mut message = [0; MESSAGE];
        let mut filled = 0;
        while filled < MESSAGE {
            match retry_on_intr(|| read(&self.0, &mut message[filled..])) {
                Ok(0) => return Err(Fault::new("read", "the connection is closed")),
                Ok(length) => filled += length,
                Err(error) => return Err(Fault::new("read", error)),
            }
        }
        Ok(())
    }
}
