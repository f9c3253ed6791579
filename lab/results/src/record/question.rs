// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run was asked: stored with its plan, so that whoever reads
//! the result can answer it again.

use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::anatomy::program::{Mechanism, Waker};
use crate::configuration::Configuration;
use crate::quantity::{duration, percent, percentile, refused};
use crate::schedule::Schedule;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Question {
    /// Which mechanism is the fastest that serves some needs?
    Pick(Pick),
    /// How long to spin before sleeping?
    Spin(Spin),
    /// Does a percentile of the wake-ups stay below a limit?
    Gate(Gate),
    /// Did it get worse than a baseline?
    Check(Check),
    /// Does a program with a change do as was predicted?
    Verify(Verify),
    /// A question of another build, kept as it is.
    #[serde(untagged)]
    Unknown(serde_json::Value),
}

impl Question {
    /// What it is called in a file.
    pub fn name(&self) -> &str {
        match self {
            Self::Pick(_) => "pick",
            Self::Spin(_) => "spin",
            Self::Gate(_) => "gate",
            Self::Check(_) => "check",
            Self::Verify(_) => "verify",
            Self::Unknown(unknown) => Self::name_of(unknown),
        }
    }

    /// What a question of another build calls itself.
    pub fn name_of(unknown: &serde_json::Value) -> &str {
        unknown.get("kind").and_then(serde_json::Value::as_str).unwrap_or("without a name")
    }
}

/// Which mechanism is the fastest that serves some needs?
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pick {
    /// Who notifies whom.
    pub shape: Shape,
    /// What is needed, by name: see [`need`](super::need).
    #[serde(default)]
    pub needs: Vec<String>,
    /// What the choice goes by.
    pub by: By,
    /// Nanoseconds between notifications: 0 is there and back without a pause.
    #[serde(default)]
    pub gap_ns: u64,
    /// The placement by name; none is that of two CPUs that was planned first.
    pub relation: Option<String>,
    /// The wake-ups that it is asked for, where those are not one like the other: the means, the
    /// wait and the placement are then chosen together.
    pub traffic: Option<Traffic>,
}

/// Wake-ups as they come, and what they may cost.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Traffic {
    /// How the gaps between them are spread; their mean is the gap of the question.
    pub schedule: Schedule,
    /// Idle descriptors beside the waiter's in its epoll set; none where it need not be in one.
    pub beside: Option<u32>,
    /// The most CPU time that the wake-ups may take, as a share of one CPU.
    pub cpu_at_most: Option<f64>,
}

/// Who notifies whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One notifier, one waiter.
    OneToOne,
    /// One notifier, many waiters, each of whom is to wake.
    OneToMany,
    /// Many notifiers, one waiter. What is measured is one of them:
    /// how they get in each other's way is not.
    ManyToOne,
}

/// What a choice goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
}

/// How long to spin before sleeping?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spin {
    /// How many microseconds of CPU time a microsecond of latency is worth.
    pub worth: f64,
}

/// Does a percentile of the wake-ups stay below a limit?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gate {
    /// The limit, nanoseconds.
    pub limit_ns: u64,
    /// What must stay below it.
    pub which: Which,
    /// How sure the answer is to be, of 0 to 1.
    pub confidence: f64,
}

/// What must stay below the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// This quantile, of 0 to 1.
    Quantile(f64),
    /// Every wake-up.
    Longest,
}

/// Did it get worse than a baseline?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Check {
    /// What it is held against.
    pub baseline: Baseline,
    /// Further runs of its plan, which show what differs from run to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Baseline>,
    /// When it fails.
    pub conditions: Vec<Condition>,
}

/// A result, by what no other has: where it was, and when.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Baseline {
    /// Its file, as it was named.
    pub file: String,
    /// The name it was given.
    pub name: Option<String>,
    /// The host it was measured on, if that is known.
    pub host: Option<String>,
    /// When it began, nanoseconds since 1970.
    pub started_at_unix_ns: u64,
}

impl Baseline {
    /// What a reader calls it.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.file),
            None => self.file.clone(),
        }
    }
}

/// A condition under which a check fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Condition {
    /// As it was written.
    pub text: String,
    /// The mechanism or operation it is about; none is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What is limited.
    pub limited: Limited,
}

/// What is limited, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Limited {
    /// How much longer a percentile (only the 50th and the 99th have
    /// intervals) takes than in the baseline, as a share.
    More(Tail, f64),
    /// A percentile, as a share of 0 to 1, to a time in nanoseconds.
    Percentile(f64, u64),
    /// The longest, to a time in nanoseconds.
    Longest(u64),
    /// A count of notifications.
    Count(Missed, u64),
}

/// A percentile that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
}

/// What can happen to a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Missed {
    /// Never seen.
    Lost,
    /// Seen only because a timed wait ran out.
    Late,
}

/// Does a program with a change do as was predicted? Asked of runs as it is, which are those of the
/// plan's first configuration, and with the change, which are those of the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verify {
    /// What the edge was called in the recording.
    pub letter: String,
    /// Who wakes there.
    pub waker: Waker,
    /// Who is woken.
    pub waiter: String,
    /// By what.
    pub mechanism: Mechanism,
    /// The change, as it is typed.
    #[cfg_attr(test, schemars(with = "String"))]
    pub change: Change,
    /// What it was said to do; none where nothing that was measured said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<WhatIf>,
}

