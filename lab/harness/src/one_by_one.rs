// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several configurations one after another between the same two sides: what takes longer to be
//! made ready than to be measured is made ready once for all of them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::arena::Arena;
use crate::control::Control;
use crate::family::{Families, OpenedSides};
use crate::opened::open;
use crate::order::{Order, Report, Sliced};
use crate::role::Role;
use crate::run_dir::RunDir;
use crate::running::{Home, RunningSides, Watched};
use crate::side::{Side, SideReport};
use crate::site::{Site, Word};
use doorbell_results::configuration::Configuration;
use doorbell_results::record::subject::Contexts;

const OWN: usize = 128 << 10;

/// Nothing follows.
const OVER: u32 = u32::MAX;

/// The side that notifies first says how many may begin.
fn begin(go: &Word, number: u32) {
    // Pairs with the Acquire load in `follow`.
    go.store(number, Release);
    // An error would say that the word is none of this process's memory.
    let _ = futex::wake(go, Flags::empty(), 1);
}

/// The other sleeps until the one at `place` may begin, for it may come to the end of the one
/// before long before the first side does. False where it never begins.
fn follow(go: &Word, place: u32) -> bool {
    loop {
        // Pairs with the Release store in `begin`.
        let seen = go.load(Acquire);
        if seen > place {
            return seen != OVER;
        }
        // Whatever ended the sleep, it looks again; what cannot sleep must not spin.
        if !matches!(futex::wait(go, Flags::empty(), seen, None), Ok(()) | Err(Errno::AGAIN | Errno::INTR)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) fn run(
    order: &Order,
    configurations: &[Configuration],
    families: Families,
    run_dir: &RunDir,
) -> Result<Report, String> {
    let contexts = configurations.first().map_or(Contexts::default(), |first| first.contexts);
    let size = configurations.len() * (size_of::<Control>() + OWN) + (1 << 20);
    let arena = Arena::map(size).map_err(|error| error.to_string())?;
    let now: &'static [Word; 2] = arena.place().map_err(|error| error.to_string())?;
    let go: &'static Word = arena.place().map_err(|error| error.to_string())?;
    let site = Site::new(contexts, arena, run_dir);
    let mut all = Vec::new();
    for configuration in configurations {
        all.push(open(order.clock, configuration, families, arena, &site, run_dir)?);
    }
    let roles = all.first().map_or([Role::Emit, Role::Absorb], |one| one.sides.roles);
    let life = |role: Role| {
        // One that failed, or was interrupted, did not come to those that follow.
        let mut sides = Vec::new();
        for ((place, one), configuration) in (0_u32..).zip(&all).zip(configurations) {
            if role.index() == 0 && one.control.interrupted.load(Relaxed) != 0 {
                break;
            }
            // Before it waits to begin: in the one before it would count as one that makes its
            // report, which may take long.
            now[role.index()].store(place, Release);
            if role.index() == 0 {
                begin(go, place + 1);
            } else if !follow(go, place) {
                break;
            }
            let OpenedSides { roles, links, .. } = &one.sides;
            let role = roles[role.index()];
            let side = Side::new(role, order.clock, configuration.clone(), one.control, one.payload);
            let report = side.run_role(|role, side| links.run_role(role, side));
            let failed = report.error.is_some();
            sides.push(report);
            if failed {
                break;
            }
        }
        if role.index() == 0 {
            begin(go, OVER);
        }
        serde_json::to_vec(&sides).unwrap_or_default()
    };
    let running = RunningSides::fork(contexts, roles, &life).map_err(|error| error.to_string())?;
    let controls: Vec<&'static Control> = all.iter().map(|one| one.control).collect();
    let told = |text: &[u8]| {
        let sides = serde_json::from_slice::<Vec<SideReport>>(text).ok()?;
        Some(sides.into_iter().find_map(|side| side.error))
    };
    let gap_ns = configurations.iter().map(|one| one.pattern.gap_ns()).max().unwrap_or(0);
    let watched = Watched { controls: &controls, now: Some(now), roles, gap_ns, told: &told };
    let home = running.watch(&watched, None, None).map_err(|error| error.to_string());
    run_dir.clear_notes();
    let at = Some(now[0].load(Acquire));
    let (texts, interrupted) = match home? {
        Home::Ended(report) => return Ok(report.at(at)),
        Home::Came { texts, interrupted, .. } => (texts, interrupted),
    };
    let read = |text: &[u8]| {
        let sides = serde_json::from_slice::<Vec<SideReport>>(text);
        sides.map(Vec::into_iter).map_err(|error| format!("a side's report: {error}"))
    };
    let (mut first, mut second) = (read(&texts[0])?, read(&texts[1])?);
    let came = configurations
        .iter()
        .map(|_| Sliced::Sides { sides: first.next().into_iter().chain(second.next()).collect() });
    Ok(Report::Sliced { came: came.collect(), interrupted })
}
