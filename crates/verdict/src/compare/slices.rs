// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two runs whose configurations took turns in slices.

use crate::across::{Kind, Run, across};
use crate::by_block::{companions, levels};
use crate::slices::{Apart, Levels};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{ResultFile, Variant};
use std::collections::BTreeMap;
use std::rc::Rc;

/// One configuration of both runs.
pub(super) struct Both {
    /// All levels of the baseline and of the candidate.
    levels: [Rc<Levels>; 2],
    /// Its place in them.
    things: [usize; 2],
    /// The places of what took turns in both runs without having been asked for.
    companions: Rc<[[usize; 2]]>,
    kind: Kind,
}

impl Both {
    /// What it takes in each, nanoseconds.
    pub(super) fn levels_ns(&self) -> Option<[f64; 2]> {
        let of = |side: usize| self.levels[side].level(self.things[side]);
        Some([of(0)?, of(1)?])
    }
}

/// What each of `configurations` took in both runs; none of what did not take turns in both. Slices of two programs that took turns
/// with each other are, if `in_one`, those of one run.
pub(super) fn both<'a>(
    files: [&ResultFile; 2],
    variants: [&[Variant<'a>]; 2],
    configurations: impl Iterator<Item = [&'a Configuration; 2]>,
    in_one: bool,
) -> Vec<Option<Both>> {
    let of = |side: usize| -> Vec<&Variant> { variants[side].iter().collect() };
    let all = if in_one {
        let levels = levels(&[of(0), of(1)].concat(), &[]).map(Rc::new);
        [levels.clone(), levels]
    } else {
        [0, 1].map(|side| levels(&of(side), &files[side].beside).map(Rc::new))
    };
    // Those of the candidate stand behind those of the baseline.
    let first = [0, if in_one { variants[0].len() } else { 0 }];
    let [before, after] = files.map(|file| companions(&file.beside));
    let shared = before.iter().enumerate().filter_map(|(place, companion)| {
        let other = after.iter().position(|other| other == companion)?;
        Some([variants[0].len() + place, variants[1].len() + other])
    });
    let shared: Rc<[[usize; 2]]> = shared.collect();
    let thing = |side: usize, configuration: &Configuration| {
        let place = variants[side].iter().position(|variant| variant.configuration == configuration)?;
        let place = first[side] + place;
        let levels = all[side].as_ref().filter(|levels| levels.pairs(place) > 0)?;
        Some((Rc::clone(levels), place))
    };
    let row = |[first, second]: [&'a Configuration; 2]| {
        let ((before, baseline), (after, candidate)) = (thing(0, first)?, thing(1, second)?);
        Some(Both {
            levels: [before, after],
            things: [baseline, candidate],
            companions: Rc::clone(&shared),
            kind: kind(first, variants[0]),
        })
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

/// How much longer the second takes, of runs at different times: what sets it apart from all others of its class.
pub(super) fn apart(rows: &[&Both], error: f64) -> Vec<Option<Apart>> {
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        classes.entry(row.levels[0].class(row.things[0])).or_default().push(place);
    }
    let mut found = vec![None; rows.len()];
    for places in classes.into_values() {
        let row = rows[places[0]];
        let of_class = |companion: &&[usize; 2]| {
            let same = |side: usize| {
                let class = |thing: usize| row.levels[side].class(thing);
                class(companion[side]) == class(row.things[side])
            };
            same(0) && same(1)
        };
        let companions: Vec<&[usize; 2]> = row.companions.iter().filter(of_class).collect();
        let run = |side: usize| {
            let levels = &row.levels[side];
            let own = places.iter().map(|place| rows[*place].things[side]);
            let all = own.chain(companions.iter().map(|companion| companion[side]));
            Run {
                things: all.map(|thing| levels.of_thing(thing)).collect(),
                resemblance: levels.resemblance(row.things[side], row.things[side]),
            }
        };
        let share = error * places.len() as f64 / rows.len() as f64;
        let aparts = across(&[run(0)], &run(1), rows[places[0]].kind, share);
        for (place, apart) in places.into_iter().zip(aparts) {
            found[place] = apart;
        }
    }
    found
}

/// How much longer the second takes, of runs whose pairs of one number were measured beside each other.
pub(super) fn beside(rows: &[&Both], error: f64) -> Vec<Option<Apart>> {
    let of = |row: &&Both| [0, 1].map(|side| row.levels[side].of_thing(row.things[side]).clone());
    let each = error / rows.len().max(1) as f64;
    let known = Levels::known(rows.iter().flat_map(of).collect());
    (0..rows.len())
        .map(|row| {
            let Both { levels: [before, after], things: [first, second], .. } = rows[row];
            // In one run they share turns, by which it is known what resembles what.
            match Rc::ptr_eq(before, after) {
                true => before.apart(*first, *second, each),
                false => known.apart(2 * row, 2 * row + 1, each),
            }
        })
        .collect()
}
