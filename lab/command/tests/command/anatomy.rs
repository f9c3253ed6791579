// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traced runs as a user meets them: stages that add up, causes that
//! were planted, and nothing left in the kernel.
//!
//! Where the kernel's events cannot be had, each test says so and checks that the command does too.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doorbell_harness::trace::event::KINDS;
use doorbell_harness::trace::instance::Wanted;
use doorbell_harness::trace::{Instance, Tracefs};
use doorbell_results::anatomy::{Anatomy, Mark};
use doorbell_results::event::{Event, What};
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Outcome, Record, ResultFile, read};
use doorbell_verdict::why::{Slow, why};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Said, Stage, measured, wait_until};

/// One of these tests at a time: each run clears the buffers of dead ones, which another may be
/// about to look at, and some load the machine with real-time programs.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Runs `test` with the kernel's trace files in sight, on a thread
/// whose mounts end with it; else says why not.
fn with_events(test: impl FnOnce(&Tracefs) + Send + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::spawn(move || match Tracefs::reach() {
        Ok(tracefs) => test(&tracefs),
        Err(error) => {
            doorbell_skipped::skip(error);
            let complaint = Stage::new().run("anatomy --time 10ms --blocks 1").ended(4).err;
            assert!(complaint.contains("tracefs"), "{complaint}");
        }
    })
    .join()
    .unwrap();
}

fn run(words: &str) -> ResultFile {
    measured(words).result()
}

/// The instances in the kernel that a process made.
fn instances(tracefs: &Tracefs, pid: i32) -> Vec<String> {
    let entries = std::fs::read_dir(tracefs.folder().join("instances")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("doorbell-{pid}-"))).collect()
}

#[test]
fn the_stages_of_traced_wakes_add_up_and_the_same_wakes_run_without() {
    with_events(|_| {
        let result = run(
            "anatomy futex eventfd-epoll --gap 100us --time 100ms --blocks 2 --placement unpinned,same-core",
        );
        let traced: Vec<_> =
            result.records.iter().filter(|record| record.configuration.trace.is_some()).collect();
        assert_eq!(traced.len(), 8);
        // The null mechanism is run beside, bare alone.
        assert_eq!(result.records.len(), 2 * traced.len() + 4);
        for record in traced {
            let anatomy = stages_that_add_up(record);
            assert!(asleep(anatomy) > 0, "not one wake of a sleeper: {:?}", anatomy.paths);
        }
    });
}

/// The stages of a traced trial, of which each wake-up's, and each path's, are its whole.
fn stages_that_add_up(record: &Record) -> &Anatomy {
    assert!(matches!(record.outcome, Outcome::Done | Outcome::Implausible { .. }), "{:?}", record.outcome);
    let anatomy = record.anatomy.as_ref().unwrap();
    assert!(anatomy.counts.cut > 0, "{:?}", anatomy.counts);
    assert_eq!(anatomy.counts.stamped, anatomy.counts.cut + anatomy.counts.incomplete);
    for path in &anatomy.paths {
        let sum: f64 = path.stages.values().map(|stage| stage.mean_ns).sum();
        assert!((sum / path.whole.mean_ns - 1.0).abs() < 0.002, "{sum} of {}", path.whole.mean_ns);
    }
    for wake in &anatomy.kept {
        assert_eq!(wake.stages().map(|(_, from, to)| to - from).sum::<i64>().unsigned_abs(), wake.whole_ps());
    }
    anatomy
}

/// How many of its wake-ups were a sleeper's.
fn asleep(anatomy: &Anatomy) -> u64 {
    let of_sleepers = anatomy.paths.iter().filter(|path| path.marks.contains(&Mark::Issued));
    of_sleepers.map(|path| path.whole.count).sum()
}

/// By signals; `ci/test/67-uintr.sh` has a guest do the same by hardware.
#[test]
fn user_interrupts_by_signals_have_stages_that_add_up() {
    with_events(|_| {
        let result = run(
            "anatomy uintr-by-signals uintr-by-signals-wait uintr-by-signals-epoll --gap 1ms --time 100ms \
                          --blocks 1 --placement unpinned",
        );
        let traced: Vec<_> =
            result.records.iter().filter(|record| record.configuration.trace.is_some()).collect();
        assert_eq!(traced.len(), 3);
        for record in traced {
            let anatomy = stages_that_add_up(record);
            let sleeps = record.subject.notification().unwrap().waits == Waits::Blocks;
            assert!(!sleeps || asleep(anatomy) > 0, "not one wake of a sleeper: {:?}", anatomy.paths);
        }
    });
}

