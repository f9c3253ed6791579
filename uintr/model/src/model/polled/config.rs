// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits, how much is sent, and what may come between.

use super::state::WAITERS;

/// How a thread waits on its vector's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiter {
    /// `read`, blocking: queued for the call, takes what it finds.
    Reads,
    /// `poll`, `select`: queued for the call, looks, then reads
    /// without blocking. Level-triggered epoll looks as often.
    Polls,
    /// In the queue for good and woken alone: `EPOLLEXCLUSIVE`.
    Exclusive,
    /// In the queue for good; looks once and then is told each time, looks no more and never reads:
    /// a multishot poll of io_uring, edge-triggered epoll.
    Told,
}

/// One configuration: two processors, a thread that waits on each, senders beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// What the configuration is about.
    pub name: &'static str,
    /// Who waits, and on which of two vectors.
    pub waiters: [Option<(Waiter, u8)>; WAITERS],
    /// Number of senders, 1 or 2, and posts of each, 1 to 3. The n-th post of a sender goes to
    /// vector `(sender + n) % vectors`.
    pub senders: u8,
    /// Posts of each sender.
    pub posts: u8,
    /// Vectors, 1 or 2.
    pub vectors: u8,
    /// A read gives one post (`UINTR_SEMAPHORE`), not all that were noticed.
    pub semaphore: bool,
    /// Sleepers give up, and wait again.
    pub time_out: bool,
    /// A processor goes off-line and comes back.
    pub hot_plug: bool,
    /// Interrupts have had their share of a processor: all that are armed there are throttled.
    pub throttles: bool,
    /// At most so much of these in one run.
    pub limit: u8,
}

impl Config {
    pub(super) const SMALLEST: Self = Self {
        name: "",
        waiters: [Some((Waiter::Polls, 0)), None],
        senders: 1,
        posts: 2,
        vectors: 1,
        semaphore: false,
        time_out: false,
        hot_plug: false,
        throttles: false,
        limit: 0,
    };

    /// One thread in poll, one sender.
    pub const LEVEL: Self = Self { name: "poll", ..Self::SMALLEST };

    /// Two threads in poll on one vector, which give up now and then; two senders.
    pub const SHARED: Self = Self {
        name: "two loops",
        waiters: [Some((Waiter::Polls, 0)), Some((Waiter::Polls, 0))],
        senders: 2,
        posts: 1,
        time_out: true,
        limit: 1,
        ..Self::SMALLEST
    };

    /// A blocking reader beside one that polls.
    pub const READER: Self = Self {
        name: "read and poll",
        waiters: [Some((Waiter::Reads, 0)), Some((Waiter::Polls, 0))],
        time_out: true,
        limit: 1,
        ..Self::SMALLEST
    };

    /// Two blocking readers that take one post each.
    pub const SEMAPHORE: Self = Self {
        name: "semaphore",
        waiters: [Some((Waiter::Reads, 0)), Some((Waiter::Reads, 0))],
        senders: 2,
        posts: 1,
        semaphore: true,
        ..Self::SMALLEST
    };

    /// Two loops of which a post is to wake one.
    pub const EXCLUSIVE: Self = Self {
        name: "exclusive",
        waiters: [Some((Waiter::Exclusive, 0)), Some((Waiter::Exclusive, 0))],
        ..Self::SMALLEST
    };

    /// One that is told of each post, beside a reader that takes them.
    pub const TOLD: Self = Self {
        name: "told of each",
        waiters: [Some((Waiter::Told, 0)), Some((Waiter::Reads, 0))],
        ..Self::SMALLEST
    };

    /// Nobody but one that is told of each post.
    pub const MULTISHOT: Self = Self {
        name: "told of each, alone",
        waiters: [Some((Waiter::Told, 0)), None],
        posts: 3,
        ..Self::SMALLEST
    };

    /// Two vectors of one receiver, waited on by different threads.
    pub const VECTORS: Self = Self {
        name: "two vectors",
        waiters: [Some((Waiter::Reads, 0)), Some((Waiter::Polls, 1))],
        vectors: 2,
        time_out: true,
        limit: 1,
        ..Self::SMALLEST
    };

    /// A processor goes off-line and comes back.
    pub const HOT_PLUG: Self = Self {
        name: "hot-plug",
        waiters: [Some((Waiter::Reads, 0)), Some((Waiter::Told, 0))],
        hot_plug: true,
        limit: 3,
        ..Self::SMALLEST
    };

    /// Posts come faster than their interrupts may.
    pub const THROTTLED: Self = Self {
        name: "throttled",
        waiters: [Some((Waiter::Reads, 0)), Some((Waiter::Told, 0))],
        throttles: true,
        limit: 2,
        ..Self::SMALLEST
    };

    /// The processor goes off-line meanwhile.
    pub const THROTTLED_HOT_PLUG: Self = Self {
        name: "throttled, hot-plug",
        waiters: [Some((Waiter::Polls, 0)), None],
        hot_plug: true,
        throttles: true,
        limit: 4,
        ..Self::SMALLEST
    };

    /// Vector of a sender's n-th post.
    pub(super) const fn destination(&self, sender: u8, post: u8) -> u8 {
        (sender + post) % self.vectors
    }
}
