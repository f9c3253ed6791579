// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is found of records that were made up.

use super::record::Waited;
use super::*;
use doorbell_results::anatomy::Anatomy;
use doorbell_results::anatomy::program::{File, Mechanism, Object, Sequence, Threads, WakeCost, Waker};
use doorbell_results::record::{Series, sample};

fn machine_costs() -> MachineCosts {
    let wake = |mechanism: &str, same_cpu, gap_ns, wake_ns, cpu_ns| WakeCost {
        mechanism: mechanism.to_owned(),
        same_cpu,
        gap_ns,
        wake_ns,
        cpu_ns,
    };
    let wakes = vec![
        wake("futex", false, 0, 6000.0, 5000.0),
        wake("futex", true, 0, 1500.0, 3000.0),
        wake("eventfd", false, 0, 7000.0, 5500.0),
        wake("futex", false, 100_000, 30_000.0, 8000.0),
        wake("eventfd", false, 100_000, 33_000.0, 9000.0),
    ];
    MachineCosts { hand_over_ns: 240.0, sleep_ns: 5000.0, wakes }
}

fn waits(count: usize, slept: impl Fn(usize) -> f64, awake: f64) -> Vec<Waited> {
    let one = |at| Waited { changed: true, slept: slept(at), took: 30_000.0, awake, waker_ran: Some(2000.0) };
    (0..count).map(one).collect()
}

fn spun(waits: &[Waited], spin: f64) -> Result<WhatIf, Refusal> {
    found(waits, |some| spin::replay(some, spin, &machine_costs(), None))
}

/// A program of one edge, whose waiter sleeps 100 µs each time, takes
/// 30 µs to come and works for 2 µs.
fn recorded(waker: Waker, mechanism: Mechanism, waker_ran_ns: u64) -> ResultFile {
    const WAKES: usize = 1000;
    let series = |low_ns| Series::from(&sample::histogram(low_ns, WAKES as u64));
    let edge = Edge {
        waker,
        waiter: "waiter".to_owned(),
        mechanism,
        wakes: WAKES as u64,
        ran_out: 0,
        rescued: 0,
        slept: series(100_000.0),
        took: series(30_000.0),
        sequence: Some(0),
        slowest: Vec::new(),
        sampled: 0,
        stacks: Vec::new(),
    };
    let sequence = Sequence {
        edge: vec![0; WAKES],
        slept_ns: vec![100_000; WAKES],
        took_ns: vec![30_000; WAKES],
        awake_ns: vec![2000; WAKES],
        waker_ran_ns: vec![Some(waker_ran_ns); WAKES],
        ..Sequence::default()
    };
    let recorded_ns = 132_000 * WAKES as u64;
    let thread = |name: &str| Threads {
        name: name.to_owned(),
        count: 1,
        ran_ns: recorded_ns / 10,
        wakes: 1,
        ..Threads::default()
    };
    let program = Program {
        recorded_ns,
        threads: vec![thread("waker"), thread("waiter")],
        edges: vec![edge],
        sequences: vec![sequence],
        machine_costs: Some(machine_costs()),
        ..Program::default()
    };
    let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
    result.machine.topology.usable = "0-1".parse().unwrap();
    result.records[0].anatomy = Some(Anatomy { program: Some(program), ..Anatomy::default() });
    result
}

fn by_thread() -> Waker {
    Waker::Thread { name: "waker".to_owned() }
}

fn futex() -> Mechanism {
    Mechanism { wait: Wait::Futex, object: Object::Futex { address: 0x1000 }, by: By::Call }
}

fn asked(result: &ResultFile, change: &Change) -> Result<WhatIf, Refusal> {
    what_if(result, "a", change, &machine_costs())
}

#[test]
fn on_one_cpu_the_waiter_comes_when_its_waker_leaves() {
    let result = recorded(by_thread(), futex(), 2000);
    let found = asked(&result, &Change::Pin([0, 0])).unwrap();
    assert_eq!((found.p50_now_ns, found.p50_ns.value), (30_000.0, 2000.0));
    // 2 µs less each 132.
    assert!((found.cpu.value + 2.0 / 132.0).abs() < 1e-9, "{found:?}");
}

