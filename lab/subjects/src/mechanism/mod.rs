// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of notification, one file each behind one set of traits.
//!
//! A mechanism is a type of the trait [`Mechanism`]. Adding one is adding a file here, its `mod`
//! and one line in [`all`].

use doorbell_harness::{deadline, watched_word};
use doorbell_results::nearest::{self, Unknown};

// What a mechanism is made of, so that its file needs one `use super::{…}`.
pub use doorbell_harness::entry::{Entry, Links};
pub use doorbell_harness::mechanism::{
    Explanation, Fault, Link, Mechanism, Notifier, Unavailable, Waiter, Woken,
};
pub use doorbell_harness::site::{OpenError, Site, Word};
pub use doorbell_results::record::subject::{Carries, Contexts, Notification, Notifiers, Waits};

mod alarm;
mod bell_adaptive;
mod bell_eventfd;
mod bell_futex;
mod bell_uintr;
mod busy_poll;
pub(crate) mod c_call;
mod channel;
pub(crate) mod condvar;
mod descriptor;
mod epoll;
pub(crate) mod eventfd;
// What book/add-a-mechanism.md shows how to add.
#[cfg(test)]
mod eventfd_count;
mod eventfd_epoll;
mod eventfd_epoll_et;
mod eventfd_io_uring;
mod eventfd_io_uring_poll;
mod eventfd_poll;
mod family;
mod fifo;
pub(crate) mod futex;
mod futex_io_uring;
mod futex_membarrier;
mod futex_waitv;
mod http;
mod io_uring_msg_ring;
mod library;
mod mq_posix;
mod mq_sysv;
mod mwaitx;
pub(crate) mod null;
mod pipe;
pub(crate) mod posix_semaphore;
mod redirect;
mod sched_yield;
pub(crate) mod sem_posix;
pub(crate) mod sem_posix_named;
pub(crate) mod sem_sysv;
pub(crate) mod signal;
mod signal_handler;
mod signal_signalfd;
pub(crate) mod signal_sigwaitinfo;
mod socket;
mod spin;
mod tcp;
mod tcp_busy_poll;
mod tcp_epoll_busy_poll;
mod udp;
mod udp_busy_poll;
mod udp_veth;
mod udp_veth_io_uring;
mod udp_veth_io_uring_napi;
mod uintr;
mod uintr_by_signals;
mod uintr_by_signals_epoll;
mod uintr_by_signals_wait;
mod uintr_epoll;
mod uintr_wait;
mod umwait;
pub(crate) mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;
pub(crate) mod uring;
mod uring_read;
mod user_interrupt;
mod veth;
mod wfe;
mod wrs;
mod xdp;
mod xsk;

/// What is measured where nothing is named.
pub const USUAL: &str = "futex";

/// Every mechanism, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static dyn Entry] {
    &[
        &null::Null,
        &spin::Spin,
        &sched_yield::SchedYield,
        &umwait::Umwait,
        &mwaitx::Mwaitx,
        &wfe::Wfe,
        &wrs::Wrs,
        &futex::FutexShared,
        &futex::FutexPrivate,
        &futex_membarrier::FutexMembarrier,
        &futex_waitv::FutexWaitv,
        &futex_io_uring::FutexIoUring,
        &eventfd::EventfdRead,
        &eventfd_poll::EventfdPoll,
        &eventfd_epoll::EventfdEpoll,
        &eventfd_epoll_et::EventfdEpollEt,
        &eventfd_io_uring::EventfdIoUring,
        &eventfd_io_uring_poll::EventfdIoUringPoll,
        &io_uring_msg_ring::IoUringMsgRing,
        &pipe::Pipe,
        &fifo::Fifo,
        &unix_stream::UnixStream,
        &unix_dgram::UnixDgram,
        &unix_seqpacket::UnixSeqpacket,
        &tcp::Tcp,
        &tcp_busy_poll::TcpBusyPoll,
        &tcp_epoll_busy_poll::TcpEpollBusyPoll,
        &udp::Udp,
        &udp_busy_poll::UdpBusyPoll,
        &udp_veth::UdpVeth,
        &udp_veth_io_uring::UdpVethIoUring,
        &udp_veth_io_uring_napi::UdpVethIoUringNapi,
        &xdp::Xdp,
        &sem_posix::SemPosix,
        &sem_posix_named::SemPosixNamed,
        &sem_sysv::SemSysv,
        &mq_posix::MqPosix,
        &mq_sysv::MqSysv,
        &signal_sigwaitinfo::SignalSigwaitinfo,
        &signal_handler::SignalHandler,
        &signal_signalfd::SignalSignalfd,
        &condvar::Condvar,
        &uintr::Uintr,
        &uintr_wait::UintrWait,
        &uintr_epoll::UintrEpoll,
        &uintr_by_signals::UintrBySignals,
        &uintr_by_signals_wait::UintrBySignalsWait,
        &uintr_by_signals_epoll::UintrBySignalsEpoll,
        &bell_adaptive::BellAdaptive,
        &bell_futex::BellFutex,
        &bell_eventfd::BellEventfd,
        &bell_uintr::BellUintr,
        &channel::Channel,
        &http::short_poll::HttpShortPoll,
        &http::long_poll::HttpLongPoll,
        &http::events::HttpEvents,
        &http::websocket::Websocket,
    ]
}

/// Those that are measured where all are asked for.
pub fn usual() -> impl Iterator<Item = &'static dyn Entry> + Clone {
    all().iter().copied().filter(|entry| entry.usual() && !entry.above_sockets())
}

