// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each rule from records that break it, and from those that come near.

use std::collections::BTreeMap;

use super::*;
use doorbell_results::configuration::{Configuration, Direction, Load, Pattern, Timing};
use doorbell_results::figure::task::SWITCHES_COUNTED;
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::record::io::Io;
use doorbell_results::record::load::LoadProof;
use doorbell_results::record::{Histogram, Series, sample};

/// The rules that `record` breaks.
fn broken(record: &Record, primitives: &[Primitives], clock_step_ns: f64) -> String {
    let broken = violations(record, &Known { primitives, clock_step_ns, skew_ns: 0.0 });
    broken.into_iter().map(|broken| broken.rule).collect::<Vec<_>>().join(" ")
}

/// A record that breaks none, and the primitive costs of its run.
fn sane() -> (Record, Vec<Primitives>) {
    let record = sample::record(sample::configuration("futex"), 0, 16_000.0);
    (record, vec![sample::primitives(0, 1.0), sample::primitives(1, 1.0)])
}

fn replace(record: &mut Record, quantity: Quantity, histogram: &Histogram) {
    record.series.insert(quantity, Series::from(histogram));
}

/// Of another subject in another pattern.
fn of(subject: &str, pattern: Pattern) -> Record {
    sample::record(Configuration { pattern, ..sample::configuration(subject) }, 0, 40_000.0)
}

/// Holds each record, told by its name, to the one rule that it breaks, or to none.
fn hold<Name: AsRef<str>>(rule: &str, records: impl IntoIterator<Item = (Name, bool, Record)>) {
    for (name, breaks, record) in records {
        let expected = if breaks { rule } else { "" };
        assert_eq!(broken(&record, &sane().1, 10.0), expected, "{}", name.as_ref());
    }
}

