// SPDX-License-Identifier: MIT OR Apache-2.0
//! What DESIGN.md and the tables at the head of a file say, for the tests that hold them to the code.

use std::string::String;
use std::vec::Vec;

/// Fails if `sentence` is not in DESIGN.md, wherever its lines break.
pub(crate) fn assert_design_says(sentence: &str) {
    assert_says("DESIGN.md", include_str!("../../../DESIGN.md"), sentence);
}

/// Fails if `sentence` is not in `text`, wherever its lines break.
pub(crate) fn assert_says(name: &str, text: &str, sentence: &str) {
    let in_one_line = |text: &str| -> String { text.split_whitespace().collect::<Vec<_>>().join(" ") };
    assert!(
        in_one_line(text).contains(&in_one_line(sentence)),
        "the code says what {name} does not, so that one of the two is wrong:\n{sentence}"
    );
}
