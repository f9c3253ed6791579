// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options whose values are types of results, by the names that results have for them: no type of
//! the command line's own stands between.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use doorbell_results::configuration::{Scheduler, Timing};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::record::subject::Contexts;

/// What the sides are where nobody says.
pub const USUAL: &str = "processes";

/// A name, what it means, and what it is.
type Named<T> = (&'static str, &'static str, T);

/// One of `all` by its name.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [Named<T>],
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|(name, means, _)| PossibleValue::new(*name).help(*means));
    PossibleValuesParser::new(values).try_map(|given| {
        let found = all.iter().find(|(name, ..)| *name == given);
        found.map(|(.., value)| *value).ok_or_else(|| format!("'{given}' is none of the names"))
    })
}

/// What the sides are.
pub fn contexts() -> impl TypedValueParser<Value = Contexts> {
    one_of(&[
        ("processes", "A process each", Contexts::Processes),
        ("threads", "Threads of one process", Contexts::Threads),
    ])
}

/// How they are scheduled.
pub fn scheduler() -> impl TypedValueParser<Value = Scheduler> {
    one_of(&[
        ("other", "SCHED_OTHER", Scheduler::Other),
        ("fifo", "SCHED_FIFO, priority 50", Scheduler::Fifo),
        (
            "deadline",
            "SCHED_DEADLINE, 4 ms of every 10 ms: for sides that are not pinned",
            Scheduler::Deadline,
        ),
        (
            "slice",
            "SCHED_OTHER with slices of 0.1 ms, the shortest that EEVDF gives (kernel 6.12)",
            Scheduler::Slice,
        ),
    ])
}

/// From when to when a wake-up is timed.
pub fn timing() -> impl TypedValueParser<Value = Timing> {
    one_of(&[
        ("around", "The waiting side's own clock, before and after its wait", Timing::Around),
        ("stamp", "A stamp in shared memory just before the notifier's call, read once awake", Timing::Stamp),
        ("blocked", "As stamp, and the waiter was proven asleep first", Timing::Blocked),
    ])
}

/// How notifier and receivers are spread over the CPUs.
pub fn pinning() -> impl TypedValueParser<Value = Pinning> {
    one_of(&[
        ("unpinned", "Where the scheduler puts them", Pinning::Unpinned),
        ("one-each", "A CPU for each receiver and one for the notifier", Pinning::OneEach),
        ("all-on-one", "All receivers on one CPU, the notifier on another", Pinning::AllOnOne),
        ("compact", "Neighbours together, filling the CPUs from the notifier's outwards", Pinning::Compact),
        ("scatter", "Dealt out in turn over all CPUs, farthest from the notifier first", Pinning::Scatter),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<T: Clone + Send + Sync + 'static>(parser: impl TypedValueParser<Value = T>, name: &str) -> T {
        let command = clap::Command::new("it").arg(clap::Arg::new("one").value_parser(parser));
        command.try_get_matches_from(["it", name]).unwrap().get_one::<T>("one").unwrap().clone()
    }

    #[test]
    fn each_name_is_that_of_results() {
        for each in Pinning::ALL {
            assert_eq!(parsed(pinning(), each.name()), each);
        }
        for each in [Scheduler::Other, Scheduler::Fifo, Scheduler::Deadline, Scheduler::Slice] {
            assert_eq!(parsed(scheduler(), each.name()), each);
        }
        let name = |value: serde_json::Value| value.as_str().unwrap().to_owned();
        for each in [Contexts::Processes, Contexts::Threads] {
            assert_eq!(parsed(contexts(), &name(serde_json::to_value(each).unwrap())), each);
        }
        for each in [Timing::Around, Timing::Stamp, Timing::Blocked] {
            assert_eq!(parsed(timing(), &name(serde_json::to_value(each).unwrap())), each);
        }
    }
}
