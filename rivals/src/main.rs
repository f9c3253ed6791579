// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is published beside our figures, and how ours stand to it: contests, each in interleaved blocks of one run, with one
//! clock, one lot, one statistics and one table.

mod arguments;
mod bell;
mod channels;
mod clock;
mod deaths;
mod library;
mod lot;
mod partner;
mod peers;
mod pilot;
mod raw;
mod rounds;
mod statistics;
mod table;
mod wakes;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about, name = "rivals")]
struct Command {
    #[command(subcommand)]
    contest: Contest,
}

#[derive(Subcommand)]
enum Contest {
    /// Ring, futex, epoll and spinning against the same by hand; the status is 1 if a bar is missed
    Bars(bell::Arguments),
    /// `Adaptive` against fixed policies, at gaps from 0 to 10 ms; the status is 1 if a bar is missed
    Curves(bell::Arguments),
    /// The channels against others, between threads and between processes
    Channels(channels::Arguments),
    /// One thread sends and receives: for counting instructions
    Alone(channels::alone::Arguments),
    /// How soon a survivor is told of a death; the status is 1 if a bar is missed
    Deaths(deaths::Arguments),
    /// One stress for lost wake-ups over the bell, the channels, and other means of waking; the status is 1 if a planted mistake
    /// was not found, or if a wait by one of ours or by the system's own means was not woken
    Wakes(wakes::Arguments),
    /// Other tools and `doorbell`, alternately
    Peers(peers::Arguments),
}

fn main() -> ExitCode {
    let contest = Command::parse().contest;
    if cfg!(not(feature = "iceoryx2")) && matches!(contest, Contest::Channels(_) | Contest::Wakes(_)) {
        eprintln!("iceoryx2 is left out: this was built without its feature");
    }
    let result = match contest {
        Contest::Bars(arguments) => bell::run(&arguments, bell::bars::run),
        Contest::Curves(arguments) => bell::run(&arguments, bell::curves::run),
        Contest::Channels(arguments) => channels::run(&arguments),
        Contest::Alone(arguments) => channels::alone::run(&arguments),
        Contest::Deaths(arguments) => deaths::run(&arguments),
        Contest::Wakes(arguments) => wakes::run(&arguments),
        Contest::Peers(arguments) => peers::run(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(3)
        }
    }
}
