// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs whose configurations took turns in slices.

use crate::across::{ByPair, Kind, Run, across};
use crate::by_block::{companions, levels};
use crate::slices::{Apart, Levels};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{ResultFile, Variant};
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) struct Both {
    /// In the runs of the baseline, the last of which is the one that
    /// figures are shown of; none in one that has it not.
    before: Vec<Option<Place>>,
    after: Place,
    kind: Kind,
}

/// Where a configuration is found among all levels of one run.
struct Place {
    levels: Rc<Levels>,
    thing: usize,
    /// The places of what took turns in all runs without having been asked for.
    companions: Rc<[usize]>,
}

impl Place {
    fn class(&self) -> usize {
        self.levels.class(self.thing)
    }

    fn by_pair(&self) -> &ByPair {
        self.levels.of_thing(self.thing)
    }

    fn level_ns(&self) -> Option<f64> {
        self.levels.level(self.thing)
    }
}

impl Both {
    fn baseline(&self) -> Option<&Place> {
        self.before.last()?.as_ref()
    }

    /// What it takes in each, nanoseconds.
    pub(super) fn levels_ns(&self) -> Option<[f64; 2]> {
        Some([self.baseline()?.level_ns()?, self.after.level_ns()?])
    }
}

/// One run, and where its configurations are found.
struct Measured {
    levels: Option<Rc<Levels>>,
    configurations: Vec<Configuration>,
    /// The place of its first configuration.
    first: usize,
    companions: Rc<[usize]>,
}

impl Measured {
    fn place(&self, configuration: &Configuration) -> Option<Place> {
        let place = self.configurations.iter().position(|own| own == configuration)?;
        let thing = self.first + place;
        let levels = self.levels.as_ref().filter(|levels| levels.pairs(thing) > 0)?;
        Some(Place { levels: Rc::clone(levels), thing, companions: Rc::clone(&self.companions) })
    }
}

/// What each of `configurations` took in both runs, and in `more` runs of the baseline; none of
/// what did not take turns in both. Slices of two programs that took turns with each other are, if
/// `in_one`, those of one run.
pub(super) fn both<'a>(
    more: &[&ResultFile],
    files: [&ResultFile; 2],
    variants: [&[Variant<'a>]; 2],
    configurations: impl Iterator<Item = [&'a Configuration; 2]>,
    in_one: bool,
) -> Vec<Option<Both>> {
    let in_all = |companion: &Configuration| {
        let has = |file: &&ResultFile| companions(&file.beside).contains(&companion);
        more.iter().chain(&files).all(has)
    };
    let shared: Vec<&Configuration> =
        companions(&files[0].beside).into_iter().filter(|companion| in_all(companion)).collect();
    let measured = |file: &ResultFile, variants: &[Variant], levels: Option<Rc<Levels>>, first: usize| {
        let all = companions(&file.beside);
        let places = shared.iter().filter_map(|companion| all.iter().position(|other| other == companion));
        Measured {
            levels,
            configurations: variants.iter().map(|variant| variant.configuration.clone()).collect(),
            first,
            companions: places.map(|place| variants.len() + place).collect(),
        }
    };
    let alone = |file: &ResultFile, variants: &[Variant]| {
        let levels = levels(&variants.iter().collect::<Vec<_>>(), &file.beside).map(Rc::new);
        measured(file, variants, levels, 0)
    };
    let [baseline, candidate] = if in_one {
        let all: Vec<&Variant> = variants[0].iter().chain(variants[1]).collect();
        let levels = levels(&all, &[]).map(Rc::new);
        // Those of the candidate stand after those of the baseline.
        let first = [0, variants[0].len()];
        [0, 1].map(|side| measured(files[side], variants[side], levels.clone(), first[side]))
    } else {
        [0, 1].map(|side| alone(files[side], variants[side]))
    };
    let more: Vec<Measured> = more.iter().map(|file| alone(file, &file.variants())).collect();
    let row = |[first, second]: [&'a Configuration; 2]| {
        let (before, after) = (baseline.place(first)?, candidate.place(second)?);
        let before = more.iter().map(|run| run.place(first)).chain([Some(before)]);
        Some(Both { before: before.collect(), after, kind: kind(first, variants[0]) })
    };
    configurations.map(row).collect()
}

fn kind(configuration: &Configuration, variants: &[Variant]) -> Kind {
    let of = |variant: &&Variant| variant.configuration == configuration;
    let notification = variants.iter().find(of).and_then(|variant| variant.subject().notification());
    let blocks = notification.is_some_and(|own| own.waits == Waits::Blocks)
        && configuration.wait == WaitPolicy::Block
        && configuration.pattern.gap_ns() == 0;
    match blocks {
        true => Kind::Blocking { one_core: configuration.placement.cpus.is_some_and(|[a, b]| a == b) },
        false => Kind::Other,
    }
}

/// How much longer the second takes, of runs at different times: what
/// sets it apart from all others of its class.
pub(super) fn apart(rows: &[&Both], error: f64) -> Vec<Option<Apart>> {
    let mut classes: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        classes.entry(row.baseline().map(Place::class)).or_default().push(place);
    }
    let mut found = vec![None; rows.len()];
    for places in classes.into_values() {
        let after: Vec<&Place> = places.iter().map(|place| &rows[*place].after).collect();
        let runs = rows[places[0]].before.len();
        let of_run = |run: usize| places.iter().map(|place| rows[*place].before[run].as_ref()).collect();
        // Of a run that lacks some nothing is taken.
        let before: Vec<Vec<&Place>> = (0..runs).filter_map(of_run).collect();
        let of_class = |companion: &usize| {
            let same =
                |run: &Vec<&Place>| run[0].levels.class(run[0].companions[*companion]) == run[0].class();
            before.iter().chain([&after]).all(same)
        };
        let companions: Vec<usize> = (0..after[0].companions.len()).filter(of_class).collect();
        let share = error * places.len() as f64 / rows.len() as f64;
        let baseline: Vec<Run> = before.iter().map(|places| run(places, &companions)).collect();
        let aparts = across(&baseline, &run(&after, &companions), rows[places[0]].kind, share);
        for (place, apart) in places.into_iter().zip(aparts) {
            found[place] = apart;
        }
    }
    found
}

/// What stood at `places` of one run and its `companions`.
fn run<'a>(places: &[&'a Place], companions: &[usize]) -> Run<'a> {
    let first = places[0];
    let beside = companions.iter().map(|companion| first.companions[*companion]);
    let own = places.iter().map(|place| place.by_pair());
    Run {
        things: own.chain(beside.map(|thing| first.levels.of_thing(thing))).collect(),
        resemblance: first.levels.resemblance(first.thing, first.thing),
    }
}

/// How much longer the second takes, of runs whose pairs of one
/// number were measured beside each other.
pub(super) fn beside(rows: &[&Both], error: f64) -> Vec<Option<Apart>> {
    let each = error / rows.len().max(1) as f64;
    let places = rows.iter().map(|row| Some([row.baseline()?, &row.after]));
    let Some(places) = places.collect::<Option<Vec<[&Place; 2]>>>() else { return vec![None; rows.len()] };
    let known = Levels::known(places.iter().flatten().map(|place| place.by_pair().clone()).collect());
    let apart = |(row, [before, after]): (usize, &[&Place; 2])| {
        // In one run they share turns, by which it is known what resembles what.
        match Rc::ptr_eq(&before.levels, &after.levels) {
            true => before.levels.apart(before.thing, after.thing, each),
            false => known.apart(2 * row, 2 * row + 1, each),
        }
    };
    places.iter().enumerate().map(apart).collect()
}
