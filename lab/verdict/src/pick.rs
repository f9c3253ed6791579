// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which mechanism for a pattern and some needs: the fastest, those not shown to be slower, and
//! what each other one lacks.

use super::best;
use super::by_block::{beside, together};
use super::compare::RELEVANT;
use super::conditions::{differing, other_conditions};
use super::hung::{hung, without_figures};
use super::looks;
use super::ratio::{Ratio, Standing};
use super::slices::{Apart, FEWEST_PAIRS};
use super::verdict::Reason;
use doorbell_results::configuration::{Configuration, Pattern, Placement, WaitPolicy};
use doorbell_results::record::need::{contexts, lacks};
use doorbell_results::record::question::{self, By, Shape, Traffic};
use doorbell_results::record::subject::{Notification, Subject};
use doorbell_results::record::{Quantity, Record, ResultFile, SideCounters, Variant};

#[derive(Debug, Clone, PartialEq)]
pub struct Picked {
    /// The figure it goes by.
    pub quantity: Quantity,
    /// Where the sides ran; none if nothing fits.
    pub placement: Option<Placement>,
    /// The mechanisms that serve the needs and have figures, the best first.
    pub ranked: Vec<Ranked>,
    /// The others, with the reason.
    pub out: Vec<(String, Unfit)>,
    /// What the harness itself takes, nanoseconds.
    pub harness_ns: Option<f64>,
    /// How many of the first of those ranked may be the best, or why that is not known.
    pub choice: Result<usize, Reason>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    pub subject: String,
    pub wait: WaitPolicy,
    pub placement: Placement,
    /// p50, p99 and p99.9 of all samples, picoseconds; the one that it goes by is the
    /// [level](super::slices::Levels::level) of its blocks, whose multiples stand beside it.
    pub figures_ps: [u64; 3],
    /// CPU time of a wake-up, nanoseconds: see `Record::cpu_per_wake`.
    pub cpu_ns: Option<f64>,
    /// What it goes by, as a multiple of the best one's; none of the best, and of too few blocks.
    pub behind: Option<Ratio>,
    /// Against the best.
    pub standing: Standing,
    /// Trials with figures, and those that met interference.
    pub trials: [usize; 2],
    pub count: u64,
    pub missed: u64,
}

/// Why a mechanism is no candidate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// It takes more of a CPU than it may, shares of 1.
    #[error("takes {:.0} % of a CPU; {:.0} % is the most asked for", .takes * 100.0, .most * 100.0)]
    TooDear { takes: f64, most: f64 },
    #[error("{0}")]
    Other(String),
}

/// What `result` says; an error in words if it is asked for a need that nothing here knows.
pub fn pick(result: &ResultFile, question: &question::Pick) -> Result<Picked, String> {
    if let Some(traffic) = &question.traffic {
        return under(traffic, result, question);
    }
    let variants = result.variants();
    let fits = |variant: &&Variant| in_pattern(variant.configuration, question);
    let chosen = |variant: &&Variant| match &question.relation {
        Some(relation) => variant.configuration.placement.relation == *relation,
        None => variant.configuration.placement.cpus.is_some_and(|[a, b]| a != b),
    };
    let first = variants.iter().filter(fits).find(chosen).or_else(|| {
        let any = question.relation.is_none();
        variants.iter().find(|variant| any && fits(variant))
    });
    let quantity = match question.shape {
        Shape::OneToMany => Quantity::LastWake,
        _ if question.gap_ns == 0 => Quantity::RoundTrip,
        _ => Quantity::Wake,
    };
    let here: Vec<&Variant> = match first {
        Some(first) => variants
            .iter()
            .filter(fits)
            .filter(|variant| {
                let subject = variant.configuration.subject.clone();
                *variant.configuration == Configuration { subject, ..first.configuration.clone() }
            })
            .collect(),
        None => Vec::new(),
    };
    let mut entrants: Vec<&Variant> = Vec::new();
    let mut out = Vec::new();
    for Candidate { name, notification, lack } in candidates(result, &variants, question.shape) {
        let variant = here.iter().find(|variant| variant.configuration.subject == name);
        let lacks = lacks(question, &notification).map_err(|unknown| unknown.to_string())?;
        let why = match variant {
            _ if !lacks.is_empty() => lacks.join(", "),
            None => match lack {
                Some(lack) => lack.to_owned(),
                None => elsewhere(&variants, name, first.map(|first| first.configuration)),
            },
            Some(variant) => match unfit(variant, quantity).or_else(|| awake(variant, question)) {
                Some(why) => why,
                None => {
                    entrants.push(variant);
                    continue;
                }
            },
        };
        out.push((name.to_owned(), Unfit::Other(why)));
    }
    let ranked = rank(&entrants, quantity, question.by, First::Fastest, looks::error(&result.plan));
    let harness = here.iter().find(|variant| variant.subject().is_harness());
    Ok(Picked {
        quantity,
        placement: first.map(|variant| variant.configuration.placement.clone()),
        choice: choose(&ranked, result),
        harness_ns: harness.and_then(|variant| super::statistics::median(&variant.medians_ns(quantity))),
        ranked,
        out,
    })
}

