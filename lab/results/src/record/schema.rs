// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of result files. It is made from the types that are written and read, by the
//! tests alone: nobody who measures waits until what makes it is compiled.

/// The schema as a JSON text: draft 2020-12, indented, ended by a line end.
pub const SCHEMA: &str = include_str!("../../schema/result.json");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ResultFile, sample, write};

    #[test]
    fn it_is_the_one_that_the_types_make() {
        let made = format!("{:#}\n", schemars::schema_for!(ResultFile).to_value());
        if std::env::var_os("DOORBELL_WRITE_SCHEMA").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/result.json"), &made).unwrap();
        }
        assert!(
            made == SCHEMA,
            "the types changed; write the schema anew with\n  \
             DOORBELL_WRITE_SCHEMA=1 cargo test --package doorbell-results schema\nand raise SCHEMA_VERSION if files \
             written before can no longer be read"
        );
    }

    #[test]
    fn a_result_made_by_hand_satisfies_it_and_a_broken_one_does_not() {
        let schema = serde_json::from_str(SCHEMA).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let text = write::to_json(&sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0));
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(validator.is_valid(&document), "{:?}", validator.iter_errors(&document).next());
        document["records"][0]["tally"]["sent"] = "many".into();
        assert!(!validator.is_valid(&document));
    }
}
