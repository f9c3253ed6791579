// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each cause from the events that show it, and from the same wake without them.

use std::collections::BTreeMap;

use super::*;
use doorbell_results::anatomy::{Meanwhile, Passed, Rank};
use doorbell_results::event::Event;

const NOTIFIER: i32 = 100;
const WAITER: i32 = 200;
const HOG: i32 = 300;

fn event(at_us: i64, cpu: u32, task: i32, what: What) -> Event {
    Event { at: at_us * 1_000_000, cpu, task, what }
}

fn switch(at_us: i64, cpu: u32, from: i32, state: i64, to: i32) -> Event {
    let name = |task: i32| if task == HOG { "hog" } else { "exe" }.to_owned();
    let to_priority = if to == HOG { 49 } else { 120 };
    let what = What::Switch { from, from_name: name(from), state, to, to_name: name(to), to_priority };
    event(at_us, cpu, from, what)
}

/// A wake of 1 ms from CPU 0 to CPU 1 that shows nothing besides:
/// decided at 2 µs, switched in at `in_us`.
fn wake(in_us: i64, between: Vec<Event>) -> Wake {
    let passed = |mark, at_us: i64, cpu| Passed { mark, at_ps: at_us * 1_000_000, cpu };
    let mut events = vec![
        event(1, 0, NOTIFIER, What::CallEnters { number: 202 }),
        event(2, 0, NOTIFIER, What::Waking { task: WAITER }),
        event(3, 0, NOTIFIER, What::Runnable { task: WAITER, on: 1 }),
        switch(in_us, 1, 0, 0, WAITER),
        event(998, 1, WAITER, What::CallReturns { number: 202 }),
    ];
    events.extend(between);
    events.sort_by_key(|event| event.at);
    Wake {
        rank: Rank::Worst,
        sequence: 7,
        tasks: [NOTIFIER, WAITER],
        marks: vec![
            passed(Mark::Sent, 0, None),
            passed(Mark::Enters, 1, Some(0)),
            passed(Mark::Issued, 2, Some(0)),
            passed(Mark::ScheduledIn, in_us, Some(1)),
            passed(Mark::UserMode, 998, Some(1)),
            passed(Mark::Woke, 1000, None),
        ],
        across: true,
        rescued: false,
        events,
        events_left_out: 0,
        meanwhile: None,
    }
}

fn named(wake: &Wake) -> Option<&'static str> {
    verdict(wake).map(|found| found.name)
}

#[test]
fn without_evidence_the_cause_is_unknown() {
    for in_us in [5, 500, 990] {
        let wake = wake(in_us, vec![]);
        assert_eq!(named(&wake), None);
        assert!(causes(&wake).is_empty(), "{:?}", causes(&wake));
    }
    assert_eq!(longest(&wake(900, vec![])).unwrap().0, Mark::ScheduledIn);
}

#[test]
fn another_task_on_the_waiters_cpu_is_named_with_its_priority() {
    let held = wake(900, vec![switch(-50, 1, 0, 0, HOG), switch(890, 1, HOG, 1, 0)]);
    let found = verdict(&held).unwrap();
    assert_eq!(found.name, "its CPU ran something else");
    assert_eq!(found.covers_ps, 888_000_000);
    assert!(
        found.evidence.contains("CPU 1 ran 'hog' (300) (real-time priority 50) for 888 µs"),
        "{}",
        found.evidence
    );
    let elsewhere = wake(900, vec![switch(-50, 3, 0, 0, HOG), switch(890, 3, HOG, 1, 0)]);
    assert_eq!(named(&elsewhere), None);
}

/// Seen on a kernel of a virtual machine: one of its CPUs told of no switch from idle to a task.
#[test]
fn another_task_is_named_from_its_first_event_on_where_its_coming_was_not_told() {
    let done = |at_us| event(at_us, 1, HOG, What::InterruptDone { name: "timer".to_owned() });
    let blind = |out| wake(900, [vec![switch(-50, 1, WAITER, 1, 0), done(10), done(700)], out].concat());
    let found = verdict(&blind(vec![switch(890, 1, HOG, 1, WAITER)])).unwrap();
    assert_eq!((found.name, found.covers_ps), ("its CPU ran something else", 880_000_000));
    assert!(found.evidence.ends_with("CPU 1 ran 'hog' (300) for 880 µs"), "{}", found.evidence);
    // The idle task was there when the waiter came: the other had gone at a time that nothing told.
    let found = verdict(&blind(vec![])).unwrap();
    assert_eq!((found.name, found.covers_ps), ("its CPU ran something else", 690_000_000));
}

