// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries a plan out: blocks in random order, each trial in processes of its own, one record each.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::bench;
use super::idle;
use super::in_turn::Partner;
use super::live::Told;
use super::pace::Pace;
use doorbell_harness::environment::{Watch, interference};
use doorbell_harness::family::{self, Family};
use doorbell_harness::in_turn::{self, Section};
use doorbell_harness::launch::launch;
use doorbell_harness::order::{Bench, Cut, Sliced};
use doorbell_harness::order::{Report, Task};
use doorbell_harness::primitives::{self, Moved};
use doorbell_harness::run_dir::RunDir;
use doorbell_harness::side::SideReport;
use doorbell_report::progress::Progress;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Relation;
use doorbell_results::plan::Plan;
use doorbell_results::record::result::{Beside, Primitives, SCHEMA_VERSION};
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::subject::Subject;
use doorbell_results::record::{Environment, Outcome, Record, ResultFile, Tally, Warning, warning};
use doorbell_results::written::time_ns;
use doorbell_subjects::FAMILIES;
use doorbell_subjects::transfer;
use doorbell_verdict::decided::decided;
use doorbell_verdict::plausibility::{Known, below_primitive_cost, near_the_clock, violations};
use doorbell_verdict::populations;

/// What a run is told besides its plan.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// A name for the result.
    pub name: Option<String>,
    /// The command line, to be stored.
    pub command_line: Vec<String>,
    /// Set when the user interrupts.
    pub interrupted: Arc<AtomicBool>,
}

/// Who is told between trials how far the run is. Nothing is called while a trial runs.
pub trait Observer {
    /// Trial `number` of `total` is about to start.
    fn starts(&mut self, number: usize, total: usize, configuration: &Configuration) {
        let _ = (number, total, configuration);
    }
    /// It ended with `record`.
    fn ends(&mut self, record: &Record) {
        let _ = record;
    }
}

impl Observer for Progress {
    fn starts(&mut self, _number: usize, _total: usize, configuration: &Configuration) {
        Progress::starts(self, configuration);
    }

    fn ends(&mut self, record: &Record) {
        Progress::ends(self, record);
    }
}

