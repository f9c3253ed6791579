// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pick`.

use std::path::Path;
use std::time::Duration;

use clap::builder::TypedValueParser;

use super::bounds::makes_sense;
use super::common::{Exit, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::fanout::FanOut;
use super::numbers::ns;
use super::offered;
use super::ping::Ping;
use super::placements::{PlacementArgs, present};
use super::sides::one_of;
use super::usage::{Usage, refuse};
use super::verdict::Source;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::machine::topology::Topology;
use doorbell_results::nearest::Unknown;
use doorbell_results::plan::{FEWEST_BLOCKS, LeftOut, Plan};
use doorbell_results::quantity::{duration, gap, rate, share};
use doorbell_results::record::need::{contexts, lacks};
use doorbell_results::record::question::{self, By, Question, Shape, Traffic};
use doorbell_results::record::{ResultFile, Subject};
use doorbell_results::schedule::{MOST_GAPS, Schedule};
use doorbell_subjects::fan;
use doorbell_subjects::mechanism::{self, Waits};

/// Arguments of `doorbell pick`.
#[derive(Debug, clap::Args)]
#[command(after_help = "NEEDS\n  \
    process   it joins two processes\n  \
    thread    it joins two threads of one process\n  \
    sleep     the waiter leaves its CPU to others, at once or after a while\n  \
    idle      both sides sleep, at once, whenever they wait\n  \
    epoll     the waiting end is a descriptor that poll and epoll take together with others\n  \
    timeout   a wait can give up after some time by itself\n  \
    payload   a notification carries a message of bytes\n  \
    count     two notifications before a wait are two\n  \
    lossless  no notification is dropped on its way\n  \
    several   any number of notifiers wake one waiter\n\n\
    EXIT STATUS\n  \
    0  there is a verdict, be it that several may be the fastest\n  4  inconclusive, or this machine is unfit to measure\n\n\
    EXAMPLES\n  \
    doorbell pick --need sleep                         the fastest that does not keep a core busy\n  \
    doorbell pick --need epoll,payload --by p99        in an event loop, by its tail\n  \
    doorbell pick --pattern 1toN --receivers 100       until the last of a hundred is awake\n  \
    doorbell pick --need sleep --gap 1ms               for a waiter that has slept for a millisecond\n  \
    doorbell pick --need epoll --rate 20k/s --arrivals 10us..1ms --cpu-at-most 50% --beside 2\n  \
    \x20                                                  means, spinning and placement together, for such wake-ups\n  \
    doorbell pick --need epoll --from survey.json      what a survey has already measured")]
pub struct Args {
    /// Who notifies whom: one to one, one to many, many to one
    #[arg(long, value_parser = shape(), default_value = "1to1")]
    pattern: Shape,
    /// What is needed, comma separated; see below
    #[arg(long, value_delimiter = ',', value_parser = offered::needs(), hide_possible_values = true, value_name = "NEED")]
    need: Vec<String>,
    /// Time between notifications; 0 is there and back without a pause
    #[arg(long, value_parser = gap, value_name = "TIME", default_value = "0")]
    gap: Duration,
    /// Receivers, of one to many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=20_000))]
    receivers: u32,
    /// How often the waiter is woken, such as 20k/s; what wakes it, how long it spins and where it
    /// runs are then chosen together
    #[arg(long, value_parser = rate, value_name = "RATE", conflicts_with = "gap")]
    rate: Option<Duration>,
    /// How the wake-ups come: `exponential` (of many sources), SHORTEST..LONGEST between two, or a
    /// FILE of gaps such as 12us, one a line
    #[arg(long, value_name = "LAW", conflicts_with = "gap")]
    arrivals: Option<String>,
    /// The most CPU time that the wake-ups may take, in percent of one CPU
    #[arg(long, value_parser = share, value_name = "PERCENT")]
    cpu_at_most: Option<f64>,
    /// How many other descriptors stand in the waiter's epoll set [default with --need epoll: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    beside: Option<u32>,
    /// What the choice goes by
    #[arg(long, value_parser = one_of(&[("p50", "The median", By::P50), ("p99", "The 99th percentile", By::P99)]), default_value = "p50")]
    by: By,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    placements: PlacementArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Who notifies whom.
fn shape() -> impl TypedValueParser<Value = Shape> {
    one_of(&[
        ("1to1", "One notifier, one waiter", Shape::OneToOne),
        ("1toN", "One notifier, many waiters, each of whom is to wake", Shape::OneToMany),
        ("Nto1", "Many notifiers, one waiter", Shape::ManyToOne),
    ])
}

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "pick", ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let topology = &machine.topology;
        let question = question(self, topology)?;
        let all = question.traffic.is_some() && !self.placements.is_given();
        let pick = Pick {
            question,
            receivers: self.receivers,
            placements: if all { present(topology) } else { vec![placement(self, topology)?] },
            blocks: self.run.blocks,
            seed: self.run.seed(),
        };
        Ok(pick.plan().map_err(Usage::of)?)
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        if self.pattern == Shape::OneToMany && (self.placements.is_given() || !self.gap.is_zero()) {
            return refuse(
                "one to many is a fan-out, whose receivers the scheduler places, a round every 20 ms: \
                 leave --placement, --cpus and --gap out, or see `doorbell fanout`",
            );
        }
        let asked = |result: &ResultFile| Ok(Question::Pick(question(&self, &result.machine.topology)?));
        self.source.answer(&self, asked, &[], terminal)
    }
}

