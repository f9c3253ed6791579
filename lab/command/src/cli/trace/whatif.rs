// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace whatif`.

use std::path::PathBuf;
use std::time::Duration;

use super::outside::NotMade;
use super::{costs, verify};
use crate::cli::common::{Delivery, Exit, Terminal, machine_here};
use crate::cli::kept;
use crate::cli::out::{self, aside};
use crate::cli::signals;
use crate::cli::usage::refuse;
use doorbell_harness::trace::program::RecordError;
use doorbell_report::judgement::answer;
use doorbell_report::result_text::{Detail, judged};
use doorbell_report::style::Style;
use doorbell_report::{verified, what_if};
use doorbell_results::anatomy::program::{Edge, MachineCosts};
use doorbell_results::quantity::span;
use doorbell_results::record::question::{Question, Verify};
use doorbell_results::record::{ResultFile, read};
use doorbell_subjects::mechanism::{self, Waits};
use doorbell_verdict::identity::alike;
use doorbell_verdict::what_if::verify::Across;
use doorbell_verdict::what_if::{Change, Refusal, WhatIf, listed, program, refused, what_if};

/// Arguments of `doorbell trace whatif`.
#[derive(Debug, clap::Args)]
#[command(after_help = "CHANGES\n  \
    spin=18us          the waiter spins for so long before it sleeps\n  \
    pin=0,0            waker and waiter run on this CPU\n  \
    mechanism=futex    another mechanism of `doorbell list` wakes\n  \
    batch=200us        the waker gathers notifications for so long, and wakes once for all of them\n  \
    nice=-10           the nice value of both threads (-20 to 19); with --verify alone, as the next two\n  \
    scheduler=fifo:10  their policy: other, batch, or fifo with a priority from 1 to 99\n  \
    timer_slack=1us    their timers fire no later than so much after they are due\n\n\
    EXAMPLES\n  \
    doorbell trace whatif t.json --edge A spin=18us\n  \
    doorbell trace whatif t.json --edge A pin=0,0 --costs pairs.json\n  \
    doorbell trace whatif t.json --edge B spin=50us --hand-over 240ns --sleep-cost 5us\n  \
    doorbell trace whatif t.json --edge A pin=0,0 --verify -- ./server\n  \
    doorbell trace whatif t.json --edge A spin=18us --verify --with SPIN_US=18 -- ./server\n  \
    doorbell trace whatif t.json --edge A scheduler=fifo:10 --verify -o fifo.json -- ./server\n\n\
    What a wake-up costs on this machine is measured once, in some ten seconds, unless it is given. Where the record cannot\n  \
    know, no figure is given and the reason is; exit status 4.\n\n\
    With --verify the exit status is 0 where the prediction held, or none was made, 3 where it did not, and 4 where the runs do \
    not tell. The runs are a result file: `doorbell show`, `report` and `compare` read it.")]
pub struct Args {
    /// The result of `doorbell trace`: a file, a baseline, or - for standard input
    #[arg(value_name = "RESULT")]
    result: PathBuf,
    /// The edge, by its letter
    #[arg(long, value_name = "LETTER")]
    edge: String,
    /// What would be changed: spin=TIME, pin=CPU,CPU, mechanism=NAME, batch=TIME, nice=VALUE,
    /// scheduler=POLICY or timer_slack=TIME
    #[arg(value_name = "CHANGE", value_parser = change)]
    change: Change,
    /// What spinning and sleeping cost there: a result of `doorbell
    /// tune`, `pairs` or `survey` of the same machine
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["hand_over", "sleep_cost"])]
    costs: Option<PathBuf>,
    /// Or told: from the waker's store to a spinning waiter's next step
    #[arg(long, value_name = "TIME", value_parser = span, requires = "sleep_cost")]
    hand_over: Option<Duration>,
    /// And the CPU time of waker and waiter for one sleep and its wake-up
    #[arg(long, value_name = "TIME", value_parser = span, requires = "hand_over")]
    sleep_cost: Option<Duration>,
    #[command(flatten)]
    verify: verify::Verification,
}

