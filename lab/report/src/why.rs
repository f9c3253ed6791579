// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell why` on the terminal: one verdict in words, the table behind it, a waterfall and the
//! events of each slow wake.

use super::anatomy::waterfall;
use super::axis;
use super::columns::Columns;
use super::command_line::repeat;
use super::doctor;
use super::figures::Figures;
use super::section::Section;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, alike, count, time};
use crate::wording::{counted, sentence};
use doorbell_results::anatomy::Wake;
use doorbell_results::event::{Event, What};
use doorbell_results::record::ResultFile;
use doorbell_verdict::cause::{self, Found};
use doorbell_verdict::why::{Explained, Slow, why};

/// Events that are printed of a wake; the result file has them all.
const EVENTS: usize = 24;

#[derive(Debug)]
pub struct SlowWakes;

impl Section for SlowWakes {
    fn name(&self) -> &'static str {
        "slow-wakes"
    }
    fn answer(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        let configurations = why(result);
        let told = configurations.iter().map(|slow| {
            let table = (!slow.kept.is_empty()).then(|| table(&slow.kept, false));
            Subsection { lead: vec![said(slow, configurations.len())], table, ..Subsection::default() }
        });
        told.collect()
    }
    fn details(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        let configurations = why(result);
        let mut told = Vec::new();
        for slow in &configurations {
            told.push(Subsection { title: said(slow, configurations.len()), ..Subsection::default() });
            told.extend(each(&slow.kept));
        }
        let findings = &result.machine.findings;
        let fit = (!findings.is_empty()).then(|| doctor::verdict(findings));
        let again = Some(repeat(result)).filter(|again| !again.is_empty());
        let lead = fit.into_iter().chain(again.map(|again| format!("To repeat it: {again}")));
        told.extend(Subsection::of_lines("", lead.collect()));
        told
    }
}

/// What was found of a configuration, what to do about it, and what was missed.
fn said(slow: &Slow, configurations: usize) -> String {
    format!("{} {}", verdict(slow, configurations), rest(slow)).trim().to_owned()
}

/// The table of slow wake-ups, and of each a waterfall, what was found and its events.
pub(super) fn each(kept: &[Explained]) -> Vec<Subsection> {
    let mut told = Vec::new();
    if !kept.is_empty() {
        told.push(Subsection { table: Some(table(kept, false)), ..Subsection::default() });
    }
    for one in kept {
        let found = worth_telling(one);
        let notes = found.map(|found| format!("{}: {}", found.name, sentence(&found.evidence))).collect();
        told.push(Subsection { notes, ..waterfall(one.wake, &title(one)) });
        told.extend((!one.wake.events.is_empty()).then(|| events(one.wake)));
    }
    told
}

/// What was found, in a sentence.
pub(super) fn verdict(slow: &Slow, configurations: usize) -> String {
    let place = if configurations > 1 {
        format!("{}: ", axis::label(slow.configuration, &[axis::Axis::Subject, axis::Axis::Relation]))
    } else {
        String::new()
    };
    let Some(worst) = slow.kept.first() else {
        return match (slow.above_ns, slow.above) {
            _ if slow.wakes == 0 => format!("{place}No traced trial has figures."),
            (0, _) => format!("{place}No wake-up was caught."),
            (ns, 0) => format!(
                "{place}None of {} took longer than {}; the median took {}.",
                counted(slow.wakes, "wake-up"),
                time(ns as f64 * 1e3),
                time(slow.median_ps)
            ),
            (ns, above) => format!(
                "{place}{} of {} took longer than {}, and none could be explained: their events \
                 were overwritten.",
                count(above),
                counted(slow.wakes, "wake-up"),
                time(ns as f64 * 1e3)
            ),
        };
    };
    let how_many = match slow.above_ns {
        0 => format!("The slowest of {}", counted(slow.wakes, "wake-up")),
        ns => format!(
            "{} of {} took longer than {}. The slowest",
            count(slow.above),
            counted(slow.wakes, "wake-up"),
            time(ns as f64 * 1e3)
        ),
    };
    let why = match (&worst.verdict, worst.longest) {
        (Some(found), _) => format!("cause: {}. {}", found.name, sentence(&found.evidence)),
        (None, _) if worst.wake.events_left_out > 0 => format!("cause: unknown: {}.", left_out(worst.wake)),
        (None, Some((mark, ps))) => format!(
            "cause: unknown. It spent {} of it until \"{}\", and nothing that was recorded covers \
             half of it.",
            time(ps as f64),
            mark.stage()
        ),
        (None, None) => "cause: unknown.".to_owned(),
    };
    let [took, median] = alike([worst.wake.whole_ps() as f64, slow.median_ps]);
    format!("{place}{how_many} took {took} (the median: {median}); {why}")
}

