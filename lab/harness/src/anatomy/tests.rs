// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cutting of wakes, on recorded ones and on made-up ones.

use super::collect::Join;
use super::cut::{Cut, Stamps, cut};
use super::recorded::{CLOCK, Recorded, anatomy, events, recorded};
use crate::trace::instance::Harvest;
use doorbell_results::anatomy::Mark;
use doorbell_results::event::{Event, What};

#[test]
fn recorded_pages_tell_a_wake_across_two_cpus_mark_by_mark() {
    let anatomy = anatomy(&[]);
    assert_eq!((anatomy.counts.stamped, anatomy.counts.cut), (20, 20));
    let [path, late] = &anatomy.paths[..] else { panic!("{} paths", anatomy.paths.len()) };
    assert_eq!((&path.marks[..], path.whole.count), (&Mark::ALL[..], 17));
    assert!(path.across && late.across);
    // The CPU came to look for something to run by itself, before the
    // interrupt that told it to reached it.
    assert_eq!((late.marks.contains(&Mark::Taken), late.whole.count), (false, 3));
    let kept = &anatomy.kept[0];
    let cpus: Vec<Option<u32>> = kept.marks.iter().map(|passed| passed.cpu).collect();
    assert_eq!(cpus, [None, Some(0), Some(0), Some(0), Some(1), Some(1), Some(1), None, None]);
}

#[test]
fn the_stages_of_every_recorded_wake_add_up_to_the_whole() {
    for lacking in [&[][..], &["ipi_send_cpu"], &["sys_enter", "sys_exit"], &["sched_waking"]] {
        let anatomy = anatomy(lacking);
        for wake in &anatomy.kept {
            let sum: i64 = wake.stages().map(|(_, from, to)| to - from).sum();
            assert_eq!(sum.unsigned_abs(), wake.whole_ps(), "{lacking:?}");
        }
        for path in &anatomy.paths {
            let sum: f64 = path.stages.values().map(|stage| stage.mean_ns).sum();
            // A histogram's buckets are 0.1 % wide.
            assert!(
                (sum / path.whole.mean_ns - 1.0).abs() < 0.002,
                "{lacking:?}: {sum} of {}",
                path.whole.mean_ns
            );
        }
    }
}

#[test]
fn a_mark_that_the_kernel_hides_gives_its_time_to_the_next_stage_and_no_other() {
    let Recorded { tasks, wakes } = recorded();
    let (all, without) = (events(&[]), events(&["ipi_send_cpu"]));
    for stamps in &wakes {
        let at = |cut: &Cut, mark| cut.marks.iter().find(|passed| passed.0 == mark).map(|passed| passed.1);
        let (seen, hidden) = (cut(stamps, tasks, &all), cut(stamps, tasks, &without));
        assert_eq!(at(&hidden, Mark::InterruptSent), None);
        for mark in Mark::ALL.into_iter().filter(|mark| *mark != Mark::InterruptSent) {
            assert_eq!(at(&seen, mark), at(&hidden, mark), "{mark:?}");
        }
    }
}

/// It was recorded on a busy machine: the waiter's CPU was never idle.
#[test]
fn without_interrupt_vectors_a_busy_cpu_does_not_show_that_it_was_interrupted() {
    let blind = anatomy(&["reschedule_entry", "call_function_single_entry"]);
    assert!(blind.paths.iter().all(|path| !path.marks.contains(&Mark::Taken)), "{:?}", blind.paths);
    assert_eq!(blind.counts.cut, 20);
}

#[test]
fn what_is_seen_first_of_interrupt_and_idle_exit_is_when_the_cpu_was_reached() {
    let stamps = Stamps { sequence: 1, sent: 100, woke: 200, read: 200, rescued: false };
    let event = |at, cpu, what| Event { at, cpu, task: 0, what };
    let interrupt = || What::InterruptTaken { name: "reschedule".to_owned() };
    for (first, second) in [(What::Wakes, interrupt()), (interrupt(), What::Wakes)] {
        let events = [
            event(110, 0, What::Waking { task: 6 }),
            event(112, 0, interrupt()),
            event(114, 1, What::Wakes),
            event(115, 0, What::InterruptSent { to: 1 }),
            // A timer that happens to fire there is nobody's call.
            event(117, 1, What::InterruptTaken { name: "timer".to_owned() }),
            event(120, 1, first),
            event(121, 1, second),
            event(130, 1, switch(6)),
        ];
        let marks = cut(&stamps, [5, 6], &events).marks;
        let taken = marks.iter().find(|mark| mark.0 == Mark::Taken).unwrap();
        assert_eq!((taken.1, taken.2), (120, Some(1)), "not what was before the sending, nor another CPU's");
    }
}

fn switch(to: i32) -> What {
    left(5, 1, to)
}