/// A change of a sane record, and whether it breaks the rule.
type Change = (&'static str, bool, fn(&mut Record));

fn changed(changes: &[Change]) -> impl Iterator<Item = (&'static str, bool, Record)> {
    changes.iter().map(|(name, breaks, change)| {
        let mut record = sane().0;
        change(&mut record);
        (*name, *breaks, record)
    })
}

#[test]
fn a_sane_record_breaks_no_rule() {
    let (record, primitives) = sane();
    assert_eq!(broken(&record, &primitives, 10.0), "");
    assert_eq!(broken(&record, &[], 0.0), "");
}

#[test]
fn awake_before_the_call_means_clocks_out_of_step() {
    let (mut record, _) = sane();
    let mut wake = sample::histogram(8000.0, 999);
    wake.record(0);
    replace(&mut record, Quantity::Wake, &wake);
    assert_eq!(broken(&record, &[], 0.0), "", "one of a thousand");
    wake.record_many(0, 1001);
    replace(&mut record, Quantity::Wake, &wake);
    assert_eq!(broken(&record, &[], 0.0), "before-its-cause");
}

#[test]
fn a_round_trip_faster_than_two_cache_line_hops_is_below_its_primitive() {
    let (mut record, mut primitives) = sane();
    // Two hops of at least 56 ns, halved for the primitive cost's own spread.
    for (least, breaks) in [(40.0, [true, true]), (48.0, [true, false]), (57.0, [false, false])] {
        replace(&mut record, Quantity::RoundTrip, &sample::histogram(least, 1000));
        let broken = [0.0, 10.0].map(|step| !broken(&record, &primitives, step).is_empty());
        assert_eq!(broken, breaks, "{least}: a step of the clock counts for it");
    }
    // On a busy machine a cache-line hop of 1.3 ms, from one sample, once made every true round trip
    // impossible.
    replace(&mut record, Quantity::RoundTrip, &sample::histogram(40.0, 1000));
    let all = primitives.iter_mut().flat_map(|reading| &mut reading.primitives);
    all.for_each(|primitive| primitive.count = 19);
    assert_eq!(broken(&record, &primitives, 10.0), "");
    primitives[0].primitives.iter_mut().for_each(|primitive| primitive.count = 20);
    assert_eq!(broken(&record, &primitives, 10.0), "below-primitive-cost");
}

#[test]
fn a_wake_faster_than_a_switch_or_than_the_machine_wakes_is_below_its_primitive() {
    let changes: [Change; 2] = [
        ("on one core", true, |record| {
            record.configuration.placement.cpus = Some([1, 1]);
            record.sides[0].cpus = vec![1, 1];
            replace(record, Quantity::Wake, &sample::histogram(600.0, 1000));
        }),
        ("proven asleep", true, |record| {
            record.configuration.timing = Timing::Blocked;
            record.tally.proven_asleep = record.tally.sent;
            replace(record, Quantity::Wake, &sample::histogram(1_000.0, 1000));
        }),
    ];
    hold("below-primitive-cost", changed(&changes));
}

/// One lost token once shifted every later stamp, and the figures stood in the table. And a whole
/// grid once showed no figure of a demonstration: each of its trials had been called impossible.
#[test]
fn counts_of_the_same_notifications_agree_and_a_loss_is_believed_only_of_what_drops() {
    let changes: [Change; 4] = [
        ("more seen than sent", true, |record| record.tally.seen = record.tally.sent + 5),
        ("with as many duplicates", false, |record| {
            record.tally.seen = record.tally.sent + 5;
            record.tally.duplicate = 5;
        }),
        ("more samples than notifications", true, |record| {
            replace(record, Quantity::RoundTrip, &sample::histogram(8_000.0, 1001));
        }),
        ("a sample for each", false, |record| {
            replace(record, Quantity::RoundTrip, &sample::histogram(8_000.0, 1000));
        }),
    ];
    hold("counts-disagree", changed(&changes));
    let tasks = |name, breaks, fewer| {
        let mut record = of("stackless", Pattern::Tasks { tasks: 10, yields: 100 });
        record.tally.seen -= fewer;
        (name, breaks, record)
    };
    hold("counts-disagree", [tasks("all hand-offs", false, 0), tasks("one less than due", true, 1)]);
    let lost = |subject, pattern, breaks, lost| {
        let mut record = of(subject, pattern);
        record.tally.lost = lost;
        record.tally.seen -= lost;
        record.series.clear();
        (subject, breaks, record)
    };
    let (ping, fan) =
        (Pattern::PingPong { gap_ns: 0 }, Pattern::FanOut { receivers: 20, interval_ns: 1_000_000 });
    let losses = [
        lost("futex", ping, true, 1),
        lost("udp", ping, false, 1),
        lost("udp", ping, true, 1000),
        // Of what all share nobody is owed a post.
        lost("sem-posix-for-all", fan, false, 1),
        lost("sem-posix", fan, true, 1),
    ];
    hold("counts-disagree", losses);
}

#[test]
fn a_load_without_proof_or_with_an_idle_worker_or_an_idle_cpu_was_not_there() {
    let proof = |fewest_slices, second, busy_resolution| {
        let busy = BTreeMap::from([(0, 1.0), (1, second)]);
        Some(LoadProof { fewest_slices, busy, busy_resolution, ..LoadProof::default() })
    };
    let proofs = [
        ("none", true, None),
        ("both CPUs busy", false, proof(7, 0.97, 0.01)),
        ("a worker that did nothing", true, proof(0, 0.97, 0.01)),
        ("an idle CPU", true, proof(7, 0.5, 0.01)),
        ("ticks too coarse to tell", false, proof(7, 0.5, 0.2)),
    ];
    let records = proofs.map(|(name, breaks, load)| {
        let mut record = Record { load, ..sane().0 };
        record.configuration.load = Some(Load { kind: "sqrt".to_owned(), workers: 4, pinned: false });
        (name, breaks, record)
    });
    hold("load-was-not-there", records);
}

#[test]
fn what_takes_longer_than_the_run_is_not_of_it() {
    let changes: [Change; 4] = [
        // fio 3.33 printed 2 309 370 ms for a run of one second.
        ("a latency of the machine's uptime", true, |record| {
            let mut wake = sample::histogram(8000.0, 999);
            wake.record(2_309_370_000_000_000);
            replace(record, Quantity::Wake, &wake);
        }),
        ("round trips that add up to more", true, |record| {
            replace(record, Quantity::RoundTrip, &sample::histogram(60_000.0, 1000));
        }),
        ("those of eight threads at once", false, |record| {
            replace(record, Quantity::RoundTrip, &sample::histogram(60_000.0, 1000));
            let pattern = Pattern::Gpu { kernel_ns: 0, up_to_ns: None, gap_ns: 0, streams: 8 };
            record.configuration.pattern = pattern;
        }),
        ("more CPU time", true, |record| record.sides[1].system_ns = record.sides[1].window_ns * 2),
    ];
    hold("longer-than-run", changed(&changes));
}

#[test]
fn what_is_called_blocking_has_slept_and_what_is_called_verified_has_so_nearly_always() {
    let changes: [Change; 5] = [
        ("two switches", true, |record| {
            record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
        }),
        // What is due in an open loop may be there whenever the waiter looks.
        ("in an open loop", false, |record| {
            record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
            record.configuration.pattern = Pattern::OpenLoop { gap_ns: 1000 };
        }),
        ("as polling", false, |record| {
            record.sides.iter_mut().for_each(|side| side.voluntary_switches = 2);
            record.configuration.wait = WaitPolicy::Spin;
            record.environment.interrupts.clear();
        }),
        ("proven for 95 of 100", false, |record| {
            record.configuration.timing = Timing::Blocked;
            record.tally.proven_asleep = 950;
        }),
        ("proven for 85 of 100", true, |record| {
            record.configuration.timing = Timing::Blocked;
            record.tally.proven_asleep = 850;
        }),
    ];
    hold("never-slept", changed(&changes));
    let tasks = |subject: &'static str, cpus: [u32; 2], switches: f64, breaks| {
        let mut record = of(subject, Pattern::Tasks { tasks: 10, yields: 100 });
        record.configuration.placement.cpus = Some(cpus);
        record.sides.iter_mut().zip(cpus).for_each(|(side, cpu)| side.cpus = vec![cpu]);
        record.figures[0].name = SWITCHES_COUNTED.to_owned();
        record.figures[0].value = switches;
        (subject, breaks, record)
    };
    let hand_offs = [
        tasks("process-futex", [1, 1], 1_000.0, false),
        tasks("process-futex", [1, 1], 800.0, true),
        // Two tasks that do not share a CPU may each find control back before they sleep.
        tasks("process-futex", [0, 1], 800.0, false),
        // Who is next is the kernel's to say.
        tasks("thread-yield", [1, 1], 800.0, false),
    ];
    hold("never-slept", hand_offs);
}