/// Carries `plan` out. Only what concerns the whole run is an error; what happens to a trial is in its record.
pub fn run(
    plan: Plan,
    machine: Machine,
    conditions: &Conditions,
    observer: &mut dyn Observer,
) -> io::Result<ResultFile> {
    let started_at_unix_ns = unix_ns();
    let partner = Partner::of_environment()?;
    let partner = partner.as_ref();
    let plan = match partner {
        Some(partner) => partner.plan(plan),
        None => plan,
    };
    let run_dir = RunDir::create()?;
    transfer::prepare::prepare(&plan, &run_dir, &conditions.interrupted)?;
    let mut trials = Trials {
        machine: &machine,
        run_dir: &run_dir,
        interrupted: &conditions.interrupted,
        partner,
        repeats: plan.repeats(),
        cut: bench::cut(&plan),
        pace: Pace::of(&plan),
        taking_turns: 0,
        turns: 0,
        struck: Vec::new(),
        beside: Vec::new(),
    };
    let most_blocks = plan.most_blocks();
    let total = plan.configurations.len() * most_blocks as usize;
    let plan = with_bench(plan, &machine, partner.is_none());
    let mut told = Told::begin(&run_dir, &plan, total, &conditions.command_line);
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut records = Vec::with_capacity(total);
    let interrupted = || conditions.interrupted.load(Relaxed);
    let mut warnings: Vec<Warning> = machine.virtualisation.emulated.then(emulated).into_iter().collect();
    warnings.extend(machine.kernel.stand_in.as_deref().map(stand_in));
    warnings.extend(scheduled_otherwise(&machine));
    // Primitive costs read once more for a single record, by its place.
    let mut witnesses: BTreeMap<usize, Primitives> = BTreeMap::new();
    let mut readings = Readings {
        machine: &machine,
        partner,
        interrupted: &conditions.interrupted,
        cpus: primitive_cpus(&machine),
        primitives: Vec::new(),
        last: Instant::now(),
    };
    let begun = Instant::now();
    let mut block = 0;
    'blocks: while block < most_blocks && !interrupted() {
        if block == 0 {
            warnings.extend(readings.read(block)?);
        }
        if let Some(partner) = partner {
            random = partner.random(block);
        }
        let mut order = parties(&plan, &machine);
        trials.begin(block, &order);
        random.shuffle(&mut order);
        // Where pairs of sides follow one another a reading between any two would be a fifth of the run.
        let trials_apart = order.iter().all(|party| matches!(party, Party::Alone(_)));
        for party in order {
            if interrupted() {
                break 'blocks;
            }
            observer.starts(records.len() + 1, total, party.first());
            // One for all that a pair of sides has: it is of the same moment.
            let mut witness = None;
            for record in trials.run(&party, block, &mut random)? {
                observer.ends(&record);
                told.ended(&record);
                if lies_below(&record, bounds(&record, &readings.primitives, &machine)) {
                    let witness = witness
                        .get_or_insert_with(|| primitives::measure(machine.clock, readings.cpus, block).ok());
                    witnesses.extend(witness.clone().map(|primitives| (records.len(), primitives)));
                }
                records.push(record);
            }
        }
        block += 1;
        if interrupted() {
            break;
        }
        if trials_apart || block == most_blocks || plan.looks.contains(&block) || readings.are_old() {
            warnings.extend(readings.read(block)?);
        }
        if plan.looks.contains(&block) && block < most_blocks {
            let plan = Plan { blocks: block, ..plan.clone() };
            let mut records = records.clone();
            judge(&mut records, &readings.primitives, &witnesses, &machine);
            let so_far = ResultFile {
                verdict: None,
                schema_version: SCHEMA_VERSION,
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                command_line: conditions.command_line.clone(),
                name: conditions.name.clone(),
                started_at_unix_ns,
                finished_at_unix_ns: unix_ns().max(started_at_unix_ns),
                partial: false,
                machine: machine.clone(),
                plan,
                primitives: readings.primitives.clone(),
                records,
                beside: trials.beside.clone(),
                warnings: Vec::new(),
            };
            // Until the next look it takes as long again at least.
            if decided(&so_far) || begun.elapsed() * 2 > BUDGET {
                break;
            }
        }
    }
    let plan = if plan.looks.is_empty() { plan } else { Plan { blocks: block.max(1), ..plan } };
    let (primitives, beside) = (readings.primitives, trials.beside);
    judge(&mut records, &primitives, &witnesses, &machine);
    warnings.dedup();
    Ok(ResultFile {
        verdict: None,
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: conditions.command_line.clone(),
        name: conditions.name.clone(),
        started_at_unix_ns,
        finished_at_unix_ns: unix_ns().max(started_at_unix_ns),
        partial: interrupted(),
        machine,
        plan,
        primitives,
        records,
        beside,
        warnings,
    })
}

/// How long a run may take that is looked at until what is asked of it is decided: that it ends by the clock says nothing of what it shows, and
/// makes no verdict the more likely.
const BUDGET: Duration = Duration::from_secs(60);

/// Two cores whose primitive costs stand for the run's; one twice where there is only one.
fn primitive_cpus(machine: &Machine) -> [u32; 2] {
    let first = machine.topology.usable.iter().next().unwrap_or(0);
    machine.topology.two_cores().unwrap_or([first; 2])
}

/// The primitive costs as they were read during a run.
struct Readings<'run> {
    machine: &'run Machine,
    partner: Option<&'run Partner>,
    interrupted: &'run AtomicBool,
    cpus: [u32; 2],
    primitives: Vec<Primitives>,
    last: Instant,
}

/// Where pairs of sides follow one another on the bench, primitive costs are read again after so long: a reading takes a tenth of a
/// second.
const READ_AGAIN: Duration = Duration::from_secs(4);

