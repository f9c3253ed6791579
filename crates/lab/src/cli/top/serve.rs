// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell top --serve`: a page for a browser, and metrics for whoever scrapes.
//!
//! Nothing can be written through it: it knows GET and HEAD, and reads no body. Who asks must know
//! the token. A page of elsewhere can neither guess that nor reach this by a name that it had
//! rebound to this address: the host asked for must be an address, `localhost` or a name that
//! was allowed. Each connection is one request, answered by a thread of its own; one that reads
//! slowly is sent the newest look when it comes round, and keeps nobody else waiting. Those that
//! have not shown the token have places of their own, and when these are taken the oldest of them
//! is hung up on: whoever holds many open and says nothing keeps nobody out who asks at once.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doorbell_report::live::Format;
use doorbell_results::quantity::refused;

use super::token::Token;

/// Connections at once of those who have shown the token, and how
/// many of them may be streams of looks.
const CONNECTIONS: usize = 64;
const STREAMS: usize = 16;

/// Connections at once of those who have not, and the threads that there may be of them: one that
/// was hung up on needs a moment to end.
const STRANGERS: usize = 64;
const THREADS: usize = 2 * STRANGERS;

/// The longest head of a request. A browser's has some 600 bytes.
const LONGEST_HEAD: usize = 8 << 10;

/// How long a head may take to come, and a piece of an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long who is refused may take to have read why.
const FAREWELL: Duration = Duration::from_secs(1);

/// With nothing new for so long a stream is sent a comment: that finds out who has gone.
const HEARTBEAT: Duration = Duration::from_secs(10);

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// What is served.
pub(super) struct Content {
    /// The page, and the policy under which it is shown.
    pub(super) page: (String, String),
    /// Makes the metrics of this moment; none if that took too long.
    pub(super) metrics: Box<dyn Fn(Format) -> Option<String> + Send + Sync>,
}

/// Who may ask.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) token: Token,
    /// Names, besides addresses and `localhost`, by which this may be reached.
    pub(super) hosts: Vec<String>,
}

/// A server whose connections are served in the background as long as the process lives.
#[derive(Clone)]
pub(super) struct Server(Arc<Shared>);

struct Shared {
    content: Content,
    admission: Admission,
    port: u16,
    connections: AtomicUsize,
    /// Threads of those who have not shown the token.
    strange: AtomicUsize,
    strangers: Strangers,
    looks: Looks,
}

/// The connections of those who have not shown the token, the oldest first, each with its number.
#[derive(Default)]
struct Strangers(Mutex<VecDeque<(u64, TcpStream)>>);

impl Strangers {
    /// Takes one in; where there are too many the oldest is hung up on.
    fn take(&self, number: u64, stream: TcpStream) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= STRANGERS
            && let Some((_, oldest)) = all.pop_front()
        {
            // One that has gone by itself needs no hanging up.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        all.push_back((number, stream));
    }

    /// Lets one go, which has ended or shown the token; whether it had not been hung up on before.
    fn release(&self, number: u64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.len();
        all.retain(|(other, _)| *other != number);
        all.len() < count
    }
}

/// The newest look, and who waits for the next.
#[derive(Default)]
struct Looks {
    /// How many there were, and the newest.
    newest: Mutex<(u64, Arc<str>)>,
    changed: Condvar,
    streams: AtomicUsize,
}

/// A place among a number of places, free again when this is dropped.
struct Place<'count>(&'count AtomicUsize);