/// The wake-ups asked for and the gap between them on average; none where they are of one kind.
fn traffic(args: &Args) -> Result<Option<(Traffic, Duration)>, Usage> {
    if args.rate.is_none() && args.arrivals.is_none() {
        return match (args.cpu_at_most, args.beside) {
            (None, None) => Ok(None),
            _ => refuse(
                "how much CPU time it is, and what a loop does, goes by how often the waiter is \
                 woken: say --rate, such as 20k/s",
            ),
        };
    }
    if args.pattern != Shape::OneToOne {
        return refuse("--rate and --arrivals are for one notifier and one waiter");
    }
    let in_a_set = args.need.iter().any(|need| need == "epoll");
    if args.beside.is_some() && !in_a_set {
        return refuse("other descriptors stand beside one that does: say --need epoll too");
    }
    let law = args.arrivals.as_deref().unwrap_or("exponential");
    let (schedule, own) = match law.split_once("..") {
        _ if law == "exponential" => (Schedule::Exponential, None),
        Some((shortest, longest)) if !std::path::Path::new(law).exists() => {
            let [shortest_ns, longest_ns] = [duration(shortest), duration(longest)].map(|time| time.map(ns));
            let (shortest_ns, longest_ns) = (shortest_ns.map_err(Usage)?, longest_ns.map_err(Usage)?);
            let middle = Duration::from_nanos(shortest_ns / 2 + longest_ns / 2);
            (Schedule::Between { shortest_ns, longest_ns }, Some(middle))
        }
        _ => {
            let gaps_ns = recorded(law)?;
            let mean = Duration::from_nanos(Schedule::recorded_mean_ns(&gaps_ns));
            (Schedule::Recorded { gaps_ns }, Some(mean))
        }
    };
    let Some(gap) = args.rate.or(own) else {
        return refuse("how often? Say --rate, such as 20k/s");
    };
    if let Some(fault) = schedule.fault(ns(gap)) {
        return refuse(format!("--arrivals {law}: {fault}"));
    }
    let beside = in_a_set.then(|| args.beside.unwrap_or(0));
    Ok(Some((Traffic { schedule, beside, cpu_at_most: args.cpu_at_most }, gap)))
}

/// The gaps in the file at `path`, one a line, nanoseconds.
fn recorded(path: &str) -> Result<Vec<u64>, Usage> {
    let refused = |why: String| Usage(format!("--arrivals {path}: {why}"));
    // A gap a line, and room for units and comments.
    let text = doorbell_files::text(Path::new(path), 64 * MOST_GAPS as u64).map_err(|error| {
        refused(format!("{error}; write exponential, 10us..1ms, or a file of gaps such as 12us, one a line"))
    })?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let gaps = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    gaps.map(|(number, line)| {
        let gap = duration(line).map_err(|why| refused(format!("line {number}: {why}")))?;
        Ok(ns(gap))
    })
    .collect()
}

/// What the arguments ask of a result of a machine with `topology`.
fn question(args: &Args, topology: &Topology) -> Result<question::Pick, Usage> {
    let placement = args.placements.is_given().then(|| placement(args, topology)).transpose()?;
    let (traffic, gap) = traffic(args)?.map_or((None, args.gap), |(traffic, gap)| (Some(traffic), gap));
    Ok(question::Pick {
        shape: args.pattern,
        needs: args.need.clone(),
        by: args.by,
        gap_ns: ns(gap),
        relation: placement.map(|placement| placement.relation),
        traffic,
    })
}

/// The one placement asked for, or the usual one.
fn placement(args: &Args, topology: &Topology) -> Result<Placement, Usage> {
    match &args.placements.resolve_one(topology)?[..] {
        [placement] => Ok(placement.clone()),
        _ => refuse("one verdict is for one placement: name one with --placement"),
    }
}