#[test]
fn a_side_that_loses_its_cpu_is_named_with_who_took_it() {
    let waiter = wake(5, vec![switch(10, 1, WAITER, 0x100, HOG), switch(800, 1, HOG, 1, WAITER)]);
    let found = verdict(&waiter).unwrap();
    assert_eq!((found.name, found.covers_ps), ("involuntary switch", 790_000_000));
    assert!(found.evidence.contains("the waiter lost its CPU to 'hog'"), "{}", found.evidence);
    // One that sleeps again of its own lost nothing.
    let slept = wake(5, vec![switch(10, 1, WAITER, 1, HOG), switch(800, 1, HOG, 1, WAITER)]);
    assert_eq!(named(&slept), None);
}

#[test]
fn a_move_while_ready_is_a_migration_and_the_choice_of_a_cpu_on_waking_is_none() {
    let moved = |at_us| event(at_us, 1, 25, What::Migrates { task: WAITER, from: 1, to: 0 });
    assert_eq!(named(&wake(900, vec![moved(10)])), Some("migration"));
    let chosen = wake(900, vec![event(2, 0, NOTIFIER, What::Migrates { task: WAITER, from: 1, to: 0 })]);
    assert_eq!(named(&chosen), None);
    let others = wake(900, vec![event(10, 1, 25, What::Migrates { task: HOG, from: 1, to: 0 })]);
    assert_eq!(named(&others), None);
}

#[test]
fn a_stop_is_told_from_a_sleep_and_from_losing_the_cpu() {
    let stopped = wake(5, vec![switch(10, 1, WAITER, 4, 0), switch(900, 1, 0, 0, WAITER)]);
    assert_eq!(named(&stopped), Some("stopped by a signal"));
    assert_eq!(named(&told_to_go_on(890, vec![switch(-400, 1, WAITER, 4, 0)])), Some("stopped by a signal"));
    let asleep = wake(900, vec![switch(-400, 1, WAITER, 1, 0)]);
    assert_eq!(named(&asleep), None);
}

/// A wake whose waiter is ready only at `at_us`, and runs at 900.
fn told_to_go_on(at_us: i64, between: Vec<Event>) -> Wake {
    let mut wake = wake(900, between);
    let told = wake
        .events
        .iter_mut()
        .filter(|event| matches!(event.what, What::Waking { .. } | What::Runnable { .. }));
    told.for_each(|event| event.at = at_us * 1_000_000);
    wake.marks[2].at_ps = at_us * 1_000_000;
    wake.events.sort_by_key(|event| event.at);
    wake
}

/// A stop from before the wake was taken to hold until the side's next switch, also where it had
/// come back, and where it had been told to go on and waited for a CPU.
#[test]
fn a_stop_that_is_over_explains_nothing() {
    let over = vec![switch(-400, 3, WAITER, 4, 0), switch(-300, 3, 0, 0, WAITER)];
    assert_eq!(named(&told_to_go_on(890, over)), None);
    assert_eq!(named(&told_to_go_on(890, vec![switch(-400, 0, NOTIFIER, 4, 0)])), None);
    let found = causes(&told_to_go_on(100, vec![switch(-400, 1, WAITER, 4, 0)]));
    assert_eq!((found[0].name, found[0].covers_ps), ("stopped by a signal", 100_000_000));
}

/// What was missing from a list that is cut may have been the end of what was found in it.
#[test]
fn of_a_wake_with_more_events_than_are_kept_only_what_needs_none_is_named() {
    let hogged = wake(900, vec![switch(-50, 1, 0, 0, HOG), switch(890, 1, HOG, 1, 0)]);
    assert!(named(&hogged).is_some());
    let cut = Wake { events_left_out: 1, ..hogged };
    assert_eq!((named(&cut), causes(&cut)), (None, vec![]));
    assert_eq!(named(&Wake { rescued: true, ..cut }), Some("rescued by the time-out"));
}

#[test]
fn a_fault_covers_the_time_until_the_task_is_heard_of_again() {
    let fault = |task| event(100, 1, task, What::Fault);
    let found = verdict(&wake(5, vec![fault(WAITER)])).unwrap();
    assert_eq!((found.name, found.covers_ps), ("page fault", 898_000_000));
    assert_eq!(named(&wake(5, vec![fault(HOG)])), None);
    // It sleeps for its page.
    let read = wake(5, vec![fault(WAITER), switch(110, 1, WAITER, 2, 0), switch(900, 1, 0, 0, WAITER)]);
    assert_eq!(named(&read), Some("page fault"));
}