/// The scheduler had both on one CPU: spinning made a median of 17 µs
/// of one of 3.7, and pinning saved nothing.
#[test]
fn a_waiter_that_came_to_its_wakers_cpu_spins_on_another_and_is_pinned_for_nothing() {
    let result = recorded(by_thread(), futex(), 30_000);
    let mut machine = machine_costs();
    machine.wakes[1].wake_ns = 20_000.0;
    machine.wakes[3].wake_ns = 50_000.0;
    let asked = |change| what_if(&result, "A", &change, &machine).unwrap();
    let spun = asked(Change::Spin(Duration::from_micros(20)));
    assert_eq!((spun.p50_now_ns, spun.p50_ns.value), (30_000.0, 50_000.0));
    let pinned = asked(Change::Pin([0, 0]));
    assert_eq!((pinned.p50_ns.value, pinned.cpu.value), (30_000.0, 0.0));
    let told = MachineCosts { wakes: Vec::new(), ..machine.clone() };
    let refused = what_if(&result, "A", &Change::Spin(Duration::from_micros(20)), &told);
    assert_eq!(refused, Err(Refusal::NoPrice { mechanism: "futex".to_owned(), same_cpu: false }));
}

#[test]
fn pinning_is_refused_where_the_record_cannot_tell_when_the_waiter_comes() {
    let pin = |result: &ResultFile, cpus| asked(result, &Change::Pin(cpus)).unwrap_err();
    let result = recorded(by_thread(), futex(), 40_000);
    assert_eq!(pin(&result, [1, 1]), Refusal::WakerGoesOn { ran_ns: 40_000.0, wake_ns: 1500.0 });
    assert_eq!(pin(&result, [0, 1]), Refusal::Apart);
    assert_eq!(pin(&result, [0, 7]), Refusal::NoCpu { cpu: 7 });
    assert_eq!(pin(&recorded(Waker::Kernel, futex(), 2000), [0, 0]), Refusal::NoThread);
    assert_eq!(pin(&recorded(Waker::Unseen, futex(), 2000), [0, 0]), Refusal::WakesUnseen);
    let change = |act: fn(&mut Program)| {
        let mut result = recorded(by_thread(), futex(), 2000);
        act(result.records[0].anatomy.as_mut().unwrap().program.as_mut().unwrap());
        pin(&result, [0, 0])
    };
    let unseen = change(|program| program.sequences[0].waker_ran_ns.clear());
    assert_eq!(unseen, Refusal::WakerUnseen { share: 0.0 });
    let busy = change(|program| program.threads[0].ran_ns = program.recorded_ns);
    assert!(matches!(busy, Refusal::TooBusyTogether { share } if share > 1.0), "{busy:?}");
}

#[test]
fn what_a_change_does_that_was_measured_nowhere_is_not_predicted() {
    let result = recorded(by_thread(), futex(), 2000);
    for text in ["nice=-10", "scheduler=fifo:10", "timer_slack=1us"] {
        let change: Change = text.parse().unwrap();
        assert_eq!(refused(&result, "A", &change), Some(Refusal::Unpriced { change }), "{text}");
    }
}

#[test]
fn another_mechanism_moves_a_wake_up_by_what_the_two_cost_after_so_long_a_sleep() {
    let eventfd = Object::File { file: File::Eventfd, fd: Some(3) };
    let result = recorded(by_thread(), Mechanism { wait: Wait::Read, object: eventfd, by: By::Call }, 2000);
    let replaced = |by: &str| asked(&result, &Change::Mechanism(by.to_owned()));
    let found = replaced("futex").unwrap();
    assert_eq!(found.p50_ns.value, 27_000.0);
    assert!((found.cpu.value + 1.0 / 132.0).abs() < 1e-9, "{found:?}");
    assert_eq!(replaced("eventfd"), Err(Refusal::SameMechanism { mechanism: "eventfd".to_owned() }));
    let no_price = Refusal::NoPrice { mechanism: "pipe".to_owned(), same_cpu: false };
    assert_eq!(replaced("pipe"), Err(no_price));
    let child = Mechanism { wait: Wait::Child, object: Object::None, by: By::End };
    let change = Change::Mechanism("futex".to_owned());
    assert_eq!(asked(&recorded(by_thread(), child, 2000), &change), Err(Refusal::NotListed));
}

