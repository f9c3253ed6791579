// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever may be said in Rust of how to listen, to join and to make
//! memory may be said in C, C++ and Python.

use std::fs;
use std::path::Path;

/// Options of Rust, and where the other languages have them.
struct Options {
    /// A struct whose public fields they are, or whose methods that take and return it.
    rust: (&'static str, &'static str),
    /// A struct of doorbell.h.
    c: &'static str,
    /// The struct of doorbell.hpp that is it, filled in.
    cpp: &'static str,
    /// What takes them as keywords, each in a file.
    python: &'static [(&'static str, &'static str)],
    /// Names that differ in Python.
    renamed: &'static [(&'static str, &'static str)],
    /// Those that only Rust has, and why.
    only_rust: &'static [(&'static str, &'static str)],
}

const STUB: &str = "py/python/doorbell/_native.pyi";
const WORDS: &str = "py/python/doorbell/words.py";

const ALL: &[Options] = &[
    Options {
        rust: ("doorbell/src/service/mod.rs", "ListenOptions"),
        c: "doorbell_listen_options",
        cpp: "listen_options",
        python: &[(STUB, "class Service(_Context):"), (WORDS, "def listen(")],
        renamed: &[],
        only_rust: &[],
    },
    Options {
        rust: ("doorbell/src/rendezvous/join.rs", "Join"),
        c: "doorbell_join_options",
        cpp: "join_options",
        python: &[(STUB, "def join("), (WORDS, "def connect(")],
        renamed: &[("host", "users")],
        only_rust: &[],
    },
    Options {
        rust: ("doorbell/src/rendezvous/mod.rs", "Offer"),
        c: "doorbell_offer",
        cpp: "offer",
        python: &[(STUB, "class Segment:")],
        renamed: &[],
        only_rust: &[
            ("tokens", "user interrupts are for the children of a program in Rust"),
            ("features", "it says what the library itself laid out"),
            ("tells_deaths", "memory without connections is made by `channel` alone"),
            ("memory", "its options stand beside the others"),
        ],
    },
    Options {
        rust: ("doorbell/src/memory_options.rs", "MemoryOptions"),
        c: "doorbell_offer",
        cpp: "offer",
        python: &[(STUB, "class Segment:")],
        renamed: &[],
        only_rust: &[],
    },
];

fn read(file: &str) -> String {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(library.join(file)).unwrap()
}

/// What lies behind `begin`, up to `end`.
fn part<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin} is nowhere"));
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

/// The public fields of a struct, and the methods by which a builder is told.
fn options_of_rust(file: &str, name: &str) -> Vec<String> {
    let text = read(file);
    let begin = format!("pub struct {name}");
    let fields = part(&text, &begin, "\n}").lines().filter_map(|line| {
        let (name, _) = line.trim().strip_prefix("pub ")?.split_once(':')?;
        Some(name.to_owned())
    });
    let builder = format!("impl<T: Trust> {name}<T> {{");
    let methods: Vec<String> = match text.contains(&builder) {
        false => Vec::new(),
        true => part(&text, &builder, "\n}")
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pub fn "))
            .filter(|line| line.contains("(self, ") && line.contains("-> Self"))
            .filter_map(|line| Some(line.split_once('(')?.0.to_owned()))
            .collect(),
    };
    fields.chain(methods).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
}

#[test]
fn what_may_be_said_in_rust_may_be_said_in_every_language() {
    let (header, classes) = (read("ffi/include/doorbell.h"), read("ffi/include/doorbell.hpp"));
    let mut missing = Vec::new();
    for Options { rust: (file, name), c, cpp, python, renamed, only_rust } in ALL {
        let all = options_of_rust(file, name);
        assert!(all.len() >= 3, "{name} has {all:?}: this test proves nothing");
        assert!(classes.contains(&format!("struct {cpp} : {c} {{")), "C++ has no {cpp}");
        let in_c = part(&header, &format!("typedef struct {c} {{"), &format!("}} {c};"));
        for option in all.iter().filter(|option| !only_rust.iter().any(|(rust, _)| rust == option)) {
            if !has_word(in_c, option) {
                missing.push(format!("{name}.{option}: {c} of doorbell.h"));
            }
            let there = renamed.iter().find(|(rust, _)| rust == option).map_or(&**option, |(_, there)| there);
            for (file, signature) in *python {
                let text = read(file);
                let keywords = match signature.starts_with("class ") {
                    true => part(part(&text, signature, "\nclass "), "def __new__(", ") -> Self"),
                    false => part(&text, signature, ") ->"),
                };
                if !has_word(keywords, there) {
                    missing.push(format!("{name}.{option}: {signature} of {file}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "options that a language lacks:\n{}", missing.join("\n"));
}