fn left(from: i32, state: i64, to: i32) -> What {
    What::Switch { from, from_name: String::new(), state, to, to_name: String::new(), to_priority: 120 }
}

/// Of each side only its leaving was kept, so that one which had been
/// stopped once looked as if it still were.
#[test]
fn what_is_kept_from_before_a_wake_tells_that_a_side_had_come_back() {
    let switch = |at, cpu, from, state, to| Event { at, cpu, task: from, what: left(from, state, to) };
    let stamps = Stamps { sequence: 1, sent: 100, woke: 200, read: 200, rescued: false };
    let events = [switch(10, 3, 6, 4, 0), switch(20, 3, 0, 0, 6), switch(30, 3, 9, 0, 8)];
    let kept = Join { clock: CLOCK, tasks: [5, 6] }.keep(
        doorbell_results::anatomy::Rank::Worst,
        &stamps,
        &events,
        None,
    );
    let of_the_waiter: Vec<&What> = kept.events.iter().map(|event| &event.what).collect();
    assert!(matches!(of_the_waiter[..], [What::Switch { from: 0, to: 6, .. }]), "{of_the_waiter:?}");
}

#[test]
fn wakes_of_which_events_were_overwritten_are_left_out_and_counted() {
    let Recorded { tasks, wakes } = recorded();
    let whole_from = wakes[4].sent;
    let harvest = Harvest { events: events(&[]), lost: 99, whole_from };
    let anatomy = Join { clock: CLOCK, tasks }.collect(&wakes, &harvest, Vec::new());
    assert_eq!((anatomy.counts.incomplete, anatomy.counts.cut, anatomy.counts.lost_events), (4, 16, 99));
}

#[test]
fn without_a_waking_the_waiter_was_awake_and_nothing_is_made_up() {
    let stamps = Stamps { sequence: 1, sent: 100, woke: 200, read: 200, rescued: false };
    let noise = |at| Event { at, cpu: 1, task: 5, what: What::InterruptTaken { name: "timer".to_owned() } };
    let cut = cut(&stamps, [5, 6], &[noise(50), noise(150), noise(250)]);
    assert_eq!(cut.marks, [(Mark::Sent, 100, None), (Mark::Woke, 200, None)]);
}

#[test]
fn a_waiter_woken_on_one_cpu_passes_no_interrupt() {
    let stamps = Stamps { sequence: 1, sent: 100, woke: 200, read: 210, rescued: false };
    let event = |at, task, what| Event { at, cpu: 0, task, what };
    let events = [
        event(101, 5, What::CallEnters { number: 1 }),
        event(102, 5, What::CallEnters { number: 2 }),
        event(110, 5, What::Waking { task: 6 }),
        event(120, 5, What::InterruptTaken { name: "reschedule".to_owned() }),
        event(150, 5, switch(6)),
        event(190, 6, What::CallReturns { number: 3 }),
    ];
    let cut = cut(&stamps, [5, 6], &events);
    let marks: Vec<(Mark, i64)> = cut.marks.iter().map(|mark| (mark.0, mark.1)).collect();
    assert_eq!(
        marks,
        [
            (Mark::Sent, 100),
            (Mark::Enters, 102),
            (Mark::Issued, 110),
            (Mark::ScheduledIn, 150),
            (Mark::UserMode, 190),
            (Mark::Woke, 200),
            (Mark::Read, 210)
        ]
    );
    assert!(!cut.across);
}

proptest::proptest! {
    /// Whatever events come in whatever order of CPUs and tasks, marks ascend from the first stamp to the last.
    #[test]
    fn marks_ascend_whatever_the_events(
        raw in proptest::collection::vec((0_i64..300, 0_u32..3, 0_i32..4, 0_u8..8), 0..60),
    ) {
        let what = |task: i32, cpu: u32, kind: u8| match kind {
            0 => What::CallEnters { number: 1 },
            1 => What::CallReturns { number: 1 },
            2 => What::Waking { task },
            3 => What::InterruptSent { to: cpu },
            4 => What::InterruptTaken { name: "reschedule".to_owned() },
            5 => What::Wakes,
            6 => What::Idles { state: 1 },
            _ => left(0, 0, task),
        };
        let mut events: Vec<Event> = raw
            .into_iter()
            .map(|(at, cpu, task, kind)| Event { at, cpu, task, what: what(task, cpu, kind) })
            .collect();
        events.sort_by_key(|event| event.at);
        let stamps = Stamps { sequence: 1, sent: 50, woke: 250, read: 260, rescued: false };
        let marks = cut(&stamps, [1, 2], &events).marks;
        assert!(marks.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0), "{marks:?}");
        assert_eq!((marks[0].1, marks[marks.len() - 1].1), (50, 260));
    }
}
