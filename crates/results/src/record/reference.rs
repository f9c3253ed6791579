// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bare hand-over took beside the mechanism, between the same two sides in the same moments.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trial's mechanism held against bare futex hand-overs in slices between its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Reference {
    /// Slices of the mechanism with one of the reference before and one after.
    pub slices: u32,
    /// Hand-overs of the reference, there and back, in the whole trial.
    pub rounds: u64,
    /// Round trip of the reference, nanoseconds: the middle mean over its slices of their medians.
    pub round_trip_ns: f64,
    /// The mechanism's round trip as a multiple of the reference's: the middle mean over the slices, in logarithms, of their
    /// median round trip less the mean of the reference's medians before and after.
    pub ratio: f64,
}

impl Reference {
    /// Fewer slices than this say nothing about a trial.
    pub const FEWEST_SLICES: usize = 4;

    /// From each slice's ratio and each reference's round trip, both in logarithms, the latter of nanoseconds; none of too
    /// few slices.
    pub fn of(ratios: &mut [f64], round_trips: &mut [f64], rounds: u64) -> Option<Self> {
        if ratios.len() < Self::FEWEST_SLICES {
            return None;
        }
        Some(Self {
            slices: u32::try_from(ratios.len()).unwrap_or(u32::MAX),
            rounds,
            round_trip_ns: middle_mean(round_trips)?.exp(),
            ratio: middle_mean(ratios)?.exp(),
        })
    }
}

/// The mean of the middle half: a slice in four may have met something else, on either side.
fn middle_mean(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    let middle = &values[quarter..values.len() - quarter];
    (!middle.is_empty()).then(|| middle.iter().sum::<f64>() / middle.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_strange_slices_on_either_side_moves_nothing() {
        let mut ratios = [0.1_f64, 0.1, 0.1, 0.1, -7.0, 9.0];
        let mut round_trips = [3000_f64, 3000.0, 3000.0, 3000.0, 1e9, 1.0].map(f64::ln);
        let reference = Reference::of(&mut ratios, &mut round_trips, 448).unwrap();
        assert_eq!(reference.slices, 6);
        assert!((reference.ratio.ln() - 0.1).abs() < 1e-12, "{reference:?}");
        assert!((reference.round_trip_ns - 3000.0).abs() < 1e-6, "{reference:?}");
    }

    #[test]
    fn three_slices_are_too_few() {
        assert_eq!(Reference::of(&mut [0.0; 3], &mut [8.0; 4], 256), None);
    }
}