#[test]
fn a_batch_saves_the_wake_ups_of_all_but_its_first_and_makes_them_wait_for_its_end() {
    let result = recorded(by_thread(), futex(), 2000);
    let batch = |micros| asked(&result, &Change::Batch(Duration::from_micros(micros))).unwrap();
    // Notifications come each 132 µs: a batch of 200 µs takes two of
    // them, the second of which waits for 68 µs.
    let found = batch(200);
    assert_eq!(found.spared, 0.5);
    assert!((found.cpu.value + 2.5 / 132.0).abs() < 1e-9, "{found:?}");
    assert_eq!(found.p50_ns.value, 98_000.0);
    let found = batch(100);
    assert_eq!((found.spared, found.p50_ns.value, found.cpu.value), (0.0, 130_000.0, 0.0));
}

#[test]
fn the_worst_edges_are_told_of_with_the_best_spin_and_one_cpu_for_both() {
    let [spin, pin] = &first(&recorded(by_thread(), futex(), 2000))[..] else {
        panic!("one edge, two changes")
    };
    assert_eq!((spin.kind, pin.kind), (Kind::Spin, Kind::Pin));
    // Sleeps last 100 µs: to spin for them costs three times what it saves.
    assert!(matches!(spin.found, Err(Refusal::NoGain { .. })), "{spin:?}");
    assert!(
        matches!(&pin.found, Ok((Change::Pin([0, 0]), found)) if found.p50_ns.value == 2000.0),
        "{pin:?}"
    );
    let mut rare = recorded(by_thread(), futex(), 2000);
    rare.records[0].anatomy.as_mut().unwrap().program.as_mut().unwrap().edges[0].wakes = FEWEST as u64 - 1;
    assert_eq!(first(&rare), [], "of a rare edge there is nothing to say");
    let short = waits(1000, |_| 8000.0, 100.0);
    // Every second is caught then; longer spins would catch the
    // others too, and cost more than those sleeps.
    assert_eq!(spin::best(&short, &machine_costs(), None), Ok(Duration::from_micros(10)));
    let mut result = recorded(by_thread(), futex(), 2000);
    result.records[0].anatomy.as_mut().unwrap().program.as_mut().unwrap().machine_costs = None;
    assert_eq!(first(&result), []);
}

#[test]
fn a_spin_longer_than_every_sleep_turns_each_wake_up_into_a_hand_over() {
    let waits = waits(1000, |_| 10_000.0, 2000.0);
    let found = spun(&waits, 20_000.0).unwrap();
    // Without the 30 µs of a wake-up the thread waits so much longer
    // for the next, and every second time too long.
    assert!((0.45..0.55).contains(&found.spared), "{found:?}");
    let found = spun(&waits, 60_000.0).unwrap();
    assert_eq!((found.spared, found.p50_ns.value, found.p50_now_ns), (1.0, 240.0, 30_000.0));
    assert!(found.cpu.value > 0.5, "it spins nearly all the time: {found:?}");
}

#[test]
fn a_spin_shorter_than_every_sleep_costs_its_time_and_changes_nothing() {
    let found = spun(&waits(1000, |_| 200_000.0, 2000.0), 20_000.0).unwrap();
    assert_eq!((found.spared, found.p50_ns.value), (0.0, 30_000.0));
    let expected = 20_000.0 / 232_000.0;
    assert!((found.cpu.value - expected).abs() < 1e-9, "{found:?}");
}

