// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends that tokio tasks await: with real traffic from other processes, dropped in the middle of a
//! wait, with dying peers, on a runtime with one thread and on one with several.
#![allow(unexpected_cfgs, reason = "`ci/sanitize` sets it")]

mod cancelled;
mod conversations;
mod deaths;
mod registered;
#[cfg(feature = "stream")]
mod streams;
mod turns;

use crate::other::FOREVER;
use doorbell::Async;
use doorbell::channel::{Receiver, Sender};
use doorbell::rendezvous::Connection;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use tokio::runtime::Builder;
use tokio::task::coop::unconstrained;

/// Runs `task` on a runtime of one thread and on one of two, each time as a task of the runtime. A
/// task that is never woken, or never gives way to others, is a hang that is found.
fn on_both_runtimes<F>(task: impl Fn() -> F + Send + Clone + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut runtimes = vec![Builder::new_current_thread()];
    // The thread sanitizer does not see into the locks of std by
    // which the threads of the other pass tasks on.
    #[cfg(not(thread_sanitizer))]
    runtimes.push(Builder::new_multi_thread());
    for mut runtime in runtimes {
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let task = task.clone();
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let result = runtime.block_on(async { tokio::spawn(task()).await });
            let _ = done.send(result);
        });
        let ended = is_done.recv_timeout(FOREVER).expect("hung");
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Polls `future` once and drops it if it is not done: in the middle
/// of its wait, not because the task's turn is over.
async fn try_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(unconstrained(future));
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Lets some time pass, so that the other process is found at another step in each round.
fn dawdle(round: u64) {
    (0..round % 64 * 40).for_each(|_| std::hint::spin_loop());
}

fn ends(connection: &Connection, out: u32, back: u32) -> (Async<Sender>, Async<Receiver>) {
    let sender = Async::new(Sender::attach(connection, out).unwrap()).unwrap();
    (sender, Async::new(Receiver::attach(connection, back).unwrap()).unwrap())
}
