// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server that tells a browser of events in every way that browsers have, from one thread and one
//! library: short polls, long polls, server-sent events, WebSocket, and Socket.IO.
//! `rivals/push/compare` drives it and the browser.
//!
//!     push FOLDER        serves page.html and socket.io.min.js of FOLDER; prints its port, ends
//! with its standard input

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use futures_util::StreamExt;
use futures_util::stream::{once, unfold};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use socketioxide::SocketIo;
use socketioxide::extract::SocketRef;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What is published, and what it took.
struct Events {
    io: SocketIo,
    /// When each event was published, nanoseconds of the monotonic clock.
    stamps: Mutex<Vec<u64>>,
    /// How many there are.
    published: watch::Sender<usize>,
    requests: AtomicU64,
}

type Shared = Arc<Events>;

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn spent_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Events {
    /// Everything after number `after`: `number:stamp`, by spaces. Numbers begin at 1.
    fn since(&self, after: usize) -> String {
        let stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        let new =
            stamps.iter().enumerate().skip(after).map(|(index, stamp)| format!("{}:{stamp}", index + 1));
        new.collect::<Vec<_>>().join(" ")
    }

    /// Publishes one. Whoever listens in another way than the browser's is nobody, and is not told.
    async fn publish(&self, socket_io: bool) {
        let (number, stamp) = {
            let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            stamps.push(now_ns());
            (stamps.len(), stamps[stamps.len() - 1])
        };
        if socket_io {
            // That nobody listens is what the browser's own count then says.
            let _ = self.io.emit("event", &format!("{number}:{stamp}")).await;
        }
        self.published.send_replace(number);
    }
}

/// How many events there are, once that is more than `sent`; none when no more will be.
async fn next(published: &mut watch::Receiver<usize>, sent: usize) -> Option<usize> {
    published.wait_for(|number| *number > sent).await.ok().map(|number| *number)
}

#[derive(Deserialize)]
struct After {
    after: usize,
}

async fn short(State(events): State<Shared>, Query(After { after }): Query<After>) -> String {
    events.since(after)
}

async fn long(State(events): State<Shared>, Query(After { after }): Query<After>) -> String {
    let mut published = events.published.subscribe();
    // As long as proxies let a request wait; then the answer is empty, and asked for again.
    let _ = tokio::time::timeout(Duration::from_secs(25), next(&mut published, after)).await;
    events.since(after)
}

async fn sse(State(events): State<Shared>) -> Response {
    let published = events.published.subscribe();
    let begun = *published.borrow();
    let stream = unfold((events, published, begun), async |(events, mut published, sent)| {
        let number = next(&mut published, sent).await?;
        let text = format!("data: {}\n\n", events.since(sent));
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (events, published, number)))
    });
    // The head goes with the first piece of the body: without one the
    // browser would not be told that it is connected.
    let opening = once(async { Ok(Bytes::from_static(b":\n\n")) });
    let body = Body::from_stream(opening.chain(stream));
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
}

async fn websocket(State(events): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket| {
        let mut published = events.published.subscribe();
        let mut sent = *published.borrow();
        loop {
            tokio::select! {
                number = next(&mut published, sent) => {
                    let Some(number) = number else { return };
                    if socket.send(Message::text(events.since(sent))).await.is_err() {
                        return;
                    }
                    sent = number;
                }
                heard = socket.recv() => {
                    if !matches!(heard, Some(Ok(_))) {
                        return;
                    }
                }
            }
        }
    })
}

#[derive(Deserialize)]
struct Begin {
    count: usize,
    gap_us: u64,
    socket_io: bool,
}

/// Forgets all events and publishes `count`, one each gap, whether or
/// not anybody has taken the last.
async fn begin(State(events): State<Shared>, Query(begin): Query<Begin>) {
    tokio::spawn(async move {
        let mut due = tokio::time::interval(Duration::from_micros(begin.gap_us));
        due.tick().await;
        for _ in 0..begin.count {
            due.tick().await;
            events.publish(begin.socket_io).await;
        }
    });
}

async fn forget(State(events): State<Shared>) {
    events.stamps.lock().unwrap_or_else(PoisonError::into_inner).clear();
    events.published.send_replace(0);
}

async fn clock() -> String {
    now_ns().to_string()
}

/// Requests so far and CPU time of this process; this request is not one of them.
async fn spent(State(events): State<Shared>) -> String {
    format!("{} {}", events.requests.load(Relaxed), spent_ns())
}

async fn counted(State(events): State<Shared>, request: Request, next: Next) -> Response {
    if !matches!(request.uri().path(), "/spent" | "/begin" | "/forget" | "/clock") {
        events.requests.fetch_add(1, Relaxed);
    }
    next.run(request).await
}

/// With these a page has the clock of 5 µs instead of 100 (High Resolution Time, 4.4).
async fn isolated(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cache-control", "no-store"),
    ] {
        response.headers_mut().insert(name, value.parse().expect("a header of this file"));
    }
    response
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let folder = std::path::PathBuf::from(
        std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: push FOLDER"))?,
    );
    let page = std::fs::read_to_string(folder.join("page.html"))?;
    let client = std::fs::read_to_string(folder.join("socket.io.min.js"))?;
    let (layer, io) = SocketIo::new_layer();
    io.ns("/", async |_: SocketRef| {});
    let (published, _) = watch::channel(0);
    let events =
        Arc::new(Events { io, stamps: Mutex::new(Vec::new()), published, requests: AtomicU64::new(0) });
    let served = |kind: &'static str, text: String| get(async move || ([(CONTENT_TYPE, kind)], text.clone()));
    let app = Router::new()
        .route("/", served("text/html; charset=utf-8", page))
        .route("/socket.io.min.js", served("text/javascript; charset=utf-8", client))
        .route("/short", get(short))
        .route("/long", get(long))
        .route("/sse", get(sse))
        .route("/websocket", any(websocket))
        .route("/clock", get(clock))
        .route("/spent", get(spent))
        .route("/forget", post(forget))
        .route("/begin", post(begin))
        .with_state(Arc::clone(&events))
        .layer(layer)
        .layer(from_fn(isolated))
        .layer(from_fn_with_state(events, counted));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    // Whoever started it has gone when its standard input ends, however that came about.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    Ok(axum::serve(listener, app).await?)
}
