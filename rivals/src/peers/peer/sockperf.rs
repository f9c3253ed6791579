// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sockperf ping-pong --tcp`.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::ours;
use crate::peers::Setup;
use crate::peers::command::{self, number_after};
use crate::peers::comparison::{Comparison, Measure};
use crate::peers::ours::Figure::Median;

const PORT: u16 = 21_973;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [client, server] = setup.cpus;
    let command = format!("taskset -c {client} sockperf pp --tcp -i 127.0.0.1 -p {PORT} -t 1 --full-rtt");
    let arguments = format!(
        "switch echo-tcp --contexts processes --placement two-cores --cpus {client},{server} --time 1s"
    );
    vec![Comparison {
        name: "sockperf ping-pong tcp",
        what: "round trip of 14 bytes over one TCP connection on loopback, two processes on two cores, median",
        within: 0.05,
        unit: "µs",
        theirs: with_server(&command, server),
        ours: ours(setup, &arguments, "echo-tcp", Median("operation"), 1e-3),
        command,
        arguments,
    }]
}

/// The server while a client runs.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_server(command: &str, cpu: usize) -> Measure {
    let words = command::words(command);
    Box::new(move || {
        let server = Command::new("taskset")
            .args([
                "-c",
                &cpu.to_string(),
                "sockperf",
                "sr",
                "--tcp",
                "-i",
                "127.0.0.1",
                "-p",
                &PORT.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the server of sockperf")?;
        let _server = Server(server);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", PORT)).is_err() {
            anyhow::ensure!(
                start.elapsed() < Duration::from_secs(5),
                "the server of sockperf does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        number_after(&command::output(&words)?, "percentile 50.000 =")
    })
}
