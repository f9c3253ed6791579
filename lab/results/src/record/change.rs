// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change at an edge of a recorded program, as it is typed and as files have it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{refused, span};
use crate::written::short;

/// What would be changed at an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Change {
    /// The waiter spins for so long before it sleeps.
    Spin(Duration),
    /// Waker and waiter are pinned to these CPUs.
    Pin([u32; 2]),
    /// The waiter waits, and is woken, by this mechanism of `doorbell list`.
    Mechanism(String),
    /// The waker gathers notifications for so long, and wakes once for all of them.
    Batch(Duration),
    /// Waker and waiter have this nice value.
    Nice(i32),
    /// They are scheduled by this policy.
    Scheduler(Policy),
    /// Their timers may fire so much later than they are due.
    TimerSlack(Duration),
}

/// A policy of `sched(7)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Other,
    Batch,
    /// `SCHED_FIFO` with this priority.
    Fifo(i32),
}

impl Change {
    /// Whether it is made to threads from outside; the others a program makes itself.
    pub fn is_from_outside(&self) -> bool {
        !matches!(self, Self::Spin(_) | Self::Mechanism(_) | Self::Batch(_))
    }
}

/// What can be asked for.
const FORMS: [&str; 7] = [
    "spin=18us",
    "pin=0,0",
    "mechanism=futex",
    "batch=200us",
    "nice=-10",
    "scheduler=fifo:10",
    "timer_slack=1us",
];

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || refused(format_args!("'{text}' is no change that can be answered for"), &FORMS);
        match text.split_once('=').ok_or_else(unknown)? {
            ("spin", time) => Ok(Self::Spin(span(time)?)),
            ("batch", time) => Ok(Self::Batch(span(time)?)),
            ("timer_slack", time) => Ok(Self::TimerSlack(span(time)?)),
            ("pin", cpus) => {
                let (one, other) = cpus.split_once(',').ok_or_else(unknown)?;
                let cpu = |text: &str| text.trim().parse().map_err(|_| unknown());
                Ok(Self::Pin([cpu(one)?, cpu(other)?]))
            }
            ("mechanism", name) => Ok(Self::Mechanism(name.to_owned())),
            ("nice", value) => match value.parse() {
                Ok(nice @ -20..=19) => Ok(Self::Nice(nice)),
                _ => Err(refused(
                    format_args!("'{value}' is no nice value from -20 to 19"),
                    &["nice=-10", "nice=5"],
                )),
            },
            ("scheduler", policy) => {
                let fifo = || match policy.strip_prefix("fifo:")?.parse() {
                    Ok(priority @ 1..=99) => Some(Policy::Fifo(priority)),
                    _ => None,
                };
                let policy = match policy {
                    "other" => Some(Policy::Other),
                    "batch" => Some(Policy::Batch),
                    _ => fifo(),
                };
                let why = format_args!("'{text}' names no policy, or no priority from 1 to 99");
                let forms = ["scheduler=fifo:10", "scheduler=batch", "scheduler=other"];
                policy.map(Self::Scheduler).ok_or_else(|| refused(why, &forms))
            }
            ("busy_poll", _) => Err(refused(
                "busy polling is an option of each socket (SO_BUSY_POLL), which its program alone can \
                 set; if yours does by a variable of its environment, ask for what that does to its \
                 waits, and name the variable with --with",
                &["spin=50us"],
            )),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Change {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Change> for String {
    fn from(change: Change) -> Self {
        change.to_string()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |time: &Duration| short(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        match self {
            Self::Spin(time) => write!(out, "spin={}", told(time)),
            Self::Pin([one, other]) => write!(out, "pin={one},{other}"),
            Self::Mechanism(name) => write!(out, "mechanism={name}"),
            Self::Batch(time) => write!(out, "batch={}", told(time)),
            Self::Nice(nice) => write!(out, "nice={nice}"),
            Self::Scheduler(Policy::Other) => write!(out, "scheduler=other"),
            Self::Scheduler(Policy::Batch) => write!(out, "scheduler=batch"),
            Self::Scheduler(Policy::Fifo(priority)) => write!(out, "scheduler=fifo:{priority}"),
            Self::TimerSlack(time) => write!(out, "timer_slack={}", told(time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_written_as_it_is_read() {
        for text in FORMS.into_iter().chain(["scheduler=batch", "scheduler=other", "nice=19", "spin=1500ns"])
        {
            let change: Change = text.parse().unwrap();
            assert_eq!(change.to_string().parse(), Ok(change), "{text}");
        }
        assert_eq!("nice=-10".parse(), Ok(Change::Nice(-10)));
        assert_eq!("scheduler=fifo:10".parse(), Ok(Change::Scheduler(Policy::Fifo(10))));
    }

    #[test]
    fn what_is_no_change_is_told_what_is_one() {
        for (text, told) in [
            ("swim=1us", "timer_slack=1us"),
            ("pin=0", "pin=0,0"),
            ("nice=-21", "from -20 to 19"),
            ("nice=x", "nice=-10"),
            ("scheduler=fifo", "scheduler=fifo:10"),
            ("scheduler=fifo:0", "from 1 to 99"),
            ("scheduler=deadline", "scheduler=batch"),
            ("timer_slack=0", "no time"),
            ("busy_poll=50us", "SO_BUSY_POLL"),
        ] {
            let error = text.parse::<Change>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