impl Readings<'_> {
    /// Two programs that take turns do the same, whatever their clocks say.
    fn are_old(&self) -> bool {
        self.partner.is_none() && self.last.elapsed() > READ_AGAIN
    }

    /// Reads them once more; a warning if they cannot be read.
    fn read(&mut self, block: u32) -> io::Result<Option<Warning>> {
        let read = || primitives::measure(self.machine.clock, self.cpus, block);
        let read = match self.partner {
            Some(partner) => partner.by_turns(&("costs", block), self.interrupted, read)?,
            None => Some(read()),
        };
        match read {
            Some(Ok(reading)) => self.primitives.push(reading),
            Some(Err(error)) => return Ok(Some(no_primitives(&error))),
            None => return Ok(None),
        }
        self.last = Instant::now();
        Ok(None)
    }
}

/// Whether a figure of `record` lies below all readings: it cannot be true, or the machine has changed since the last of them,
/// as one whose host moved both CPUs to one core (a line took 10 ns instead of 100 for some blocks). A reading taken at once
/// may tell. It speaks for this record alone: a figure that is false for another reason gets no second chance from it.
fn lies_below(record: &Record, primitives: &[Primitives]) -> bool {
    let known = Known { primitives, ..Known::default() };
    violations(record, &known).iter().any(|violation| violation.rule == below_primitive_cost::NAME)
}

fn emulated() -> Warning {
    Warning {
        name: warning::EMULATED.name.to_owned(),
        cause: "an emulator translated every instruction".to_owned(),
        effect: "every time is the emulator's and no machine's; it depends on what else its host did".to_owned(),
        cure: "use the counts, and ratios within this run; for times run on a CPU or with `doorbell vm run --accel kvm`"
            .to_owned(),
    }
}

/// Of sides that inherit what no plan says and this user may not undo, the warning.
fn scheduled_otherwise(machine: &Machine) -> Option<Warning> {
    let otherwise = machine.scheduling.otherwise();
    (!otherwise.is_empty()).then(|| Warning {
        name: warning::SCHEDULED_OTHERWISE.name.to_owned(),
        cause: format!("the command was started under what it may not undo, and its sides inherit: {}", otherwise.join(", ")),
        effect: "wake-ups are not those of the plan; no run that was scheduled in another way is compared with this one".to_owned(),
        cure: "start it without chrt, nice, numactl or prctl, or as a user who may undo them (root, CAP_SYS_NICE)".to_owned(),
    })
}

fn stand_in(name: &str) -> Warning {
    Warning {
        name: warning::STAND_IN.name.to_owned(),
        cause: format!("Wine, not Windows: {name} answered the calls of Windows"),
        effect: "what works is shown, and no time here says anything of Windows".to_owned(),
        cure: "run the same command on Windows".to_owned(),
    }
}

fn no_primitives(error: &io::Error) -> Warning {
    Warning {
        name: warning::NO_PRIMITIVES.name.to_owned(),
        cause: error.to_string(),
        effect:
            "figures cannot be held against the machine's primitive costs, nor can a comparison see them move"
                .to_owned(),
        cure: "see that this process may start others and use the CPUs of its affinity mask".to_owned(),
    }
}

/// Those of `primitive costs` that bound `record`: none in an emulator, whose times follow what else its host does, and none for two
/// threads of one core, between which a line takes a fraction of what it takes between the cores that primitive costs are read on.
fn bounds<'run>(record: &Record, primitives: &'run [Primitives], machine: &Machine) -> &'run [Primitives] {
    let relation = |[first, second]: [u32; 2]| machine.topology.relation(first, second);
    let siblings = record.configuration.placement.cpus.map(relation) == Some(Relation::SmtSibling);
    if machine.virtualisation.emulated || siblings { &[] } else { primitives }
}