#[test]
fn waits_that_end_after_less_than_a_sleep_costs_save_time() {
    // Arrivals 1 µs after the thread begins to wait, wherever it is in time.
    let some = waits(1000, |_| 1000.0, 100.0);
    let mut first = spin::replay(&some[..1], 10_000.0, &machine_costs(), None);
    assert_eq!((first.spared, first.took.pop()), (1, Some(240.0)));
    assert!((first.cpu - (1000.0 + 240.0 - 5000.0)).abs() < 1e-9);
}

#[test]
fn what_a_record_cannot_know_is_refused_with_the_reason() {
    let few = waits(FEWEST - 1, |_| 10_000.0, 100.0);
    assert_eq!(spun(&few, 1000.0), Err(Refusal::TooShort { wakes: FEWEST - 1 }));
    let busy = waits(1000, |_| 10_000.0, 60_000.0);
    assert!(matches!(spun(&busy, 1000.0), Err(Refusal::Busy { share }) if share > 0.5));
    let other = waits(1000, |at| if at < 500 { 10_000.0 } else { 20_000.0 }, 100.0);
    let halves_ns = [10_000.0, 20_000.0];
    assert_eq!(spun(&other, 1000.0), Err(Refusal::Unsteady { halves_ns }));
    let ping = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
    assert_eq!(asked(&ping, &Change::Spin(Duration::from_micros(1))), Err(Refusal::NoProgram));
    assert_eq!(costs(&ping), Err(Refusal::NoCosts), "nothing in it spins");
}

#[test]
fn other_waits_of_the_thread_go_on_as_they_were() {
    let mut waits = waits(1000, |_| 10_000.0, 100.0);
    waits.iter_mut().step_by(2).for_each(|wait| wait.changed = false);
    let found = spun(&waits, 60_000.0).unwrap();
    assert_eq!(found.wakes, 500);
    assert_eq!(found.spared, 1.0);
}

#[test]
fn costs_are_those_of_the_two_cpus_between_which_sleeping_is_cheapest() {
    let all = [("futex", [0, 0]), ("futex", [0, 1]), ("spin", [0, 1]), ("futex", [0, 9]), ("spin", [0, 9])];
    let configurations = all.map(|(subject, cpus)| {
        let mut configuration = sample::configuration(subject);
        configuration.placement.cpus = Some(cpus);
        configuration
    });
    let result =
        sample::result(&configurations, 2, |one, _| match (one.subject.as_str(), one.placement.cpus) {
            (_, Some([0, 0])) => 2000.0,
            ("spin", Some([0, 1])) => 400.0,
            (_, Some([0, 1])) => 9000.0,
            ("spin", _) => 600.0,
            _ => 30_000.0,
        });
    let found = costs(&result).unwrap();
    assert!((200.0..300.0).contains(&found.hand_over_ns), "{found:?}");
    assert!(found.sleep_ns > 1000.0 && found.sleep_ns < 30_000.0, "{found:?}");
    let wakes: Vec<(&str, bool)> =
        found.wakes.iter().map(|wake| (wake.mechanism.as_str(), wake.same_cpu)).collect();
    assert_eq!(wakes, [("futex", true), ("futex", false)], "those of one CPU, and of the same two");
}

#[test]
fn what_the_record_refuses_is_refused_before_costs_are_asked_for() {
    let (fit, unseen) = (recorded(by_thread(), futex(), 2000), recorded(Waker::Unseen, futex(), 2000));
    for text in ["spin=18us", "pin=0,0", "mechanism=eventfd"] {
        let change: Change = text.parse().unwrap();
        assert_eq!(refused(&unseen, "A", &change), Some(Refusal::WakesUnseen), "{text}");
        assert_eq!(refused(&fit, "A", &change), None, "{text}");
        assert_eq!(refused(&fit, "B", &change), Some(Refusal::NoEdge { edges: 1 }), "{text}");
    }
}
