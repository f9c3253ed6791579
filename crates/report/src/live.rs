// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `top` shows to a browser and to whoever scrapes: one look as data, the page that draws it,
//! and the same as metrics.

use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use doorbell_results::live::{Run, Seen};
use doorbell_results::machine::waiters::{User, Waiter, Waiters};
use serde::Serialize;

use super::chart::palette;
use super::export::openmetrics::escape;
use super::html::digest;
use super::top::{assumes, before_of, waiter_before};
use super::unit::time;

/// Configurations of a run that a look carries: those whose trials ended last.
const CONFIGURATIONS: usize = 24;

/// Bars of a doubling in the page's charts.
const BARS: u32 = 4;

/// One look, as the page draws it.
#[derive(Debug, Serialize)]
pub struct Look {
    waiters: Vec<Row>,
    processes: Vec<Process>,
    /// How many processes may not be looked into.
    closed: usize,
    runs: Vec<Progress>,
}

#[derive(Debug, Serialize)]
struct Row {
    pid: u32,
    command: String,
    waiter: String,
    does: &'static str,
    /// Since the look before; none at the first.
    waits_per_s: Option<f64>,
    spun_and_hit: u64,
    spun_in_vain: u64,
    slept: u64,
    woken: u64,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    command: String,
    /// The share of the time since the look before in which one of
    /// its tasks stood ready and had no CPU.
    late_share: Option<f64>,
    why: String,
    assumes: String,
}

#[derive(Debug, Serialize)]
struct Progress {
    pid: u32,
    command: String,
    experiment: String,
    done: usize,
    trials: usize,
    without_figures: usize,
    /// How many configurations are not among those below.
    more: usize,
    bars: u32,
    configurations: Vec<Distribution>,
}

#[derive(Debug, Serialize)]
struct Distribution {
    label: String,
    quantity: &'static str,
    about: &'static str,
    count: u64,
    /// 50th, 90th, 99th and 99.9th percentile and the longest.
    times: [String; 5],
    longest_in: usize,
    why: String,
    /// Where each bar begins, as a number of bars from 1 ps, and its samples.
    shape: Vec<(u32, u64)>,
}

impl Look {
    /// What `now` shows beside the look `before`, and the runs that go on.
    pub fn of(now: &Waiters, before: Option<&Waiters>, runs: &[Run]) -> Self {
        let rows = now
            .processes
            .iter()
            .flat_map(|process| process.waiters.iter().map(move |waiter| (process, waiter)));
        Self {
            waiters: rows.map(|(process, waiter)| Row::of(process, waiter, now, before)).collect(),
            processes: now.processes.iter().map(|process| Process::of(process, now, before)).collect(),
            closed: now.closed,
            runs: runs.iter().filter_map(Progress::of).collect(),
        }
    }
}

impl Row {
    fn of(process: &User, waiter: &Waiter, now: &Waiters, before: Option<&Waiters>) -> Self {
        let old = before.and_then(|before| waiter_before(before, process, waiter));
        let rate = |of: fn(&Waiter) -> u64| {
            let elapsed = now.taken.saturating_duration_since(before?.taken).max(Duration::from_millis(1));
            // Fewer than before: another waiter of that name has the place now.
            Some(of(waiter).checked_sub(of(old?))? as f64 / elapsed.as_secs_f64())
        };
        let [hit, vain, slept] = [rate(|w| w.spun_and_hit), rate(|w| w.spun_in_vain), rate(|w| w.slept)];
        Self {
            pid: process.pid,
            command: process.command.clone(),
            waiter: waiter.name.clone(),
            does: does(hit, vain, slept),
            waits_per_s: rate(Waiter::waits),
            spun_and_hit: waiter.spun_and_hit,
            spun_in_vain: waiter.spun_in_vain,
            slept: waiter.slept,
            woken: waiter.woken,
        }
    }
}

/// What a waiter did since the look before, in a word.
fn does(hit: Option<f64>, vain: Option<f64>, slept: Option<f64>) -> &'static str {
    match (hit, vain, slept) {
        (Some(hit), Some(vain), Some(slept)) if hit + slept > 0.0 => {
            // A spin in vain costs as much again as the sleep behind it.
            if vain * 2.0 > hit + slept {
                "spins in vain"
            } else if hit > slept {
                "spins and hits"
            } else {
                "sleeps"
            }
        }
        (Some(_), Some(_), Some(_)) => "ended no wait",
        _ => "new",
    }
}

