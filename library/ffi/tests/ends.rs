// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of what each language has names what is there, and all that is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The languages, in the order of the table's columns, and the files that say what each has.
const LANGUAGES: [(&str, &[&str]); 4] = [
    ("Rust", &["library/doorbell/src"]),
    ("C", &["library/ffi/include/doorbell.h"]),
    ("C++", &["library/ffi/include/doorbell.hpp", "library/ffi/include/doorbell_coroutine.hpp"]),
    ("Python", &["library/py/python/doorbell"]),
];

/// What Python exports that is no end: errors, and a way to say whose processes.
const NO_ENDS_OF_PYTHON: [&str; 10] = [
    "Closed",
    "Dropped",
    "Error",
    "HungUp",
    "Lent",
    "PeerGone",
    "PeerViolation",
    "RendezvousError",
    "Untrusted",
    "Users",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path, text: &mut String) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), text);
        }
    } else if path
        .extension()
        .is_some_and(|kind| ["rs", "h", "hpp", "py", "pyi"].iter().any(|of| kind == *of))
    {
        text.push_str(&fs::read_to_string(path).unwrap());
    }
}

fn source(files: &[&str]) -> String {
    let mut text = String::new();
    files.iter().for_each(|file| read(&root().join(file), &mut text));
    text
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

/// The cells of each row, by language.
fn table() -> Vec<[String; 4]> {
    let page = fs::read_to_string(root().join("book/languages.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what |"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let [_, rust, c, cpp, python] =
            <[String; 5]>::try_from(cells).unwrap_or_else(|_| panic!("five cells: {row}"));
        assert!([&rust, &c, &cpp, &python].iter().all(|cell| !cell.is_empty()), "an empty cell: {row}");
        [rust, c, cpp, python]
    })
    .collect()
}

/// What stands between backquotes.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What a language has, as its own files list it.
fn all_of(language: &str, text: &str) -> BTreeSet<String> {
    let behind = |begin: &'static str| {
        text.lines().filter_map(move |line| {
            let name = line.strip_prefix(begin)?;
            Some(name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?.to_owned())
        })
    };
    match language {
        // Whatever a `Select` waits for, and whatever is awaited.
        "Rust" => {
            let sources = text.lines().filter(|line| line.starts_with("impl")).filter_map(|line| {
                let (_, of) = line.split_once(" Source for ")?;
                Some(of.split(|letter: char| !letter.is_alphanumeric()).next()?.to_owned())
            });
            // Of `AsyncIo` the kernel has a limit.
            let awaited = behind("pub struct ").filter(|name| name.starts_with("Async") && name != "AsyncIo");
            sources.chain(awaited).collect()
        }
        "C" => behind("typedef struct ")
            .filter(|name| text.contains(&format!("typedef struct {name} {name};")))
            .collect(),
        // The last is a part of how coroutines wait.
        "C++" => behind("class ").filter(|name| !["error", "ready_file"].contains(&&**name)).collect(),
        _ => {
            let (_, list) = text.split_once("__all__ = [").unwrap();
            let (list, _) = list.split_once(']').unwrap();
            let names = list.split('"').skip(1).step_by(2);
            names.filter(|name| !NO_ENDS_OF_PYTHON.contains(name)).map(str::to_owned).collect()
        }
    }
}

#[test]
fn the_table_of_languages_names_what_is_there_and_all_that_is_there() {
    let rows = table();
    let mut wrong = Vec::new();
    for (column, (language, files)) in LANGUAGES.into_iter().enumerate() {
        let text = source(files);
        let there = words(&text);
        let in_table: BTreeSet<_> = rows.iter().flat_map(|row| named(&row[column])).flat_map(words).collect();
        for name in &in_table {
            let of_a_file = files.iter().any(|file| words(file).contains(name));
            if !there.contains(name) && !of_a_file {
                wrong.push(format!("{language} has no {name}"));
            }
        }
        let all = all_of(language, &text);
        assert!(all.len() >= 10, "{language} has {all:?}: this test proves nothing");
        let missing = all.iter().filter(|name| !in_table.contains(&***name));
        wrong.extend(missing.map(|name| format!("{language}'s {name} is not in the table")));
    }
    assert!(wrong.is_empty(), "book/languages.md:\n{}", wrong.join("\n"));
}