impl<'count> Place<'count> {
    fn take(count: &'count AtomicUsize, most: usize) -> Option<Self> {
        // Counted first, so that of many who come at once no more than `most` stay.
        let place = Self(count);
        (count.fetch_add(1, Relaxed) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Server {
    /// Begins to serve at `listener`.
    pub(super) fn begin(listener: TcpListener, content: Content, admission: Admission) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let looks = Looks::default();
        let server = Self(Arc::new(Shared {
            content,
            admission,
            port,
            connections: AtomicUsize::new(0),
            strange: AtomicUsize::new(0),
            strangers: Strangers::default(),
            looks,
        }));
        let serving = server.clone();
        std::thread::Builder::new().name("accept".to_owned()).spawn(move || serving.accept(&listener))?;
        Ok(server)
    }

    /// Whether anybody watches: where nobody does, nothing need be looked at.
    pub(super) fn is_watched(&self) -> bool {
        self.0.looks.streams.load(Relaxed) > 0
    }

    /// Sends `look` to all who watch.
    pub(super) fn publish(&self, look: String) {
        let mut newest = self.0.looks.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = (newest.0 + 1, look.into());
        self.0.looks.changed.notify_all();
    }

    fn accept(&self, listener: &TcpListener) {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept() else {
                // Out of descriptors, mostly: those that are served give theirs back.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let shared = Arc::clone(&self.0);
            let Ok(own) = stream.try_clone() else { continue };
            // One thread more for each that comes would be no limit. Those that were hung up on end at once.
            while shared.strange.load(Relaxed) >= THREADS {
                std::thread::sleep(Duration::from_millis(1));
            }
            shared.strange.fetch_add(1, Relaxed);
            shared.strangers.take(number, own);
            let serving = std::thread::Builder::new().name("serve".to_owned()).stack_size(256 << 10);
            let served = serving.spawn(move || {
                let place = Place(&shared.strange);
                // Who leaves, or sends what is no request, ends nobody but himself.
                let _ = shared.serve(stream, number, place);
                shared.strangers.release(number);
            });
            if served.is_err() {
                self.0.strange.fetch_sub(1, Relaxed);
                self.0.strangers.release(number);
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    host: Option<String>,
    origin: Option<String>,
    site: Option<String>,
    bearer: Option<String>,
    openmetrics: bool,
}

/// Reads the head of a request; none where it is none, or comes too slowly.
fn request(stream: &mut TcpStream) -> io::Result<Result<Request, Status>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::with_capacity(1024);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(Status::TooSlow));
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1024];
        let length = match stream.read(&mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&bytes[..length]);
        match parse(&head) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) if head.len() > LONGEST_HEAD => return Ok(Err(Status::TooLong)),
            Ok(None) => {}
            Err(status) => return Ok(Err(status)),
        }
    }
}

/// The request in `head`; none as long as its end is missing.
fn parse(head: &[u8]) -> Result<Option<Request>, Status> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Status::Bad),
    }
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().to_owned(),
        ..Request::default()
    };
    for header in parsed.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value).map(|value| value.trim().to_owned()) else {
            return Err(Status::Bad);
        };
        let once = match header.name.to_ascii_lowercase().as_str() {
            "host" => request.host.replace(value),
            "origin" => request.origin.replace(value),
            "sec-fetch-site" => request.site.replace(value),
            "authorization" => match value.split_once(' ') {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                    request.bearer.replace(token.trim().to_owned())
                }
                _ => None,
            },
            "accept" => {
                request.openmetrics |= value.contains("application/openmetrics-text");
                None
            }
            // There is nothing that a body could be for, and what is
            // behind a head must not be taken for another.
            "content-length" if value != "0" => return Err(Status::Bad),
            "transfer-encoding" => return Err(Status::Bad),
            _ => None,
        };
        // Two of one of these: whoever stands before this may have gone by the other.
        if once.is_some() {
            return Err(Status::Bad);
        }
    }
    Ok(Some(request))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Moved,
    Bad,
    Forbidden,
    NotThere,
    NotAllowed,
    TooSlow,
    TooLong,
    Misdirected,
    TooMany,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::Moved => "308 Permanent Redirect",
            Self::Bad => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotThere => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::TooSlow => "408 Request Timeout",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Misdirected => "421 Misdirected Request",
            Self::TooMany => "503 Service Unavailable",
        }
    }
}

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Page,
    Looks,
    Metrics(Format),
    /// The same path with a slash behind it, from which the page's own addresses begin.
    Slash(String),
    Refused(Status),
}

