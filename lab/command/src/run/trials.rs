// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured together, and a record of each: in a trial of its
//! own, or in turns between two sides.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::run::bench;
use crate::run::in_turn::Partner;
use crate::run::pace::Pace;
use crate::run::subject::{family, lacks, record, subject};
use doorbell_harness::environment::{Watch, interference};
use doorbell_harness::in_turn::{self, Section};
use doorbell_harness::launch::launch;
use doorbell_harness::order::{Bench, Cut, Report, Sliced, Task};
use doorbell_harness::run_dir::RunDir;
use doorbell_harness::side::SideReport;
use doorbell_results::configuration::{Configuration, Placement, Scheduler};
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::record::result::Beside;
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{Environment, Outcome, Record};

/// What every trial of a run needs.
pub(super) struct Trials<'run> {
    pub(super) machine: &'run Machine,
    pub(super) run_dir: &'run RunDir,
    pub(super) interrupted: &'run AtomicBool,
    /// Another program that takes turns with this one.
    pub(super) partner: Option<&'run Partner>,
    /// Repetitions of trials with interference the run can still afford.
    pub(super) repeats: usize,
    pub(super) cut: Cut,
    pub(super) pace: Option<Pace>,
    /// How many take turns in a block.
    pub(super) taking_turns: usize,
    /// Turns of the block so far, of all its pairs: no two of them have a number in common.
    pub(super) turns: u32,
    /// Configurations that hung on the bench, or failed among those done one by one: their records
    /// say so, and the others go on without them.
    pub(super) struck: Vec<Configuration>,
    /// What those did that nobody asked for.
    pub(super) beside: Vec<Beside>,
}

/// Who is measured together.
#[derive(Debug)]
pub(super) enum Party<'plan> {
    /// One configuration, in a trial of its own.
    Alone(&'plan Configuration),
    /// Several that take turns between the same two sides, or follow
    /// one another, those in front that are asked for.
    Bench { members: Vec<&'plan Configuration>, asked: usize },
}

impl<'plan> Party<'plan> {
    fn taking_turns(&self) -> usize {
        match self {
            Self::Alone(_) => 0,
            Self::Bench { members, .. } => members.len(),
        }
    }

    pub(super) fn first(&self) -> &'plan Configuration {
        match self {
            Self::Alone(one) => one,
            Self::Bench { members, .. } => members[0],
        }
    }
}

/// Whether `configuration` takes turns with others.
fn takes_turns(configuration: &Configuration, machine: &Machine) -> bool {
    doorbell_harness::bench::fits(configuration, subject(configuration).notification())
        && lacks(configuration, machine).is_none()
}

/// The plan, with what the result says of the bench; `accompanied` where nothing else takes turns
/// with its configurations.
pub(super) fn with_bench(plan: Plan, machine: &Machine, accompanied: bool) -> Plan {
    if plan.bench.is_none() {
        return plan;
    }
    let mut bench = bench::bench(&plan, |one| takes_turns(one, machine), subject);
    if let Some(bench) = bench.as_mut().filter(|_| !accompanied) {
        bench.beside.clear();
    }
    Plan { bench, ..plan }
}

/// With what of `configuration` must be the same for one pair of sides to do it after others; none
/// where it has a pair of its own.
fn one_by_one(configuration: &Configuration) -> Option<(u32, &Placement, Scheduler, Contexts)> {
    let Configuration { placement, scheduler, contexts, load, trace, latency_limit_us, .. } = configuration;
    let apart = load.is_some() || trace.is_some() || latency_limit_us.is_some();
    let number = family(configuration)?.one_by_one(configuration).filter(|_| !apart)?;
    Some((number, placement, *scheduler, *contexts))
}

