// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded program for other tools: folded stacks for flame
//! graphs, and Chrome's trace format, which Perfetto reads.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::program::{mechanism, waker};
use doorbell_results::anatomy::program::{Edge, Program, Sampled, Sequence, Waker};

/// One line for each edge, `program;waiter;mechanism;waker`, with the
/// microseconds that its wake-ups took together; where those were not recorded, that it slept. Of
/// an edge whose stacks were recorded one line for each pair, with its share: the waiter's stack
/// from the outermost function on, the mechanism, the waker's from the innermost on, the waker.
pub fn folded(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    // What ends a frame, and a stack, in this format.
    let frame = |text: &str| text.replace([';', ' ', '\n'], "_");
    for Edge { waker: by, waiter, mechanism: what, wakes, took, slept, stacks, .. } in &program.edges {
        let lasted = if *by == Waker::Unseen { slept } else { took };
        let micros = lasted.mean_ns * *wakes as f64 / 1e3;
        let functions = program.stacks.as_ref().map_or(&[][..], |stacks| &stacks.functions);
        let name = |place: &u32| functions.get(*place as usize).map(String::as_str);
        let nothing = [Sampled { wakes: 1, ..Sampled::default() }];
        let stacks = if stacks.is_empty() { &nothing[..] } else { stacks };
        let all: f64 = stacks.iter().map(|one| one.wakes as f64).sum();
        let what = mechanism(what);
        for one in stacks {
            let share = one.wakes as f64 / all.max(1.0);
            let sleeps = one.waiter.iter().rev().filter_map(name);
            let wakes = one.waker.iter().filter_map(name);
            let frames = [program.name.as_str(), waiter].into_iter().chain(sleeps).chain([what.as_str()]);
            let frames: Vec<String> = frames.chain(wakes).chain([waker(by)]).map(frame).collect();
            writeln!(out, "{} {}", frames.join(";"), (micros * share).round())?;
        }
    }
    Ok(())
}

/// What the threads did that were kept wake-up by wake-up: asleep, being woken, awake.
pub fn chrome(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let mut first = true;
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut event = |value: Value| {
        let before = if std::mem::take(&mut first) { "" } else { "," };
        write!(out, "{before}\n{value}")
    };
    for Sequence { task, name, begins_ns, edge, slept_ns, took_ns, awake_ns, .. } in &program.sequences {
        event(json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": task, "args": {"name": name}}))?;
        let mut at = *begins_ns;
        let times = slept_ns.iter().zip(took_ns).zip(awake_ns);
        for (place, ((slept, took), awake)) in edge.iter().zip(times) {
            let known = program.edges.get(*place as usize);
            let what = known.map_or("unknown".to_owned(), |edge| mechanism(&edge.mechanism));
            let args = json!({
                "edge": known.map(|_| Edge::letter(*place as usize)),
                "waker": known.map(|edge| waker(&edge.waker)),
            });
            for (name, lasted) in [(what.as_str(), slept), ("waking", took), ("awake", awake)] {
                event(json!({
                    "ph": "X", "pid": 1, "tid": task, "name": name, "args": args,
                    "ts": micros(at), "dur": micros(*lasted),
                }))?;
                at = at.saturating_add(*lasted);
            }
        }
    }
    event(json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": program.name}}))?;
    writeln!(out, "\n]}}")
}

/// The format counts in microseconds.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tests::{edge, futex};
    use doorbell_results::anatomy::program::Stacks;
    use doorbell_results::record::{Series, sample};

    fn program() -> Program {
        let series = |low_ns| Series::from(&sample::histogram(low_ns, 2));
        let edge = Edge {
            wakes: 2,
            slept: series(8000.0),
            took: series(3000.0),
            sequence: Some(0),
            ..edge(Waker::Kernel, "a; b", futex(0x1048))
        };
        let sequence = Sequence {
            task: 7,
            name: "a; b".to_owned(),
            begins_ns: 500,
            edge: vec![0, 1],
            slept_ns: vec![8000, 9000],
            took_ns: vec![3000, 4000],
            awake_ns: vec![1000, 2000],
            ..Sequence::default()
        };
        Program {
            name: "server".to_owned(),
            edges: vec![edge],
            sequences: vec![sequence],
            ..Program::default()
        }
    }

    #[test]
    fn a_folded_stack_has_no_blank_but_that_before_its_number() {
        let mut text = Vec::new();
        folded(&program(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (stack, number) = text.trim_end().split_once(' ').unwrap();
        assert_eq!(stack, "server;a__b;futex_0x…048;(kernel)");
        assert!(number.parse::<f64>().unwrap() >= 6.0, "{text}");
    }

    #[test]
    fn stacks_meet_at_the_mechanism_and_share_the_time() {
        let mut program = program();
        let functions = ["pop", "worker", "push"].map(str::to_owned).to_vec();
        program.stacks = Some(Stacks { one_in: 64, lost: 0, functions });
        let sampled = |waker: &[u32], wakes| Sampled { waiter: vec![0, 1], waker: waker.to_vec(), wakes };
        program.edges[0].stacks = vec![sampled(&[2], 3), sampled(&[], 1)];
        let mut text = Vec::new();
        folded(&program, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<(&str, f64)> = text
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(stack, micros)| (stack, micros.parse().unwrap()))
            .collect();
        let [one, other] = lines[..] else { panic!("{text}") };
        assert_eq!(one.0, "server;a__b;worker;pop;futex_0x…048;push;(kernel)");
        assert_eq!(other.0, "server;a__b;worker;pop;futex_0x…048;(kernel)");
        assert!((one.1 - 3.0 * other.1).abs() <= 3.0, "{text}");
    }

    #[test]
    fn slices_follow_one_another_and_name_edge_and_waker() {
        let mut text = Vec::new();
        chrome(&program(), &mut text).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let ends = slices.iter().map(|slice| slice["ts"].as_f64().unwrap() + slice["dur"].as_f64().unwrap());
        let begins = slices.iter().map(|slice| slice["ts"].as_f64().unwrap());
        assert_eq!(slices.len(), 6);
        assert!(ends.zip(begins.skip(1)).all(|(end, next)| (end - next).abs() < 1e-9), "{value}");
        assert_eq!(slices[0]["name"], "futex 0x…048");
        assert_eq!(slices[0]["args"], json!({"edge": "A", "waker": "(kernel)"}));
        assert_eq!(slices[3]["args"]["edge"], Value::Null, "an edge that is not in the table");
    }
}