struct Candidate<'result> {
    name: &'result str,
    notification: Notification,
    /// What the machine lacked for it, where it was not planned for that.
    lack: Option<&'result str>,
}

/// What could be chosen: everything in the result that notifies in that shape, measured or left
/// out, in the order of the plan.
fn candidates<'result>(
    result: &'result ResultFile,
    variants: &[Variant<'result>],
    shape: Shape,
) -> Vec<Candidate<'result>> {
    let measured = variants.iter().filter_map(|variant| {
        Some((variant.configuration.subject.as_str(), &variant.records.first()?.subject, None))
    });
    let left_out = result.plan.left_out.iter();
    let left_out = left_out.map(|left| (left.name.as_str(), &left.subject, left.reason.as_deref()));
    let mut candidates: Vec<Candidate> = Vec::new();
    for (name, subject, lack) in measured.chain(left_out) {
        let notification = match (shape, subject) {
            (Shape::OneToMany, Subject::FanOut { shared: false, notification }) => *notification,
            (Shape::OneToOne | Shape::ManyToOne, Subject::Mechanism(notification)) => *notification,
            _ => continue,
        };
        if !subject.is_harness() && !candidates.iter().any(|known| known.name == name) {
            candidates.push(Candidate { name, notification, lack });
        }
    }
    candidates
}

fn in_pattern(configuration: &Configuration, question: &question::Pick) -> bool {
    let pattern = match question.shape {
        Shape::OneToMany => configuration.pattern.receivers().is_some(),
        _ if question.gap_ns == 0 => configuration.pattern.back_to_back(),
        _ => configuration.pattern.one_way() && configuration.pattern.gap_ns() == question.gap_ns,
    };
    pattern && configuration.contexts == contexts(question) && configuration.wait == WaitPolicy::Block
}

/// Why a mechanism has no variant among those that are ranked with that of `first`: it was measured
/// in another way, or not at all.
fn elsewhere(variants: &[Variant], subject: &str, first: Option<&Configuration>) -> String {
    let mut own = variants
        .iter()
        .map(|variant| variant.configuration)
        .filter(|configuration| configuration.subject == subject)
        .peekable();
    let Some(first) = first else {
        return match own.peek() {
            Some(_) => "measured for another pattern, gap, placement or kind of sides".to_owned(),
            None => "not measured in this run".to_owned(),
        };
    };
    let first = Configuration { subject: subject.to_owned(), ..first.clone() };
    let nearest = own.min_by_key(|configuration| differing(configuration, &first).len());
    nearest
        .and_then(|configuration| other_conditions(configuration, &first))
        .unwrap_or_else(|| "not measured in this run".to_owned())
}

/// The share of its window that a side may run for and still be said to sleep.
const ASLEEP: f64 = 0.9;

/// Why something does not sleep that is asked to: both its sides ran nearly all the time. What it
/// is said to be is no help there, for what adapts spins on as long as it is notified often.
fn awake(variant: &Variant, question: &question::Pick) -> Option<String> {
    if !question.needs.iter().any(|need| need == "sleep" || need == "idle") {
        return None;
    }
    let share = |side: &SideCounters| {
        side.user_ns.saturating_add(side.system_ns) as f64 / side.window_ns.max(1) as f64
    };
    let idlest = |record: &Record| record.sides.iter().map(share).reduce(f64::min);
    let shares: Vec<f64> = variant.usable().filter_map(idlest).collect();
    let share = super::statistics::median(&shares)?;
    (share > ASLEEP).then(|| format!("did not sleep: both sides ran for {:.0} % of the time", share * 100.0))
}

