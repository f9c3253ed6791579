// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the book and the tables at the head of a file say, for the
//! tests that hold them to the code.

use std::path::Path;
use std::string::String;
use std::vec::Vec;

/// Fails if `sentence` is not in `file` of the repository, wherever its lines break. The published
/// crate comes without the repository, and says so.
pub(crate) fn assert_file_says(file: &str, sentence: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => assert_says(file, &text, sentence),
        Err(error) if is_published() => std::println!("not compared: {}: {error}", path.display()),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Cargo leaves the manifest as it was written under this name in what it packs.
fn is_published() -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml.orig").exists()
}

/// Fails if `sentence` is not in `text`, wherever its lines break.
pub(crate) fn assert_says(name: &str, text: &str, sentence: &str) {
    let in_one_line = |text: &str| -> String { text.split_whitespace().collect::<Vec<_>>().join(" ") };
    assert!(
        in_one_line(text).contains(&in_one_line(sentence)),
        "the code says what {name} does not, so that one of the two is wrong:\n{sentence}"
    );
}
