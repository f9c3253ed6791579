// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of result files, made from the types that are written and read.

use super::ResultFile;

/// The schema as a JSON text: draft 2020-12, indented, ended by a line end. A copy for tools that cannot run the
/// command is kept in `crates/results/schema/`.
pub fn schema() -> String {
    format!("{:#}\n", schemars::schema_for!(ResultFile).to_value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{sample, write};

    #[test]
    fn the_copy_in_the_repository_is_current() {
        let copy = include_str!("../../schema/result.json");
        assert!(
            schema() == copy,
            "the types changed: `cargo run -- schema > crates/results/schema/result.json`, and raise SCHEMA_VERSION if \
             files written before can no longer be read"
        );
    }

    #[test]
    fn a_result_made_by_hand_satisfies_it_and_a_broken_one_does_not() {
        let schema = serde_json::from_str(&schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let text = write::to_json(&sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0));
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(validator.is_valid(&document), "{:?}", validator.iter_errors(&document).next());
        document["records"][0]["tally"]["sent"] = "many".into();
        assert!(!validator.is_valid(&document));
    }
}
