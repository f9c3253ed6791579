// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slices: what a configuration did each time it was its turn between two resident sides.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One slice. Its neighbours are found by turn and place among all records of its block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Number of the turn within the life of the two sides.
    pub turn: u32,
    /// Place within the turn, counted over all configurations.
    pub place: u32,
    /// Rounds that were recorded.
    pub rounds: u32,
    /// Mean of the middle half of the recorded rounds, nanoseconds.
    pub middle_ns: f64,
    /// Share of the rounds whose waiter really slept, by its context switches; none where the
    /// system does not count them.
    pub slept: Option<f64>,
}

/// How slices are stored: one list for each field, since a run has some ten thousand of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Columns {
    /// Number of the turn within the life of the two sides.
    turn: Vec<u32>,
    /// Place within the turn, counted over all configurations.
    place: Vec<u32>,
    /// Rounds that were recorded.
    rounds: Vec<u32>,
    /// Mean of the middle half of the recorded rounds, nanoseconds;
    /// of all of them in files of before that name it so.
    #[serde(alias = "mean_ns")]
    middle_ns: Vec<f64>,
    /// Share of the rounds whose waiter really slept; empty where the
    /// system does not count switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slept: Vec<Option<f64>>,
}

/// What is not an hundred-thousandth of a value is no use to anybody, and twelve bytes in the file.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

pub(super) fn serialize<S: Serializer>(slices: &[Slice], to: S) -> Result<S::Ok, S::Error> {
    let counted = slices.iter().any(|slice| slice.slept.is_some());
    let columns = Columns {
        turn: slices.iter().map(|slice| slice.turn).collect(),
        place: slices.iter().map(|slice| slice.place).collect(),
        rounds: slices.iter().map(|slice| slice.rounds).collect(),
        middle_ns: slices.iter().map(|slice| rounded(slice.middle_ns)).collect(),
        slept: slices.iter().filter(|_| counted).map(|slice| slice.slept.map(rounded)).collect(),
    };
    columns.serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Slice>, D::Error> {
    let Columns { turn, place, rounds, middle_ns, slept } = Columns::deserialize(from)?;
    let count = turn.len();
    let lengths = [place.len(), rounds.len(), middle_ns.len()];
    if lengths.iter().any(|length| *length != count) || ![0, count].contains(&slept.len()) {
        return Err(D::Error::custom(format!("{count} slices by their turns, and not by another column")));
    }
    if let Some(wrong) = middle_ns.iter().find(|middle| !middle.is_finite() || **middle <= 0.0) {
        return Err(D::Error::custom(format!("a slice whose rounds take {wrong} ns")));
    }
    let slice = |index: usize| Slice {
        turn: turn[index],
        place: place[index],
        rounds: rounds[index],
        middle_ns: middle_ns[index],
        slept: slept.get(index).copied().flatten(),
    };
    Ok((0..count).map(slice).collect())
}

#[cfg(test)]
mod tests {
    use crate::record::{Record, Slice, sample};

    fn with(slices: Vec<Slice>) -> serde_json::Value {
        let record = Record { slices, ..sample::record(sample::configuration("futex"), 0, 16_000.0) };
        serde_json::to_value(record).unwrap()
    }

    fn slice(turn: u32, place: u32, slept: Option<f64>) -> Slice {
        Slice { turn, place, rounds: 100, middle_ns: 4321.5, slept }
    }

    #[test]
    fn slices_are_stored_by_columns_and_come_back() {
        for slept in [None, Some(0.5)] {
            let slices = vec![slice(0, 3, slept), slice(7, 1, slept)];
            let stored = with(slices.clone());
            assert_eq!(stored["slices"]["turn"], serde_json::json!([0, 7]));
            assert_eq!(stored["slices"]["middle_ns"], serde_json::json!([4321.5, 4321.5]));
            let back: Record = serde_json::from_value(stored).unwrap();
            assert_eq!(back.slices, slices);
        }
        assert!(with(Vec::new()).get("slices").is_none(), "a record of before has none");
    }

    #[test]
    fn columns_of_different_lengths_and_rounds_without_a_time_are_refused() {
        let mut stored = with(vec![slice(0, 3, None), slice(7, 1, None)]);
        stored["slices"]["place"] = serde_json::json!([3]);
        assert!(serde_json::from_value::<Record>(stored.clone()).is_err());
        stored["slices"]["place"] = serde_json::json!([3, 1]);
        stored["slices"]["middle_ns"] = serde_json::json!([0.0, 1.0]);
        let error = serde_json::from_value::<Record>(stored).unwrap_err().to_string();
        assert!(error.contains("0 ns"), "{error}");
    }
}