/// What to use for wake-ups that come as `traffic` says: of all means, waits and placements in
/// `result` that cost no more than they may, the fastest, and of those that are not shown to be
/// slower the one that costs least.
fn under(traffic: &Traffic, result: &ResultFile, question: &question::Pick) -> Result<Picked, String> {
    let variants = result.variants();
    let asked = Pattern::OpenLoop { gap_ns: question.gap_ns };
    let mut entrants: Vec<&Variant> = Vec::new();
    let mut out = Vec::new();
    for variant in &variants {
        let Subject::Mechanism(notification) = variant.subject() else { continue };
        let configuration = variant.configuration;
        let fits = configuration.pattern == asked
            && configuration.schedule.as_ref() == Some(&traffic.schedule)
            && configuration.beside == traffic.beside
            && configuration.contexts == contexts(question)
            && question
                .relation
                .as_ref()
                .is_none_or(|relation| configuration.placement.relation == *relation);
        if !fits || variant.is_harness() {
            continue;
        }
        let lacks = lacks(question, notification).map_err(|unknown| unknown.to_string())?;
        let why = (!lacks.is_empty())
            .then(|| lacks.join(", "))
            .or_else(|| unfit(variant, Quantity::Response))
            .map(Unfit::Other)
            .or_else(|| too_dear(variant, question.gap_ns, traffic))
            .or_else(|| too_few(variant).map(Unfit::Other));
        match why {
            Some(why) => out.push((way_title(configuration), why)),
            None => entrants.push(variant),
        }
    }
    for left in &result.plan.left_out {
        let Subject::Mechanism(notification) = &left.subject else { continue };
        let lacks = lacks(question, notification).map_err(|unknown| unknown.to_string())?;
        let why = left.reason.clone().unwrap_or_else(|| lacks.join(", "));
        out.push((left.name.clone(), Unfit::Other(why)));
    }
    let ranked =
        rank(&entrants, Quantity::Response, question.by, First::Cheapest, looks::error(&result.plan));
    let choice = choose(&ranked, result).map(|_| 1);
    Ok(Picked {
        quantity: Quantity::Response,
        placement: ranked.first().map(|ranked| ranked.placement.clone()),
        harness_ns: None,
        choice,
        ranked,
        out,
    })
}

/// Why something may not be used: it takes more of a CPU than it may, or that is not known.
fn too_dear(variant: &Variant, gap_ns: u64, traffic: &Traffic) -> Option<Unfit> {
    let most = traffic.cpu_at_most?;
    let Some(cpu_ns) = variant.cpu_ns_per_wake() else {
        return Some(Unfit::Other("its CPU time was not counted".to_owned()));
    };
    let takes = cpu_ns / gap_ns.max(1) as f64;
    (takes > most).then_some(Unfit::TooDear { takes, most })
}

/// Why something cannot be held against others: it has figures of too few trials.
fn too_few(variant: &Variant) -> Option<String> {
    let trials = variant.usable().count();
    (trials < FEWEST_PAIRS).then(|| format!("{trials} trials have figures, and it takes {}", FEWEST_PAIRS))
}

/// A means with its wait and placement.
fn way_title(configuration: &Configuration) -> String {
    let wait = match configuration.wait {
        WaitPolicy::SpinThenBlock { spin_ns } => {
            format!(", spinning {}", doorbell_results::quantity::short(spin_ns))
        }
        WaitPolicy::Spin => ", spinning".to_owned(),
        WaitPolicy::Block | WaitPolicy::Timeout { .. } => String::new(),
    };
    format!("{}{wait}, {}", configuration.subject, configuration.placement.relation)
}

/// Why a variant may not be chosen, whatever its figures are.
fn unfit(variant: &Variant, quantity: Quantity) -> Option<String> {
    without_figures(variant, quantity).or_else(|| hung(variant).map(|hung| hung.to_string()))
}

/// Which of those that are not shown to be slower than the fastest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Fastest,
    /// The one that takes the least CPU time.
    Cheapest,
}