/// What is asked for, on a machine.
#[derive(Debug, Clone)]
struct Pick {
    question: question::Pick,
    /// Receivers, of one to many.
    receivers: u32,
    /// Where the sides run, of one to one and many to one; more than
    /// one where the placement is to be chosen too.
    placements: Vec<Placement>,
    /// Repetitions, if not the usual number.
    blocks: Option<u32>,
    seed: u64,
}

/// Blocks of a fan-out unless told otherwise, and its rounds, some of which each block has.
const FANOUT_BLOCKS: u32 = 6;
const FANOUT_ROUNDS: u32 = 20;
const FANOUT_INTERVAL: Duration = Duration::from_millis(20);

/// Everything that notifies in `shape`, in the order of the lists.
fn entrants(shape: Shape) -> Vec<(&'static str, Subject)> {
    let entrants: Vec<_> = match shape {
        Shape::OneToOne | Shape::ManyToOne => {
            mechanism::usual().map(|entry| (entry.name(), Subject::Mechanism(entry.notification()))).collect()
        }
        Shape::OneToMany => {
            let own = fan::all().iter().filter(|entry| !entry.shared);
            own.map(|entry| (entry.name, entry.subject())).collect()
        }
    };
    entrants.into_iter().filter(|(_, subject)| !subject.is_harness()).collect()
}

impl Pick {
    /// What one configuration of the plan is like: how its notifications follow each other.
    fn pattern(&self) -> Pattern {
        let gap_ns = self.question.gap_ns;
        match self.question.shape {
            Shape::OneToMany => {
                Pattern::FanOut { receivers: self.receivers, interval_ns: ns(FANOUT_INTERVAL) }
            }
            _ if self.question.traffic.is_some() => Pattern::OpenLoop { gap_ns },
            _ if gap_ns == 0 => Pattern::PingPong { gap_ns },
            _ => Pattern::OneWay { gap_ns },
        }
    }

    /// The plan: what serves the needs, and the harness itself. What is
    /// not here is skipped when its turn comes, so that the result says
    /// why. No configurations but the harness's if nothing serves.
    fn plan(&self) -> Result<Plan, Unknown> {
        let mut mechanisms = Vec::new();
        let mut left_out = Vec::new();
        for (name, subject) in entrants(self.question.shape) {
            let lacks =
                subject.notification().map_or_else(|| Ok(Vec::new()), |own| lacks(&self.question, own))?;
            let in_a_set = self.question.traffic.as_ref().is_some_and(|traffic| traffic.beside.is_some());
            if lacks.is_empty() && in_a_set && !mechanism::find(name).is_ok_and(|entry| entry.in_a_set()) {
                let reason = Some("sleeps in a set or call of its own, not in one with others".to_owned());
                left_out.push(LeftOut { name: name.to_owned(), subject, reason });
            } else if lacks.is_empty() {
                mechanisms.push(name.to_owned());
            } else {
                left_out.push(LeftOut { name: name.to_owned(), subject, reason: None });
            }
        }
        if let Some(traffic) = &self.question.traffic {
            return Ok(self.under(traffic, &mechanisms, left_out));
        }
        let contexts = contexts(&self.question);
        let plan = if self.question.shape == Shape::OneToMany {
            mechanisms.push("null".to_owned());
            let fanout = FanOut {
                mechanisms,
                contexts: vec![contexts],
                receivers: vec![self.receivers],
                waits: vec![WaitPolicy::Block],
                pinnings: vec![Pinning::Unpinned],
                size: 0,
                interval: FANOUT_INTERVAL,
                rounds: FANOUT_ROUNDS,
                blocks: self.blocks.unwrap_or(FANOUT_BLOCKS),
                seed: self.seed,
            };
            fanout.plan()
        } else {
            mechanisms.push("null".to_owned());
            let ping = Ping {
                mechanisms,
                contexts: vec![contexts],
                placements: self.placements.clone(),
                patterns: vec![self.pattern()],
                blocks: self.blocks,
                seed: self.seed,
                ..Ping::default()
            };
            ping.plan("pick")
        };
        // A fan-out's rounds are what takes its time, and a number that was asked for is one.
        let open_ended = self.blocks.is_none() && self.question.shape != Shape::OneToMany;
        let plan = if open_ended { plan.until_decided(2) } else { plan };
        Ok(Plan {
            experiment: "pick".to_owned(),
            question: Some(Question::Pick(self.question.clone())),
            left_out,
            ..plan
        })
    }
}

/// What a run under traffic takes together, what a trial costs beside
/// its window, and the shortest and longest window.
const RUN: Duration = Duration::from_secs(45);
const SETUP: Duration = Duration::from_millis(35);
const WINDOW: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];