/// The time without a CPU that followed a fault was the fault's.
#[test]
fn a_fault_is_over_where_the_task_loses_its_cpu_or_is_stopped() {
    let fault = event(100, 1, WAITER, What::Fault);
    let after = |state| {
        wake(5, vec![fault.clone(), switch(110, 1, WAITER, state, HOG), switch(900, 1, HOG, 1, WAITER)])
    };
    assert_eq!(named(&after(0)), Some("involuntary switch"));
    assert_eq!(named(&after(4)), Some("stopped by a signal"));
    let found = causes(&after(0));
    let fault = found.iter().find(|found| found.name == "page fault").unwrap();
    assert_eq!(fault.covers_ps, 10_000_000, "{found:?}");
}

#[test]
fn interrupts_on_a_cpu_of_the_wake_are_summed_up() {
    let soft = |cpu| {
        vec![
            event(10, cpu, 0, What::SoftBegins { number: 3 }),
            event(700, cpu, 0, What::SoftDone { number: 3 }),
            event(710, cpu, 0, What::InterruptTaken { name: "timer".to_owned() }),
            event(750, cpu, 0, What::InterruptDone { name: "timer".to_owned() }),
        ]
    };
    let found = verdict(&wake(900, soft(1))).unwrap();
    assert_eq!((found.name, found.covers_ps), ("interrupts", 730_000_000));
    assert!(found.evidence.contains("net receive"), "{}", found.evidence);
    assert_eq!(named(&wake(900, soft(5))), None);
}

#[test]
fn a_slow_idle_exit_needs_a_cpu_that_was_idle_when_it_was_told() {
    let late = |before: What| {
        let mut wake = wake(980, vec![event(-300, 1, 0, before), event(970, 1, 0, What::Wakes)]);
        wake.marks.insert(3, Passed { mark: Mark::InterruptSent, at_ps: 4_000_000, cpu: Some(0) });
        wake.marks.insert(4, Passed { mark: Mark::Taken, at_ps: 970_000_000, cpu: Some(1) });
        wake
    };
    let idle = late(What::Idles { state: 3 });
    let found = verdict(&idle).unwrap();
    assert_eq!((found.name, found.covers_ps), ("idle exit", 966_000_000));
    assert!(found.evidence.contains("idle (state 3) for 304 µs"), "{}", found.evidence);
    assert_eq!(named(&late(What::Wakes)), None);
}

#[test]
fn steal_needs_the_counter_of_a_cpu_of_the_wake_and_covers_no_more_than_it_says() {
    let steal = |cpu, ns| Wake {
        meanwhile: Some(Meanwhile {
            window_ns: 1_000_000_000,
            steal_ns: BTreeMap::from([(cpu, ns)]),
            ..Meanwhile::default()
        }),
        ..wake(900, vec![])
    };
    assert_eq!(named(&steal(1, 10_000_000)), Some("steal"));
    assert_eq!(named(&steal(7, 10_000_000)), None);
    assert_eq!(named(&steal(1, 100_000)), None, "a tenth of the wake-up does not explain it");
}

/// `wake` in a group that stood still for 90 ms in so many periods since the last reading.
fn throttled(periods: u64, wake: Wake) -> Wake {
    let meanwhile = Meanwhile {
        throttled_periods: Some(periods),
        throttled_ns: Some(90_000_000),
        ..Meanwhile::default()
    };
    Wake { meanwhile: Some(meanwhile), ..wake }
}

#[test]
fn throttling_needs_a_period_that_was_counted_and_a_side_that_was_ready_on_a_cpu_that_ran_nothing() {
    let not_let_in = || wake(900, vec![event(20, 1, 0, What::Idles { state: 1 })]);
    let found = verdict(&throttled(1, not_let_in())).unwrap();
    assert_eq!((found.name, found.covers_ps), ("throttling", 880_000_000));
    assert_eq!(named(&throttled(0, not_let_in())), None);
    let turned_out = wake(5, vec![switch(10, 1, WAITER, 0, 0), switch(890, 1, 0, 0, WAITER)]);
    assert_eq!(named(&throttled(1, turned_out)), Some("throttling"));
    // Out for another, and its group's quota is no matter.
    let preempted = wake(5, vec![switch(10, 1, WAITER, 0, HOG), switch(890, 1, HOG, 1, WAITER)]);
    assert_eq!(named(&throttled(1, preempted)), Some("involuntary switch"));
}