fn rank(variants: &[&Variant], quantity: Quantity, by: By, goes_first: First, error: f64) -> Vec<Ranked> {
    let levels = together(variants, quantity, by);
    let ranked = levels.ranked(0..variants.len());
    let mut order: Vec<usize> = ranked.into_iter().map(|(variant, _)| variant).collect();
    let Some(&best) = order.first() else { return Vec::new() };
    // Which is the cheapest is chosen from the same figures: all pairs are looked at.
    let pairs = order.len() * order.len().saturating_sub(1) / 2;
    let error = if goes_first == First::Cheapest { error / 2.0 } else { error };
    let against = |first: usize, index: usize| {
        levels.apart(first, index, error / pairs.max(1) as f64).map(Apart::ratio)
    };
    let found = best::best(&levels, order.iter().copied(), error, RELEVANT);
    let behind = |index: usize| found.iter().find(|behind| behind.thing == index);
    let verdict = |index: usize| match behind(index) {
        _ if index == best => Standing::Same { within: 0.0 },
        behind => behind.map_or(Standing::Inconclusive, |behind| behind.standing),
    };
    let cpu_ns = |index: &usize| variants[*index].cpu_ns_per_wake().unwrap_or(f64::INFINITY);
    let first = match goes_first {
        First::Fastest => best,
        First::Cheapest => {
            let open = order.iter().copied().filter(|index| verdict(*index) != Standing::Slower);
            open.min_by(|a, b| cpu_ns(a).total_cmp(&cpu_ns(b))).unwrap_or(best)
        }
    };
    order.retain(|index| *index != first);
    order.insert(0, first);
    let mut ranked: Vec<Ranked> = order
        .iter()
        .filter_map(|&index| {
            let variant = variants[index];
            let whole = variant.histogram(quantity)?;
            let place = match by {
                By::P50 => 0,
                By::P99 => 1,
            };
            let level_ps = (levels.level(index)? * 1e3).round() as u64;
            let figures_ps = beside(variant, quantity, [0.5, 0.99, 0.999], (place, level_ps))?;
            let tally = variant.tally();
            Some(Ranked {
                subject: variant.configuration.subject.clone(),
                wait: variant.configuration.wait,
                placement: variant.configuration.placement.clone(),
                figures_ps,
                cpu_ns: variant.cpu_ns_per_wake(),
                behind: match behind(index) {
                    Some(behind) if first == best => behind.ratio,
                    _ => against(first, index),
                },
                standing: verdict(index),
                trials: [
                    variant.usable().count(),
                    variant.usable().filter(|record| record.had_interference()).count(),
                ],
                count: whole.count(),
                missed: tally.lost.saturating_add(tally.late),
            })
        })
        .collect();
    // Those that cannot be told apart stand together, whatever chance put between them.
    ranked.sort_by_key(|ranked| ranked.standing == Standing::Slower);
    ranked
}

