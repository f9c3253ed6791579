// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `top` shows, as metrics.

use std::io;

use super::export::prometheus::{Family, escape};
use doorbell_results::machine::waiters::{User, Waiter, Waiters};

/// A sample: its labels and its value.
type Sample = (String, String);

/// A look as metrics, in Prometheus's text format.
pub fn metrics(now: &Waiters) -> String {
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = write(now, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn write(now: &Waiters, out: &mut Vec<u8>) -> io::Result<()> {
    let seconds = |ns: u64| (ns as f64 / 1e9).to_string();
    let processes = |value: fn(&User) -> Option<u64>| -> Vec<Sample> {
        now.processes.iter().filter_map(|process| Some((of(process), seconds(value(process)?)))).collect()
    };
    let ended = waiters(now, ",ended=\"spin\"", |waiter| waiter.spun_and_hit);
    let ended = ended.into_iter().chain(waiters(now, ",ended=\"sleep\"", |waiter| waiter.slept));
    let families: [(&str, &str, &str, Vec<Sample>); 7] = [
        (
            "doorbell_waits_total",
            "counter",
            "Waits by what ended them; one that found its ring there is not counted.",
            ended.collect(),
        ),
        (
            "doorbell_spins_in_vain_total",
            "counter",
            "Waits that spun their whole window and then slept.",
            waiters(now, "", |waiter| waiter.spun_in_vain),
        ),
        (
            "doorbell_wakeups_total",
            "counter",
            "Times a sleeper was woken, or woke for no reason.",
            waiters(now, "", |waiter| waiter.woken),
        ),
        (
            "doorbell_process_ready_seconds_total",
            "counter",
            "Time in which tasks of the process stood ready and had no CPU.",
            processes(|process| process.ready_ns),
        ),
        (
            "doorbell_process_throttled_seconds_total",
            "counter",
            "Time for which the CPU quota of the process's group was used up.",
            processes(|process| process.throttled_ns),
        ),
        (
            "doorbell_machine_steal_seconds_total",
            "counter",
            "Time that the hypervisor took from all CPUs.",
            now.steal_ns.map(|ns| (String::new(), seconds(ns))).into_iter().collect(),
        ),
        (
            "doorbell_processes_closed",
            "gauge",
            "Processes that may not be looked into.",
            vec![(String::new(), now.closed.to_string())],
        ),
    ];
    for (name, kind, help, samples) in families {
        let mut family = Family::begin(out, name, kind, help)?;
        samples.iter().try_for_each(|(labels, value)| family.sample("", labels, value))?;
    }
    Ok(())
}

fn of(process: &User) -> String {
    format!("pid=\"{}\",command=\"{}\"", process.pid, escape(&process.command))
}

/// A sample of each waiter, with `more` labels.
fn waiters(now: &Waiters, more: &str, value: fn(&Waiter) -> u64) -> Vec<Sample> {
    let all =
        now.processes.iter().flat_map(|process| process.waiters.iter().map(move |waiter| (process, waiter)));
    let sample = |(process, waiter): (&User, &Waiter)| {
        let Waiter { name, place, .. } = waiter;
        let labels = format!("{},waiter=\"{}\",place=\"{place}\"{more}", of(process), escape(name));
        (labels, value(waiter).to_string())
    };
    all.map(sample).collect()
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
