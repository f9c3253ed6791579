// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether it got worse, in words, and the table behind it.

use super::axis::{self, Axis, label};
use super::columns::Columns;
use super::style::Role;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{alike, count, time};
use super::wording::missed;
use doorbell_results::record::question::{Condition, Missed};
use doorbell_results::record::verdict;
use doorbell_verdict::check::{Checked, Finding, Seen};
use doorbell_verdict::missed::never_came;
use doorbell_verdict::verdict::Verdict;

/// The verdict, and what stands behind it.
pub fn subsections(checked: &Checked, conditions: &[Condition], baseline: &str) -> Vec<Subsection> {
    let role = if checked.is_broken() { Role::Error } else { Role::Heading };
    let axes = axes(checked);
    let missing = checked.missing.iter();
    let missing = missing
        .map(|(configuration, reason)| format!("Not compared: {}: {reason}.", label(configuration, &axes)));
    let untried = checked.untried.iter();
    let untried = untried.map(|condition| format!("Held against nothing: {}.", conditions[*condition].text));
    let told =
        Subsection::verdict(verdict(checked, conditions, baseline), role, missing.chain(untried).collect());
    let table =
        Columns::along(&axes, "mechanism", |finding: &Finding, axis| axis.value(finding.configuration))
            .with(word("fails if"), |finding| conditions[finding.condition].text.clone())
            .with(number("seen"), |finding| seen(&finding.seen).0)
            .with(number("between"), |finding| seen(&finding.seen).1)
            .with(number("blocks"), |finding| format!("{} and {}", finding.blocks[0], finding.blocks[1]))
            .with(word("verdict"), |finding| said(&finding.verdict))
            .table(&checked.findings);
    let note = "Seen and between: the candidate's figure as a multiple of the baseline's, the \
        machine's own change taken out where both took turns in slices, with an interval that \
        holds for all configurations together at 95 %; or the percentile and its bounds.";
    std::iter::once(told)
        .chain(Subsection::of_table("Each condition and configuration", table, vec![note.to_owned()]))
        .collect()
}

/// What tells the configurations apart that a check is about.
fn axes(checked: &Checked) -> Vec<Axis> {
    let judged = checked.findings.iter().map(|finding| finding.configuration);
    let missing = checked.missing.iter().map(|(configuration, _)| *configuration);
    let uncounted = checked.uncounted.iter().map(|(configuration, _)| *configuration);
    axis::varying(judged.chain(missing).chain(uncounted))
}

/// The verdict in one sentence, and in another what is in no figure that it goes by.
pub fn verdict(checked: &Checked, conditions: &[Condition], baseline: &str) -> String {
    let axes = axes(checked);
    let of = checked.missed.iter();
    let missed: Vec<String> =
        of.map(|(configuration, of)| missed(&label(configuration, &axes), *of)).collect();
    let missed = if missed.is_empty() { String::new() } else { format!(" Wake-ups {}.", missed.join("; ")) };
    conclusion(checked, conditions, baseline) + &missed
}

fn conclusion(checked: &Checked, conditions: &[Condition], baseline: &str) -> String {
    let of = |status| -> Vec<&Finding> {
        checked.findings.iter().filter(|finding| finding.verdict.status() == status).collect()
    };
    let axes = axes(checked);
    let named = |finding: &Finding| {
        let (seen, between) = seen(&finding.seen);
        let between = if between.is_empty() { between } else { format!(" ({between})") };
        format!(
            "{}: {} with {seen}{between}",
            label(finding.configuration, &axes),
            conditions[finding.condition].text
        )
    };
    let list = |findings: &[&Finding]| {
        let shown: Vec<String> = findings.iter().take(3).map(|finding| named(finding)).collect();
        let more = findings.len().saturating_sub(3);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{}{rest}", shown.join("; "))
    };
    let broken = of(verdict::Status::Failed);
    let open = of(verdict::Status::Inconclusive);
    let missing = match checked.missing.len() {
        0 => String::new(),
        1 => "; one configuration of it could not be compared".to_owned(),
        configurations => format!("; {configurations} configurations of it could not be compared"),
    };
    if !broken.is_empty() {
        return format!("Worse than {baseline}: {}{missing}.", list(&broken));
    }
    if checked.findings.is_empty() {
        return format!(
            "Inconclusive, worse than {baseline} or not: no configuration could be compared{missing}."
        );
    }
    if checked.is_open() {
        let untried = match &checked.untried[..] {
            [] => String::new(),
            [first, ..] => format!("; {} was held against nothing", conditions[*first].text),
        };
        let uncounted = |kind| {
            if checked.uncounted.iter().any(|(_, of)| *of == kind) {
                format!("; {}", uncounted(kind).1)
            } else {
                String::new()
            }
        };
        let uncounted = uncounted(Missed::Lost) + &uncounted(Missed::Late);
        let shown = if open.is_empty() { "what was compared is not".to_owned() } else { list(&open) };
        return format!("Inconclusive, worse than {baseline} or not: {shown}{missing}{untried}{uncounted}.");
    }
    let configurations = checked.findings.len();
    format!(
        "Not worse than {baseline}: {} kept.",
        match configurations {
            1 => "the condition is".to_owned(),
            configurations => format!("all {configurations} conditions and configurations are"),
        }
    )
}

