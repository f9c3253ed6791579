// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo run --release -p doorbell-uintr --example model -- uintr --hazard H4 --svg h4.svg`
use doorbell_uintr::report::{Mechanism, correct, hazard, list};
use doorbell_uintr::view::{Glyphs, svg};
use std::process::ExitCode;

const USAGE: &str = "usage: model uintr|polled|futex|eventfd|bell [--full] [--hazard NAME|list] [--svg FILE]";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(mechanism) = Mechanism::ALL.into_iter().find(|m| m.name() == name) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (mut wanted, mut file, mut full) = (None, None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hazard" => wanted = arguments.next(),
            "--svg" => file = arguments.next(),
            "--full" => full = true,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let answer = match wanted.as_deref() {
        Some("list") => {
            print!("{}", list(mechanism));
            return ExitCode::SUCCESS;
        }
        Some(name) => hazard(mechanism, name, Glyphs::Unicode),
        None => Ok(correct(mechanism, full)),
    };
    match answer {
        Ok(answer) => {
            print!("{}", answer.text);
            if let (Some(file), Some(chart)) = (file, &answer.chart)
                && let Err(error) = std::fs::write(&file, svg(chart))
            {
                eprintln!("cannot write {file}: {error}");
                return ExitCode::FAILURE;
            }
            if answer.expected { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