/// Marks the records that cannot be true, and those beside which the machine itself changed.
fn judge(
    records: &mut [Record],
    primitives: &[Primitives],
    witnesses: &BTreeMap<usize, Primitives>,
    machine: &Machine,
) {
    for (place, record) in records.iter_mut().enumerate() {
        let witness = witnesses.get(&place);
        let before = primitives.iter().rfind(|reading| reading.block <= record.block);
        let after = primitives.iter().find(|reading| reading.block > record.block);
        if let Some(before) = before.filter(|_| !machine.virtualisation.emulated) {
            for after in after.into_iter().chain(witness) {
                record.warnings.extend(primitives::moved(before, after).iter().map(primitives_drifted));
            }
        }
        populations::explain(record);
        let primitives: Vec<Primitives> =
            bounds(record, primitives, machine).iter().chain(witness).cloned().collect();
        let known = Known::of(machine.clock_quality.as_ref(), &primitives);
        for (_, series) in record.series.iter_mut().filter(|(quantity, _)| !quantity.is_shared_out()) {
            series.refine(known.clock_step_ns * 1000.0);
        }
        let violations = violations(record, &known);
        if matches!(record.outcome, Outcome::Done | Outcome::Partial) && !violations.is_empty() {
            record.outcome = Outcome::Implausible { violations };
        }
        record.warnings.extend(near_the_clock(record, &known));
    }
}

fn primitives_drifted(moved: &Moved) -> Warning {
    Warning {
        name: warning::PRIMITIVES_DRIFTED.name.to_owned(),
        cause: format!(
            "{} went from {} to {} around this block",
            moved.name,
            time_ns(moved.before_ns),
            time_ns(moved.after_ns)
        ),
        effect: "the machine itself changed while the block ran; a comparison with another run says so"
            .to_owned(),
        cure: "run again, with more blocks; on a virtual machine look for a host that is not shared"
            .to_owned(),
    }
}

/// What every trial of a run needs.
struct Trials<'run> {
    machine: &'run Machine,
    run_dir: &'run RunDir,
    interrupted: &'run AtomicBool,
    /// Another program that takes turns with this one.
    partner: Option<&'run Partner>,
    /// Repetitions of trials with interference the run can still afford.
    repeats: usize,
    cut: Cut,
    pace: Option<Pace>,
    /// How many take turns in a block.
    taking_turns: usize,
    /// Turns of the block so far, of all its pairs: no two of them have a number in common.
    turns: u32,
    /// Configurations that hung on the bench: their records say so, and the others go on without them.
    struck: Vec<Configuration>,
    /// What those did that nobody asked for.
    beside: Vec<Beside>,
}

/// Who is measured together.
#[derive(Debug)]
enum Party<'plan> {
    /// One configuration, in a trial of its own.
    Alone(&'plan Configuration),
    /// Several that take turns between the same two sides, those in front that are asked for.
    Bench { members: Vec<&'plan Configuration>, asked: usize },
}

impl<'plan> Party<'plan> {
    fn taking_turns(&self) -> usize {
        match self {
            Self::Alone(_) => 0,
            Self::Bench { members, .. } => members.len(),
        }
    }

    fn first(&self) -> &'plan Configuration {
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

/// The plan, with what the result says of the bench; `accompanied` where nothing else takes turns with its configurations.
fn with_bench(plan: Plan, machine: &Machine, accompanied: bool) -> Plan {
    if plan.bench.is_none() {
        return plan;
    }
    let mut bench = bench::bench(&plan, |one| takes_turns(one, machine), subject);
    if let Some(bench) = bench.as_mut().filter(|_| !accompanied) {
        bench.beside.clear();
    }
    Plan { bench, ..plan }
}

/// A block of `plan`: what takes turns together, for each kind of sides, and each other configuration.
fn parties<'plan>(plan: &'plan Plan, machine: &Machine) -> Vec<Party<'plan>> {
    let (mut sliced, alone): (Vec<&Configuration>, Vec<&Configuration>) =
        plan.configurations.iter().partition(|one| plan.bench.is_some() && takes_turns(one, machine));
    sliced.extend(plan.bench.iter().flat_map(|bench| &bench.beside));
    let of = |contexts: Contexts| {
        let members: Vec<_> = sliced.iter().copied().filter(|one| one.contexts == contexts).collect();
        let asked = members.iter().filter(|one| plan.configurations.contains(one)).count();
        (asked > 0).then_some(Party::Bench { members, asked })
    };
    let benches = [Contexts::Processes, Contexts::Threads].into_iter().filter_map(of);
    alone.into_iter().map(Party::Alone).chain(benches).collect()
}

