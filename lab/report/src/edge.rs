// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace show` on the terminal: the slowest wake-ups of one edge, as `doorbell why` shows
//! its own.

use super::program::{mechanism, rate, waker};
use super::style::Style;
use super::subsection::{self, Subsection};
use super::unit::{alike, time};
use super::why;
use crate::wording::counted;
use doorbell_results::anatomy::program::{Edge, Engine, Program, Sampled, Stacks, Waker};
use doorbell_results::record::ResultFile;
use doorbell_verdict::what_if::{self, Refusal};
use doorbell_verdict::why::{Explained, explained};

/// Pairs of stacks that are shown of an edge.
const STACKS: usize = 3;
/// But none that is rarer than one in so many.
const RARE: u64 = 50;

/// The slowest wake-ups of the edge called `letter`; else a sentence why there are none.
pub fn text(result: &ResultFile, letter: &str, style: &Style) -> Result<String, String> {
    let found = what_if::program(result).ok_or(Refusal::NoProgram).and_then(|program| {
        let edges = program.edges.len();
        let called = |place: &usize| Edge::letter(*place).eq_ignore_ascii_case(letter);
        let place = (0..edges).find(called).ok_or(Refusal::NoEdge { edges })?;
        let edge = &program.edges[place];
        match edge.waker {
            Waker::Unseen => Err(Refusal::WakesUnseen),
            _ if edge.slowest.is_empty() && edge.stacks.is_empty() => Err(Refusal::NotKept),
            _ => Ok((program, place, edge)),
        }
    });
    let (program, place, edge) = found.map_err(|refusal| {
        format!("The slowest wake-ups of edge {letter} cannot be shown: {}.", super::what_if::why(&refusal))
    })?;
    let kept: Vec<Explained> = edge.slowest.iter().map(explained).collect();
    let mut told = vec![Subsection { title: lead(program, place, edge), ..Subsection::default() }];
    if !kept.is_empty() {
        told[0].lead.push(causes(&kept));
        told.extend(why::each(&kept));
        told.extend(Subsection::of_lines("", vec![limits(program.engine).to_owned()]));
    }
    told.extend(program.stacks.as_ref().map(|recorded| stacks(recorded, edge)));
    Ok(subsection::text(&told, style).trim_start_matches('\n').to_owned())
}

fn lead(program: &Program, place: usize, edge: &Edge) -> String {
    let [p50, p99] = alike([edge.took.p50_ns * 1e3, edge.took.p99_ns * 1e3]);
    format!(
        "Edge {}: {} wakes {} by {}, {} a second. From waking to running it takes {p50} (median) \
         and {p99} (p99), after a sleep of {} (median).",
        Edge::letter(place),
        waker(&edge.waker),
        edge.waiter,
        mechanism(&edge.mechanism),
        rate(edge.wakes, program.recorded_ns),
        time(edge.slept.p50_ns * 1e3),
    )
}

/// What the tail is made of.
fn causes(kept: &[Explained]) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for one in kept {
        let name = one.verdict.as_ref().map_or("unknown", |found| found.name);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<String> = names.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    format!("The slowest {}, by cause: {}.", counted(kept.len() as u64, "wake-up"), named.join(", "))
}

/// The stacks that were met most often, one function in a line.
fn stacks(recorded: &Stacks, edge: &Edge) -> Subsection {
    let lost = match recorded.lost {
        0 => String::new(),
        lost => format!("; {} lost, of all edges", counted(lost, "stack")),
    };
    let lead = format!(
        "Stacks of {}, one in {} by chance, the innermost function first ([k]: in the kernel){lost}:",
        counted(edge.sampled, "wake-up"),
        recorded.one_in
    );
    let mut notes = Vec::new();
    let often = |one: &&Sampled| one.wakes >= edge.sampled.div_ceil(RARE);
    for one in edge.stacks.iter().filter(often).take(STACKS) {
        let share = 100.0 * one.wakes as f64 / edge.sampled.max(1) as f64;
        for (did, stack) in [("slept in", &one.waiter), ("was woken from", &one.waker)] {
            let name = |place: &u32| recorded.functions.get(*place as usize).map(String::as_str);
            let names: Vec<&str> = stack.iter().filter_map(name).collect();
            let names = if names.is_empty() { "not seen".to_owned() } else { names.join(" < ") };
            notes.push(format!("{share:.0} % {did}: {names}"));
        }
    }
    Subsection { lead: vec![lead], notes, ..Subsection::default() }
}

