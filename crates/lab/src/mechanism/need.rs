// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program may need of a means of notification, each told from the facts that every mechanism states of itself.

use super::{Carries, Contexts, Entry, Memory, Notifiers, Waits};
use crate::nearest::{did_you_mean, nearest};

/// A need.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What is said of a mechanism that does not serve it.
    pub lack: &'static str,
    /// Whether a mechanism serves it.
    pub served: fn(&dyn Entry) -> bool,
}

/// Every need. The one list to extend.
pub static NEEDS: [Need; 9] = [
    Need {
        name: "process",
        meaning: "it joins two processes",
        lack: "joins threads only",
        served: |entry| entry.joins(Contexts::Processes),
    },
    Need {
        name: "thread",
        meaning: "it joins two threads of one process",
        lack: "joins processes only",
        served: |entry| entry.joins(Contexts::Threads),
    },
    Need {
        name: "sleep",
        meaning: "the waiter leaves its CPU to others, at once or after a while",
        lack: "keeps its CPU",
        served: |entry| matches!(entry.waits(), Waits::Blocks | Waits::Adapts),
    },
    Need {
        name: "epoll",
        meaning: "the waiting end is a descriptor that poll and epoll take together with others",
        lack: "no descriptor",
        served: |entry| entry.descriptor(),
    },
    Need {
        name: "timeout",
        meaning: "a wait can give up after some time by itself",
        lack: "no timed wait of its own",
        served: |entry| entry.timed(),
    },
    Need {
        name: "payload",
        meaning: "a notification carries a message of bytes",
        lack: "carries no message",
        served: |entry| entry.carries() == Carries::Message,
    },
    Need {
        name: "count",
        meaning: "two notifications before a wait are two",
        lack: "notifications merge",
        served: |entry| entry.memory() == Memory::Counts,
    },
    Need {
        name: "lossless",
        meaning: "no notification is dropped on its way",
        lack: "may drop notifications",
        served: |entry| !entry.drops(),
    },
    Need {
        name: "several",
        meaning: "any number of notifiers wake one waiter",
        lack: "one notifier only, as it is used here",
        served: |entry| entry.notifiers() == Notifiers::Several,
    },
];

/// The need called `name`, or what is said of a name that none has.
pub fn need(name: &str) -> Result<&'static Need, String> {
    NEEDS.iter().find(|need| need.name == name).ok_or_else(|| {
        let names = NEEDS.iter().map(|need| need.name);
        let all = names.clone().collect::<Vec<_>>().join(", ");
        format!("no need is called '{name}'{}; there are {all}", did_you_mean(nearest(name, names)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn serve(name: &str) -> Vec<&'static str> {
        let need = need(name).unwrap();
        super::super::all().iter().filter(|entry| (need.served)(**entry)).map(|entry| entry.name()).collect()
    }

    #[test]
    fn every_need_parts_the_mechanisms() {
        for need in &NEEDS {
            let served = serve(need.name).len();
            // Threads can use whatever processes can.
            let all = served == super::super::all().len();
            assert!(served > 0 && all == (need.name == "thread"), "{} is served by {served}", need.name);
        }
    }

    #[test]
    fn needs_are_served_by_what_is_known_to_serve_them() {
        assert!(serve("epoll").contains(&"eventfd-epoll") && !serve("epoll").contains(&"futex"));
        assert!(!serve("process").contains(&"futex-private"));
        assert!(serve("payload").contains(&"pipe") && !serve("payload").contains(&"eventfd"));
        assert!(!serve("timeout").contains(&"mq-sysv"));
        assert!(!serve("several").contains(&"futex") && serve("several").contains(&"sem-posix"));
        assert!((need("sleep").unwrap().served)(find("bell-adaptive").unwrap()));
        assert!(need("epol").unwrap_err().contains("did you mean 'epoll'?"));
    }
}
