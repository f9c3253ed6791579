// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of scenarios names tests that exist.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "py") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_page_of_scenarios_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = String::new();
    read_all(&root.join("library/doorbell/tests"), &mut tests);
    read_all(&root.join("library/py/tests"), &mut tests);
    let page = fs::read_to_string(root.join("book/scenarios.md")).unwrap();
    let rows = page.lines().filter(|row| row.contains("| passed |"));
    let mut named = 0;
    for row in rows {
        let names: Vec<_> = row.split('`').filter(|word| word.matches('_').count() >= 3).collect();
        assert!(!names.is_empty(), "no test in: {row}");
        for name in names {
            let is_there = [format!("fn {name}("), format!("def {name}(")];
            assert!(is_there.iter().any(|line| tests.contains(line)), "no test is called {name}");
            named += 1;
        }
    }
    assert!(named > 50, "{named} names: this test proves nothing");
}