/// A block of `plan`: what takes turns together, for each kind of sides, what is done one by one,
/// unless another program takes turns with this one, and each other configuration.
pub(super) fn parties<'plan>(plan: &'plan Plan, machine: &Machine, accompanied: bool) -> Vec<Party<'plan>> {
    let mut following: Vec<Party<'plan>> = Vec::new();
    let mut follows = |one: &'plan Configuration| {
        let Some(key) = one_by_one(one).filter(|_| !accompanied && lacks(one, machine).is_none()) else {
            return false;
        };
        let like = |party: &&mut Party<'plan>| one_by_one(party.first()) == Some(key);
        match following.iter_mut().find(like) {
            Some(Party::Bench { members, asked }) => {
                members.push(one);
                *asked += 1;
            }
            _ => following.push(Party::Bench { members: vec![one], asked: 1 }),
        }
        true
    };
    let apart = plan.configurations.iter().filter(|one| !follows(one)).collect::<Vec<_>>();
    let (mut sliced, alone): (Vec<&Configuration>, Vec<&Configuration>) =
        apart.into_iter().partition(|one| plan.bench.is_some() && takes_turns(one, machine));
    sliced.extend(plan.bench.iter().flat_map(|bench| &bench.beside));
    let of = |contexts: Contexts| {
        let members: Vec<_> = sliced.iter().copied().filter(|one| one.contexts == contexts).collect();
        let asked = members.iter().filter(|one| plan.configurations.contains(one)).count();
        (asked > 0).then_some(Party::Bench { members, asked })
    };
    let benches = [Contexts::Processes, Contexts::Threads].into_iter().filter_map(of);
    alone.into_iter().map(Party::Alone).chain(benches).chain(following).collect()
}

/// In a run that takes turns with another one the turns of a pair of
/// sides have numbers so far from those of the next.
const PAIRS_APART: u32 = 1 << 20;

/// Most tries for a trial that meets interference.
const TRIES: u32 = 3;