/// What a change would make of an edge's waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// Wake-ups that were gone through.
    pub wakes: u64,
    /// The share of them for which nobody would sleep any more.
    pub spared: f64,
    /// The median from waking to running as recorded, nanoseconds.
    pub p50_now_ns: f64,
    /// The median that is predicted, with its 95 % interval.
    pub p50_ns: Within,
    /// CPU time more, as a share of one CPU, with its 95 % interval.
    pub cpu: Within,
    /// The share of the time for which the thread was awake.
    pub busy: f64,
}

/// A value within two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Within {
    /// The value.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

impl Condition {
    /// Whether it is about `configuration`. The harness itself is
    /// nobody's mechanism: only by its name.
    pub fn concerns(&self, configuration: &Configuration, is_harness: bool) -> bool {
        self.subject.as_ref().map_or(!is_harness, |subject| *subject == configuration.subject)
    }
}

/// A condition: `p99>+5%`, `futex:p50>+10%`, `p99.9>50us`, `max>1ms`, `lost>0`.
pub fn condition(text: &str) -> Result<Condition, String> {
    let shape = || {
        refused(
            format_args!("'{text}' is no condition"),
            &["p99>+5%", "futex:p50>+10%", "p99.9>50us", "max>1ms", "lost>0"],
        )
    };
    let (left, limit) = text.split_once('>').ok_or_else(shape)?;
    let (subject, figure) = match left.rsplit_once(':') {
        Some((subject, figure)) => (Some(subject.trim()), figure.trim()),
        None => (None, left.trim()),
    };
    let limit = limit.trim();
    if let Some(limit) = limit.strip_prefix('=') {
        let (limit, least) = (limit.trim(), limit.trim().parse::<u64>());
        let more = least.map_or_else(|_| limit.to_owned(), |least| least.saturating_sub(1).to_string());
        return Err(refused(
            format_args!("'{text}': a condition is broken by what is more than its limit"),
            &[format!("{left}>{more}")],
        ));
    }
    if subject.is_some_and(str::is_empty) {
        return Err(shape());
    }
    let whose = subject.map_or_else(String::new, |subject| format!("{subject}:"));
    let more_than = |of: &str, limit: &str| {
        let limit = if percent(limit).is_ok() { limit } else { "5%" };
        [format!("{whose}{of}>+{limit}")]
    };
    let time = || duration(limit).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let count = || {
        let one = format!("{whose}{figure}>0");
        limit.parse::<u64>().map_err(|_| refused(format_args!("'{limit}' is no count"), &[one]))
    };
    let limited = match (figure, limit.strip_prefix('+')) {
        ("max", None) => Limited::Longest(time()?),
        ("lost", None) => Limited::Count(Missed::Lost, count()?),
        ("late", None) => Limited::Count(Missed::Late, count()?),
        (figure, more) => {
            let q = percentile(figure).map_err(|_| shape())?;
            let tail = [(0.5, Tail::P50), (0.99, Tail::P99)].into_iter().find(|(of, _)| *of == q);
            match (tail, more) {
                (Some((_, tail)), Some(more)) => {
                    let ppm = percent(more).map_err(|_| {
                        refused(format_args!("'{more}' is no percentage"), &more_than(figure, more))
                    })?;
                    Limited::More(tail, f64::from(ppm) / 1e6)
                }
                (None, Some(more)) => {
                    return Err(refused(
                        format_args!(
                            "'{text}': only p50 and p99 are compared with a baseline; another is \
                             held to a time"
                        ),
                        &[more_than("p99", more).concat(), format!("{whose}{figure}>50us")],
                    ));
                }
                (_, None) if limit.ends_with('%') => {
                    return Err(refused(
                        format_args!("'{text}' lacks the sign of what is more than in the baseline"),
                        &more_than(
                            if tail.is_some() { figure } else { "p99" },
                            limit.trim_start_matches('-'),
                        ),
                    ));
                }
                (_, None) => Limited::Percentile(q, time()?),
            }
        }
    };
    Ok(Condition { text: text.to_owned(), subject: subject.map(str::to_owned), limited })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(text: &str) -> Limited {
        condition(text).unwrap().limited
    }

    #[test]
    fn conditions_are_read_as_people_write_them() {
        assert_eq!(limited("p99>+5%"), Limited::More(Tail::P99, 0.05));
        assert_eq!(limited("p50 > +2.5%"), Limited::More(Tail::P50, 0.025));
        assert_eq!(limited("max>1ms"), Limited::Longest(1_000_000));
        assert_eq!(limited("lost>0"), Limited::Count(Missed::Lost, 0));
        for text in ["p99.9>50us", "99.9>50us", "p999>50us"] {
            assert_eq!(limited(text), Limited::Percentile(0.999, 50_000), "{text}");
        }
        assert_eq!(condition("futex:p50>+10%").unwrap().subject.as_deref(), Some("futex"));
        for (text, told) in [
            ("p99", "is no condition"),
            ("", "is no condition"),
            (":p99>+5%", "is no condition"),
            ("mean>+5%", "is no condition"),
            ("p90>5%", "p99>+5%"),
            ("p50>-5%", "write for example p50>+5%"),
            ("p50>+x%", "write for example p50>+5%"),
            ("futex:p90>+1e9%", "futex:p99>+5%"),
            ("p50>=+5%", "write for example p50>+5%"),
            ("lost>=1", "write for example lost>0"),
            ("p99.9>+5%", "p99.9>50us"),
            ("p99>5%", "p99>+5%"),
            ("p99>50", "has no unit"),
            ("p101>50us", "is no condition"),
            ("lost>x", "is no count"),
            ("rate>5", "is no condition"),
        ] {
            let error = condition(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
