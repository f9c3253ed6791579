// SPDX-License-Identifier: MIT OR Apache-2.0
//! What any user may record of their own processes.

use super::*;
use doorbell_results::anatomy::program::{Engine, Threads};

/// Runs `test` where the kernel tells users of their own processes; else says why not.
fn with_switches(test: impl FnOnce(&Stage)) {
    let _alone = crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stage = Stage::new();
    let said = as_nobody(&stage, "trace --quiet --engine own -- true");
    if said.status == Some(0) {
        return test(&stage);
    }
    doorbell_skipped::skip(said.err.trim());
    let said = said.ended(4).err;
    assert!(said.contains("perf_event_paranoid"), "{said}");
}

fn threads<'a>(program: &'a Program, name: &str) -> Option<&'a Threads> {
    program.threads.iter().find(|threads| threads.name == name)
}

const NAPS: u64 = 50;

#[test]
fn an_ordinary_user_records_when_processes_of_their_own_sleep_and_is_told_what_is_not_recorded() {
    with_switches(|stage| {
        let file = stage.file("own.json");
        let record = |more: &str| {
            // Naps of a millisecond, one after the other.
            let naps = format!("n=0; while [ $n -lt {NAPS} ]; do sleep 0.001; n=$((n + 1)); done; exit 0");
            let script = stage.file("naps");
            std::fs::write(&script, naps).unwrap();
            let words = format!("trace --quiet --engine own -o {file} {more} -- sh {script}");
            let text = as_nobody(stage, &words).ended(0).out;
            let result = read::read(Path::new(&file)).unwrap();
            let anatomy = result.records[0].anatomy.clone().unwrap();
            assert_eq!(anatomy.counts.lost_events, 0, "a test program leaves few events");
            (anatomy.program.unwrap(), text)
        };
        let (program, text) = record("--children");
        let naps = threads(&program, "sleep").unwrap_or_else(|| panic!("{:#?}", program.threads));
        assert_eq!(naps.count, NAPS, "{:#?}", program.threads);
        // Time that is over before it is waited for needs no sleep.
        assert!(naps.wakes * 10 >= NAPS * 9, "each sleeps once: {naps:?}");
        assert!(naps.ran_ns > 0 && naps.ready_mean_ns.is_none_or(|ns| ns >= 0.0), "{naps:?}");
        assert_eq!(program.engine, Engine::Own);
        let slept = |edge: &Edge| edge.waker == Waker::Unseen && edge.took.count == 0 && edge.slept.count > 0;
        assert!(program.edges.iter().all(slept), "{:#?}", program.edges);
        assert!(text.starts_with("sh (--engine own): "), "{text}");
        assert!(text.contains("Not recorded: who wakes") && text.contains("CAP_BPF"), "{text}");
        let (program, _) = record("");
        assert!(threads(&program, "sleep").is_none(), "children were not asked for: {:#?}", program.threads);
        assert!(threads(&program, "sh").is_some_and(|shell| shell.count == 1), "{:#?}", program.threads);
        let costs = "--hand-over 240ns --sleep-cost 5us";
        for words in
            [format!("trace show {file} --edge A"), format!("trace whatif {file} --edge A spin=1us {costs}")]
        {
            let said = as_nobody(stage, &words).ended(4).all();
            let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains("`--engine own` is not told"), "{said}");
        }
    });
}

#[test]
fn switches_are_counted_as_the_kernel_counts_them_from_the_first_or_from_the_middle() {
    with_switches(|_| {
        for kind in ["futex", "pipe", "tcp", "timer"] {
            let recording = Recording::by("own", kind);
            let [all, _] = recording.wakes("waiter", |_| true);
            let slept = recording.counts["waiter"];
            assert_eq!(recording.lost, 0, "a test program leaves few events");
            assert!(slept > 100 && all.abs_diff(slept) * 100 <= slept, "{kind}: {all} of {slept}");
        }
        let program = Played::start("for-ever");
        // A machine that stands still for all of one recording does so for none of the next.
        let seen = ["1s", "3s", "9s"].iter().any(|time| {
            let recording = Recording::of(&program, &format!("--engine own --time {time}"));
            ["waiter", "waker"].iter().all(|name| recording.wakes(name, |_| true)[0] > 20)
        });
        assert!(seen, "both sleep thousands of times a second");
    });
}

#[test]
fn what_the_kernel_does_not_tell_an_ordinary_user_is_refused_by_name() {
    with_switches(|stage| {
        let said = as_nobody(stage, "trace --engine own --duty 10% -- true").ended(4).err;
        assert!(said.contains("in slices records BPF alone"), "{said}");
        if !rustix::process::geteuid().is_root() {
            doorbell_skipped::skip("only root has a process that another user may not look at");
            return;
        }
        let said = as_nobody(stage, &format!("trace --engine own -p {}", std::process::id())).ended(4).err;
        assert!(said.contains("perf_event_open"), "{said}");
    });
}