/// What to do about the slowest, and what was missed.
fn rest(slow: &Slow) -> String {
    let worst = slow.kept.first().and_then(|one| one.verdict.as_ref());
    let cure = worst
        .and_then(|found| cause::ALL.iter().find(|cause| cause.about.name == found.name))
        .map_or_else(String::new, |cause| format!("To cure it: {}.", cause.cure));
    let missed = match slow.incomplete {
        0 => String::new(),
        number => format!(" Of {} the events were overwritten.", counted(number, "slow wake-up")),
    };
    let mut stages: Vec<&str> = slow.hidden.iter().map(|hidden| hidden.mark.stage()).collect();
    stages.dedup();
    let hidden = match &stages[..] {
        [] => String::new(),
        stages => format!(
            " Not recorded in this run: \"{}\"; its time counts to the stage after it.",
            stages.join("\", \"")
        ),
    };
    format!("{cure}{missed}{hidden}")
}

pub(super) fn title(one: &Explained) -> String {
    let cause = one.verdict.as_ref().map_or("unknown", |found| found.name);
    format!("Wake-up {}: {}, {cause}", count(one.wake.sequence), time(one.wake.whole_ps() as f64))
}

/// The table of slow wake-ups, with what each cause rests on where there is room for it.
pub(super) fn table(kept: &[Explained], evidence: bool) -> Table {
    let scale = Scale::for_ps(kept.iter().map(|one| one.wake.whole_ps() as f64));
    let took = format!("took, {}", scale.unit.sign());
    let heads = [number("wake-up"), number(took), word("cause"), number("covers"), word("evidence")];
    let heads = heads.into_iter().zip(0..if evidence { 5 } else { 4 });
    Columns::none().each(heads, |row: &[String; 5], place| row[*place].clone()).table(&causes(kept, scale))
}

/// Number, time, cause, share and evidence of each slow wake; what
/// else was found follows in rows of its own.
fn causes(kept: &[Explained], scale: Scale) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for one in kept {
        let whole = one.wake.whole_ps().max(1) as f64;
        let share = |ps: u64| format!("{:.0} %", 100.0 * ps as f64 / whole);
        let (number, took) = (count(one.wake.sequence), scale.show(whole));
        let named = one.verdict.as_ref().map(|found| found.name);
        rows.push(match (&one.verdict, one.longest) {
            (Some(found), _) => {
                [number, took, found.name.to_owned(), share(found.covers_ps), found.evidence.clone()]
            }
            (None, _) if one.wake.events_left_out > 0 => {
                [number, took, "unknown".to_owned(), "-".to_owned(), left_out(one.wake)]
            }
            (None, longest) => {
                let stage = longest.map_or_else(String::new, |(mark, ps)| {
                    format!("; longest stage: {} ({})", mark.stage(), share(ps))
                });
                let evidence = format!("nothing that was recorded covers half of it{stage}");
                [number, took, "unknown".to_owned(), "-".to_owned(), evidence]
            }
        });
        for found in worth_telling(one).filter(|found| Some(found.name) != named) {
            let also = format!("  also: {}", found.name);
            rows.push([String::new(), String::new(), also, share(found.covers_ps), found.evidence.clone()]);
        }
    }
    rows
}

/// What was found of a wake, less what covers under a hundredth of it: no line says "0 %".
fn worth_telling<'one>(one: &'one Explained) -> impl Iterator<Item = &'one Found> {
    let whole = one.wake.whole_ps();
    one.found.iter().filter(move |found| found.covers_ps.saturating_mul(100) >= whole)
}

/// Why nothing is said of the events of a wake that are kept.
fn left_out(wake: &Wake) -> String {
    format!("more events than are kept; {} are missing", count(wake.events_left_out))
}

/// What the kernel told of a wake, in order.
pub(super) fn events(wake: &Wake) -> Subsection {
    let scale = Scale::for_ps([wake.whole_ps() as f64 / 8.0]);
    let table = Columns::none()
        .with(number("at"), |event: &Event| scale.show(event.at as f64))
        .with(number("CPU"), |event| event.cpu.to_string())
        .with(word("event"), |event| happened(event, wake))
        .table(wake.events.iter().take(EVENTS));
    let left = (wake.events.len().saturating_sub(EVENTS) as u64).saturating_add(wake.events_left_out);
    let all = (wake.events.len() as u64).saturating_add(wake.events_left_out);
    let note = format!("and {}; the result file has the first of them", counted(left, "more event"));
    let title = format!("Wake-up {}: {}, {}", count(wake.sequence), counted(all, "event"), scale.unit.sign());
    let notes = Some(note).filter(|_| left > 0).into_iter().collect();
    Subsection { notes, ..Subsection::answer(title, Vec::new(), table) }
}

