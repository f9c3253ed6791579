// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program may need of a means of notification, each told from
//! what a record says of its subject.

use super::question::{Pick, Shape};
use super::subject::{Carries, Contexts, Notification, Notifiers, Waits};
use crate::nearest::{self, Unknown};

#[derive(Debug, Clone, Copy)]
pub struct Need {
    pub name: &'static str,
    pub meaning: &'static str,
    /// What is said of a mechanism that does not serve it.
    pub lack: &'static str,
    /// Whether a mechanism serves it.
    pub served: fn(&Notification) -> bool,
}

impl Need {
    const fn of(
        name: &'static str,
        meaning: &'static str,
        lack: &'static str,
        served: fn(&Notification) -> bool,
    ) -> Self {
        Self { name, meaning, lack, served }
    }
}

/// Every need. The one list to extend.
pub static NEEDS: [Need; 10] = [
    Need::of("process", "it joins two processes", "joins threads only", |it| it.processes),
    Need::of("thread", "it joins two threads of one process", "joins processes only", |it| it.threads),
    Need::of(
        "sleep",
        "the waiter leaves its CPU to others, at once or after a while",
        "keeps its CPU",
        |it| matches!(it.waits, Waits::Blocks | Waits::Adapts),
    ),
    Need::of("idle", "both sides sleep, at once, whenever they wait", "does not sleep at once", |it| {
        it.waits == Waits::Blocks
    }),
    Need::of(
        "epoll",
        "the waiting end is a descriptor that poll and epoll take together with others",
        "no descriptor",
        |it| it.descriptor,
    ),
    Need::of("timeout", "a wait can give up after some time by itself", "no timed wait of its own", |it| {
        it.timed
    }),
    Need::of("payload", "a notification carries a message of bytes", "carries no message", |it| {
        it.carries == Carries::Message
    }),
    Need::of("count", "two notifications before a wait are two", "notifications merge", |it| !it.coalesces),
    Need::of("lossless", "no notification is dropped on its way", "may drop notifications", |it| !it.drops),
    Need::of(
        "several",
        "any number of notifiers wake one waiter",
        "one notifier only, as it is used here",
        |it| it.notifiers == Notifiers::Several,
    ),
];

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
