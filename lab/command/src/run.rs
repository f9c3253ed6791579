// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries a plan out: blocks in random order, each trial in processes of its own, one record each.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doorbell_harness::primitives;
use doorbell_harness::run_dir::RunDir;
use doorbell_report::progress::Progress;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_results::record::result::{Primitives, SCHEMA_VERSION};
use doorbell_results::record::{ResultFile, Warning, warning};
use doorbell_subjects::transfer;
use doorbell_verdict::decided::decided;
use in_turn::Partner;
use judge::{bounds, judge, lies_below};
use pace::Pace;
use readings::{Readings, primitive_cpus};
use subject::subject;
use trials::{Party, Trials, parties, with_bench};

pub mod bench;
mod in_turn;
mod judge;
mod pace;
mod readings;
pub mod subject;
mod trials;

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

/// Carries `plan` out. Only what concerns the whole run is an error;
/// what happens to a trial is in its record. Between trials `progress`
/// is told how far the run is, and nothing is called while one runs.
pub fn carry_out(
    plan: Plan,
    machine: Machine,
    conditions: &Conditions,
    progress: &mut Progress,
) -> io::Result<ResultFile> {
    let started_at_unix_ns = unix_ns();
    let partner = Partner::of_environment()?;
    let partner = partner.as_ref();
    let plan = match partner {
        Some(partner) => partner.plan(plan, |configuration| subject(configuration).is_harness()),
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
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut records = Vec::with_capacity(total);
    let interrupted = || conditions.interrupted.load(Relaxed);
    let mut warnings: Vec<Warning> = machine.virtualisation.emulated.then(emulated).into_iter().collect();
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
    let result = |plan, primitives, records, beside| ResultFile {
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
        primitives,
        records,
        beside,
        warnings: Vec::new(),
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
        let mut order = parties(&plan, &machine, partner.is_some());
        trials.begin(block, &order);
        random.shuffle(&mut order);
        // Where pairs of sides follow one another a reading between any two would be a fifth of the run.
        let trials_apart = order.iter().all(|party| matches!(party, Party::Alone(_)));
        for party in order {
            if interrupted() {
                break 'blocks;
            }
            progress.starts(party.first());
            // One for all that a pair of sides has: it is of the same moment.
            let mut witness = None;
            for record in trials.of(&party, block, &mut random)? {
                progress.ends(&record);
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
            let so_far = result(plan, readings.primitives.clone(), records, trials.beside.clone());
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
    Ok(ResultFile { partial: interrupted(), warnings, ..result(plan, primitives, records, beside) })
}

/// How long a run may take that is looked at until what is asked of it is decided: that it ends by
/// the clock says nothing of what it shows, and makes no verdict the more likely.
const BUDGET: Duration = Duration::from_secs(60);

fn emulated() -> Warning {
    Warning {
        name: warning::EMULATED.name.to_owned(),
        cause: "an emulator translated every instruction".to_owned(),
        effect: "every time is the emulator's and no machine's; it depends on what else its host \
            did"
        .to_owned(),
        cure: "use the counts, and ratios within this run; for times run on a CPU or with \
            `doorbell vm run --accel kvm`"
            .to_owned(),
    }
}

/// Of sides that inherit what no plan says and this user may not undo, the warning.
fn scheduled_otherwise(machine: &Machine) -> Option<Warning> {
    let otherwise = machine.scheduling.otherwise();
    (!otherwise.is_empty()).then(|| Warning {
        name: warning::SCHEDULED_OTHERWISE.name.to_owned(),
        cause: format!(
            "the command was started under what it may not undo, and its sides inherit: \
            {}",
            otherwise.join(", ")
        ),
        effect: "wake-ups are not those of the plan; no run that was scheduled in another way is \
            compared with this one"
            .to_owned(),
        cure: "start it without chrt, nice, numactl or prctl, or as a user who may undo them \
            (root, CAP_SYS_NICE)"
            .to_owned(),
    })
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}