#[test]
fn reads_that_the_device_does_not_know_of_are_not_its_own() {
    let read = |name, breaks, subject, done: Option<Option<u64>>| {
        let mut record = of(subject, Pattern::Io { direction: Direction::Read, direct: false });
        let device = || BlockDevice { name: "vda".into(), ..BlockDevice::default() };
        let device = done.map(|_| device());
        record.io = Some(Io { device, device_operations: done.flatten(), ..Io::default() });
        (name, breaks, record)
    };
    let reads = [
        read("all of them", false, "sync", Some(Some(1003))),
        read("a device that does not count", false, "sync", Some(None)),
        read("a few", true, "sync", Some(Some(12))),
        read("no device", true, "sync", None),
        read("the harness", false, "io-null", None),
    ];
    hold("not-from-the-device", reads);
}

#[test]
fn a_pinned_side_seen_elsewhere_or_moved_is_not_where_it_was_pinned() {
    let changes: [Change; 3] = [
        ("seen elsewhere", true, |record| record.sides[1].cpus = vec![1, 0]),
        ("moved", true, |record| record.sides[0].migrations = Some(2)),
        ("not pinned", false, |record| {
            record.sides[0].migrations = Some(2);
            record.configuration.placement.cpus = None;
        }),
    ];
    hold("not-where-pinned", changed(&changes));
}

/// A thousand transfers on an NVMe device with poll queues, and so many interrupts of its.
fn polled(subject: &str, interrupts: u64) -> Record {
    let mut record = of(subject, Pattern::Io { direction: Direction::Read, direct: true });
    let interrupts_of = Some([31, 32].into());
    let device = BlockDevice { polls: Some(true), interrupts: interrupts_of, ..BlockDevice::default() };
    record.io = Some(Io {
        device: Some(BlockDevice { name: "nvme0n1".into(), ..device }),
        interrupts: Some(interrupts),
        device_operations: Some(1000),
        other_operations: Some(0),
        ..Io::default()
    });
    record
}

