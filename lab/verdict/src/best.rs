// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several may be the fastest, and how far each is behind it.
//!
//! The fastest by its figures need not be the fastest. So all are candidates of which that was not
//! disproved, and what is said of a thing holds whichever candidate it is (D. G. Edwards, J. C.
//! Hsu, *Multiple comparisons with the best treatment*, 1983): it is behind by at least the
//! smallest of what it is surely behind each candidate, and at most by the largest of what it may
//! be. Not to be a candidate is not to be slower: the distance could be as good as none.
//!
//! A thing of two modes, now spinning and now asleep, has so wide an interval that it stays a
//! candidate, and of what it is not told apart from nothing could be said. So a tenth of the error
//! goes to all pairs of things together: whatever is the best takes no longer than any of them, so
//! a thing is behind it by at least what it is surely behind some other one.

use super::ratio::{Ratio, Standing};
use super::slices::{Apart, Levels};

/// The share of the error that goes to all pairs of things.
const OF_ALL_PAIRS: f64 = 0.1;

/// One of them against the best, whichever that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    pub thing: usize,
    pub candidate: bool,
    /// How many times as long it takes as the first, and between which ends it lies as a multiple
    /// of the best; none where pairs are too few.
    pub ratio: Option<Ratio>,
    pub standing: Standing,
}

/// Those of `things` that have figures, the fastest first. They are one row of several that share
/// the error; differences within `relevant`, a share, do not matter.
pub fn best(
    levels: &Levels,
    things: impl IntoIterator<Item = usize>,
    error: f64,
    relevant: f64,
) -> Vec<Behind> {
    let order = levels.ranked(things);
    let others = order.len().saturating_sub(1).max(1) as f64;
    let each = error * (1.0 - OF_ALL_PAIRS) / others;
    let of_all_pairs = error * OF_ALL_PAIRS / (order.len() as f64 * others / 2.0);
    let surely_behind_some = |place: usize| {
        let (thing, _) = order[place];
        let faster = order[..place].iter();
        let apart = faster.filter_map(|(other, _)| levels.apart(*other, thing, of_all_pairs));
        apart.map(|apart| apart.by - apart.half).fold(0.0, f64::max)
    };
    let apart: Vec<Vec<Option<Apart>>> = order
        .iter()
        .map(|(from, _)| order.iter().map(|(to, _)| levels.apart(*from, *to, each)).collect())
        .collect();
    // Of what cannot be held against others nobody can say that it is not the best.
    let candidates: Vec<usize> = (0..order.len())
        .filter(|to| {
            (0..order.len())
                .all(|from| from == *to || apart[from][*to].is_none_or(|apart| apart.by <= apart.half))
        })
        .collect();
    let ranked = order.iter().enumerate().map(|(place, (thing, _))| {
        let against = candidates.iter().filter(|candidate| **candidate != place);
        let ends: Option<Vec<[f64; 2]>> = against
            .map(|candidate| {
                apart[*candidate][place].map(|apart| [apart.by - apart.half, apart.by + apart.half])
            })
            .collect();
        let candidate = candidates.contains(&place);
        let ratio = ends.map(|ends| {
            let least = ends.iter().map(|[low, _]| low.max(0.0)).reduce(f64::min).filter(|_| !candidate);
            let least = least.unwrap_or(0.0).max(surely_behind_some(place));
            let most = ends.iter().map(|[_, high]| high.max(0.0)).fold(0.0, f64::max);
            let by = apart[0][place].map_or(0.0, |apart| apart.by);
            Ratio { estimate: by.exp(), low: least.exp(), high: most.exp() }
        });
        let standing = ratio.map_or(Standing::Inconclusive, |ratio| ratio.behind(relevant));
        Behind { thing: *thing, candidate, ratio: ratio.filter(|_| place > 0), standing }
    });
    ranked.collect()
}
