// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell spin`.

use std::time::Duration;

use super::common::{Exit, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::numbers::ns;
use super::offered;
use super::ping::usual_window;
use super::placements::PlacementArgs;
use super::sides::contexts;
use super::usage::{Usage, refuse};
use super::verdict::Source;
use crate::run::bench::{PAIRS, asked};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::Bench;
use doorbell_results::quantity::{gaps, refused, span};
use doorbell_results::record::question::{self, Question};
use doorbell_subjects::mechanism::{self, Contexts, Waits};

/// Arguments of `doorbell spin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXIT STATUS\n  \
    0  there is a verdict for every gap\n  4  some gap's is inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell spin                              futex, gaps of 5us to 1ms\n  \
    doorbell spin eventfd --gap 5us..1ms       1, 2 and 5 of every decade between\n  \
    doorbell spin --worth 10                   a microsecond of latency is worth ten of CPU time\n  \
    doorbell spin --from spin.json --worth 0.1   another price for what was measured before\n\n\
    `doorbell tune` measures what one sleep costs and leaves it where the library's adaptive waiter reads it.")]
pub struct Args {
    /// The mechanism: one that sleeps (`doorbell list` shows them)
    #[arg(default_value = "futex", value_name = "MECHANISM", value_parser = offered::mechanisms(), hide_possible_values = true)]
    mechanism: String,
    /// Times between notifications, comma separated; A..B is 1, 2 and 5 of every decade between
    #[arg(long, value_delimiter = ',', value_parser = gaps, value_name = "TIME", default_value = "5us,10us,20us,50us,100us,1ms")]
    gap: Vec<Vec<Duration>>,
    /// How long to spin before sleeping, comma separated [default: what makes sense at each gap]
    #[arg(long, value_delimiter = ',', value_parser = span, value_name = "TIME")]
    spin: Vec<Duration>,
    /// How many microseconds of CPU time a microsecond of latency is worth
    #[arg(long, value_parser = worth, value_name = "RATIO", default_value = "1")]
    worth: f64,
    /// What the two sides are
    #[arg(long, value_parser = contexts(), default_value = "processes")]
    contexts: Contexts,
    /// Length of a trial [default: 50 ms, or 20 gaps if those take longer]
    #[arg(long, value_parser = span, value_name = "TIME")]
    time: Option<Duration>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

fn worth(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(worth) if (0.0..=1e6).contains(&worth) => Ok(worth),
        _ => Err(refused(format_args!("'{text}' is no ratio from 0 to 1000000"), &["1", "0.1"])),
    }
}

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "spin", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let gaps = gaps_of(self)?;
        let placements = self.placements.resolve_one(&machine.topology)?;
        let [placement] = &placements[..] else {
            return refuse("one verdict is for one placement: name one with --placement");
        };
        if placement.cpus.is_some_and(|[a, b]| a == b) || machine.topology.usable.len() == 1 {
            return refuse(
                "both sides on one core: a waiter that spins there holds up its notifier, so never \
                 spin; name a placement on two with --placement",
            );
        }
        Ok(plan(self, &gaps, placement))
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        self.source.answer(&self, |_| Ok(question(&self)), &[], terminal)
    }
}

fn question(args: &Args) -> Question {
    Question::Spin(question::Spin { worth: args.worth })
}

/// The gaps asked for, the shortest first. What no machine can measure is told before what this one
/// has not.
fn gaps_of(args: &Args) -> Result<Vec<Duration>, Usage> {
    let own = mechanism::find(&args.mechanism).map_err(Usage::of)?.notification();
    let refused = |what: &str| refuse(format!("{}{what}", args.mechanism));
    if own.waits != Waits::Blocks {
        return refused(": its waiter does not sleep, so there is nothing to spin before");
    }
    if !own.joins(args.contexts) {
        return refused(" does not join such sides; see `doorbell list`, and --contexts");
    }
    let mut gaps: Vec<Duration> = args.gap.iter().flatten().copied().collect();
    gaps.sort_unstable();
    gaps.dedup();
    if gaps.first().is_none_or(Duration::is_zero) {
        return refuse("a gap of 0 leaves nothing to wait for; write for example --gap 5us..1ms");
    }
    Ok(gaps)
}

/// Spins that are tried at every gap they are not far beyond.
const SPINS: [Duration; 4] = [
    Duration::from_micros(2),
    Duration::from_micros(5),
    Duration::from_micros(20),
    Duration::from_micros(50),
];

/// The longest gap through which a waiter is made to spin with sleep
/// still to follow: beyond it no sleep costs as much.
const LONGEST: Duration = Duration::from_micros(200);