/// A change, and no mechanism in it that nobody sleeps in.
fn change(text: &str) -> Result<Change, String> {
    let change: Change = text.parse()?;
    if let Change::Mechanism(name) = &change {
        let entry = mechanism::find(name).map_err(|unknown| unknown.to_string())?;
        if entry.notification().waits != Waits::Blocks {
            return Err(format!("{name}: its waiter does not sleep; for spinning ask spin=18us"));
        }
    }
    Ok(change)
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Exit> {
    if args.verify.verify {
        args.verify.check(&args.change)?;
    }
    let result = read::read(&kept::find(&args.result)?)?;
    let costs = match (refused(&result, &args.edge, &args.change), &args.costs) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(named)) => doorbell_verdict::what_if::costs(&read::read(&kept::find(named)?)?),
        (None, None) => match args.hand_over.zip(args.sleep_cost) {
            Some((hand_over, sleep)) => {
                let ns = |time: Duration| time.as_nanos() as f64;
                Ok(MachineCosts { hand_over_ns: ns(hand_over), sleep_ns: ns(sleep), wakes: Vec::new() })
            }
            None => known(args, &result, terminal)?,
        },
    };
    let found = costs.and_then(|costs| what_if(&result, &args.edge, &args.change, &costs));
    let verify = args.verify.verify;
    if !(verify && matches!(found, Err(Refusal::Unpriced { .. }))) {
        let told = what_if::told(&args.edge, &args.change, &found, &Style::of_stdout());
        match (&found, args.verify.is_piped()) {
            (_, false) => out::say(&told),
            (Ok(_), true) => {}
            (Err(_), true) => aside!("doorbell: {}", told.trim_end()),
        }
    }
    match found {
        Ok(_) if !verify => Ok(Exit::Done),
        Ok(predicted) => tried(args, &result, Some(predicted), terminal),
        Err(Refusal::Unpriced { .. }) if verify => tried(args, &result, None, terminal),
        Err(_) => Ok(Exit::Unfit),
    }
}

/// Holds the prediction, if there is one, against runs of the command.
fn tried(
    args: &Args,
    result: &ResultFile,
    predicted: Option<WhatIf>,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let place = |edges: usize| (0..edges).find(|place| is_called(*place, &args.edge));
    let found = program(result).and_then(|program| Some((program, place(program.edges.len())?)));
    let Some((program, place)) = found else { return Ok(Exit::Unfit) };
    let Edge { waker, waiter, mechanism, .. } = &program.edges[place];
    let edge = Across::of(&program.edges[place]);
    let machine = machine_here();
    if !alike(&machine, &result.machine) {
        let message = "it was recorded on another machine, and what comes here says nothing of \
            what was predicted for that one";
        return refuse(message);
    }
    let question = Verify {
        letter: Edge::letter(place),
        waker: waker.clone(),
        waiter: waiter.clone(),
        mechanism: mechanism.clone(),
        change: args.change.clone(),
        predicted,
    };
    if let Err(several) = edge.single(program) {
        let told = verified::verified(&question, &Err(several));
        aside!("doorbell: {}", told.first().map_or("", |told| &told.title));
        return Ok(Exit::Unfit);
    }
    let (output, json) = (args.verify.output.clone(), args.verify.json);
    let flags = Delivery { output, json, ..Delivery::default() };
    flags.writable()?;
    let stop = signals::listen()?;
    let stop = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let asked = Question::Verify(question.clone());
    let mut result = match verify::runs(&args.verify, question, &edge, machine, terminal.quiet, stop) {
        Err(error) if error.is::<RecordError>() || error.is::<NotMade>() => {
            aside!("doorbell: {error}");
            return Ok(Exit::Unfit);
        }
        result => result?,
    };
    let answer = answer(&asked, &result, &[])?;
    result.verdict = Some(answer.verdict(&result));
    let text = || judged(&answer, &result, Detail::Brief, &Style::of_stdout());
    Ok(flags.deliver_as(&result, terminal, text)?.and_verdict(Exit::from(answer.status)))
}

fn is_called(place: usize, letter: &str) -> bool {
    Edge::letter(place).eq_ignore_ascii_case(letter)
}

/// What is known of the machine: with the record, from an earlier
/// measurement, or from one that is made now.
fn known(
    args: &Args,
    result: &ResultFile,
    terminal: &Terminal,
) -> anyhow::Result<Result<MachineCosts, Refusal>> {
    let place = |edges: usize| (0..edges).find(|place| is_called(*place, &args.edge));
    let Some(program) = program(result) else { return Ok(Ok(MachineCosts::default())) };
    let mut needed = vec!["futex"];
    if let (Change::Mechanism(_) | Change::Pin(_), Some(place)) = (&args.change, place(program.edges.len())) {
        needed.extend(listed(&program.edges[place].mechanism));
    }
    if let Change::Mechanism(wanted) = &args.change {
        needed.push(wanted);
    }
    let has = |costs: &MachineCosts| {
        needed.iter().all(|name| costs.wakes.iter().any(|wake| wake.mechanism == *name))
    };
    if let Some(costs) = program.machine_costs.clone().filter(has) {
        return Ok(Ok(costs));
    }
    let machine = machine_here();
    if !alike(&machine, &result.machine) {
        let message = "it was recorded on another machine: say what a wake-up costs there, with \
            `--costs FILE` and a result of `doorbell pairs` of that machine";
        return refuse(message);
    }
    if let Some(costs) = costs::kept(&machine).filter(has) {
        return Ok(Ok(costs));
    }
    Ok(doorbell_verdict::what_if::costs(&costs::measure(&needed, machine, terminal)?))
}