impl Trials<'_> {
    pub(super) fn begin(&mut self, block: u32, parties: &[Party<'_>]) {
        self.taking_turns = parties.iter().map(Party::taking_turns).sum();
        self.turns = 0;
        if let Some(pace) = &mut self.pace {
            pace.begins(block);
        }
    }

    /// The records of `party`.
    pub(super) fn of(
        &mut self,
        party: &Party<'_>,
        block: u32,
        random: &mut fastrand::Rng,
    ) -> io::Result<Vec<Record>> {
        match party {
            Party::Alone(configuration) => {
                let Some(partner) = self.partner else { return Ok(vec![self.alone(configuration, block)?]) };
                let what = ("trial", block, in_turn::members(&[(*configuration).clone()]));
                let trial = partner.by_turns(&what, self.interrupted, || self.alone(configuration, block))?;
                trial.into_iter().collect()
            }
            Party::Bench { members, asked } => self.bench(members, *asked, block, random),
        }
    }

    /// A pair of sides between which `members` take turns. Whoever hangs or fails ends alone: the
    /// pair is made anew without it.
    fn bench(
        &mut self,
        members: &[&Configuration],
        asked: usize,
        block: u32,
        random: &mut fastrand::Rng,
    ) -> io::Result<Vec<Record>> {
        let records = self.between(members, asked, block, random)?;
        let is_asked = |record: &Record| members[..asked].contains(&&record.configuration);
        let (records, beside): (Vec<Record>, Vec<Record>) = records.into_iter().partition(is_asked);
        let beside = beside.into_iter().filter(|record| !record.slices.is_empty());
        self.beside.extend(beside.map(|Record { configuration, block, slices, .. }| Beside {
            configuration,
            block,
            slices,
        }));
        Ok(records)
    }

    /// Everything that `members` did between two sides.
    fn between(
        &mut self,
        members: &[&Configuration],
        asked: usize,
        block: u32,
        random: &mut fastrand::Rng,
    ) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        // What takes turns with another program does so once a block:
        // the other does not know what became of it.
        let once = self.partner.is_some();
        let contexts = members.first().map(|member| member.contexts);
        let mut together: Vec<Vec<&Configuration>> =
            vec![members.iter().copied().filter(|one| !self.struck.contains(one)).collect()];
        if members.iter().all(|one| one_by_one(one).is_some()) {
            // What takes turns is shuffled turn by turn.
            together.iter_mut().for_each(|members| random.shuffle(members));
        }
        while let Some(mut pair) = together.pop() {
            let seed = random.u64(..);
            let (report, environment) = match self.partner {
                None if pair.is_empty() => continue,
                None => self.pair(&pair, seed, None),
                Some(partner) => {
                    let about = in_turn::about(&("bench", block, contexts));
                    let section = partner.section(about);
                    partner.bench(about, self.interrupted, || self.pair(&pair, seed, Some(section)))?
                }
            };
            let ended = |configuration: &Configuration, outcome| Record {
                environment: environment.clone(),
                ..record(configuration, block, outcome)
            };
            let (at, outcome) = match report {
                Report::Sliced { came, interrupted } => {
                    let outcome = if interrupted { Outcome::Partial } else { Outcome::Done };
                    let final_ = once || pair.len() == 1;
                    let before = self.turns;
                    for (configuration, came) in pair.into_iter().zip(came) {
                        match came {
                            Sliced::Sides { sides } => {
                                let mut slices = bench::slices(&sides);
                                slices.iter_mut().for_each(|slice| slice.turn += before);
                                let last = slices.iter().map(|slice| slice.turn + 1).max();
                                self.turns = self.turns.max(last.unwrap_or(0));
                                let nothing = sides.iter().all(|side| side.series.is_empty());
                                if slices.is_empty() && nothing && interrupted {
                                    // Its turn had not come.
                                    continue;
                                }
                                let mut record = gather(configuration, block, sides, outcome.clone());
                                if let Some(family) = family(configuration) {
                                    family.derive(&mut record, self.machine);
                                }
                                record.slices = slices;
                                record.warnings.extend(interference(&environment));
                                record.environment = environment.clone();
                                records.push(record);
                            }
                            // What cannot be opened beside the others may be by itself.
                            Sliced::NotOpened { .. } if !final_ => together.push(vec![configuration]),
                            Sliced::NotOpened { cause } => {
                                records.push(ended(configuration, Outcome::Failed { cause }));
                            }
                        }
                    }
                    self.turns = if once { before + PAIRS_APART } else { self.turns };
                    continue;
                }
                Report::Hung { last_seen, at } => (at, Outcome::Hung { last_seen }),
                Report::Failed { cause, at } => (at, Outcome::Failed { cause }),
                Report::Done { .. } => (None, Outcome::Failed { cause: "a trial's report came".to_owned() }),
            };
            match at.map(|at| at as usize).filter(|at| *at < pair.len()) {
                Some(at) => {
                    let configuration = pair.remove(at);
                    // Where something is made ready for all, whoever fails takes what came before it along.
                    if matches!(outcome, Outcome::Hung { .. }) || one_by_one(configuration).is_some() {
                        self.struck.push(configuration.clone());
                    }
                    // What nobody asked for has no record: what it takes turns beside says what became of it.
                    let beside = |one: &&Configuration| {
                        members[..asked].contains(one) && one.placement == configuration.placement
                    };
                    let (bearer, outcome) = match pair.iter().position(beside) {
                        Some(bearer) if !members[..asked].contains(&configuration) => {
                            (pair.remove(bearer), failed_beside(&configuration.subject, outcome))
                        }
                        _ => (configuration, outcome),
                    };
                    records.push(ended(bearer, outcome));
                    if !once && !self.interrupted.load(Relaxed) {
                        together.push(pair);
                    }
                }
                None => records.extend(pair.into_iter().map(|one| ended(one, outcome.clone()))),
            }
        }
        Ok(records)
    }

    /// Runs `members` between two sides. Met by interference they are not run again: of slices as
    /// short as these it takes some, whose neighbours tell, and of a whole pair all.
    fn pair(&self, members: &[&Configuration], seed: u64, in_turn: Option<Section>) -> (Report, Environment) {
        let configurations = members.iter().copied().cloned().collect();
        let share = self.pace.as_ref().map(|pace| pace.share(members.len(), self.taking_turns));
        let time_ns = share.and_then(|share| u64::try_from(share.as_nanos()).ok());
        let task = if members.iter().all(|one| one_by_one(one).is_some()) {
            Task::OneByOne(configurations)
        } else {
            let turns = bench::turns(members, subject).into_iter().map(|(_, members)| members).collect();
            Task::Bench(Bench { configurations, turns, cut: self.cut, time_ns, seed, in_turn })
        };
        let watch = self.watch(members);
        let report = launch(task, self.machine.clock, self.run_dir, self.interrupted)
            .unwrap_or_else(|error| Report::Failed { cause: error.to_string(), at: None });
        let mut environment = watch.map(Watch::end).unwrap_or_default();
        if members.len() > 1 {
            // Counted for all of them together, they are of none.
            environment.interrupts.clear();
            environment.idle_states.clear();
            environment.idle_entries.clear();
        }
        (report, environment)
    }

    /// Watches who else uses the CPUs of `members`. Of two programs that take turns the other would
    /// be seen: whoever started both watches.
    fn watch(&self, members: &[&Configuration]) -> Option<Watch> {
        self.partner.is_none().then(|| Watch::begin(members, &self.machine.topology))
    }

    /// Runs one configuration until it was left alone, or as often as
    /// the run can afford; the last try is kept, marked.
    fn alone(&mut self, configuration: &Configuration, block: u32) -> io::Result<Record> {
        if let Some(reason) = lacks(configuration, self.machine) {
            return Ok(record(configuration, block, Outcome::Skipped { reason }));
        }
        let mut attempts = 1;
        loop {
            let watch = self.watch(&[configuration]);
            let task = Task::Trial(Box::new(configuration.clone()));
            let report = launch(task, self.machine.clock, self.run_dir, self.interrupted)
                .unwrap_or_else(|error| Report::Failed { cause: error.to_string(), at: None });
            let environment = watch.map(Watch::end).unwrap_or_default();
            let interfered = interference(&environment);
            let whole = matches!(report, Report::Done { interrupted: false, .. });
            if whole && !interfered.is_empty() && attempts < TRIES && self.repeats > 0 {
                attempts += 1;
                self.repeats -= 1;
                continue;
            }
            let mut record = match report {
                Report::Done { sides, interrupted, load, anatomy } => {
                    let outcome = if interrupted { Outcome::Partial } else { Outcome::Done };
                    Record {
                        load,
                        anatomy: anatomy.map(|anatomy| *anatomy),
                        ..gather(configuration, block, sides, outcome)
                    }
                }
                Report::Hung { last_seen, .. } => record(configuration, block, Outcome::Hung { last_seen }),
                Report::Failed { cause, .. } => record(configuration, block, Outcome::Failed { cause }),
                Report::Sliced { .. } => {
                    let cause = "a bench's report came".to_owned();
                    record(configuration, block, Outcome::Failed { cause })
                }
            };
            if let Some(family) = family(configuration) {
                family.derive(&mut record, self.machine);
            }
            record.attempts = attempts;
            record.environment = environment;
            record.warnings.extend(interfered);
            return Ok(record);
        }
    }
}