/// What a run takes until its first look: twice as long is still within the minute.
const RUN: Duration = Duration::from_secs(20);

/// Wakes that it is given time for at the least.
const WAKES: u32 = 3;

/// The spins that are tried at `gap`: those that end before it, to show what a spin in vain costs,
/// and the first that outlasts it by as much as a notification is late.
fn usual_spins(gap: Duration) -> Vec<Duration> {
    let mut spins: Vec<Duration> = SPINS.into_iter().filter(|spin| *spin < gap).collect();
    if gap <= LONGEST {
        spins.push(gap + gap / 5);
    }
    spins
}

/// At each gap a waiter that sleeps at once, one that spins, and some that spin for a while first;
/// and the harness itself.
fn plan(args: &Args, gaps: &[Duration], placement: &Placement) -> Plan {
    let configuration = |gap: Duration, wait| {
        let pattern = Pattern::OneWay { gap_ns: ns(gap) };
        let until = args.time.map_or_else(|| usual_window(pattern), Until::time);
        Configuration {
            contexts: args.contexts,
            timing: Timing::Stamp,
            wait,
            placement: placement.clone(),
            ..Configuration::new(&*args.mechanism, pattern, until)
        }
    };
    let mut configurations = Vec::new();
    for &gap in gaps {
        let spins = if args.spin.is_empty() { usual_spins(gap) } else { args.spin.clone() };
        let spins = spins.into_iter().map(|spin| WaitPolicy::SpinThenBlock { spin_ns: ns(spin) });
        for wait in [WaitPolicy::Block, WaitPolicy::Spin].into_iter().chain(spins) {
            let configuration = configuration(gap, wait);
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        }
    }
    configurations.push(Configuration {
        subject: "null".to_owned(),
        pattern: Pattern::PingPong { gap_ns: 0 },
        ..configuration(Duration::ZERO, WaitPolicy::Block)
    });
    let pairs = *PAIRS.start();
    let pair = RUN / pairs;
    for configuration in configurations.iter_mut().filter(|_| args.time.is_none()) {
        let wakes = Duration::from_nanos(configuration.pattern.gap_ns()) * WAKES;
        configuration.until = Until::time((pair / 10).max(wakes));
    }
    let pair_ns = args.time.is_none().then(|| ns(pair));
    let plan = Plan::new("spin", configurations, pairs, args.run.seed());
    Plan {
        bench: Some(Bench { pair_ns, ..asked() }),
        question: Some(question(args)),
        ..plan.until_decided(1).with_blocks(args.run.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    /// The gaps and the plan of what is asked for by `words`.
    fn planned(words: &str) -> (Vec<Duration>, Plan) {
        let args: Args = typed(words);
        let gaps = gaps_of(&args).unwrap();
        let placement = Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) };
        let plan = plan(&args, &gaps, &placement);
        (gaps, plan)
    }

    #[test]
    fn every_gap_is_slept_through_spun_through_and_spun_just_beyond() {
        let (gaps, plan) = planned("");
        for gap in gaps {
            let gap_ns = ns(gap);
            let of_it = plan.configurations.iter().filter(|one| one.pattern == Pattern::OneWay { gap_ns });
            let waits: Vec<WaitPolicy> = of_it.map(|configuration| configuration.wait).collect();
            assert_eq!(waits[..2], [WaitPolicy::Block, WaitPolicy::Spin]);
            let beyond = waits.contains(&WaitPolicy::SpinThenBlock { spin_ns: gap_ns + gap_ns / 5 });
            assert_eq!(beyond, gap <= LONGEST, "{gap:?}");
        }
        assert!(plan.configurations.iter().any(|configuration| configuration.subject == "null"));
    }

    #[test]
    fn a_run_is_looked_at_until_it_is_decided_unless_its_blocks_are_named() {
        let (_, plan) = planned("");
        assert_eq!((plan.blocks, &plan.looks[..]), (*PAIRS.start(), &[plan.blocks, 2 * plan.blocks][..]));
        // The second look is within the minute.
        let most = plan.most_blocks();
        let pair = Duration::from_nanos(plan.bench.unwrap().pair_ns.unwrap());
        assert!(pair * most < Duration::from_secs(55), "{pair:?} x {most}");
        let (_, named) = planned("--blocks 9");
        assert_eq!((named.blocks, named.looks.len()), (9, 0));
        let (_, many) = planned("--gap 1us..10ms");
        assert!(many.blocks >= *PAIRS.start(), "many gaps leave blocks enough for a verdict");
    }
}
