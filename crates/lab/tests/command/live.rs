// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live page as whoever speaks HTTP meets it: its owner, a page
//! of elsewhere, and those who ask and do not listen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::time::Duration;

use doorbell::Bell;
use doorbell::wait::Futex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::Stage;

/// How long a machine that is busy may take for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn begin(stage: &Stage, more: &[&str]) -> Self {
        let words = [&["top", "--serve", "127.0.0.1:0", "--interval", "20ms"], more].concat();
        let mut child = stage.doorbell(&words).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").expect("the address");
        let (port, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request whose path has TOKEN in the token's place.
    fn ask(&self, request: &str, more: &str) -> TcpStream {
        let mut stream = self.connect();
        let request = request.replace("TOKEN", &self.token);
        let head = format!("{request} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{more}\r\n", self.port);
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// All of an answer that has an end.
    fn answer(&self, request: &str, more: &str) -> String {
        let mut text = String::new();
        self.ask(request, more).read_to_string(&mut text).unwrap();
        text
    }

    fn looks(&self) -> impl Iterator<Item = Value> {
        let lines = BufReader::new(self.ask("GET /TOKEN/events", "")).lines();
        lines.filter_map(|line| serde_json::from_str(line.unwrap().strip_prefix("data: ")?).ok())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let ended = self.child.wait().unwrap();
        if !std::thread::panicking() {
            assert!(ended.success());
        }
    }
}

#[test]
fn the_page_is_its_owners_and_nobody_elses() {
    let stage = Stage::new();
    let server = Server::begin(&stage, &[]);
    let page = server.answer("GET /TOKEN/", "");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n")
            && head.contains("\r\nContent-Security-Policy: default-src 'none'"),
        "{head}"
    );
    assert!(body.starts_with("<!DOCTYPE html>") && body.trim_end().ends_with("</html>"));
    for (request, more, status) in [
        ("GET /", "", "403"),
        ("GET /0123456789abcdef0123456789abcdef/", "", "403"),
        ("GET /TOKEN0/", "", "403"),
        ("GET /metrics", "Authorization: Bearer x\r\n", "403"),
        ("POST /TOKEN/", "", "405"),
        ("POST /TOKEN/", "Content-Length: 3\r\n", "400"),
        ("GET /TOKEN/../../etc/passwd", "", "404"),
        ("GET /TOKEN/events", "Origin: http://elsewhere.example\r\n", "403"),
        ("GET /TOKEN", "", "308"),
        ("GET /TOKEN/\u{7f}", "", "400"),
    ] {
        let answer = server.answer(request, more);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}, {more}: {answer}");
        assert!(!answer.contains("<html"), "{request}");
    }
    let mut rebound = server.connect();
    write!(rebound, "GET /{}/ HTTP/1.1\r\nHost: elsewhere.example:{}\r\n\r\n", server.token, server.port)
        .unwrap();
    let mut answer = String::new();
    rebound.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert!(!server.answer("HEAD /TOKEN/", "").contains("<html"));
}

#[test]
fn a_run_that_goes_on_and_the_waiters_of_a_process_are_seen() {
    let stage = Stage::new();
    let server = Server::begin(&stage, &[]);
    let mut bell: Bell<Futex> = Bell::new().unwrap().waiting_by();
    let _ = bell.wait_timeout(Duration::from_millis(1));
    let words = [
        "ping",
        "futex",
        "--gap",
        "0",
        "--placement",
        "unpinned",
        "--blocks",
        "2000",
        "--time",
        "5ms",
        "-q",
        "-o",
        "-",
        "--name",
        "a run to be seen",
    ];
    let mut run = stage.doorbell(&words).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut counts = Vec::new();
    for look in server.looks().take(3000) {
        let waiters = look["waiters"].as_array().unwrap();
        assert!(
            waiters.iter().any(|waiter| waiter["pid"] == std::process::id() && waiter["waiter"] == "futex"),
            "{look}"
        );
        let Some(seen) = look["runs"].get(0) else { continue };
        assert!(seen["command"].as_str().unwrap().ends_with("a run to be seen"), "{seen}");
        let futex = seen["configurations"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["label"].as_str().unwrap().contains("futex"));
        let Some(count) = futex.map(|one| one["count"].as_u64().unwrap()) else { continue };
        if counts.last() != Some(&count) {
            counts.push(count);
        }
        if counts.len() == 3 {
            break;
        }
    }
    assert!(counts.is_sorted(), "{counts:?}");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    run.wait().unwrap();
    let gone = server.looks().take(2000).any(|look| look["runs"] == Value::Array(Vec::new()));
    assert!(gone, "a run that has ended is still shown");
}