/// The mechanism called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn Entry, Unknown> {
    nearest::find("mechanism", all().iter().copied(), |entry| entry.name(), name)
}

pub use family::Mechanisms;

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use doorbell_harness::arena::Arena;
    use doorbell_harness::run_dir::RunDir;

    /// Says of each what became of it: `ci/everywhere` makes a table of that.
    #[test]
    fn every_mechanism_keeps_its_promises() {
        let arena = Arena::map(1 << 20).unwrap();
        let run_dir = RunDir::create().unwrap();
        let site = Site::new(Contexts::Threads, arena, &run_dir);
        let mut broken = Vec::new();
        let entries = all().iter().chain(&[&eventfd_count::EventfdCount as _]);
        // Before any is rehearsed: one of them makes a choice for the
        // whole process that another would then give as its reason.
        let asked: Vec<_> = entries.map(|entry| (entry, entry.available())).collect();
        for (entry, available) in asked {
            let name = entry.name();
            let said = match available.and_then(|()| entry.available()) {
                Err(lacking) => format!("not there: {lacking}"),
                Ok(()) if !entry.notification().joins(Contexts::Threads) => {
                    "joins processes alone".to_owned()
                }
                Ok(()) if entry.notification().waits == Waits::Nothing => "waits for nothing".to_owned(),
                // The others are looked at too.
                Ok(()) => match catch_unwind(AssertUnwindSafe(|| entry.rehearse(&site))) {
                    Ok(()) => "checked".to_owned(),
                    Err(_) => {
                        broken.push(name);
                        "broken".to_owned()
                    }
                },
            };
            println!("mechanism {name}: {said}");
        }
        run_dir.clear_notes();
        assert!(broken.is_empty(), "{broken:?} do not keep their promises: see above");
    }

    #[test]
    fn the_page_that_shows_how_to_add_one_quotes_what_compiles() {
        let page = include_str!("../../../../book/add-a-mechanism.md");
        let file = include_str!("eventfd_count.rs");
        assert!(
            page.contains(&format!("```rust\n{file}```")),
            "book/add-a-mechanism.md shows another eventfd_count.rs"
        );
    }

    /// The cells of a mechanism's row in the table of what runs where; empty of one that has none.
    fn row<'page>(page: &'page str, name: &str) -> Vec<&'page str> {
        let head = format!("| {name} |");
        let line = page.lines().find(|line| line.starts_with(&head)).unwrap_or_default();
        line.trim_matches('|').split('|').map(str::trim).collect()
    }

    /// `ci/everywhere COLUMN --write` writes it: the three columns
    /// that are asked for here take minutes.
    #[test]
    fn every_mechanism_of_every_system_has_its_row_in_the_table_of_what_runs_where() {
        let page = include_str!("../../../../book/everywhere.md");
        let heads = row(page, "mechanism");
        let cell = |name: &str, column: &str| {
            let place = heads.iter().position(|head| *head == column);
            let place = place.unwrap_or_else(|| panic!("book/everywhere.md has no column '{column}'"));
            row(page, &format!("`{name}`")).get(place).copied().unwrap_or_default()
        };
        let unknown = |cell: &str| ["", "–", "not asked"].contains(&cell);
        let names_of = |system: &str| {
            let source = std::fs::read_to_string(format!(
                concat!(env!("CARGO_MANIFEST_DIR"), "/../other-systems/src/means/{}.rs"),
                system
            ))
            .unwrap();
            let names = source.split("        name: \"").skip(1);
            names
                .map(|rest| rest.split('"').next().unwrap().to_owned())
                .chain(["pipe".to_owned()])
                .collect::<Vec<_>>()
        };
        let own: Vec<String> = all().iter().map(|entry| entry.name().to_owned()).collect();
        for (column, names, command) in [
            ("x86_64, no guest", own, "x86_64/native"),
            ("Wine", names_of("windows"), "x86_64/wine"),
            ("macOS", names_of("macos"), "aarch64/macos"),
        ] {
            assert!(names.len() > 2, "{names:?}");
            let lacking: Vec<_> = names.iter().filter(|name| unknown(cell(name, column))).collect();
            assert!(
                lacking.is_empty(),
                "{lacking:?} are not in the column '{column}' of book/everywhere.md: run \
                 ci/everywhere {command} --write"
            );
        }
    }

    /// What merges cannot keep the words of each.
    #[test]
    fn what_brings_something_along_keeps_every_notification() {
        for entry in all().iter().filter(|entry| entry.notification().carries > Carries::Nothing) {
            assert!(!entry.notification().coalesces, "{}", entry.name());
        }
    }

    #[test]
    fn what_is_not_available_says_why() {
        for entry in all() {
            if let Err(lacking) = entry.available() {
                assert!(lacking.reason.len() > 20, "{}: '{}'", entry.name(), lacking.reason);
            }
        }
    }

    #[test]
    fn names_are_told_apart_and_fit_the_command_line() {
        let names: Vec<&str> = all().iter().map(|entry| entry.name()).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{name}");
            assert_eq!(find(name).map(Entry::name), Ok(*name));
        }
    }

    #[test]
    fn every_explanation_is_complete() {
        for entry in all() {
            let text = entry.explanation();
            for part in [text.summary, text.how, text.kernel, text.limits] {
                assert!(!part.trim().is_empty(), "{}", entry.name());
            }
            assert!(text.sources.iter().any(|source| !source.is_empty()), "{}", entry.name());
        }
    }
}
