// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's switch counts of one side, taken three ways over the
//! same rounds, after the measured window.
//!
//! `getrusage` and `/proc` show the same two counters of the task by different doors; the perf
//! software event counts in the scheduler's own path. It is opened only here: an event on a task
//! makes each of its switches dearer, so it stays out of the window, and the window's own count is
//! `getrusage` alone, proven right by this check.

use perf_event::events::Software;
use perf_event::{Builder, Counter};

use doorbell_harness::role::Role;
use doorbell_results::record::Figure;

/// Rounds over which the counts are compared.
pub(super) const CHECK_ROUNDS: u64 = 300;

/// The counts at the start.
pub(super) struct SwitchCount {
    perf: Option<Counter>,
    status: Option<u64>,
    usage: u64,
}

impl SwitchCount {
    /// Starts counting the calling thread.
    pub(super) fn start() -> Self {
        let perf = Builder::new(Software::CONTEXT_SWITCHES)
            .observe_self()
            .any_cpu()
            .include_kernel()
            .build()
            .and_then(|mut counter| counter.enable().map(|()| counter))
            // Not permitted (perf_event_paranoid) or not built into this kernel: the other two counts remain.
            .ok();
        Self { perf, status: by_status(), usage: by_usage() }
    }

    /// Stops, and says what each way counted.
    pub(super) fn stop(mut self, role: Role) -> Vec<Figure> {
        let perf = self.perf.as_mut().and_then(|counter| counter.read().ok());
        let usage = by_usage() - self.usage;
        let status = by_status().zip(self.status).map(|(now, then)| now - then);
        [
            ("check-getrusage", Some(usage), "ru_nvcsw + ru_nivcsw"),
            ("check-proc-status", status, "voluntary_ctxt_switches + nonvoluntary_ctxt_switches"),
            ("check-perf-event", perf, "PERF_COUNT_SW_CONTEXT_SWITCHES"),
        ]
        .into_iter()
        .filter_map(|(name, count, source)| {
            Some(Figure {
                name: name.to_owned(),
                value: count? as f64,
                unit: "count".to_owned(),
                formula: format!(
                    "{source} of the {} over {CHECK_ROUNDS} rounds after the window",
                    role.name()
                ),
            })
        })
        .collect()
    }
}

fn by_usage() -> u64 {
    // SAFETY: rusage is plain data, valid when zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours and of the right type. RUSAGE_THREAD cannot fail with a valid pointer.
    // JUSTIFICATION: rustix has no getrusage.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

fn by_status() -> Option<u64> {
    let text = doorbell_files::kernel("/proc/thread-self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some(field("voluntary_ctxt_switches:")? + field("nonvoluntary_ctxt_switches:")?)
}