#[test]
fn a_report_of_traced_wakes_has_a_waterfall_for_each() {
    with_events(|_| {
        let stage = Stage::new();
        let file = stage.file("a.json");
        let words = "anatomy futex --gap 100us --time 50ms --blocks 6 --placement unpinned --details";
        let text = stage.run(&format!("{words} --output {file}")).out;
        // What a busy machine made implausible, bare or traced, has no figures to be shown.
        let result = read::read(Path::new(&file)).unwrap();
        let usable = |block, traced| {
            let ran = |record: &&Record| {
                record.configuration.subject == "futex"
                    && record.block == block
                    && record.configuration.trace.is_some() == traced
            };
            result.records.iter().filter(ran).any(|record| record.outcome == Outcome::Done)
        };
        if !(0..6).any(|block| usable(block, true) && usable(block, false)) {
            doorbell_skipped::skip("this machine is too busy for one plausible pair of trials in six");
            return;
        }
        assert!(text.contains("A median wake-up") && text.contains("What tracing costs"), "{text}");
        let page = stage.run(&format!("report {file} --output -")).out;
        assert_eq!(page.matches(" in all\"").count(), 3, "a median, a 99th percentile and a worst one");
    });
}

#[test]
fn an_interrupted_run_leaves_no_buffer_and_a_killed_one_is_cleared_by_the_next() {
    with_events(|tracefs| {
        for end in [Signal::TERM, Signal::KILL] {
            let stage = Stage::new();
            let child = stage.words("why futex --time 60s --quiet --output -").spawn().unwrap();
            let command = i32::try_from(child.id()).unwrap();
            wait_until("a host", || stage.host(command).is_some());
            let host = stage.host(command).unwrap();
            wait_until("its buffer", || !instances(tracefs, host).is_empty());
            kill_process(Pid::from_raw(command).unwrap(), end).unwrap();
            let said = Said::from(child.wait_with_output().unwrap());
            stage.wait_until_empty();
            if end == Signal::TERM {
                assert!(said.ended(130).result().partial);
            } else {
                // Nobody was left to remove it; a run of another suite may have.
                assert!(instances(tracefs, host).len() <= 1);
                run("anatomy futex --gap 100us --time 10ms --blocks 1 --placement unpinned");
            }
            assert_eq!(instances(tracefs, host), [""; 0]);
        }
    });
}

/// Runs `test` with two CPUs, the second of which is kept from everybody else for 60 ms, `apart`
/// apart; else says why not. On a busy machine the worst wakes of a run may be owed to other
/// programs, and not one to what was planted: it has five tries.
fn beside_a_hog(apart: Duration, test: impl Fn([usize; 2]) -> Result<(), String>) {
    let Some([first, second]) = two_cpus() else {
        return doorbell_skipped::skip("it takes two CPUs");
    };
    let stop = Arc::new(AtomicBool::new(false));
    let Some(hog) = hog(second, apart, Arc::clone(&stop)) else {
        return doorbell_skipped::skip("no real-time priority for this user");
    };
    let told = in_one_of_five(|| test([first, second]));
    stop.store(true, Ordering::Relaxed);
    hog.join().unwrap();
    told.unwrap();
}

/// Keeps CPU `cpu` from everybody else until told to stop; whether it may.
fn hog(cpu: usize, apart: Duration, stop: Arc<AtomicBool>) -> Option<std::thread::JoinHandle<()>> {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("planted".to_owned()).spawn(move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        let pinned = rustix::thread::sched_setaffinity(None, &set).is_ok();
        let parameter = libc::sched_param { sched_priority: 40 };
        // SAFETY: 0 names the calling thread; `parameter` lives through the call.
        let raised = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } == 0;
        tell.send(pinned && raised).unwrap();
        while pinned && raised && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(apart);
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(60) {
                std::hint::spin_loop();
            }
        }
    });
    let thread = thread.unwrap();
    told.recv().unwrap().then_some(thread)
}

/// The first two CPUs this process may use, if there are two.
fn two_cpus() -> Option<[usize; 2]> {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu));
    Some([cpus.next()?, cpus.next()?])
}

/// Everything that was found for the kept wakes of a run, by name.
fn found(configurations: &[Slow]) -> BTreeSet<&'static str> {
    configurations
        .iter()
        .flat_map(|slow| &slow.kept)
        .flat_map(|one| &one.found)
        .map(|found| found.name)
        .collect()
}

#[test]
fn a_task_of_higher_priority_on_the_waiters_cpu_is_named_as_what_was_in_the_way() {
    with_events(|_| {
        beside_a_hog(Duration::from_millis(180), |[first, second]| {
            let result = run(&format!("why futex --cpus {first},{second} --time 2s --above 5ms --worst 20"));
            let configurations = why(&result);
            let kept = &configurations[0].kept;
            for one in kept {
                assert!(one.wake.whole_ps() > 5_000_000_000, "only what is beyond the threshold is kept");
            }
            let told = kept.iter().filter_map(|one| one.verdict.as_ref()).any(|found| {
                found.name == "its CPU ran something else" && found.evidence.contains("'planted'")
            });
            let found = || kept.iter().map(|one| &one.found).collect::<Vec<_>>();
            if told { Ok(()) } else { Err(format!("{:?}", found())) }
        });
    });
}

/// What `attempt` says when it first succeeds, or at the fifth time: on a busy machine the worst
/// wakes of a run may be owed to other programs, and not one to what was planted.
fn in_one_of_five(mut attempt: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut said = attempt();
    for _ in 1..5 {
        if said.is_err() {
            said = attempt();
        }
    }
    said
}