/// fio 3.33 reported "polled" reads of a kernel 6.1 that took one interrupt each.
#[test]
fn a_polled_transfer_that_was_interrupted_is_no_polled_transfer() {
    for name in ["sync-hipri", "uring-iopoll", "uring-hybrid", "uring-sqpoll-iopoll"] {
        hold("poll-not-proven", [(name, false, polled(name, 3)), (name, true, polled(name, 990))]);
    }
    hold("poll-not-proven", [("an interrupt is what that is about", false, polled("sync", 1000))]);
    let with = |name, breaks, interrupts, change: fn(&mut Io)| {
        let mut record = polled("uring-iopoll", interrupts);
        change(record.io.as_mut().unwrap());
        (name, breaks, record)
    };
    let watched = [
        with("those of others' transfers", false, 700, |io| io.other_operations = Some(695)),
        with("interrupts that are not known", true, 0, |io| io.interrupts = None),
        with("no queue to poll", true, 0, |io| io.device.as_mut().unwrap().polls = Some(false)),
        // null_blk has poll queues and no interrupts at all.
        with("a device without interrupts", false, 0, |io| {
            io.interrupts = None;
            io.device.as_mut().unwrap().interrupts = Some([].into());
        }),
    ];
    hold("poll-not-proven", watched);
    let unwatched = Record { io: None, ..polled("uring-iopoll", 0) };
    hold("poll-not-proven", [("not watched", true, unwatched)]);
}

#[test]
fn polling_that_sleeps_and_is_woken_by_interrupts_is_no_polling() {
    let changes: [Change; 2] = [
        // fio accepted polled I/O on a device without poll queues and measured interrupts.
        ("woken", true, |record| record.configuration.wait = WaitPolicy::Spin),
        // A busy machine sent 377 rescheduling interrupts to the CPU of a waiter that looked twenty
        // times and never slept.
        ("interrupts that others cause", false, |record| {
            record.configuration.wait = WaitPolicy::Spin;
            record.sides.iter_mut().for_each(|side| side.voluntary_switches = 3);
            assert!(record.environment.interrupts["RES"] > 1000);
        }),
    ];
    hold("poll-took-interrupts", changed(&changes));
}

/// Trials of a real survey (a virtual machine with two CPUs whose counter steps by 10 ns,
/// 2026-11-23), and what its machine was.
#[derive(serde::Deserialize)]
struct Trials {
    clock_step_ns: f64,
    skew_ns: f64,
    primitives: Vec<Primitives>,
    records: Vec<Record>,
}

fn trials() -> Trials {
    serde_json::from_str(include_str!("../../fixtures/trials-near-the-clock.json")).unwrap()
}

impl Trials {
    fn known(&self) -> Known<'_> {
        Known { primitives: &self.primitives, clock_step_ns: self.clock_step_ns, skew_ns: self.skew_ns }
    }

    fn of(&self, subject: &str) -> Vec<&Record> {
        self.records.iter().filter(|record| record.configuration.subject == subject).collect()
    }
}

/// One sample of 10 ns among half a million had the fastest trials of `spin` dropped, though
/// what they took together is their whole window.
#[test]
fn the_fastest_real_trials_are_kept_and_those_near_the_clock_marked() {
    let trials = trials();
    let spins = trials.of("spin");
    assert_eq!(spins.len(), 2);
    for record in &spins {
        let series = &record.series[&Quantity::RoundTrip];
        assert!(series.min_ns < trials.clock_step_ns * 3.0, "the old rule dropped it");
        let all = series.mean_ns * series.count as f64;
        assert!((all / record.sides[0].window_ns as f64 - 1.0).abs() < 0.01, "its total proves its mean");
    }
    for subject in ["spin", "futex", "sched-yield", "null"] {
        for record in trials.of(subject) {
            assert_eq!(violations(record, &trials.known()), [], "{subject}");
        }
    }
    let marks = |record: &Record| -> Vec<String> {
        near_the_clock(record, &trials.known()).into_iter().map(|warning| warning.name).collect()
    };
    assert!(spins.iter().all(|record| marks(record) == ["on-the-clock-grid"]));
    // A wake across cores, of 40 ns, on clocks that may be 71 ns
    // apart; the round trips of a futex are far from both.
    let wakes = trials.of("futex");
    assert_eq!(marks(wakes[0]), ["on-the-clock-grid", "within-clock-skew"]);
    assert_eq!(marks(wakes[1]), [""; 0]);
}

/// A real trial in which nobody waited, told as one of a mechanism that sleeps: what a wait
/// that returns at once looks like.
#[test]
fn a_real_trial_in_which_nobody_waited_passes_for_no_wake_up() {
    let trials = trials();
    let mut record = trials.of("null")[0].clone();
    let futex = trials.of("futex")[1];
    record.subject = futex.subject.clone();
    let rules: Vec<String> =
        violations(&record, &trials.known()).into_iter().map(|broken| broken.rule).collect();
    assert_eq!(rules, ["below-primitive-cost", "never-slept"]);
}