/// Each condition of each configuration, for programs.
pub fn findings(checked: &Checked, conditions: &[Condition]) -> Vec<verdict::Finding> {
    let axes = axes(checked);
    let judged = checked.findings.iter().map(|finding| {
        let status = finding.verdict.status();
        let name = label(finding.configuration, &axes);
        let told = |unit| {
            let figure = conditions[finding.condition].text.clone();
            verdict::Finding::new(name.clone(), figure, status, unit).because(said(&finding.verdict))
        };
        let known = |ps: Option<u64>| ps.filter(|ps| !never_came(*ps));
        let ns = |ps: Option<u64>| known(ps).map_or(f64::NAN, |ps| ps as f64 / 1e3);
        match finding.seen {
            Seen::Ratio(ratio) => told("ratio").valued(ratio.estimate, Some([ratio.low, ratio.high])),
            Seen::Bounds(bounds) => {
                let ends = [ns(bounds.lower_ps), ns(bounds.upper_ps)];
                told("ns").valued(ns(Some(bounds.estimate_ps)), Some(ends))
            }
            Seen::Longest(ps) => told("ns").valued(ns(Some(ps)), None),
            Seen::Count(number) => told("count").valued(number as f64, None),
            Seen::Nothing => told("count"),
        }
    });
    let open = |configuration, figure, why: String| {
        let name = label(configuration, &axes);
        verdict::Finding::new(name, figure, verdict::Status::Inconclusive, "count").because(why)
    };
    let missing = checked.missing.iter();
    let missing = missing.map(|(configuration, reason)| open(configuration, "figures", reason.clone()));
    let uncounted = checked.uncounted.iter().map(|(configuration, kind)| {
        let (figure, why) = uncounted(*kind);
        open(configuration, figure, why.to_owned())
    });
    judged.chain(missing).chain(uncounted).collect()
}

/// The figure, and why it leaves a check open.
fn uncounted(kind: Missed) -> (&'static str, &'static str) {
    match kind {
        Missed::Lost => {
            ("lost", "more wake-ups were lost, and no condition such as lost>0 says how many may be")
        }
        Missed::Late => {
            ("late", "more wake-ups were late, and no condition such as late>0 says how many may be")
        }
    }
}

fn seen(seen: &Seen) -> (String, String) {
    match seen {
        Seen::Ratio(ratio) => {
            let change = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
            // Of too few blocks it has no ends.
            let ends =
                ratio.high.is_finite().then(|| format!("{} to {}", change(ratio.low), change(ratio.high)));
            (change(ratio.estimate), ends.unwrap_or_default())
        }
        Seen::Bounds(bounds) if never_came(bounds.estimate_ps) => ("never came".to_owned(), String::new()),
        Seen::Bounds(bounds) => {
            let ends = [bounds.lower_ps, bounds.upper_ps];
            let all = [Some(bounds.estimate_ps), ends[0], ends[1]];
            let known = |ps: Option<u64>| ps.filter(|ps| !never_came(*ps));
            let [estimate, lower, upper] = alike(all.map(|ps| known(ps).map_or(f64::NAN, |ps| ps as f64)));
            let end = |end: Option<u64>, said: String| match end {
                None => "?".to_owned(),
                Some(ps) if never_came(ps) => "never".to_owned(),
                Some(_) => said,
            };
            let between = match ends {
                // Too few blocks for either end.
                [None, None] => String::new(),
                _ => format!("{} to {}", end(ends[0], lower), end(ends[1], upper)),
            };
            (estimate, between)
        }
        Seen::Longest(ps) if never_came(*ps) => ("never came".to_owned(), String::new()),
        Seen::Longest(ps) => (time(*ps as f64), String::new()),
        Seen::Count(number) => (count(*number), String::new()),
        Seen::Nothing => ("nothing".to_owned(), String::new()),
    }
}

fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed | Verdict::Answered => "kept".to_owned(),
        Verdict::Failed(_) => "broken".to_owned(),
        Verdict::Inconclusive(why) => format!("inconclusive: {why}"),
    }
}