/// Fewest wake-ups that a trial is given time for, as long as that is no more than [`LONGEST`].
const WAKES: u32 = 20;
const LONGEST: Duration = Duration::from_secs(1);

/// Blocks of a run under traffic: the fewest that are judged, and one for interference.
const BLOCKS: u32 = FEWEST_BLOCKS + 1;

/// How long a waiter looks before it sleeps, in the order in which
/// they are given up where there is no time for all.
const SPINS_NS: [u64; 3] = [20_000, 50_000, 5_000];

impl Pick {
    /// Each means with each wait at each placement, for wake-ups that come as `traffic` says.
    fn under(&self, traffic: &Traffic, mechanisms: &[String], left_out: Vec<LeftOut>) -> Plan {
        let gap = Duration::from_nanos(self.question.gap_ns);
        let mut blocks = self.blocks.unwrap_or(BLOCKS);
        let of = |spins: &[u64]| {
            let spins = spins.iter().map(|spin_ns| WaitPolicy::SpinThenBlock { spin_ns: *spin_ns });
            let waits: Vec<WaitPolicy> =
                [WaitPolicy::Block, WaitPolicy::Spin].into_iter().chain(spins).collect();
            let mut configurations = Vec::new();
            for subject in mechanisms {
                let blocks =
                    mechanism::find(subject).is_ok_and(|entry| entry.notification().waits == Waits::Blocks);
                for placement in &self.placements {
                    for wait in &waits {
                        let one_core = placement.cpus.is_none_or(|[a, b]| a == b);
                        if *wait != WaitPolicy::Block && (one_core || !blocks) {
                            continue;
                        }
                        configurations.push(self.way(traffic, subject, placement, *wait));
                    }
                }
            }
            configurations.retain(|configuration| makes_sense(configuration, false));
            configurations
        };
        let least = |configurations: &[Configuration], blocks: u32| {
            (SETUP + WINDOW[0]) * blocks * u32::try_from(configurations.len()).unwrap_or(u32::MAX)
        };
        let mut spins = &SPINS_NS[..];
        while least(&of(spins), blocks) > RUN && !spins.is_empty() {
            spins = &spins[..spins.len() - 1];
        }
        if least(&of(spins), blocks) > RUN && self.blocks.is_none() {
            blocks = FEWEST_BLOCKS;
        }
        let mut configurations = of(spins);
        let trials = blocks.max(1) * u32::try_from(configurations.len().max(1)).unwrap_or(u32::MAX);
        let window = (RUN / trials).saturating_sub(SETUP).clamp(WINDOW[0], WINDOW[1]);
        let window = window.max((gap * WAKES).min(LONGEST));
        for configuration in &mut configurations {
            configuration.until = Until::time(window);
        }
        Plan {
            question: Some(Question::Pick(self.question.clone())),
            left_out,
            ..Plan::new("pick", configurations, blocks, self.seed)
        }
    }