impl Process {
    fn of(process: &User, now: &Waiters, before: Option<&Waiters>) -> Self {
        let old = before.and_then(|before| before_of(before, process));
        let since = |of: fn(&User) -> Option<u64>| of(process)?.checked_sub(of(old?)?);
        let elapsed =
            before.map(|before| now.taken.saturating_duration_since(before.taken).as_nanos().max(1) as f64);
        let ready = since(|process| process.ready_ns);
        let throttled = since(|process| process.throttled_ns).filter(|ns| *ns > 0);
        let steal =
            before.and_then(|before| now.steal_ns?.checked_sub(before.steal_ns?)).filter(|ns| *ns > 0);
        let ms = |ns: u64| time(ns as f64 * 1e3);
        let mut causes = Vec::new();
        // What is too small to have made up half of the time that its tasks stood ready did not
        // make it late.
        let enough = |ns: &u64| ready.is_none_or(|ready| ns.saturating_mul(2) >= ready);
        causes.extend(
            throttled.filter(enough).map(|ns| format!("its group's CPU quota was used up for {}", ms(ns))),
        );
        causes.extend(
            steal.filter(enough).map(|ns| format!("the hypervisor took {} from this machine's CPUs", ms(ns))),
        );
        let late_share = ready.zip(elapsed).map(|(ready, elapsed)| ready as f64 / elapsed);
        if causes.is_empty() && late_share.is_some_and(|share| share >= NOTICEABLE) {
            causes.push("other tasks ran where its own were to run".to_owned());
        }
        if process.ready_ns.is_none() {
            causes.push("this kernel does not say how long tasks stood ready".to_owned());
        }
        Self {
            pid: process.pid,
            command: process.command.clone(),
            late_share,
            why: causes.join("; "),
            assumes: assumes(process),
        }
    }
}

/// From which share of the time on waiting for a CPU is worth a
/// cause: an idle machine's wake-ups take some 0.01 % of it.
const NOTICEABLE: f64 = 0.01;

impl Progress {
    fn of(run: &Run) -> Option<Self> {
        let head = run.head.as_ref()?;
        let mut latest: Vec<&Seen> = run.configurations.iter().collect();
        latest.sort_by_key(|seen| std::cmp::Reverse(seen.latest));
        latest.truncate(CONFIGURATIONS);
        let shown = |seen: &&Seen| latest.iter().any(|latest| std::ptr::eq(*latest, *seen));
        Some(Self {
            pid: head.process,
            command: head.command_line.join(" "),
            experiment: head.experiment.clone(),
            done: run.done,
            trials: head.trials,
            without_figures: run.without_figures,
            more: run.configurations.len() - latest.len(),
            bars: BARS,
            configurations: run.configurations.iter().filter(shown).map(Distribution::of).collect(),
        })
    }
}

impl Distribution {
    fn of(seen: &Seen) -> Self {
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|q| time(seen.quantile_ns(q) * 1e3));
        let (longest_ns, longest_in, why) = &seen.longest;
        Self {
            label: seen.label.clone(),
            quantity: seen.quantity.name(),
            about: seen.quantity.definition(),
            count: seen.count,
            times: [p50, p90, p99, p999, time(longest_ns * 1e3)],
            longest_in: *longest_in,
            why: why.join("; "),
            shape: seen.bars(BARS),
        }
    }
}

const SCRIPT: &str = include_str!("../templates/top.js");

#[derive(Debug, Template)]
#[template(path = "top.html")]
struct Page {
    version: &'static str,
    host: String,
    policy: String,
    style: String,
    script: &'static str,
}

/// The page, and the policy under which a browser is to show it: it runs its own script and no
/// other, and speaks to where it came from.
pub fn page(host: &str) -> Result<(String, String), askama::Error> {
    let style = format!(
        "{}{}{}",
        palette::STYLE,
        include_str!("../templates/report.css"),
        include_str!("../templates/top.css")
    );
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'",
        digest(&style),
        digest(SCRIPT)
    );
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        host: host.to_owned(),
        policy: policy.clone(),
        style,
        script: SCRIPT,
    };
    Ok((page.render()?, policy))
}

/// The two formats in which metrics are scraped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Prometheus's text format, which its older tools and the node exporter read too
    Prometheus,
    /// OpenMetrics 1.0
    Openmetrics,
}