impl Admission {
    /// What `request`, which came to `port`, is to be answered.
    fn answer(&self, request: &Request, port: u16) -> Answer {
        let Some(host) = &request.host else { return Answer::Refused(Status::Bad) };
        if !self.is_ours(host, port) {
            return Answer::Refused(Status::Misdirected);
        }
        let foreign = request.origin.as_ref().is_some_and(|origin| *origin != format!("http://{host}"));
        if foreign {
            return Answer::Refused(Status::Forbidden);
        }
        let path = request.path.split_once('?').map_or(request.path.as_str(), |(path, _)| path);
        let Some(path) = path.strip_prefix('/') else { return Answer::Refused(Status::Bad) };
        let (token, what) = match &request.bearer {
            Some(token) => (token.as_str(), Some(path)),
            None => path.split_once('/').map_or((path, None), |(token, what)| (token, Some(what))),
        };
        if !self.token.is(token) {
            return Answer::Refused(Status::Forbidden);
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Answer::Refused(Status::NotAllowed);
        }
        // What a page of ours asks for is asked from there, or by a program that says nothing of where.
        let elsewhere = request.site.as_deref().is_some_and(|site| !matches!(site, "same-origin" | "none"));
        match what {
            None => Answer::Slash(format!("/{token}/")),
            Some("") => Answer::Page,
            Some("events" | "metrics") if elsewhere => Answer::Refused(Status::Forbidden),
            Some("events") => Answer::Looks,
            Some("metrics") => {
                Answer::Metrics(if request.openmetrics { Format::Openmetrics } else { Format::Prometheus })
            }
            Some(_) => Answer::Refused(Status::NotThere),
        }
    }

    /// Whether `host` is a name of this server that nobody else can have
    /// pointed here: an address says itself where it leads, any other
    /// name is its owner's to point where he likes, whenever he likes.
    fn is_ours(&self, host: &str, port: u16) -> bool {
        let (name, asked) = match host.rsplit_once(':') {
            Some((name, asked)) if !name.is_empty() && !asked.ends_with(']') => (name, asked.parse().ok()),
            _ => (host, Some(80)),
        };
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let known = name.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
        known && asked == Some(port)
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, number: u64, place: Place<'_>) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let (answer, head_only) = match request(&mut stream)? {
            Ok(request) => (self.admission.answer(&request, self.port), request.method == "HEAD"),
            Err(status) => (Answer::Refused(status), false),
        };
        let mut known = None;
        if !matches!(answer, Answer::Refused(_)) {
            if !self.strangers.release(number) {
                return Ok(());
            }
            drop(place);
            known = Place::take(&self.connections, CONNECTIONS);
        }
        let policy = &self.content.page.1;
        let answer = match answer {
            Answer::Refused(status) => Answer::Refused(status),
            _ if known.is_none() => Answer::Refused(Status::TooMany),
            answer => answer,
        };
        match answer {
            Answer::Page => {
                let more = format!("Content-Security-Policy: {policy}; frame-ancestors 'none'\r\n");
                send(&mut stream, Status::Ok, HTML, &more, &self.content.page.0, head_only)
            }
            Answer::Metrics(format) => match (self.content.metrics)(format) {
                Some(text) => send(&mut stream, Status::Ok, format.content_type(), "", &text, head_only),
                None => send(&mut stream, Status::TooMany, TEXT, "", "a look takes too long\n", head_only),
            },
            Answer::Slash(to) => {
                send(&mut stream, Status::Moved, TEXT, &format!("Location: {to}\r\n"), "", head_only)
            }
            Answer::Refused(status) => {
                let more = if status == Status::NotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
                send(&mut stream, status, TEXT, more, &format!("{}\n", status.line()), head_only)
            }
            Answer::Looks if head_only => send(&mut stream, Status::Ok, "text/event-stream", "", "", true),
            Answer::Looks => match Place::take(&self.looks.streams, STREAMS) {
                Some(_place) => self.stream(&mut stream),
                None => {
                    send(&mut stream, Status::TooMany, TEXT, "Retry-After: 10\r\n", "too many watch\n", false)
                }
            },
        }
    }

    /// Sends each look, or the newest where there were several since
    /// the last was taken, until the other side leaves.
    fn stream(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(head(Status::Ok, "text/event-stream", "", None).as_bytes())?;
        // What was seen while somebody else watched may be hours old.
        let mut sent = self.looks.newest.lock().unwrap_or_else(PoisonError::into_inner).0;
        loop {
            let newest = self.looks.newest.lock().unwrap_or_else(PoisonError::into_inner);
            let (newest, _) = self
                .looks
                .changed
                .wait_timeout_while(newest, HEARTBEAT, |newest| newest.0 == sent)
                .unwrap_or_else(PoisonError::into_inner);
            let (number, look) = newest.clone();
            drop(newest);
            if number == sent {
                stream.write_all(b":\n\n")?;
            } else {
                stream.write_all(format!("id: {number}\ndata: {look}\n\n").as_bytes())?;
                sent = number;
            }
        }
    }
}