/// Of those who ask and do not read, or never finish asking, nobody keeps others waiting.
#[test]
fn who_does_not_listen_keeps_nobody_waiting() {
    let stage = Stage::new();
    let server = Server::begin(&stage, &[]);
    let deaf: Vec<TcpStream> = (0..15).map(|_| server.ask("GET /TOKEN/events", "")).collect();
    let unfinished: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /").unwrap();
            stream
        })
        .collect();
    assert_eq!(server.looks().take(100).count(), 100);
    // One place is left for a stream.
    let _last = server.ask("GET /TOKEN/events", "");
    let refused = std::iter::repeat_with(|| {
        let mut first = [0; 12];
        server.ask("GET /TOKEN/events", "").read_exact(&mut first).map(|()| first)
    });
    assert!(
        refused.take(1000).any(|first| first.is_ok_and(|first| &first == b"HTTP/1.1 503")),
        "there is no limit"
    );
    assert!(server.answer("GET /TOKEN/", "").starts_with("HTTP/1.1 200"), "the page is still served");
    drop((deaf, unfinished));
    // That the others have gone is seen when the next look is sent to them.
    assert!((0..1000).any(|_| server.looks().next().is_some()));
}

#[test]
fn metrics_are_scraped_with_a_token_that_outlives_the_server() {
    let stage = Stage::new();
    let file = stage.path().join("token");
    let words = ["--token-file", file.to_str().unwrap()];
    let first = Server::begin(&stage, &words).token.clone();
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let server = Server::begin(&stage, &words);
    assert_eq!(server.token, first);
    let mut bell: Bell<Futex> = Bell::new().unwrap().waiting_by();
    let _ = bell.wait_timeout(Duration::from_millis(1));
    let own = format!("doorbell_waits_total{{pid=\"{}\"", std::process::id());
    // On a busy machine a look may take too long for an answer.
    let answer = |request: &str, more: &str| {
        let mut answers = std::iter::repeat_with(|| server.answer(request, more)).take(100);
        answers.find(|answer| !answer.starts_with("HTTP/1.1 503 ")).expect("a look in time")
    };
    let scraped = answer("GET /metrics", &format!("Authorization: Bearer {first}\r\n"));
    assert!(
        scraped.contains("\r\nContent-Type: text/plain; version=0.0.4") && scraped.contains(&own),
        "{scraped}"
    );
    let newer = answer("GET /TOKEN/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(newer.contains(&own) && newer.ends_with("# EOF\n"), "{newer}");
    let once = stage.doorbell(&["top", "--metrics"]).output().unwrap();
    assert!(String::from_utf8(once.stdout).unwrap().contains(&own));
}

/// 64 connections that said a letter each had kept the owner of the
/// token out for as long as they liked.
#[test]
fn who_holds_connections_open_and_shows_no_token_keeps_nobody_out() {
    let stage = Stage::new();
    let server = Server::begin(&stage, &[]);
    let mut held = Vec::new();
    for _ in 0..200 {
        let mut stream = server.connect();
        // One that has been hung up on is no matter here.
        let _ = stream.write_all(b"G");
        held.push(stream);
    }
    for _ in 0..20 {
        let page = server.answer("GET /TOKEN/", "");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        // Each that is gone comes again.
        held.push(server.connect());
    }
    let mut looks = server.looks();
    assert!(looks.next().is_some());
    // A stream of who knows the token is not among those that make room.
    for _ in 0..200 {
        held.push(server.connect());
    }
    assert!(looks.nth(2).is_some());
}