    fn way(
        &self,
        traffic: &Traffic,
        subject: &str,
        placement: &Placement,
        wait: WaitPolicy,
    ) -> Configuration {
        Configuration {
            contexts: contexts(&self.question),
            timing: Timing::Stamp,
            wait,
            placement: placement.clone(),
            schedule: Some(traffic.schedule.clone()),
            beside: traffic.beside,
            ..Configuration::new(subject, self.pattern(), Until::time(WINDOW[0]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;
    use doorbell_results::record::need::{NEEDS, Need, need};

    #[test]
    fn the_help_says_what_every_need_means() {
        let command = super::Args::augment_args(clap::Command::new("pick"));
        let help = command.get_after_help().unwrap().to_string();
        for need in &NEEDS {
            assert!(help.contains(&format!("{:8}  {}\n", need.name, need.meaning)), "{}", need.name);
        }
    }
    use doorbell_subjects::mechanism::Contexts;

    fn pick(shape: Shape, needs: &[&str]) -> Plan {
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        let pick = Pick {
            question: question::Pick { shape, needs, by: By::P50, gap_ns: 0, relation: None, traffic: None },
            receivers: 20,
            placements: vec![Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) }],
            blocks: None,
            seed: 1,
        };
        pick.plan().unwrap()
    }

    fn subjects(plan: &Plan) -> Vec<&str> {
        plan.configurations.iter().map(|configuration| configuration.subject.as_str()).collect()
    }

    #[test]
    fn only_what_serves_every_need_is_measured_and_what_is_left_out_is_stored_with_what_it_is() {
        let plan = pick(Shape::OneToOne, &["epoll", "process", "payload"]);
        let epoll = subjects(&plan);
        assert!(epoll.contains(&"pipe") && !epoll.contains(&"eventfd-epoll"), "{epoll:?}");
        assert_eq!(epoll.last(), Some(&"null"), "the harness is always in it");
        let futex = plan.left_out.iter().find(|left| left.name == "futex").unwrap();
        assert!(!futex.subject.notification().unwrap().descriptor && futex.reason.is_none());
        assert!(plan.left_out.iter().all(|left| left.name != "unix-stream"));
        let plan = pick(Shape::ManyToOne, &["sleep"]);
        let many = subjects(&plan);
        assert!(many.contains(&"sem-posix") && !many.contains(&"futex"), "{many:?}");
        let plan = pick(Shape::OneToMany, &["process"]);
        let fan = subjects(&plan);
        assert!(fan.contains(&"futex") && !fan.contains(&"sem-posix-for-all"), "{fan:?}");
        // What this machine lacks is planned: left out, the result could not say why.
        let plan = pick(Shape::OneToOne, &[]);
        let all = subjects(&plan);
        assert!(all.contains(&"umwait") && all.contains(&"mwaitx"), "{all:?}");
        assert!(plan.left_out.is_empty());
        let contexts = |needs: &[&str]| pick(Shape::OneToOne, needs).configurations[0].contexts;
        assert_eq!(contexts(&["thread"]), Contexts::Threads);
        assert_eq!(contexts(&["thread", "process"]), Contexts::Processes);
    }

    #[test]
    fn every_need_parts_the_mechanisms_and_is_served_by_what_is_known_to_serve_it() {
        let served_by = |need: &Need, name: &str| {
            mechanism::usual().any(|own| own.name() == name && (need.served)(&own.notification()))
        };
        for each in &NEEDS {
            let served = mechanism::usual().filter(|own| (each.served)(&own.notification())).count();
            // Threads can use whatever processes can.
            let all = served == mechanism::usual().count();
            assert!(served > 0 && all == (each.name == "thread"), "{} is served by {served}", each.name);
        }
        for (name, mechanism, serves) in [
            ("epoll", "eventfd-epoll", true),
            ("epoll", "futex", false),
            ("process", "futex-private", false),
            ("payload", "pipe", true),
            ("payload", "eventfd", false),
            ("timeout", "mq-sysv", false),
            ("several", "futex", false),
            ("several", "sem-posix", true),
            ("sleep", "bell-adaptive", true),
        ] {
            assert_eq!(served_by(need(name).unwrap(), mechanism), serves, "{mechanism} for {name}");
        }
    }

    #[test]
    fn under_traffic_every_means_is_planned_with_every_wait_and_placement_and_all_within_a_minute() {
        let placements = [("same-core", [1, 1]), ("same-l2", [0, 1]), ("same-l3", [0, 2])];
        let placement =
            |(relation, cpus): (&str, _)| Placement { relation: relation.to_owned(), cpus: Some(cpus) };
        for (needs, beside) in [(vec!["epoll"], Some(2)), (vec![], None)] {
            let question = question::Pick {
                shape: Shape::OneToOne,
                needs: needs.into_iter().map(str::to_owned).collect(),
                by: By::P50,
                gap_ns: 50_000,
                relation: None,
                traffic: Some(Traffic { schedule: Schedule::Exponential, beside, cpu_at_most: None }),
            };
            let placements = placements.map(placement).to_vec();
            let plan = Pick { question, receivers: 20, placements, blocks: None, seed: 1 }.plan().unwrap();
            let has = |subject: &str, relation: &str, wait| {
                plan.configurations.iter().any(|configuration| {
                    (configuration.subject.as_str(), configuration.placement.relation.as_str())
                        == (subject, relation)
                        && configuration.wait == wait
                })
            };
            assert!(
                has("eventfd", "same-core", WaitPolicy::Block) && has("eventfd", "same-l3", WaitPolicy::Spin)
            );
            assert!(has("pipe", "same-l2", WaitPolicy::Block) && !has("pipe", "same-core", WaitPolicy::Spin));
            assert_eq!(has("futex", "same-l3", WaitPolicy::Block), beside.is_none());
            assert!(!has("eventfd-epoll", "same-l3", WaitPolicy::Block) || beside.is_none());
            let trial = |configuration: &Configuration| {
                SETUP + Duration::from_nanos(configuration.until.time_ns.unwrap())
            };
            let whole: Duration = plan.configurations.iter().map(trial).sum::<Duration>() * plan.blocks;
            assert!(whole < Duration::from_secs(60), "{whole:?}, {} ways", plan.configurations.len());
        }
    }
}