impl Format {
    /// The type of its content.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::Openmetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A look as metrics.
pub fn metrics(now: &Waiters, runs: &[Run], format: Format) -> String {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        // A counter's samples end in _total; its name has that in the
        // older format and has it not in the newer.
        let suffix = if kind == "counter" { "_total" } else { "" };
        let named = if format == Format::Prometheus { suffix } else { "" };
        let _ = writeln!(out, "# HELP {name}{named} {help}\n# TYPE {name}{named} {kind}");
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
    let goes_on: Vec<(String, String)> = runs
        .iter()
        .filter_map(|run| Some((run, run.head.as_ref()?)))
        .flat_map(|(run, head)| {
            let labels = format!("pid=\"{}\",experiment=\"{}\"", head.process, escape(&head.experiment));
            [("done", run.done), ("planned", head.trials)]
                .map(|(state, count)| (format!("{labels},state=\"{state}\""), count.to_string()))
        })
        .collect();
    family("doorbell_run_trials", "gauge", "Trials of the runs that go on.", &goes_on);
    if format == Format::Openmetrics {
        out.push_str("# EOF\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn look(taken: Instant, counts: [u64; 4], ready_ns: u64) -> Waiters {
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
        Waiters { processes: vec![process], closed: 3, steal_ns: Some(1_500_000_000), taken }
    }

    #[test]
    fn a_look_says_what_each_waiter_does_and_what_made_a_process_late() {
        let start = Instant::now();
        let before = look(start, [100, 0, 100, 100], 0);
        let mut now = look(start + Duration::from_secs(2), [100, 900, 1100, 1100], 200_000_000);
        let of = |now: &Waiters| serde_json::to_value(Look::of(now, Some(&before), &[])).unwrap();
        let seen = of(&now);
        assert_eq!(
            (&seen["waiters"][0]["does"], &seen["waiters"][0]["waits_per_s"]),
            (&"spins in vain".into(), &500.0.into())
        );
        assert_eq!(seen["processes"][0]["late_share"], 0.1);
        assert_eq!(seen["processes"][0]["why"], "other tasks ran where its own were to run");
        now.processes[0].throttled_ns = Some(150_000_000);
        now.steal_ns = Some(1_510_000_000);
        assert_eq!(of(&now)["processes"][0]["why"], "its group's CPU quota was used up for 150 ms");
        // Ten milliseconds of steal were why a process stood ready for 200.
        now.processes[0].throttled_ns = Some(0);
        assert_eq!(of(&now)["processes"][0]["why"], "other tasks ran where its own were to run");
        now.steal_ns = Some(1_610_000_000);
        assert_eq!(of(&now)["processes"][0]["why"], "the hypervisor took 110 ms from this machine's CPUs");
        let first = serde_json::to_value(Look::of(&now, None, &[])).unwrap();
        assert_eq!(
            (&first["waiters"][0]["does"], &first["processes"][0]["late_share"]),
            (&"new".into(), &serde_json::Value::Null)
        );
    }

    #[test]
    fn a_waiter_is_called_by_what_it_mostly_did() {
        let word = |hit: f64, vain: f64, slept: f64| does(Some(hit), Some(vain), Some(slept));
        assert_eq!(word(9.0, 1.0, 1.0), "spins and hits");
        assert_eq!(word(1.0, 1.0, 9.0), "sleeps");
        assert_eq!(word(1.0, 9.0, 9.0), "spins in vain");
        assert_eq!(word(0.0, 0.0, 0.0), "ended no wait");
        assert_eq!(does(None, Some(1.0), Some(1.0)), "new");
    }

    #[test]
    fn the_page_allows_its_own_script_and_style_and_nothing_from_elsewhere() {
        let (page, policy) = page("<b>host</b>").unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        assert!(
            !page.contains("<b>host") && !page.contains("http://") && !page.contains("https://"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 1);
    }

    #[test]
    fn both_formats_have_the_same_samples_and_no_name_ends_a_label() {
        let now = look(Instant::now(), [1, 2, 3, 4], 5);
        let [older, newer] =
            [Format::Prometheus, Format::Openmetrics].map(|format| metrics(&now, &[], format));
        let samples = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(samples(&older), samples(&newer));
        assert!(samples(&older).contains(
            &"doorbell_waits_total{pid=\"42\",command=\"</script>\\\"feed\\\\\",waiter=\"adaptive\",place=\"0\",ended=\"spin\"} 1".to_owned()
        ));
        assert!(
            older.contains("# TYPE doorbell_waits_total counter")
                && newer.contains("# TYPE doorbell_waits counter")
        );
        assert!(newer.ends_with("# EOF\n") && !older.contains("# EOF"));
    }
}