fn happened(event: &Event, wake: &Wake) -> String {
    let who = |task: i32, name: &str| match task {
        0 => "idle".to_owned(),
        task if task == wake.tasks[0] => "the notifier".to_owned(),
        task if task == wake.tasks[1] => "the waiter".to_owned(),
        task => format!("{name} ({task})"),
    };
    let by = who(event.task, "task");
    match &event.what {
        What::CallEnters { number } => format!("{by} enters system call {number}"),
        What::CallReturns { number } => format!("{by} returns from system call {number}"),
        What::Waking { task } => format!("{by} begins to wake {}", who(*task, "task")),
        What::Runnable { task, on } => format!("{} is ready on CPU {on}", who(*task, "task")),
        What::Switch { from, from_name, to, to_name, .. } => {
            format!("{} switched out, {} in", who(*from, from_name), who(*to, to_name))
        }
        What::Migrates { task, from, to } => format!("{} moves from CPU {from} to {to}", who(*task, "task")),
        What::InterruptSent { to } => format!("interrupt sent to CPU {to}"),
        What::IdleTold { cpu } => format!("CPU {cpu} is told by its idle flag, without an interrupt"),
        What::InterruptTaken { name } => format!("{name} interrupt taken"),
        What::InterruptDone { name } => format!("{name} interrupt done"),
        What::DeviceTaken { number } => format!("device interrupt {number} taken"),
        What::DeviceDone { number } => format!("device interrupt {number} done"),
        What::SoftBegins { number } => format!("softirq {number} begins"),
        What::SoftDone { number } => format!("softirq {number} done"),
        What::Idles { state } => format!("goes idle, state {state}"),
        What::Wakes => "leaves idle".to_owned(),
        What::Fault => format!("{by} meets a page that is not there"),
        What::Runs { name } => format!("{} has the CPU", who(event.task, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::anatomy::sample::whole;
    use doorbell_results::anatomy::{Hidden, Mark};
    use doorbell_results::configuration::{Configuration, Trace};
    use doorbell_results::record::sample;

    #[test]
    fn a_wake_with_more_events_than_are_kept_is_unknown_for_that_reason() {
        let configuration = sample::configuration("futex");
        let mut wake = whole().kept[0].clone();
        wake.events_left_out = 7;
        let kept = vec![Explained { wake: &wake, verdict: None, found: Vec::new(), longest: None }];
        let slow = Slow {
            configuration: &configuration,
            above_ns: 0,
            above: 0,
            wakes: 20,
            median_ps: 1e6,
            incomplete: 0,
            hidden: Vec::new(),
            kept,
        };
        let row = &causes(&slow.kept, Scale::for_ps([1e6]))[0];
        assert_eq!(
            (row[2].as_str(), row[4].as_str()),
            ("unknown", "more events than are kept; 7 are missing")
        );
        assert!(verdict(&slow, 1).ends_with("cause: unknown: more events than are kept; 7 are missing."));
    }

    #[test]
    fn what_cannot_be_seen_is_said_once() {
        let trace = Some(Trace::Worst { keep: 1, above_ns: 0 });
        let mut result =
            sample::result(&[Configuration { trace, ..sample::configuration("futex") }], 3, |_, _| 0.0);
        for record in &mut result.records {
            let mut seen = whole();
            let why = "CPU 1 ran sides without telling that it turned to them".to_owned();
            seen.hidden = vec![Hidden { mark: Mark::ScheduledIn, why }];
            record.anatomy = Some(seen);
        }
        let text = text(&SlowWakes.details(&result, &Figures::of(&result)), &Style::PLAIN);
        assert_eq!(text.matches("Not recorded in this run").count(), 1, "{text}");
    }

    #[test]
    fn what_covers_under_a_hundredth_of_a_wake_is_not_listed_beside_its_cause() {
        let anatomy = whole();
        let wake = &anatomy.kept[0];
        let found = |name, covers_ps| Found { name, covers_ps, evidence: "seen".to_owned() };
        let whole = wake.whole_ps();
        let found =
            vec![found("steal", whole), found("page fault", whole / 50), found("interrupts", whole / 200)];
        let one = Explained { wake, verdict: Some(found[0].clone()), found, longest: None };
        let rows = causes(&[one], Scale::for_ps([1e6]));
        let causes: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(causes, ["steal", "  also: page fault"]);
    }
}
