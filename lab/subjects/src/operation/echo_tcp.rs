// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sockperf ping-pong --tcp`: one connection, both ways.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::exchange::{Duo, End, Exchange};
use super::{Form, Operation};
use crate::mechanism::{Explanation, Fault, Links, OpenError, Site};
use doorbell_harness::role::Role;
use doorbell_harness::side::SideError;
use doorbell_results::configuration::Configuration;

#[derive(Debug)]
pub(super) struct EchoTcp;

/// Bytes of a message: sockperf's least, and its default.
const MESSAGE: usize = 14;

impl Operation for EchoTcp {
    fn name(&self) -> &'static str {
        "echo-tcp"
    }
    fn form(&self) -> Form {
        Form::two_sides("round", 1)
    }
    fn usual(&self) -> bool {
        false
    }
    fn explanation(&self) -> Explanation {
        Explanation {
            summary: "the protocol of sockperf ping-pong --tcp: 14 bytes there and back over one connection",
            how: "Each side writes 14 bytes into one connection over 127.0.0.1 with TCP_NODELAY \
                and reads 14 from it.",
            kernel: "The answer carries the acknowledgement of the question. The mechanism tcp has \
                a connection for each direction, as every mechanism has a line for each: there \
                acknowledgements travel alone, and a round trip costs more.",
            limits: "sockperf prints half a round trip unless given --full-rtt.",
            sources: &["sockperf 3.7, client.cpp", "tcp(7)"],
        }
    }
    fn open(&self, _: &Site, _: &Configuration) -> Result<Box<dyn Links>, OpenError> {
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
        Ok(Box::new(Duo(Connection { client, server })))
    }
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Exchange for Connection {
    type End = Socket;
    fn end(&self, role: Role) -> Result<Socket, SideError> {
        let own = if role.index() == 0 { &self.client } else { &self.server };
        let own = own.try_clone().map_err(|error| Fault::new("fcntl(F_DUPFD_CLOEXEC)", error))?;
        Ok(Socket(own.into()))
    }
}

/// One side's end of the connection.
#[derive(Debug)]
struct Socket(OwnedFd);

impl End for Socket {
    #[inline]
    fn give(&mut self) -> Result<(), Fault> {
        // A stream takes so short a message whole: at most one is under way.
        loop {
            match rustix::io::write(&self.0, &[0; MESSAGE]) {
                Ok(MESSAGE) => return Ok(()),
                Ok(written) => return Err(Fault::new("write", format!("{written} of {MESSAGE} bytes"))),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("write", error)),
            }
        }
    }

    #[inline]
    fn take(&mut self) -> Result<(), Fault> {
        let mut message = [0; MESSAGE];
        let mut filled = 0;
        while filled < MESSAGE {
            match rustix::io::read(&self.0, &mut message[filled..]) {
                Ok(0) => return Err(Fault::new("read", "the connection is closed")),
                Ok(length) => filled += length,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("read", error)),
            }
        }
        Ok(())
    }
}
