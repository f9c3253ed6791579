// SPDX-License-Identifier: MIT OR Apache-2.0
//! How counts, dates and sentences are written, wherever they stand.

use std::time::{Duration, SystemTime};

use super::axis::Axis;
use super::figures::Row;
use super::unit::{count, plain, time};
use doorbell_results::machine::doctor::{Finding, Severity};
use doorbell_results::record::ResultFile;
use doorbell_verdict::beside::{Beside, beside as found};
use doorbell_verdict::identity::{self, Standing};
use doorbell_verdict::missed::Missed;
use doorbell_verdict::ratio::Ratio;

/// What every view says first of such a run.
pub const EMULATED: &str =
    "emulated: every time here is an emulator's, not a machine's; believe counts, and ratios within this run";

/// What every view says first of a run whose times are not those of the machine and its system.
pub fn foreign(result: &ResultFile) -> Option<String> {
    let stand_in = result.machine.kernel.stand_in.as_deref();
    let stand_in = stand_in.map(|name| {
        format!(
            "Wine, not Windows: {name} answered for it, on another system; no time here says \
            anything of Windows"
        )
    });
    if result.emulated() { Some(EMULATED.to_owned()) } else { stand_in }
}

/// What every view says before anything that a run says: whose times
/// they are, and that it was cut short.
pub fn cautions(result: &ResultFile) -> Vec<String> {
    let partial = "Partial: the run was interrupted; this is what was measured until then.";
    foreign(result).into_iter().chain(result.partial.then(|| partial.to_owned())).collect()
}

/// What every verdict on a run says beside itself: what made the machine unfit to be measured.
pub fn beside(result: &ResultFile) -> Option<String> {
    let told: Vec<String> = found(result)
        .into_iter()
        .map(|beside| match beside {
            Beside::Found(Finding { name, severity: Severity::Unfit, seen, .. }) => {
                format!("{name} (unfit: {seen})")
            }
            Beside::Found(Finding { name, seen, .. }) => format!("{name} ({seen})"),
            Beside::Throttled { trials, of, ns } => format!(
                "{} of {} trials stood still for want of CPU quota, {} together",
                count(trials as u64),
                count(of as u64),
                time(ns as f64 * 1e3)
            ),
        })
        .collect();
    (!told.is_empty()).then(|| format!("Measured under: {}.", told.join("; ")))
}

/// What a verdict on `candidate`, which `name` stands for, says where its baseline is of another
/// machine, or is this very run.
pub fn standing(baseline: &ResultFile, candidate: &ResultFile, name: &str) -> Option<String> {
    match identity::standing(baseline, candidate) {
        Standing::SameRun => Some("Baseline and candidate are one and the same run.".to_owned()),
        Standing::Elsewhere([before, after]) => {
            Some(format!("Baseline: {}; {name}: {}.", before.join(", "), after.join(", ")))
        }
        Standing::Alike => None,
    }
}

/// What every view says before anything else of a run that could use one
/// CPU of several, as batch schedulers bind a job that asks for no more:
/// nobody asked for wake-ups on one core, and there are no others in it.
pub fn bound(result: &ResultFile) -> Option<String> {
    let topology = &result.machine.topology;
    let online = topology.online.len();
    let only = topology.usable.iter().next().filter(|_| topology.usable.len() == 1 && online > 1)?;
    Some(format!(
        "Bound to CPU {only} alone, of {online} that are online: every wake-up here is on one \
         core, none across cores. A batch scheduler (Slurm: ask for --cpus-per-task=2), taskset or \
         a cpuset did that."
    ))
}

/// A number of things: `1 block`, `2 blocks`.
pub fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Of `name` in two runs, the baseline's first, what of its wake-ups is in no figure.
pub fn missed(name: &str, missed: [Missed; 2]) -> String {
    let [before, after] =
        missed.map(|missed| if missed.all() > 0 { missed.told() } else { "none".to_owned() });
    format!("of {name} that never came, or too late: {after} in the candidate, {before} in the baseline")
}

/// A ratio with its interval, each with three digits: `1.35 times as long (1.20 to 1.52)`, where
/// `what` is " times as long".
pub fn multiple(ratio: Ratio, what: &str) -> String {
    format!("{}{what} ({} to {})", plain(ratio.estimate), plain(ratio.low), plain(ratio.high))
}

/// A moment in words, to the minute.
pub fn date(unix_ns: u64) -> String {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns);
    let text = humantime::format_rfc3339_seconds(moment).to_string();
    // 2026-11-26T12:34:56Z
    format!("{} {} UTC", &text[..10], &text[11..16])
}

/// What a row has on an axis; the harness and a cut trial are marked in the row's name.
pub(super) fn shown(axis: Axis, row: &Row) -> String {
    let value = axis.value(row.configuration());
    match axis {
        Axis::Subject if row.is_harness() => format!("{value} (the harness itself)"),
        Axis::Subject if row.is_partial() => format!("{value} (partial)"),
        _ => value,
    }
}

/// A number with three significant digits.
pub fn three(value: f64) -> String {
    digits(value, 3)
}

/// A number with four significant digits.
pub fn four_digits(value: f64) -> String {
    digits(value, 4)
}

fn digits(value: f64, wanted: u8) -> String {
    let size = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let decimals = (f64::from(wanted) - 1.0 - size).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A definition as a sentence.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_to_the_minute_and_none_is_too_late() {
        assert_eq!(date(1_795_743_296_000_000_000), "2026-11-27 01:34 UTC");
        assert_eq!(date(u64::MAX), "2554-07-21 23:34 UTC");
    }
}
