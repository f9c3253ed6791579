// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends in a runtime that the library knows nothing of: smol's reactor.

use crate::other::FOREVER;
use async_io::{Async, Timer, block_on};
use doorbell::channel::{Receiver, RecvError, SendError, Sender, pair};
use doorbell::peer::Trusted;
use rustix::fd::OwnedFd;
use std::pin::pin;
use std::task::Poll;
use std::{future, thread};

async fn recv(receiver: &mut Receiver<Trusted>, file: &Async<OwnedFd>) -> Result<Vec<u8>, RecvError> {
    loop {
        if let Some(message) = receiver.try_recv()? {
            return Ok(message.into_vec());
        }
        if !receiver.listen().unwrap() {
            file.readable().await.unwrap();
        }
    }
}

async fn send(sender: &mut Sender<Trusted>, file: &Async<OwnedFd>, message: &[u8]) {
    while let Err(error) = sender.try_send(message) {
        assert_eq!(error, SendError::Full);
        if !sender.listen(message.len()).unwrap() {
            file.readable().await.unwrap();
        }
    }
}

/// Runs `task`, and fails where it hangs.
fn run<T>(task: impl Future<Output = T>) -> T {
    let (mut task, mut late) = (pin!(task), pin!(Timer::after(FOREVER)));
    block_on(future::poll_fn(|cx| match task.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => late.as_mut().poll(cx).map(|_| panic!("hung")),
    }))
}

#[test]
fn no_message_and_no_room_is_missed_between_tasks_of_another_runtime() {
    const MESSAGES: u64 = 20_000;
    let (mut sender, mut receiver) = pair(256).unwrap();
    let sending = thread::spawn(move || {
        run(async {
            let file = Async::new(sender.file().unwrap().try_clone_to_owned().unwrap()).unwrap();
            for number in 0..MESSAGES {
                send(&mut sender, &file, &number.to_ne_bytes()).await;
            }
        });
    });
    run(async {
        let file = Async::new(receiver.file().unwrap().try_clone_to_owned().unwrap()).unwrap();
        for number in 0..MESSAGES {
            assert_eq!(recv(&mut receiver, &file).await.unwrap(), number.to_ne_bytes());
        }
        assert_eq!(recv(&mut receiver, &file).await, Err(RecvError::Closed));
    });
    sending.join().unwrap();
}
