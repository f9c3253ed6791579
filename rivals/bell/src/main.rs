// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bell against the same thing written by hand, in interleaved blocks of one run.

mod arm;
mod bars;
mod curves;
mod raw;

use raw::Raw;
use rivals_rounds::clock::first_cpus;
use std::process::ExitCode;

const USAGE: &str = "rivals-bell [bars|curves] [--rounds N] [--cpus A,B] [--raw FILE]

bars    ring, futex, epoll and spinning against the same by hand; the status is 1 if a bar is missed
curves  Adaptive against fixed policies, at gaps from 0 to 10 ms";

struct Arguments {
    curves: bool,
    rounds: usize,
    cpus: (usize, usize),
    raw: Option<String>,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { curves: false, rounds: 0, cpus: first_cpus(), raw: None };
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "bars" => arguments.curves = false,
            "curves" => arguments.curves = true,
            "--rounds" => {
                arguments.rounds = value()?.parse().map_err(|error| format!("--rounds: {error}"))?
            }
            "--raw" => arguments.raw = Some(value()?),
            "--cpus" => {
                let value = value()?;
                let parsed =
                    value.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                arguments.cpus = parsed.ok_or_else(|| format!("--cpus {value}: not two numbers"))?;
            }
            _ => return Err(format!("no such word: {word}")),
        }
    }
    if arguments.rounds == 0 {
        arguments.rounds = if arguments.curves { 10 } else { 200 };
    }
    Ok(arguments)
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Arguments { curves, rounds, cpus, raw } = arguments;
    println!("CPUs {} and {}, {rounds} rounds.\n", cpus.0, cpus.1);
    let run = || {
        let mut raw = Raw::new(raw.as_deref())?;
        let missed =
            if curves { curves::run(rounds, cpus, &mut raw)? } else { bars::run(rounds, cpus, &mut raw)? };
        raw.finish().map(|()| missed)
    };
    match run() {
        Ok(missed) => ExitCode::from(u8::from(missed > 0)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}
