// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bench: two resident sides that hold everything open and take turns with it, slice by slice.
//!
//! WHY: a machine is fast now and slow then, for milliseconds to seconds
//! at a time. What takes turns every millisecond meets the same machine;
//! what has a trial of its own, seconds from the next, does not.
//!
//! HOW: the host opens all links and forks two sides, which take all their ends. The side that
//! notifies first chooses what comes next (`course`) and writes it down before the last
//! notification of a slice, so that a change costs no meeting (`life`). Where another program takes
//! turns with this one, both sides sleep between its slices (`beside`). A mechanism plays a slice
//! by its `resident::Resident`, compiled for it as a trial's loop is.

use std::sync::atomic::Ordering::Relaxed;

use crate::arena::Arena;
use crate::bare;
use crate::control::Control;
use crate::family::Families;
use crate::in_turn;
use crate::mechanism::Link;
use crate::opened::{Opened, open};
use crate::order::{Bench, Order, Report, Sliced};
use crate::role::Role;
use crate::run_dir::RunDir;
use crate::running::{Home, RunningSides, Watched};
use crate::side::{Side, SideError};
use crate::site::Site;
use doorbell_results::configuration::Configuration;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::record::subject::Contexts;
use life::{Life, Member, Told, Words};
use resident::Resident;

pub(crate) mod account;
mod beside;
mod counted;
mod course;
mod fits;
mod life;
pub(crate) mod resident;
pub(crate) mod rounds;

pub use account::Seen;
pub use fits::fits;

/// Memory for the words of one mechanism; whoever needs more is told
/// to be run alone, where there is a megabyte more.
const OWN: usize = 128 << 10;

/// Lets the calling thread run on `cpus`.
fn unpin(cpus: &CpuList) -> Result<(), SideError> {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(cpu as usize));
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| SideError::Setup {
        call: "sched_setaffinity",
        cause: format!("CPUs {cpus}: {error}"),
        cure: "run it once more: the CPUs that this process may use have changed",
    })
}

struct Placed {
    place: usize,
    opened: Opened,
}

impl Placed {
    /// Side `index` of it; none of what the bench cannot measure.
    fn resident(
        &self,
        order: &Order,
        configuration: &Configuration,
        index: usize,
    ) -> Option<(Side, Box<dyn Resident + '_>)> {
        let Opened { control, payload, sides } = &self.opened;
        let role = sides.roles[index];
        let side = Side::new(role, order.clock, configuration.clone(), control, *payload);
        let resident = sides.links.resident(role, &side)?;
        Some((side, resident))
    }
}

pub(crate) fn run(
    order: &Order,
    bench: &Bench,
    families: Families,
    run_dir: &RunDir,
) -> Result<Report, String> {
    let contexts = bench.configurations.first().map_or(Contexts::default(), |first| first.contexts);
    let each =
        |configuration: &Configuration| size_of::<Control>() + 2 * (configuration.size as usize + 4096) + OWN;
    let size = bench.configurations.iter().map(each).sum::<usize>() + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let words: &'static Words = arena.place().map_err(|error| error.to_string())?;
    let meeting = Control::place(arena).map_err(|error| error.to_string())?;
    let in_turn = bench.in_turn.as_ref().map(|section| section.seat.take()).transpose();
    let in_turn = in_turn.map_err(|error| error.to_string())?;
    let known = in_turn::members(&bench.configurations);
    let site = Site::new(contexts, arena, run_dir);
    let line = || bare::Link::open(&site).map_err(|error| error.to_string());
    let gate = [line()?, line()?];
    let mut opened = Vec::new();
    let mut came: Vec<Option<Sliced>> = Vec::new();
    for (place, configuration) in bench.configurations.iter().enumerate() {
        match open(order.clock, configuration, families, arena, &site, run_dir) {
            Ok(one) => {
                let one = Placed { place, opened: one };
                if one.resident(order, configuration, 0).is_none() {
                    return Err(format!("nothing measures {} in slices", configuration.subject));
                }
                opened.push(one);
                came.push(None);
            }
            Err(cause) => came.push(Some(Sliced::NotOpened { cause })),
        }
    }
    let turns: Vec<Vec<usize>> = bench
        .turns
        .iter()
        .map(|turn| {
            let opened = |place: &u32| opened.iter().position(|one| one.place == *place as usize);
            turn.iter().filter_map(opened).collect()
        })
        .collect();
    let life = |role: Role| {
        let members = opened.iter().filter_map(|one| {
            let (side, resident) = one.resident(order, &bench.configurations[one.place], role.index())?;
            Some(Member::new(side, resident, known[one.place]))
        });
        let told = Life::new(role, words, meeting, &gate, members.collect())
            .map(|life| life.live(turns.clone(), bench, in_turn))
            .unwrap_or_else(|error| Told { sides: Vec::new(), gave_up: Some((0, error.to_string())) });
        serde_json::to_vec(&told).unwrap_or_default()
    };
    let roles = [Role::Initiate, Role::Respond];
    let running = RunningSides::fork(contexts, roles, &life).map_err(|error| error.to_string())?;
    let controls: Vec<&'static Control> = opened.iter().map(|one| one.opened.control).collect();
    let told = |text: &[u8]| {
        let told = serde_json::from_slice::<Told>(text).ok()?;
        Some(told.gave_up.map(|(_, cause)| cause))
    };
    let gap_ns = bench.configurations.iter().map(|one| one.pattern.gap_ns()).max().unwrap_or(0);
    let watched = Watched { controls: &controls, now: Some(&words.now), roles, gap_ns, told: &told };
    let home = running.watch(&watched, None, None).map_err(|error| error.to_string());
    run_dir.clear_notes();
    // Who waits for the other where that has left is in the configuration that failed.
    let at = || {
        let now = words.now[Role::Respond.index()].load(Relaxed) as usize;
        opened.get(now).and_then(|one| u32::try_from(one.place).ok())
    };
    let (texts, interrupted) = match home? {
        Home::Ended(report) => return Ok(report.at(at())),
        Home::Came { texts, interrupted, .. } => (texts, interrupted),
    };
    let mut sides: [Told; 2] = [parsed(&texts[0])?, parsed(&texts[1])?];
    let [first, second] = &mut sides;
    let pairs = opened.iter().zip(first.sides.drain(..).zip(second.sides.drain(..)));
    for (one, (first, second)) in pairs {
        let broken = first.error.clone().or(second.error.clone());
        came[one.place] = Some(match broken {
            Some(cause) => Sliced::NotOpened { cause },
            None => Sliced::Sides { sides: vec![first, second] },
        });
    }
    let lacking = || Sliced::NotOpened { cause: "nothing here measures it in slices".to_owned() };
    Ok(Report::Sliced {
        came: came.into_iter().map(|one| one.unwrap_or_else(lacking)).collect(),
        interrupted,
    })
}

fn parsed(text: &[u8]) -> Result<Told, String> {
    serde_json::from_slice(text).map_err(|error| format!("a side's report: {error}"))
}