fn choose(ranked: &[Ranked], result: &ResultFile) -> Result<usize, Reason> {
    let trials = ranked.iter().map(|ranked| ranked.trials[0]).min().ok_or(Reason::NothingServes)?;
    if result.emulated() {
        return Err(Reason::Emulated);
    }
    if trials < FEWEST_PAIRS {
        return Err(Reason::FewTrials { trials, takes: FEWEST_PAIRS });
    }
    Ok(ranked.iter().filter(|ranked| ranked.standing != Standing::Slower).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::{Timing, Trace, Until};
    use doorbell_results::plan::LeftOut;
    use doorbell_results::record::{Outcome, sample};
    use doorbell_results::schedule::Schedule;

    fn question(needs: &[&str]) -> question::Pick {
        question::Pick {
            shape: Shape::OneToOne,
            needs: needs.iter().map(|name| (*name).to_owned()).collect(),
            by: By::P50,
            gap_ns: 0,
            relation: None,
            traffic: None,
        }
    }

    #[test]
    fn what_hung_once_is_out_however_fast_its_other_trials_were() {
        let mut result = run(&[("futex", 1000.0), ("eventfd", 2000.0)], 10);
        let lost = sample::of(&mut result, "futex").next().unwrap();
        lost.outcome = Outcome::Hung { last_seen: Vec::new() };
        let picked = pick(&result, &question(&[])).unwrap();
        assert_eq!(picked.ranked[0].subject, "eventfd");
        let out = ("futex".to_owned(), Unfit::Other("in 1 of 10 trials a wait did not end".to_owned()));
        assert!(picked.out.contains(&out), "{:?}", picked.out);
    }

    /// A run in which each mechanism takes as long as given, each
    /// block with chance of its own and a drift that all share.
    fn run(levels: &[(&str, f64)], blocks: u32) -> ResultFile {
        let configurations: Vec<Configuration> =
            levels.iter().map(|(subject, _)| sample::configuration(subject)).collect();
        let random = std::cell::RefCell::new(fastrand::Rng::with_seed(5));
        sample::result(&configurations, blocks, |configuration, block| {
            let level = levels.iter().find(|(subject, _)| *subject == configuration.subject).unwrap().1;
            level * (1.0 + 0.1 * f64::from(block % 3)) * (1.0 + 0.01 * (random.borrow_mut().f64() - 0.5))
        })
    }

    fn ask(run: &ResultFile, question: &question::Pick) -> Picked {
        pick(run, question).unwrap()
    }

    fn names(picked: &Picked) -> Vec<&str> {
        picked.ranked.iter().map(|ranked| ranked.subject.as_str()).collect()
    }

    #[test]
    fn the_fastest_that_serves_the_needs_is_chosen_and_the_runner_up_told_by_how_much() {
        let run = run(&[("futex", 16e3), ("pipe", 22e3), ("eventfd-epoll", 20e3), ("null", 100.0)], 10);
        let picked = ask(&run, &question(&[]));
        assert_eq!((names(&picked), &picked.choice), (vec!["futex", "eventfd-epoll", "pipe"], &Ok(1)));
        let behind = picked.ranked[1].behind.unwrap();
        assert!(behind.low < 1.25 && 1.25 < behind.high && behind.low > 1.2, "{behind:?}");
        assert!(picked.harness_ns.is_some());
        let picked = ask(&run, &question(&["epoll"]));
        assert_eq!(names(&picked), ["eventfd-epoll", "pipe"]);
        let why = |name: &str| picked.out.iter().find(|(known, _)| known == name).unwrap().1.to_string();
        assert_eq!(why("futex"), "no descriptor");
        assert!(pick(&run, &question(&["tea"])).unwrap_err().contains("no need is called 'tea'"));
    }

    /// The reader's machine was asked for the reason, and not the one that was measured.
    #[test]
    fn why_a_mechanism_is_absent_is_what_the_file_says_and_not_what_this_machine_lacks() {
        let mut run = run(&[("futex", 16e3), ("umwait", 22e3)], 10);
        for record in sample::of(&mut run, "umwait") {
            record.outcome = Outcome::Skipped { reason: "the moon is not full".to_owned() };
        }
        let left = |name: &str, reason: Option<&str>| LeftOut {
            name: name.to_owned(),
            subject: sample::subject(&sample::configuration(name)),
            reason: reason.map(str::to_owned),
        };
        run.plan.left_out = vec![left("mwaitx", Some("no such instruction")), left("pipe", None)];
        let picked = ask(&run, &question(&[]));
        let why =
            |name: &str| picked.out.iter().find(|(known, _)| known == name).map(|(_, why)| why.to_string());
        assert_eq!(why("umwait").as_deref(), Some("the moon is not full"));
        assert_eq!(why("mwaitx").as_deref(), Some("no such instruction"));
        assert_eq!(why("pipe").as_deref(), Some("not measured in this run"));
        assert_eq!(why("eventfd"), None, "of what is not in the file nothing is said");
    }

    /// A change of a configuration, and what it is a change of.
    type Change = (fn(&mut Configuration), &'static str);

    #[test]
    fn only_configurations_that_differ_in_nothing_but_the_mechanism_are_ranked() {
        let changes: [Change; 5] = [
            (|configuration| configuration.timing = Timing::Around, "timing"),
            (|configuration| configuration.until = Until::count(7), "window"),
            (|configuration| configuration.trace = Some(Trace::Stages), "trace"),
            (|configuration| configuration.injected_slowdown_ppm = Some(50_000), "slowdown on purpose"),
            (|configuration| configuration.latency_limit_us = Some(0), "latency limit"),
        ];
        for (change, axis) in changes {
            let mut run = run(&[("futex", 16e3), ("pipe", 22e3), ("eventfd", 12e3)], 10);
            sample::configurations(&mut run).filter(|one| one.subject == "eventfd").for_each(change);
            let picked = ask(&run, &question(&[]));
            assert_eq!(names(&picked), ["futex", "pipe"], "{axis}");
            // It said that the mechanism was not measured.
            let why = picked.out.iter().find(|(known, _)| known == "eventfd").unwrap();
            assert_eq!(why.1.to_string(), format!("measured under other conditions: {axis}"));
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_not() {
        let picked =
            ask(&run(&[("futex", 16e3), ("sem-posix", 16.01e3), ("pipe", 22e3)], 10), &question(&[]));
        assert_eq!(picked.choice, Ok(2));
        assert_eq!(picked.ranked[2].standing, Standing::Slower);
        assert!(matches!(picked.ranked[1].standing, Standing::Same { within } if within < RELEVANT));
        let few = ask(&run(&[("futex", 16e3), ("pipe", 22e3)], 3), &question(&[]));
        assert!(matches!(few.choice, Err(why) if why.to_string().contains("--blocks")));
    }

    #[test]
    fn another_gap_is_another_question() {
        let run = run(&[("futex", 16e3), ("pipe", 22e3)], 10);
        let picked = ask(&run, &question::Pick { gap_ns: 1000, ..question(&[]) });
        assert!(picked.ranked.is_empty() && picked.choice.is_err());
    }

    /// `bell-adaptive` was the answer to `--need sleep`, and both its sides had spun all the time.
    #[test]
    fn what_ran_all_the_time_on_both_sides_is_no_answer_to_a_need_for_sleep() {
        let mut run = run(&[("futex", 16e3), ("pipe", 10e3)], 10);
        for record in sample::of(&mut run, "pipe") {
            for side in &mut record.sides {
                side.user_ns = side.window_ns / 100 * 97;
            }
        }
        assert_eq!(names(&ask(&run, &question(&[]))), ["pipe", "futex"]);
        for need in ["sleep", "idle"] {
            let picked = ask(&run, &question(&[need]));
            assert_eq!(names(&picked), ["futex"], "{need}");
            assert!(
                picked.out[0].1.to_string().starts_with("did not sleep: both sides ran"),
                "{:?}",
                picked.out
            );
        }
    }

    /// Ways to wait for wake-ups that come 20,000 times a second: how
    /// long each takes and what of a CPU.
    fn traffic(ways: &[(WaitPolicy, f64, f64)]) -> ResultFile {
        let configurations: Vec<Configuration> = ways
            .iter()
            .map(|(wait, ..)| Configuration {
                pattern: Pattern::OpenLoop { gap_ns: 50_000 },
                schedule: Some(Schedule::Exponential),
                beside: Some(2),
                wait: *wait,
                ..sample::configuration("pipe")
            })
            .collect();
        let of = |configuration: &Configuration| {
            *ways.iter().find(|(wait, ..)| *wait == configuration.wait).unwrap()
        };
        let mut run = sample::result(&configurations, 8, |_, _| 1e3);
        let mut random = fastrand::Rng::with_seed(7);
        for record in &mut run.records {
            let (_, response_ns, share) = of(&record.configuration);
            let noise = 1.0 + 0.01 * (random.f64() - 0.5);
            record.series.insert(Quantity::Response, sample::series(response_ns * noise, 1000));
            record.series.insert(Quantity::Notify, sample::series(1_000.0, 1000));
            record.tally.seen = 1000;
            record.sides[1].side = "waiter".to_owned();
            record.sides[1].user_ns = (share * 50e6 - 1e6) as u64;
            record.sides[1].system_ns = 0;
        }
        run
    }

    #[test]
    fn of_ways_that_cost_no_more_than_they_may_the_fastest_is_chosen_and_of_equals_the_cheapest() {
        let spin = |us: u64| WaitPolicy::SpinThenBlock { spin_ns: us * 1000 };
        let run = traffic(&[
            (WaitPolicy::Spin, 300.0, 1.0),
            (spin(50), 2_000.0, 0.8),
            (spin(20), 6_000.0, 0.45),
            (spin(5), 6_010.0, 0.3),
            (WaitPolicy::Block, 9_000.0, 0.2),
        ]);
        let asked = |cpu_at_most| question::Pick {
            gap_ns: 50_000,
            traffic: Some(Traffic { schedule: Schedule::Exponential, beside: Some(2), cpu_at_most }),
            ..question(&["epoll"])
        };
        let chosen = |cpu_at_most| {
            let picked = ask(&run, &asked(cpu_at_most));
            assert_eq!(picked.choice, Ok(1));
            (picked.ranked[0].wait, picked.out.len())
        };
        assert_eq!(chosen(None), (WaitPolicy::Spin, 0));
        assert_eq!(chosen(Some(0.5)), (spin(5), 2), "as fast as a longer spin, and cheaper");
        assert_eq!(chosen(Some(0.25)), (WaitPolicy::Block, 4));
        let none = ask(&run, &asked(Some(0.1)));
        assert!(none.choice.is_err(), "{:?}", none.choice);
        assert!(
            none.out
                .iter()
                .any(|(_, why)| why.to_string() == "takes 20 % of a CPU; 10 % is the most asked for")
        );
        let alone = question::Pick {
            traffic: Some(Traffic { schedule: Schedule::Exponential, beside: None, cpu_at_most: None }),
            ..asked(None)
        };
        assert!(ask(&run, &alone).ranked.is_empty(), "it was measured in a set");
    }
}
