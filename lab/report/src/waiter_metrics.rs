// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `top` shows, as metrics.

use std::fmt::Write as _;

use super::export::prometheus::escape;
use doorbell_results::machine::waiters::{User, Waiter, Waiters};

/// A look as metrics, in Prometheus's text format.
pub fn metrics(now: &Waiters) -> String {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        // A counter's name ends in _total.
        let suffix = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(out, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}");
        for (labels, value) in samples {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _ = writeln!(out, "{name}{suffix}{labels} {value}");
        }
    };
    let of = |process: &User| format!("pid=\"{}\",command=\"{}\"", process.pid, escape(&process.command));
    let waiters = |value: &dyn Fn(&Waiter) -> Vec<(&'static str, u64)>| -> Vec<(String, String)> {
        let all = now
            .processes
            .iter()
            .flat_map(|process| process.waiters.iter().map(move |waiter| (process, waiter)));
        all.flat_map(|(process, waiter)| {
            let labels =
                format!("{},waiter=\"{}\",place=\"{}\"", of(process), escape(&waiter.name), waiter.place);
            value(waiter).into_iter().map(move |(more, count)| (format!("{labels}{more}"), count.to_string()))
        })
        .collect()
    };
    let seconds = |ns: u64| (ns as f64 / 1e9).to_string();
    let processes = |value: fn(&User) -> Option<u64>| -> Vec<(String, String)> {
        now.processes.iter().filter_map(|process| Some((of(process), seconds(value(process)?)))).collect()
    };
    let ended: &dyn Fn(&Waiter) -> Vec<(&'static str, u64)> =
        &|waiter| vec![(",ended=\"spin\"", waiter.spun_and_hit), (",ended=\"sleep\"", waiter.slept)];
    family(
        "doorbell_waits",
        "counter",
        "Waits by what ended them; one that found its ring there is not counted.",
        &waiters(ended),
    );
    let vain: &dyn Fn(&Waiter) -> Vec<(&'static str, u64)> = &|waiter| vec![("", waiter.spun_in_vain)];
    family(
        "doorbell_spins_in_vain",
        "counter",
        "Waits that spun their whole window and then slept.",
        &waiters(vain),
    );
    let woken: &dyn Fn(&Waiter) -> Vec<(&'static str, u64)> = &|waiter| vec![("", waiter.woken)];
    family(
        "doorbell_wakeups",
        "counter",
        "Times a sleeper was woken, or woke for no reason.",
        &waiters(woken),
    );
    let ready = processes(|process| process.ready_ns);
    family(
        "doorbell_process_ready_seconds",
        "counter",
        "Time in which tasks of the process stood ready and had no CPU.",
        &ready,
    );
    let throttled = processes(|process| process.throttled_ns);
    family(
        "doorbell_process_throttled_seconds",
        "counter",
        "Time for which the CPU quota of the process's group was used up.",
        &throttled,
    );
    let steal: Vec<_> = now.steal_ns.map(|ns| (String::new(), seconds(ns))).into_iter().collect();
    family(
        "doorbell_machine_steal_seconds",
        "counter",
        "Time that the hypervisor took from all CPUs.",
        &steal,
    );
    let closed = [(String::new(), now.closed.to_string())];
    family("doorbell_processes_closed", "gauge", "Processes that may not be looked into.", &closed);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn look(counts: [u64; 4], ready_ns: u64) -> Waiters {
        let [spun_and_hit, spun_in_vain, slept, woken] = counts;
        let waiter =
            Waiter { place: 0, name: "adaptive".to_owned(), spun_and_hit, spun_in_vain, slept, woken };
        let process = User {
            pid: 42,
            uid: Some(0),
            command: "</script>\"feed\\".to_owned(),
            profile: Some("none"),
            sleep_latency_ns: None,
            sleep_price_ns: None,
            ready_ns: Some(ready_ns),
            throttled_ns: Some(0),
            waiters: vec![waiter],
        };
        Waiters { processes: vec![process], closed: 3, steal_ns: Some(1_500_000_000), taken: Instant::now() }
    }

    #[test]
    fn a_counter_ends_in_total_and_no_name_ends_a_label() {
        let text = metrics(&look([1, 2, 3, 4], 5));
        assert!(text.contains("# TYPE doorbell_waits_total counter"));
        assert!(text.contains(
            "doorbell_waits_total{pid=\"42\",command=\"</script>\\\"feed\\\\\",waiter=\"adaptive\",place=\"0\",ended=\"spin\"} 1\n"
        ));
    }
}