/// "lost its CPU to swapper/0 … isolcpus", of a group that was throttled: whoever came first was
/// blamed, for all of the time.
#[test]
fn the_idle_task_takes_no_cpu_from_anybody() {
    let turned_out = wake(5, vec![switch(10, 1, WAITER, 0, 0), switch(890, 1, 0, 0, WAITER)]);
    assert_eq!(causes(&turned_out), vec![], "without a quota nobody knows why");
    let found = causes(&throttled(1, turned_out));
    assert_eq!(found.iter().map(|found| found.name).collect::<Vec<_>>(), ["throttling"]);
}

/// "lost its CPU to X for 86.9 ms" while the CPU idled 60 of them.
#[test]
fn who_took_a_cpu_is_blamed_for_the_time_it_ran_there_and_for_no_more() {
    let events =
        || vec![switch(10, 1, WAITER, 0, HOG), switch(260, 1, HOG, 1, 0), switch(880, 1, 0, 0, WAITER)];
    let found = causes(&wake(5, events()));
    assert_eq!((found[0].name, found[0].covers_ps, found.len()), ("involuntary switch", 250_000_000, 1));
    assert!(found[0].evidence.contains("for 250 µs; that CPU also ran nothing for 620 µs"), "{found:?}");
    assert_eq!(named(&wake(5, events())), None);
    // The group had used up its quota: that is why nothing ran.
    assert_eq!(named(&throttled(1, wake(5, events()))), Some("throttling"));
}

/// All who took the CPU of a side are named, and what ran elsewhere, or before the side was moved
/// to where it ran, took nothing from it.
#[test]
fn only_what_ran_on_the_cpu_that_a_side_stood_ready_for_is_listed() {
    let other = 400;
    let events = vec![
        switch(10, 1, WAITER, 0, HOG),
        switch(300, 1, HOG, 1, other),
        event(700, 1, other, What::Migrates { task: WAITER, from: 1, to: 2 }),
        switch(-20, 2, 0, 0, 500),
        switch(710, 2, 500, 1, WAITER),
        switch(900, 1, other, 1, HOG),
    ];
    let found = verdict(&wake(5, events)).unwrap();
    assert_eq!((found.name, found.covers_ps), ("involuntary switch", 700_000_000));
    assert!(found.evidence.contains("'exe' (400)") && found.evidence.contains("'hog' (300)"), "{found:?}");
}

/// What another task ran there once counted as time on a CPU that ran nothing.
#[test]
fn throttling_ends_where_the_cpu_runs_another_task() {
    let events =
        |cpu| vec![switch(10, 1, WAITER, 0, 0), switch(30, cpu, 0, 0, HOG), switch(890, 1, 0, 0, WAITER)];
    let covers = |cpu| {
        let found = causes(&throttled(1, wake(5, events(cpu))));
        found.into_iter().find(|found| found.name == "throttling").unwrap().covers_ps
    };
    assert_eq!([covers(1), covers(2)], [20_000_000, 880_000_000]);
}

/// A group that had stood still at any time since the last reading
/// was the cause of every slow wake since.
#[test]
fn throttling_elsewhere_in_the_window_is_not_blamed() {
    for in_us in [5, 900] {
        assert_eq!(named(&throttled(1, wake(in_us, vec![]))), None);
    }
    // On another CPU, and before the waiter was ready.
    for idles in [event(20, 3, 0, What::Idles { state: 1 }), event(1, 1, 0, What::Idles { state: 1 })] {
        assert_eq!(named(&throttled(1, wake(900, vec![idles]))), None);
    }
}

#[test]
fn a_wake_that_only_its_time_out_ended_was_rescued() {
    assert_eq!(named(&Wake { rescued: true, ..wake(900, vec![]) }), Some("rescued by the time-out"));
}

#[test]
fn every_cause_has_a_name_of_its_own_and_a_cure() {
    let mut names: Vec<&str> = ALL.iter().map(|cause| cause.about.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.iter().all(|cause| !cause.cure.is_empty()));
}

#[test]
fn times_from_a_hostile_file_break_nothing() {
    let mut wake = wake(900, vec![switch(-1, 1, 0, 0, HOG), event(5, 1, WAITER, What::Fault)]);
    for at in [i64::MIN, i64::MAX] {
        wake.events.iter_mut().for_each(|event| event.at = at);
        wake.marks.iter_mut().for_each(|passed| passed.at_ps = at);
        causes(&wake);
        longest(&wake);
        wake.marks.truncate(3);
    }
}