/// The outcome of a configuration whose pair ended because of
/// `subject`, which took turns beside it.
fn failed_beside(subject: &str, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { cause } => {
            Outcome::Failed { cause: format!("{subject}, which takes turns beside it: {cause}") }
        }
        other => other,
    }
}

/// Puts both sides' reports into one record.
fn gather(configuration: &Configuration, block: u32, sides: Vec<SideReport>, outcome: Outcome) -> Record {
    let mut gathered = record(configuration, block, outcome);
    for side in sides {
        gathered.tally = gathered.tally.plus(&side.tally);
        for (quantity, series) in side.series {
            // Both sides of a ping-pong wait; the initiator's wait is the one a round trip is made of.
            gathered.series.entry(quantity).or_insert(series);
        }
        gathered.sides.push(side.counters);
        gathered.io = gathered.io.or(side.io);
        gathered.figures.extend(side.figures);
        gathered.fanout = gathered.fanout.or(side.fanout);
    }
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::{SideCounters, Tally, sample};
    use std::collections::BTreeMap;

    fn sides(sent: u64, seen: u64) -> Vec<SideReport> {
        let side = |tally| SideReport {
            series: BTreeMap::new(),
            tally,
            counters: SideCounters::default(),
            figures: Vec::new(),
            fanout: None,
            io: None,
            slices: Vec::new(),
            error: None,
        };
        vec![side(Tally { sent, ..Tally::default() }), side(Tally { seen, ..Tally::default() })]
    }

    fn lost(subject: &str, sent: u64, seen: u64) -> u64 {
        let mut configuration = sample::configuration(subject);
        configuration.pattern = Pattern::OneWay { gap_ns: 1000 };
        let mut record = gather(&configuration, 0, sides(sent, seen), Outcome::Done);
        family(&configuration).unwrap().derive(&mut record, &sample::machine());
        record.tally.lost
    }

    #[test]
    fn what_was_sent_and_not_seen_is_lost_even_if_nothing_was_seen_at_all() {
        assert_eq!(lost("udp", 100, 97), 3);
        assert_eq!(lost("udp", 100, 0), 100);
        assert_eq!(lost("null", 100, 0), 0, "nobody waits for those");
    }
}
