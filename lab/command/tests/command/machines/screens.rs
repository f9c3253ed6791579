// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first screen of each experiment, of machines other than this one: whatever they have, it
//! stays a screen, and its figures are those that the samples support.

use std::collections::BTreeMap;

use clap::Parser;
use doorbell_lab::cli::experiment::Experiment;
use doorbell_lab::cli::{fanout, gate, idle, pairs, pick, ping, spin, survey, switch, tasks};
use doorbell_report::axis;
use doorbell_report::figures::supports;
use doorbell_report::result_text::{Detail, shown};
use doorbell_report::screen::screen;
use doorbell_report::style::Style;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::record::sample::{histogram, result};
use doorbell_results::record::series::{Quantity, Series};
use doorbell_results::record::{Outcome, ResultFile};

use super::recorded::machine;

/// Three placements; 128 CPUs with five.
const MACHINES: [&str; 2] = ["amd-ccx", "chiplets-of-128"];

/// Blocks with which verdicts are possible, and with which none is.
const ENOUGH: u32 = 6;
const FEW: u32 = 2;

const TERMINAL: Style = Style { width: 80, color: false, unicode: true };

#[derive(Parser)]
struct Command<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// The arguments of a verb as they are written, after its name.
pub(super) fn typed<A: clap::Args>(words: &str) -> A {
    let words = std::iter::once("verb").chain(words.split_whitespace());
    Command::<A>::try_parse_from(words).unwrap().args
}

fn planned<A: clap::Args + Experiment>(words: &str, machine: &Machine) -> Plan {
    typed::<A>(words).planned(machine).unwrap()
}

/// Slower from one subject to the next, and with the distance.
fn low_ns(configuration: &Configuration) -> f64 {
    let letters = configuration.subject.bytes().map(f64::from).sum::<f64>();
    let distance = configuration.placement.relation.len() as f64;
    let gap = (configuration.pattern.gap_ns() as f64 + 10.0).log10();
    100.0 + letters * distance * gap
}

/// A run of `plan` in `blocks` blocks with `samples` samples a trial.
fn ran(plan: &Plan, machine: &Machine, blocks: u32, samples: u64) -> ResultFile {
    let mut made = result(&plan.configurations, blocks, |configuration, block| {
        low_ns(configuration) * (1.0 + f64::from(block) / 500.0)
    });
    for record in &mut made.records {
        let configuration = &record.configuration;
        let low = low_ns(configuration);
        let mut quantities = vec![configuration.pattern.headline()];
        if configuration.pattern.receivers().is_some() {
            quantities.extend([Quantity::FirstWake, Quantity::MedianWake, Quantity::LastWake]);
        }
        let series = |quantity| (quantity, Series::from(&histogram(low, samples)));
        record.series = quantities.into_iter().map(series).collect::<BTreeMap<_, _>>();
        record.outcome = Outcome::Done;
    }
    ResultFile { machine: machine.clone(), plan: Plan { blocks, ..plan.clone() }, ..made }
}

/// Every other experiment that answers with a screen, as it runs by default or at its largest.
fn plans(machine: &Machine) -> Vec<Plan> {
    vec![
        planned::<ping::Args>("futex eventfd pipe spin --gap 0,10us,1ms", machine),
        planned::<pairs::Args>("--budget 10s", machine),
        planned::<switch::Args>("", machine),
        planned::<fanout::Args>("futex sem-posix-named -n 20..2000", machine),
        planned::<tasks::Args>("", machine),
        planned::<idle::Args>("", machine),
    ]
}

/// Asserts that `text` is a screen of `verb`, and begins with the answer.
fn is_a_screen(text: &str, verb: &str) {
    let lines = text.lines().count();
    assert!(lines <= 20, "{verb}, {lines} lines:\n{text}");
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{verb}:\n{text}");
    let answered = text.lines().take(3).any(|line| line.chars().any(|letter| letter.is_ascii_digit()));
    assert!(answered, "{verb} has no figure in its first lines:\n{text}");
}

#[test]
fn a_survey_answers_in_twenty_lines_of_eighty_columns_with_each_placement_whatever_the_machine_has() {
    for name in MACHINES {
        let machine = machine(name);
        let plan = planned::<survey::Args>("", &machine);
        let blocks = if name == MACHINES[0] { ENOUGH } else { FEW };
        let text = screen(&ran(&plan, &machine, blocks, 500), &TERMINAL);
        is_a_screen(&text, name);
        let pinned =
            plan.configurations.iter().filter(|configuration| configuration.placement.cpus.is_some());
        for place in pinned.map(|configuration| &configuration.placement.relation) {
            assert!(text.contains(&axis::relation(place)), "{place}:\n{text}");
        }
        for head in ["p50", "p99", "CPU"] {
            assert!(text.contains(head), "{head}:\n{text}");
        }
    }
}

#[test]
fn every_other_experiment_answers_in_as_many_lines_on_a_machine_of_128_cpus() {
    let machine = machine(MACHINES[1]);
    for plan in plans(&machine) {
        is_a_screen(&screen(&ran(&plan, &machine, FEW, 200), &TERMINAL), &plan.experiment);
    }
}

/// On a terminal of 80 columns what chooses means, spinning and placement together showed no CPU
/// time, and lines that did not fit.
#[test]
fn every_verb_that_answers_a_question_does_so_in_eighty_columns_too() {
    // Few placements, since all pairs of what is planned are judged.
    let machine = machine("micro-vm");
    let together = "--need epoll --rate 20k/s --arrivals 10us..1ms --cpu-at-most 50% --beside 2";
    for plan in [
        planned::<pick::Args>(together, &machine),
        planned::<pick::Args>("--need sleep", &machine),
        planned::<spin::Args>("", &machine),
        planned::<gate::Args>("--max 20us", &machine),
    ] {
        let mut made = ran(&plan, &machine, ENOUGH, 500);
        for record in &mut made.records {
            record.series.insert(Quantity::Notify, Series::from(&histogram(900.0, 500)));
            // Cheap enough for what is asked: two microseconds of each side for each wake-up.
            for (side, name) in record.sides.iter_mut().zip(["notifier", "waiter"]) {
                (side.user_ns, side.system_ns) = (0, record.tally.seen * 2_000);
                if record.configuration.pattern.headline() != Quantity::RoundTrip {
                    side.side = name.to_owned();
                }
            }
        }
        let text = shown(&made, &[], Detail::Brief, &TERMINAL);
        is_a_screen(&text, &plan.experiment);
        let heads = ["p99", "max"].map(|head| text.split_whitespace().any(|word| word == head));
        assert!(heads.contains(&true), "{text}");
        assert!(plan.experiment == "gate" || text.contains("CPU"), "{text}");
    }
}

/// "p99.9 from 3 samples is" printed.
#[test]
fn no_first_screen_has_a_percentile_that_its_samples_do_not_support() {
    let machine = machine("micro-vm");
    // So few trials of three samples have a median, and no percentile beyond it.
    assert!(!supports(u64::from(FEW) * 3, 0.9));
    for plan in plans(&machine).into_iter().chain([planned::<survey::Args>("", &machine)]) {
        let text = screen(&ran(&plan, &machine, FEW, 3), &TERMINAL);
        for head in ["p90", "p99", "p99.9"] {
            assert!(!text.split_whitespace().any(|word| word == head), "{}:\n{text}", plan.experiment);
        }
    }
}