/// The head of an answer. None of them is to be kept by anybody,
/// shown in another's page, or named to another.
fn head(status: Status, content: &str, more: &str, length: Option<usize>) -> String {
    let length = length.map_or_else(String::new, |length| format!("Content-Length: {length}\r\n"));
    format!(
        "HTTP/1.1 {}\r\nContent-Type: {content}\r\n{length}Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n{more}\r\n",
        status.line()
    )
}

fn send(
    stream: &mut TcpStream,
    status: Status,
    content: &str,
    more: &str,
    body: &str,
    head_only: bool,
) -> io::Result<()> {
    stream.write_all(head(status, content, more, Some(body.len())).as_bytes())?;
    if !head_only {
        stream.write_all(body.as_bytes())?;
    }
    // What the other side still sends would make the kernel throw
    // away what it has not yet taken of this.
    stream.shutdown(Shutdown::Write)?;
    let end = Instant::now() + FAREWELL;
    let mut rest = [0; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        if !stream.read(&mut rest).is_ok_and(|length| length > 0) {
            return Ok(());
        }
    }
}

/// Where to listen: an address with a port, or a port alone, which is
/// one of this machine for itself.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    named
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| refused(format_args!("'{text}' is no address with a port"), &["127.0.0.1:8080", "8080"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn admission() -> Admission {
        Admission { token: Token::from(SECRET.to_owned()), hosts: vec!["node7.example".to_owned()] }
    }

    fn asked(text: &str) -> Answer {
        let text = text.replace("SECRET", SECRET).replace('\n', "\r\n") + "\r\n";
        match parse(text.as_bytes()) {
            Ok(request) => admission().answer(&request.expect("the head has an end"), 8080),
            Err(status) => Answer::Refused(status),
        }
    }

    #[test]
    fn who_knows_the_token_is_answered() {
        let get =
            |path: &str, more: &str| asked(&format!("GET {path} HTTP/1.1\nHost: 127.0.0.1:8080\n{more}"));
        assert_eq!(get("/SECRET/", ""), Answer::Page);
        assert_eq!(get("/SECRET/?again", ""), Answer::Page);
        assert_eq!(get("/SECRET", ""), Answer::Slash(format!("/{SECRET}/")));
        assert_eq!(
            get("/SECRET/events", "Sec-Fetch-Site: same-origin\nOrigin: http://127.0.0.1:8080\n"),
            Answer::Looks
        );
        assert_eq!(get("/metrics", "Authorization: Bearer SECRET\n"), Answer::Metrics(Format::Prometheus));
        let newer = "Authorization: bearer SECRET\nAccept: application/openmetrics-text;version=1.0.0\n";
        assert_eq!(get("/metrics", newer), Answer::Metrics(Format::Openmetrics));
        assert_eq!(get("/SECRET/elsewhere", ""), Answer::Refused(Status::NotThere));
    }

    #[test]
    fn who_does_not_know_it_is_refused_whatever_he_asks_for() {
        let shorter = &SECRET[1..];
        for path in [
            "/",
            "/events",
            "/metrics",
            &format!("/{shorter}/"),
            &format!("/{SECRET}0/"),
            "//SECRET/",
            "/../SECRET/",
        ] {
            let answer = asked(&format!("GET {path} HTTP/1.1\nHost: localhost:8080\n"));
            assert_eq!(answer, Answer::Refused(Status::Forbidden), "{path}");
        }
        let wrong = asked("GET /SECRET/ HTTP/1.1\nHost: localhost:8080\nAuthorization: Bearer x\n");
        assert_eq!(wrong, Answer::Refused(Status::Forbidden));
    }

    #[test]
    fn a_name_that_anybody_may_have_pointed_here_is_refused_even_with_the_token() {
        let host = |host: &str| asked(&format!("GET /SECRET/ HTTP/1.1\nHost: {host}\n"));
        for ours in [
            "localhost:8080",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "10.0.0.7:8080",
            "node7.example:8080",
        ] {
            assert_eq!(host(ours), Answer::Page, "{ours}");
        }
        for theirs in [
            "evil.example:8080",
            "localhost.evil.example:8080",
            "localhost",
            "localhost:8081",
            "127.0.0.1:",
            ":8080",
            "127.0.0.1.:8080",
            "",
        ] {
            assert_eq!(host(theirs), Answer::Refused(Status::Misdirected), "{theirs}");
        }
        assert_eq!(asked("GET /SECRET/ HTTP/1.1\n"), Answer::Refused(Status::Bad), "no host at all");
    }

    #[test]
    fn a_page_of_elsewhere_is_refused() {
        let events =
            |more: &str| asked(&format!("GET /SECRET/events HTTP/1.1\nHost: localhost:8080\n{more}"));
        for more in [
            "Origin: http://evil.example\n",
            "Origin: null\n",
            "Origin: https://localhost:8080\n",
            "Origin: http://localhost:8081\n",
            "Sec-Fetch-Site: cross-site\n",
            "Sec-Fetch-Site: same-site\n",
        ] {
            assert_eq!(events(more), Answer::Refused(Status::Forbidden), "{more}");
        }
    }

    #[test]
    fn nothing_can_be_written_and_nothing_be_hidden_behind_a_head() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"] {
            let answer = asked(&format!("{method} /SECRET/ HTTP/1.1\nHost: localhost:8080\n"));
            assert_eq!(answer, Answer::Refused(Status::NotAllowed), "{method}");
        }
        let get = |more: &str| asked(&format!("GET /SECRET/ HTTP/1.1\nHost: localhost:8080\n{more}"));
        for more in [
            "Content-Length: 5\n",
            "Transfer-Encoding: chunked\n",
            "Host: localhost:8080\n",
            "Origin: x\nOrigin: y\n",
            "X: \u{1}\n",
        ] {
            assert_eq!(get(more), Answer::Refused(Status::Bad), "{more}");
        }
        assert_eq!(
            asked("GET http://localhost:8080/SECRET/ HTTP/1.1\nHost: localhost:8080\n"),
            Answer::Refused(Status::Bad)
        );
    }

    #[test]
    fn a_port_alone_is_this_machines_own() {
        assert_eq!(address("8080").unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(address("localhost:1").unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(address("[::1]:2").unwrap().to_string(), "[::1]:2");
        assert_eq!(address("0.0.0.0:3").unwrap().to_string(), "0.0.0.0:3");
        assert!(address("node7").is_err() && address("70000").is_err());
    }
}
