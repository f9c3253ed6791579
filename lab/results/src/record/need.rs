// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program may need of a means of notification, each told from
//! what a record says of its subject.

use super::question::{Pick, Shape};
use super::subject::{Carries, Contexts, Notification, Notifiers, Waits};
use crate::nearest::{self, Unknown};

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
    pub served: fn(&Notification) -> bool,
}

/// Every need. The one list to extend.
pub static NEEDS: [Need; 10] = [
    Need {
        name: "process",
        meaning: "it joins two processes",
        lack: "joins threads only",
        served: |notification| notification.processes,
    },
    Need {
        name: "thread",
        meaning: "it joins two threads of one process",
        lack: "joins processes only",
        served: |notification| notification.threads,
    },
    Need {
        name: "sleep",
        meaning: "the waiter leaves its CPU to others, at once or after a while",
        lack: "keeps its CPU",
        served: |notification| matches!(notification.waits, Waits::Blocks | Waits::Adapts),
    },
    Need {
        name: "idle",
        meaning: "both sides sleep, at once, whenever they wait",
        lack: "does not sleep at once",
        served: |notification| notification.waits == Waits::Blocks,
    },
    Need {
        name: "epoll",
        meaning: "the waiting end is a descriptor that poll and epoll take together with others",
        lack: "no descriptor",
        served: |notification| notification.descriptor,
    },
    Need {
        name: "timeout",
        meaning: "a wait can give up after some time by itself",
        lack: "no timed wait of its own",
        served: |notification| notification.timed,
    },
    Need {
        name: "payload",
        meaning: "a notification carries a message of bytes",
        lack: "carries no message",
        served: |notification| notification.carries == Carries::Message,
    },
    Need {
        name: "count",
        meaning: "two notifications before a wait are two",
        lack: "notifications merge",
        served: |notification| !notification.coalesces,
    },
    Need {
        name: "lossless",
        meaning: "no notification is dropped on its way",
        lack: "may drop notifications",
        served: |notification| !notification.drops,
    },
    Need {
        name: "several",
        meaning: "any number of notifiers wake one waiter",
        lack: "one notifier only, as it is used here",
        served: |notification| notification.notifiers == Notifiers::Several,
    },
];

/// The need called `name`.
pub fn need(name: &str) -> Result<&'static Need, Unknown> {
    nearest::find("need", &NEEDS, |need| need.name, name)
}

/// What `notification` lacks of what `question` needs, in words; nothing where it serves them all.
/// An error where a need is of a name that none has.
pub fn lacks(question: &Pick, notification: &Notification) -> Result<Vec<&'static str>, Unknown> {
    let several = (question.shape == Shape::ManyToOne).then_some("several");
    let asked = question.needs.iter().map(String::as_str).chain(several);
    let needs = asked.map(need).collect::<Result<Vec<_>, _>>()?;
    Ok(needs.iter().filter(|need| !(need.served)(notification)).map(|need| need.lack).collect())
}

/// The sides that a question is about: processes, unless only threads are asked for.
pub fn contexts(question: &Pick) -> Contexts {
    let needed = |name: &str| question.needs.iter().any(|need| need == name);
    if needed("thread") && !needed("process") { Contexts::Threads } else { Contexts::Processes }
}