/// The waiter of the trial that `command` runs: the side that was started last.
fn waiter(stage: &Stage, command: i32) -> Option<Pid> {
    stage.sides(command).into_iter().max().and_then(Pid::from_raw)
}

/// What is found of wakes in which `plant` does something to the waiter over and over.
fn found_while(words: &str, plant: impl Fn(Pid)) -> BTreeSet<&'static str> {
    let stage = Stage::new();
    let mut child = stage.words(&format!("{words} --quiet --output -")).spawn().unwrap();
    let command = i32::try_from(child.id()).unwrap();
    // The result is longer than a pipe holds.
    let mut out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut out, &mut bytes).unwrap();
        bytes
    });
    wait_until("both sides", || stage.sides(command).len() == 2);
    while child.try_wait().unwrap().is_none() {
        match waiter(&stage, command) {
            Some(waiter) if stage.sides(command).len() == 2 => plant(waiter),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    let result = read::read_bytes(reader.join().unwrap(), "the output").unwrap();
    found(&why(&result))
}

#[test]
fn a_waiter_that_is_stopped_by_a_signal_is_found_to_have_been() {
    with_events(|_| {
        // Longer than a busy machine lets a ready task wait, so that
        // the longest wakes are those with a stop.
        let stop_and_go = |waiter| {
            // An error means that the trial is over.
            let _ = kill_process(waiter, Signal::STOP);
            std::thread::sleep(Duration::from_millis(250));
            let _ = kill_process(waiter, Signal::CONT);
            std::thread::sleep(Duration::from_millis(60));
        };
        in_one_of_five(|| {
            let words = "why futex --placement unpinned --time 2s --above 20ms --worst 8";
            let found = found_while(words, stop_and_go);
            found.contains("stopped by a signal").then_some(()).ok_or_else(|| format!("{found:?}"))
        })
        .unwrap();
    });
}

#[test]
fn a_waiter_that_is_moved_while_it_is_ready_is_found_to_have_migrated() {
    with_events(|_| {
        beside_a_hog(Duration::from_millis(60), |cpus| {
            let move_about = |waiter| {
                for cpu in cpus.into_iter().rev() {
                    let mut set = rustix::thread::CpuSet::new();
                    set.set(cpu);
                    // An error means that the trial is over.
                    let _ = rustix::thread::sched_setaffinity(Some(waiter), &set);
                    std::thread::sleep(Duration::from_millis(17));
                }
            };
            let words = "why futex --placement unpinned --time 3s --above 2ms --worst 20";
            let found = found_while(words, move_about);
            found.contains("migration").then_some(()).ok_or_else(|| format!("{found:?}"))
        });
    });
}

/// A waiter asleep under a time-out of 50 ms to which nobody rings is a lost wake-up, which no
/// mechanism here has; the record of one that was rescued is a fixture of the causes. What is seen
/// live is that no wake is called rescued that was not.
#[test]
fn no_wake_is_called_rescued_when_none_was() {
    with_events(|_| {
        let result = run("why futex --wait timeout=50ms --time 300ms --worst 3");
        assert!(!found(&why(&result)).contains("rescued by the time-out"));
    });
}

#[test]
fn a_page_that_was_taken_away_is_told_as_a_fault_of_the_task_that_touched_it() {
    with_events(|tracefs| {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let mask = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus = (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|cpu| mask.is_set(*cpu))
            .map(|cpu| cpu as u32)
            .collect();
        let wanted = Wanted {
            of: |kind| Some(kind.causes),
            tasks: [own.unsigned_abs(); 2],
            cpus: &cpus,
            clock: doorbell_results::machine::clock::Source::Monotonic,
            // On a busy machine much happens between the call and the end of the recording.
            kib: 4096,
        };
        let size = 1 << 20;
        // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED);
        let touch = || {
            // SAFETY: the mapping is ours and this long.
            unsafe { page.cast::<u8>().write_volatile(1) };
        };
        touch();
        let mut instance = Instance::create(tracefs, &wanted).unwrap();
        instance.turn(true).unwrap();
        // SAFETY: the mapping is ours; its contents are not needed.
        assert_eq!(unsafe { libc::madvise(page, size, libc::MADV_DONTNEED) }, 0);
        touch();
        instance.turn(false).unwrap();
        let harvest = instance.harvest().unwrap();
        let before = harvest.events.iter().position(
            |event| matches!(event.what, What::CallReturns { number } if number == libc::SYS_madvise),
        );
        let faults = |events: &[Event]| {
            events.iter().filter(|event| event.task == own && event.what == What::Fault).count()
        };
        let after = before.expect("the call that took the page away was not seen");
        assert!(faults(&harvest.events[after..]) >= 1, "{:?}", harvest.events);
        assert!(harvest.events.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let missing: Vec<&str> = instance.missing().iter().map(|kind| kind.name).collect();
        assert!(missing.len() < KINDS.len(), "{missing:?}");
    });
}