/// What the engine does not record of a wake-up.
fn limits(engine: Engine) -> &'static str {
    match engine {
        Engine::Bpf => {
            "Not recorded by this engine: when the waker entered its system call, when the \
             waiter's returned, and what ran on the waiter's CPU before the last task there. \
             `doorbell trace --engine tracefs` records the first two."
        }
        Engine::Own => "",
        Engine::Tracefs => {
            "Not recorded by this engine: tasks of other programs, but for the one that made room \
             for the waiter; for how long that one had run `doorbell trace --engine bpf` says."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::tests::{edge, futex, made};
    use super::*;
    use doorbell_results::anatomy::{Mark, Passed, Rank, Wake};
    use doorbell_results::event::{Event, What};

    /// A wake-up of 300 µs, during the last 290 of which another task had the waiter's CPU.
    fn kept_waiting(number: u64) -> Wake {
        let runs =
            |at, task, name: &str| Event { at, cpu: 1, task, what: What::Runs { name: name.to_owned() } };
        Wake {
            rank: Rank::Worst,
            sequence: number,
            tasks: [10, 11],
            marks: vec![
                Passed { mark: Mark::Issued, at_ps: 0, cpu: Some(0) },
                Passed { mark: Mark::ScheduledIn, at_ps: 300_000_000, cpu: Some(1) },
            ],
            across: true,
            rescued: false,
            events: vec![
                runs(10_000_000, 300, "rustc"),
                runs(300_000_000, 300, "rustc"),
                runs(300_000_000, 11, "worker"),
            ],
            events_left_out: 0,
            meanwhile: None,
        }
    }

    /// The same, with a CPU that was idle.
    fn found_idle(number: u64) -> Wake {
        let idle = |event: Event| Event { task: 0, what: What::Runs { name: "idle".to_owned() }, ..event };
        let wake = kept_waiting(number);
        let [_, before, after] = <[Event; 3]>::try_from(wake.events.clone()).unwrap();
        Wake { events: vec![idle(before), after], ..wake }
    }

    #[test]
    fn each_of_the_slowest_has_its_stages_and_the_cause_that_was_seen() {
        let mut worst = edge(Waker::Thread { name: "main".to_owned() }, "worker", futex(0x1048));
        worst.slowest = vec![kept_waiting(7), kept_waiting(8), found_idle(9)];
        let style = Style { width: 80, color: false, unicode: true };
        let text = text(&made(vec![worst]), "a", &style).unwrap();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn stacks_are_shown_with_their_share_and_one_that_was_not_seen_says_so() {
        let mut edge = edge(Waker::Kernel, "worker", futex(0x1048));
        let sampled = |waiter: &[u32], waker: &[u32], wakes| Sampled {
            waiter: waiter.to_vec(),
            waker: waker.to_vec(),
            wakes,
        };
        (edge.sampled, edge.stacks) = (10, vec![sampled(&[0, 1], &[2], 7), sampled(&[1], &[], 2)]);
        let mut result = made(vec![edge]);
        let program = result.records[0].anatomy.as_mut().unwrap().program.as_mut().unwrap();
        let functions = ["futex_wait_[k]", "Queue::pop", "Queue::push"].map(str::to_owned).to_vec();
        program.stacks = Some(Stacks { one_in: 64, lost: 0, functions });
        let text = text(&result, "A", &Style::PLAIN).unwrap();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn an_edge_that_is_not_there_or_whose_wake_ups_were_not_kept_is_refused_with_the_reason() {
        let result = made(vec![edge(Waker::Kernel, "worker", futex(0x1048))]);
        let refused = |letter| text(&result, letter, &Style::PLAIN).unwrap_err();
        assert!(refused("B").contains("only 1 edge;"), "{}", refused("B"));
        assert!(refused("A").contains("first twelve"), "{}", refused("A"));
    }
}