/// In a run that takes turns with another one the turns of a pair of sides have numbers so far from those of the next.
const PAIRS_APART: u32 = 1 << 20;

/// Most tries for a trial that meets interference.
const TRIES: u32 = 3;

impl Trials<'_> {
    fn begin(&mut self, block: u32, parties: &[Party<'_>]) {
        self.taking_turns = parties.iter().map(Party::taking_turns).sum();
        self.turns = 0;
        if let Some(pace) = &mut self.pace {
            pace.begins(block);
        }
    }

    fn run(&mut self, party: &Party<'_>, block: u32, random: &mut fastrand::Rng) -> io::Result<Vec<Record>> {
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

    /// A pair of sides between which `members` take turns. Whoever hangs or fails ends alone: the pair is made anew without it.
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
        // What takes turns with another program does so once a block: the other does not know what became of it.
        let once = self.partner.is_some();
        let contexts = members.first().map(|member| member.contexts);
        let mut together: Vec<Vec<&Configuration>> =
            vec![members.iter().copied().filter(|one| !self.struck.contains(one)).collect()];
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
                                if slices.is_empty() && interrupted {
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
                    if matches!(outcome, Outcome::Hung { .. }) {
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

    /// Runs `members` between two sides. Met by interference they are not run again: of slices as short as these it takes some, whose
    /// neighbours tell, and of a whole pair all.
    fn pair(&self, members: &[&Configuration], seed: u64, in_turn: Option<Section>) -> (Report, Environment) {
        let turns = bench::turns(members, subject).into_iter().map(|(_, members)| members).collect();
        let configurations = members.iter().copied().cloned().collect();
        let share = self.pace.as_ref().map(|pace| pace.share(members.len(), self.taking_turns));
        let time_ns = share.and_then(|share| u64::try_from(share.as_nanos()).ok());
        let task = Task::Bench(Bench { configurations, turns, cut: self.cut, time_ns, seed, in_turn });
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

    /// Watches who else uses the CPUs of `members`. Of two programs that take turns the other would be seen: whoever
    /// started both watches.
    fn watch(&self, members: &[&Configuration]) -> Option<Watch> {
        self.partner.is_none().then(|| Watch::begin(members, &self.machine.topology))
    }

    /// Runs one configuration until it was left alone, or as often as the run can afford; the last try is kept, marked.
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

/// The outcome of a configuration whose pair ended because of `subject`, which took turns beside it.
fn failed_beside(subject: &str, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { cause } => {
            Outcome::Failed { cause: format!("{subject}, which takes turns beside it: {cause}") }
        }
        other => other,
    }
}

/// What this machine lacks for `configuration`.
fn lacks(configuration: &Configuration, machine: &Machine) -> Option<String> {
    if let Some(lack) = idle::lacks(configuration, machine) {
        return Some(lack);
    }
    family(configuration)?.lacks(configuration, machine)
}

/// The family that knows what `configuration` names.
fn family(configuration: &Configuration) -> Option<&'static dyn Family> {
    family::of(FAMILIES, configuration.pattern)
}

/// What `configuration` measures; unknown if this build has nothing of the name, which its trial then says.
pub fn subject(configuration: &Configuration) -> Subject {
    family(configuration).and_then(|family| family.subject(configuration)).unwrap_or_default()
}

fn record(configuration: &Configuration, block: u32, outcome: Outcome) -> Record {
    Record {
        configuration: configuration.clone(),
        subject: subject(configuration),
        block,
        attempts: 1,
        outcome,
        series: BTreeMap::new(),
        figures: Vec::new(),
        slices: Vec::new(),
        fanout: None,
        io: None,
        tally: Tally::default(),
        sides: Vec::new(),
        load: None,
        anatomy: None,
        environment: Environment::default(),
        warnings: Vec::new(),
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

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Direction;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::subject::Waits;
    use doorbell_results::record::{SideCounters, sample};
    use doorbell_subjects::fan;
    use doorbell_subjects::mechanism;
    use doorbell_subjects::task;

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

    /// Round trips of 43 ns were called impossible on a machine whose host had moved its CPUs after the primitive costs were read.
    #[test]
    fn a_reading_beside_a_trial_below_the_primitives_clears_that_trial_alone_and_marks_it() {
        let mut records = [0, 1].map(|block| sample::record(sample::configuration("futex"), block, 40.0));
        let primitives = [0, 1, 2].map(|block| sample::primitives(block, 1.0));
        assert!(records.iter().all(|record| lies_below(record, &primitives)));
        judge(
            &mut records,
            &primitives,
            &BTreeMap::from([(1, sample::primitives(1, 0.5))]),
            &sample::result(&[], 1, |_, _| 0.0).machine,
        );
        let [first, second] = records;
        assert!(matches!(first.outcome, Outcome::Implausible { .. }) && first.warnings.is_empty());
        assert_eq!(second.outcome, Outcome::Done);
        assert!(second.warnings.iter().any(|warning| warning.name == warning::PRIMITIVES_DRIFTED.name));
    }

    #[test]
    fn what_was_sent_and_not_seen_is_lost_even_if_nothing_was_seen_at_all() {
        assert_eq!(lost("udp", 100, 97), 3);
        assert_eq!(lost("udp", 100, 0), 100);
        assert_eq!(lost("null", 100, 0), 0, "nobody waits for those");
    }

    #[test]
    fn a_sane_record_of_every_mechanism_and_pattern_breaks_no_rule() {
        for entry in mechanism::all() {
            for pattern in [Pattern::PingPong { gap_ns: 0 }, Pattern::OneWay { gap_ns: 1000 }] {
                let mut record = sample::record(sample::configuration(entry.name()), 0, 16_000.0);
                record.configuration.pattern = pattern;
                record.subject = subject(&record.configuration);
                if entry.notification().waits == Waits::Spins {
                    record.sides.iter_mut().for_each(|side| side.voluntary_switches = 0);
                    record.environment.interrupts.clear();
                }
                let primitives = [sample::primitives(0, 1.0)];
                let known = Known { primitives: &primitives, clock_step_ns: 10.0, skew_ns: 0.0 };
                assert_eq!(violations(&record, &known), [], "{}", entry.name());
            }
        }
    }

    /// What tests of records take for granted of the subjects they name is what those are.
    #[test]
    fn the_subjects_of_made_up_records_are_as_the_real_ones() {
        let of = |pattern, names: Vec<&'static str>| names.into_iter().map(move |name| (pattern, name));
        let patterns = of(
            Pattern::PingPong { gap_ns: 0 },
            vec!["null", "spin", "futex", "udp", "pipe", "eventfd", "sem-posix"],
        )
        .chain(of(
            Pattern::FanOut { receivers: 2, interval_ns: 1 },
            fan::all().iter().map(|fan| fan.name()).collect(),
        ))
        .chain(of(
            Pattern::Tasks { tasks: 2, yields: 1 },
            task::all().iter().map(|kind| kind.name()).collect(),
        ))
        .chain(of(
            Pattern::Io { direction: Direction::Read, direct: true },
            transfer::all().iter().map(|engine| engine.name()).collect(),
        ));
        for (pattern, name) in patterns {
            let mut configuration = sample::configuration(name);
            configuration.pattern = pattern;
            let (made_up, real) = (sample::subject(&configuration), subject(&configuration));
            let essence = |subject: &Subject| match subject {
                Subject::Mechanism(own) | Subject::FanOut { notification: own, .. } => {
                    format!(
                        "{:?} {} {}",
                        own.waits,
                        own.drops,
                        matches!(subject, Subject::FanOut { shared: true, .. })
                    )
                }
                other => format!("{other:?}"),
            };
            assert_eq!(essence(&made_up), essence(&real), "{name}");
        }
    }

    #[test]
    fn what_this_build_does_not_have_is_unknown() {
        assert_eq!(subject(&sample::configuration("carrier-pigeon")), Subject::Unknown);
    }
}
