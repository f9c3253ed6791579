// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slowest wake-ups of the worst edges, kept whole: their stages, and what was recorded of
//! their time.

use std::collections::HashMap;

use super::seen::{Act, Seen};
use crate::trace::bpf::record::Woken;
use doorbell_results::anatomy::{Mark, Passed, Rank, Wake};
use doorbell_results::event::{Event, What};
use doorbell_results::machine::clock::Clock;

/// Events that are kept of a wake-up, under two hundred bytes each in the result file.
const MOST_EVENTS: usize = 40;

/// A task that a wake-up is not of: the waker where it was the kernel.
const NOBODY: i32 = -1;

/// A wake-up that is to be kept whole; times in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// Place of the edge in the result.
    pub edge: usize,
    /// Which of the thread's wake-ups it is, from 1.
    pub number: u64,
    /// None where it was the kernel.
    pub waker: Option<i32>,
    pub waiter: i32,
    pub slept: u64,
    /// When its waking was told, and when that was effective.
    pub told: u64,
    pub waking: u64,
    pub came: u64,
}

/// What times are told in, and by which names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Telling<'a> {
    pub(super) clock: Clock,
    pub(super) names: &'a HashMap<i32, String>,
}

impl Telling<'_> {
    /// From one time to another, picoseconds.
    fn ps(&self, from: u64, to: u64) -> i64 {
        let ps = i64::try_from(self.clock.ps(from.abs_diff(to))).unwrap_or(i64::MAX);
        if to < from { -ps } else { ps }
    }

    fn name(&self, task: i32) -> String {
        match task {
            0 => "idle".to_owned(),
            task => self.names.get(&task).cloned().unwrap_or_else(|| "task".to_owned()),
        }
    }

    fn wake(&self, chosen: &Chosen, marks: Vec<Passed>, events: Vec<Event>) -> Wake {
        let cpu = |mark| marks.iter().find(|passed: &&Passed| passed.mark == mark)?.cpu;
        let came_on = cpu(Mark::ScheduledIn).or_else(|| cpu(Mark::UserMode));
        let across = cpu(Mark::Issued).zip(came_on).is_some_and(|(from, to)| from != to);
        Wake {
            rank: Rank::Worst,
            sequence: chosen.number,
            tasks: [chosen.waker.unwrap_or(NOBODY), chosen.waiter],
            marks,
            across,
            rescued: false,
            events,
            events_left_out: 0,
            meanwhile: None,
        }
    }

    /// A wake-up that was put together in the kernel.
    pub(super) fn put_together(&self, chosen: &Chosen, one: &Woken) -> Wake {
        let came = self.ps(chosen.waking, chosen.came);
        let marks = vec![
            Passed { mark: Mark::Issued, at_ps: 0, cpu: Some(one.waker_cpu) },
            Passed { mark: Mark::ScheduledIn, at_ps: came, cpu: Some(one.cpu) },
        ];
        let runs = |at, task| Event { at, cpu: one.cpu, task, what: What::Runs { name: self.name(task) } };
        let since = chosen.came.saturating_sub(one.before_ran);
        let events = match one.before {
            ..0 => Vec::new(),
            // For how long it was idle nobody counts.
            0 => vec![runs(came, 0), runs(came, chosen.waiter)],
            task => {
                vec![runs(self.ps(chosen.waking, since), task), runs(came, task), runs(came, chosen.waiter)]
            }
        };
        self.wake(chosen, marks, events)
    }

    /// A wake-up of which the events of each CPU tell.
    pub(super) fn told_by_events(&self, chosen: &Chosen, cpus: &[u32], seen: &[Vec<Seen>]) -> Wake {
        // Where one of the events at a time is: its CPU's place, and its own there.
        let find = |at: u64, wanted: &dyn Fn(&Seen) -> bool| {
            seen.iter().enumerate().find_map(|(place, events)| {
                let first = events.partition_point(|event| event.at < at);
                let there = events[first..].iter().take_while(|event| event.at == at);
                there.enumerate().find(|(_, event)| wanted(event)).map(|(after, _)| (place, first + after))
            })
        };
        let waking = find(chosen.told, &|event| event.act == Act::Waking { task: chosen.waiter });
        let entered = waking.zip(chosen.waker).and_then(|((place, at), waker)| {
            let before = seen[place][..at].iter().rev();
            // What lies before its coming to this CPU is not known to be this call's.
            let mut own = before.take_while(|event| event.task == waker);
            own.find(|event| matches!(event.act, Act::Enters { .. } | Act::Returns { .. }))
        });
        let entered = entered.filter(|event| matches!(event.act, Act::Enters { .. }));
        let came =
            find(chosen.came, &|event| matches!(event.act, Act::Switch { to, .. } if to == chosen.waiter));
        let acted = find(chosen.came, &|event| event.task == chosen.waiter);
        let returned = came.or(acted).and_then(|(place, at)| {
            let after = seen[place][at..].iter().skip(usize::from(came.is_some()));
            let mut own = after.take_while(|event| event.task == chosen.waiter);
            own.find(|event| matches!(event.act, Act::Returns { .. }))
        });
        let cpu = |place: Option<(usize, usize)>| place.and_then(|(place, _)| cpus.get(place).copied());
        let begun = entered.map_or(chosen.waking, |event| event.at);
        let passed = |mark, at: u64, cpu| Passed { mark, at_ps: self.ps(begun, at), cpu };
        let mut marks = Vec::new();
        marks.extend(entered.map(|event| passed(Mark::Enters, event.at, cpu(waking))));
        marks.push(passed(Mark::Issued, chosen.waking, cpu(waking)));
        marks.extend(came.map(|_| passed(Mark::ScheduledIn, chosen.came, cpu(came))));
        marks.extend(returned.map(|event| passed(Mark::UserMode, event.at, cpu(came.or(acted)))));
        let end = returned.map_or(chosen.came, |event| event.at);
        if came.is_none() && returned.is_none() {
            // What it did first, and it can do that on a CPU alone.
            marks.push(passed(Mark::UserMode, chosen.came, cpu(acted)));
        }
        let mut told = Vec::new();
        for (events, cpu) in seen.iter().zip(cpus) {
            let of = |at: u64| events.partition_point(|event| event.at < at);
            let (first, last) = (of(begun), of(end.saturating_add(1)));
            // Who ran there when it began.
            let before = events[..first].iter().rposition(|event| matches!(event.act, Act::Switch { .. }));
            let there = before.into_iter().chain(first..last.max(first));
            told.extend(there.filter_map(|place| self.event(&events[place], *cpu, begun)));
        }
        told.sort_by_key(|event| event.at);
        let left_out = told.len().saturating_sub(MOST_EVENTS);
        told.truncate(MOST_EVENTS);
        Wake { events_left_out: left_out as u64, ..self.wake(chosen, marks, told) }
    }

    fn event(&self, seen: &Seen, cpu: u32, begun: u64) -> Option<Event> {
        let what = match seen.act {
            Act::Enters { call, .. } => What::CallEnters { number: call },
            Act::Returns { call, .. } => What::CallReturns { number: call },
            Act::Waking { task } => What::Waking { task },
            Act::Switch { from, state, to, priority } => What::Switch {
                from,
                from_name: self.name(from),
                state: state.into(),
                to,
                to_name: self.name(to),
                to_priority: priority,
            },
            Act::Born { .. } => return None,
        };
        Some(Event { at: self.ps(begun, seen.at), cpu, task: seen.task, what })
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Context;
    use super::*;

    const CLOCK: Clock = Clock::MONOTONIC;
    const CHOSEN: Chosen = Chosen {
        edge: 0,
        number: 7,
        waker: Some(10),
        waiter: 11,
        slept: 500,
        told: 2000,
        waking: 2000,
        came: 9000,
    };

    fn telling(names: &HashMap<i32, String>) -> Telling<'_> {
        Telling { clock: CLOCK, names }
    }

    fn marks(wake: &Wake) -> Vec<(Mark, i64, Option<u32>)> {
        wake.marks.iter().map(|passed| (passed.mark, passed.at_ps / 1000, passed.cpu)).collect()
    }

    #[test]
    fn of_a_record_of_the_kernel_it_is_known_who_had_the_cpu_and_for_how_long() {
        let names = HashMap::from([(300, "rustc".to_owned())]);
        let one = Woken { cpu: 1, waker_cpu: 0, before: 300, before_ran: 6000, ..Woken::default() };
        let wake = telling(&names).put_together(&CHOSEN, &one);
        assert_eq!(marks(&wake), [(Mark::Issued, 0, Some(0)), (Mark::ScheduledIn, 7000, Some(1))]);
        assert!(wake.across && wake.tasks == [10, 11] && wake.sequence == 7);
        let events: Vec<(i64, i32)> = wake.events.iter().map(|event| (event.at / 1000, event.task)).collect();
        assert_eq!(events, [(1000, 300), (7000, 300), (7000, 11)]);
        assert_eq!(wake.events[0].what, What::Runs { name: "rustc".to_owned() });
        let untold = telling(&names).put_together(&CHOSEN, &Woken { before: -1, ..one });
        assert!(untold.events.is_empty(), "{untold:?}");
    }

    #[test]
    fn of_events_the_stages_go_from_the_wakers_call_to_the_waiters_return() {
        let seen = |at, task, act| Seen { at, task, context: Context::Task, act };
        let switch = |from, state, to| Act::Switch { from, state, to, priority: 120 };
        let call = |call| Act::Enters { call, args: [0; 3] };
        let here = vec![
            seen(100, 10, Act::Returns { call: 1, value: 0 }),
            seen(1000, 10, call(1)),
            seen(2000, 10, Act::Waking { task: 11 }),
            seen(2500, 10, Act::Returns { call: 1, value: 1 }),
            seen(9500, 10, call(1)),
        ];
        let there = vec![
            seen(500, 11, switch(11, 1, 0)),
            seen(9000, 300, switch(300, 0, 11)),
            seen(9400, 11, Act::Returns { call: 0, value: 1 }),
            seen(9900, 11, call(0)),
        ];
        let names = HashMap::from([(300, "rustc".to_owned())]);
        let all = [here, there];
        let wake = telling(&names).told_by_events(&CHOSEN, &[4, 5], &all);
        assert_eq!(
            marks(&wake),
            [
                (Mark::Enters, 0, Some(4)),
                (Mark::Issued, 1000, Some(4)),
                (Mark::ScheduledIn, 8000, Some(5)),
                (Mark::UserMode, 8400, Some(5))
            ]
        );
        let told: Vec<i64> = wake.events.iter().map(|event| event.at / 1000).collect();
        assert_eq!(told, [-500, 0, 1000, 1500, 8000, 8400]);
        // Its coming was not told: what it did first is what is known.
        let chosen = Chosen { came: 9400, ..CHOSEN };
        let [here, mut there] = all;
        there.remove(1);
        let wake = telling(&names).told_by_events(&chosen, &[4, 5], &[here, there]);
        let last = wake.marks.last().unwrap();
        assert_eq!((last.mark, last.at_ps / 1000), (Mark::UserMode, 8400));
        assert_eq!(wake.at(Mark::ScheduledIn), None);
    }
}
