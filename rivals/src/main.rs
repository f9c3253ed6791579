// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is published beside our figures, and how ours stand to it: comparisons, each in interleaved
//! blocks of one run, with one clock, one shuffle, one statistics and one table.

mod arguments;
mod bell;
mod channels;
mod clock;
mod deaths;
mod hosted;
mod library;
mod partner;
mod peers;
mod pilot;
mod raw;
mod rounds;
mod shuffle;
mod statistics;
mod table;
mod wakes;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about, name = "rivals")]
struct Command {
    #[command(subcommand)]
    comparison: Comparison,
}

#[derive(Subcommand)]
enum Comparison {
    /// Ring, futex, epoll and spinning against the same by hand; the status is 1 if a bar is missed
    Bars(bell::Arguments),
    /// `Adaptive` against fixed policies, at gaps from 0 to 10 ms;
    /// the status is 1 if a bar is missed
    Curves(bell::Arguments),
    /// The channels against others, between threads and between processes
    Channels(channels::Arguments),
    /// Streams over the channels against rtrb at its best, between
    /// threads and between processes in one run
    Streams(channels::streams::Arguments),
    /// One thread sends and receives: for counting instructions
    Alone(channels::alone::Arguments),
    /// How soon a survivor is told of a death; the status is 1 if a bar is missed
    Deaths(deaths::Arguments),
    /// One stress for lost wake-ups over the bell, the channels, and other means of waking; the
    /// status is 1 if a planted mistake was not found, or if a wait by one of ours or by the
    /// system's own means was not woken
    Wakes(wakes::Arguments),
    /// Other tools and `doorbell`, alternately
    Peers(peers::Arguments),
}

fn main() -> ExitCode {
    let comparison = Command::parse().comparison;
    if cfg!(not(feature = "iceoryx2")) && matches!(comparison, Comparison::Channels(_) | Comparison::Wakes(_))
    {
        eprintln!("iceoryx2 is left out: this was built without its feature");
    }
    let result = match comparison {
        Comparison::Bars(arguments) => bell::run(&arguments, bell::bars::run),
        Comparison::Curves(arguments) => bell::run(&arguments, bell::curves::run),
        Comparison::Channels(arguments) => channels::run(&arguments),
        Comparison::Streams(arguments) => channels::streams::run(&arguments),
        Comparison::Alone(arguments) => channels::alone::run(&arguments),
        Comparison::Deaths(arguments) => deaths::run(&arguments),
        Comparison::Wakes(arguments) => wakes::run(&arguments),
        Comparison::Peers(arguments) => peers::run(&arguments),
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
