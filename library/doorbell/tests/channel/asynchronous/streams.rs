// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receiving ends as streams.

use super::on_both_runtimes;
use crate::other::{segment, start};
use doorbell::Async;
use doorbell::channel::{Gather, GatherError, Receiver, RecvError, many};
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;

#[test]
fn a_gather_is_a_stream_that_ends_when_all_senders_have_left() {
    on_both_runtimes(|| async {
        let (senders, gather) = many(3, 256).unwrap();
        let mut gather = Async::new(gather).unwrap();
        let sending: Vec<_> = senders
            .into_iter()
            .map(|sender| {
                let mut sender = Async::new(sender).unwrap();
                tokio::spawn(async move {
                    for number in 0..1000_u64 {
                        sender.send(&number.to_ne_bytes()).await.unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0_u64; 3];
        while let Some(received) = poll_fn(|cx| Pin::new(&mut gather).poll_next(cx)).await {
            let (lane, message) = received.unwrap();
            assert_eq!(message, next[lane].to_ne_bytes());
            next[lane] += 1;
        }
        assert_eq!(next, [1000; 3]);
        for sending in sending {
            sending.await.unwrap();
        }
    });
}

/// The end of the last one was told again and again: who wrote it
/// down and went on never came to the end.
#[test]
fn a_stream_tells_once_that_a_sender_was_killed_then_ends_and_goes_on_with_the_next() {
    async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
        poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
    }
    on_both_runtimes(|| async {
        let segments = [(); 3].map(|()| segment(1, 1, 256));
        let mut met = segments.each_ref().map(|segment| start("send-on 0", segment));
        let gone = met.each_ref().map(|(connection, _)| RecvError::PeerGone(connection.peer().id()));
        let mut gather: Gather = Gather::default();
        for (connection, _) in &met[..2] {
            gather.add(connection, 0).unwrap();
        }
        let mut gather = Async::new(gather).unwrap();
        let receiver: Receiver = Receiver::attach(&met[2].0, 0).unwrap();
        let mut receiver = Async::new(receiver).unwrap();
        let mut heard =
            [next(&mut gather).await.unwrap().unwrap().0, next(&mut gather).await.unwrap().unwrap().0];
        heard.sort_unstable();
        assert_eq!(heard, [0, 1]);
        assert_eq!(next(&mut receiver).await, Some(Ok(vec![0; 8])));
        met.iter_mut().for_each(|(_, other)| other.kill());
        let mut told =
            [next(&mut gather).await.unwrap().unwrap_err(), next(&mut gather).await.unwrap().unwrap_err()];
        told.sort_unstable_by_key(|error| error.lane);
        assert_eq!(told, [0, 1].map(|lane| GatherError { lane: Some(lane), error: gone[lane] }));
        assert_eq!(next(&mut receiver).await, Some(Err(gone[2])));
        for _ in 0..3 {
            assert_eq!(next(&mut gather).await, None);
            assert_eq!(next(&mut receiver).await, None);
        }
        let _successors = [start("send-on 0", &segments[1]), start("send-on 0", &segments[2])];
        // They may not have attached yet.
        let from_lane = loop {
            if let Some(received) = next(&mut gather).await {
                break received;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(from_lane, Ok((1, vec![0; 8])));
        let from_one = loop {
            if let Some(received) = next(&mut receiver).await {
                break received;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(from_one, Ok(vec![0; 8]));
    });
}
