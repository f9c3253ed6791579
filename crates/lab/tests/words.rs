// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users read is written in the words of DESIGN.md, section 4: help, tables, warnings, report, book, README, changelog.

use std::fs;
use std::path::{Path, PathBuf};

/// Words and phrases that have a better one, each with it. Looked for as whole words, in small letters.
const OLD: &[(&str, &str)] = &[
    ("yardstick", "reference"),
    ("yardsticks", "references"),
    ("an arm", "a variant"),
    ("each arm", "each variant"),
    ("every arm", "every variant"),
    ("the arms", "the variants"),
    ("surely blocked", "verified blocked"),
    ("notify cost", "sender-side cost"),
    ("time in the wait", "wait duration"),
    ("stolen from", "CPU steal"),
    ("stolen time", "steal time"),
    ("disturbed", "met interference"),
    ("befell", "happened to"),
    ("two populations", "a bimodal distribution"),
    ("fell into groups", "bimodal"),
    ("done over", "repeated"),
    ("claims of others", "published claims, checked"),
    ("ruling", "result"),
    ("rulings", "results"),
    ("hired skis", "ski-rental rule"),
    ("whatever it burns", "regardless of CPU cost"),
    ("waking decided", "wakeup issued"),
    ("switched in", "scheduled in"),
    ("reckon", "assume"),
    ("reckons", "assumes"),
    ("reckoned", "assumed"),
    ("heed", "respect"),
    ("heaps of", "many"),
    ("its kin", "related"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("befall", "happen to"),
    ("by lot", "at random, shuffled"),
    ("reckoning", "assuming"),
    ("mends", "fixes"),
    ("surroundings", "environment"),
    ("vigil", "lost-wakeup probe"),
    ("yardstick's", "reference's"),
    ("cannot tell", "inconclusive"),
    ("nothing can be told", "inconclusive"),
    ("undecided", "inconclusive"),
    ("no difference shown", "same within x %, or inconclusive"),
    ("contest", "comparison"),
    ("contests", "comparisons"),
    ("burn", "spend"),
    ("burns", "spends"),
    ("ground moved", "machine changed"),
    // Whoever notifies wakes: only the noun has a better word.
    ("a wake", "a wake-up"),
    ("the wake", "the wake-up"),
    ("this wake", "this wake-up"),
    ("one wake", "one wake-up"),
    ("no wake", "no wake-up"),
    ("every wake", "every wake-up"),
    ("each wake", "each wake-up"),
    ("by wake", "by wake-up"),
    ("of wakes", "of wake-ups"),
    ("the wakes", "the wake-ups"),
    ("these wakes", "these wake-ups"),
    ("such wakes", "such wake-ups"),
    ("all wakes", "all wake-ups"),
    ("many wakes", "many wake-ups"),
    ("two wakes", "two wake-ups"),
    ("same wakes", "same wake-ups"),
    ("single wakes", "single wake-ups"),
    ("fake wakes", "fake wake-ups"),
    ("wakes were", "wake-ups were"),
];

/// Pages that stand outside the book; those of crates are looked for.
const PAGES: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "action.yml",
    "rivals/README.md",
    "kernel/uintr/README.md",
    "qemu/README.md",
    "squall/README.md",
];

/// Crates whose strings users read.
const STRINGS: &[&str] = &[
    "results",
    "machine",
    "harness",
    "subjects",
    "verdict",
    "report",
    "lab",
    "doorbell",
    "vm",
    "uintr",
    "ffi",
    "py",
    "user-interrupts",
];

/// Crates of which users read the documentation too.
const DOCUMENTED: &[&str] = &["results", "doorbell", "ffi", "py", "user-interrupts"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files under `folder` whose names end in one of `endings`.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
    found
}

/// The strings of a Rust source, its tests left out, and if `documentation` is read too, the comments that become it, or help.
fn strings(source: &str, documentation: bool) -> String {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut out = String::new();
    for line in source.lines() {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match comment {
            Some(comment) if documentation => out.push_str(comment),
            // What older builds wrote is read for ever.
            _ if line.starts_with("//") || line.starts_with("#[serde(alias") => {}
            // A string may go on over lines, so quotation marks are not counted: what is no string is code, in whose names
            // words are joined by underscores or written together.
            _ => out.push_str(line.trim_end_matches('\\')),
        }
        out.push('\n');
    }
    out
}

/// `text` in small letters, of which everything that is no letter is a blank; but a wake-up is one word, and so are names that code
/// joins by a full stop.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace("wake-up", "wakeup").replace("\\n", " ");
    let mut letters = text.chars().peekable();
    let mut words = String::new();
    while let Some(letter) = letters.next() {
        let joins = letter == '.' && letters.peek().is_some_and(|next| next.is_alphanumeric());
        let of_word = letter.is_alphanumeric() || letter == '_' || letter == '\'' || joins;
        words.push(if of_word { letter } else { ' ' });
    }
    format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn old_words(text: &str) -> Vec<&'static (&'static str, &'static str)> {
    let plain = plain(text);
    OLD.iter().filter(|(old, _)| plain.contains(&format!(" {old} "))).collect()
}

#[test]
fn what_users_read_has_no_word_of_which_there_is_a_better_one() {
    let root = root();
    let mut read: Vec<PathBuf> = PAGES.iter().map(|name| root.join(name)).collect();
    let crates =
        fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("README.md"));
    read.extend(crates.filter(|page| page.exists()));
    read.extend(files(&root.join("book"), &[".md"]));
    read.extend(files(&root.join("crates/ffi/include"), &[".h", ".hpp"]));
    read.extend(files(&root.join("crates/py/python"), &[".py", ".pyi"]));
    read.extend(files(&root.join("crates/report/templates"), &[".html", ".js"]));
    let mut wrong = Vec::new();
    let mut look = |path: &Path, text: &str| {
        wrong.extend(old_words(text).iter().map(|(old, new)| format!("{}: '{old}' ({new})", path.display())));
    };
    for path in read {
        look(&path, &fs::read_to_string(&path).unwrap());
    }
    for name in STRINGS {
        for path in files(&root.join("crates").join(name).join("src"), &[".rs"]) {
            let help = path.components().any(|part| part.as_os_str() == "cli");
            let source = fs::read_to_string(&path).unwrap();
            look(&path, &strings(&source, help || DOCUMENTED.contains(name)));
        }
    }
    assert!(wrong.is_empty(), "words of DESIGN.md, section 4:\n{}", wrong.join("\n"));
}

/// So that the test above cannot pass because it reads nothing.
#[test]
fn an_old_word_is_found_in_a_page_a_string_and_a_help_text_and_not_in_a_name() {
    assert_eq!(old_words("The *yardstick*.")[0].1, "reference");
    assert_eq!(
        old_words(&strings("fn f() {\n    print(\"drawn by \\\n        lot\");\n}\n", false)).len(),
        1
    );
    assert_eq!(old_words(&strings("/// How it was done\n/// over\n", true)).len(), 1);
    assert!(old_words(&strings("/// How it was done over\nlet was_disturbed = 1;\n", false)).is_empty());
    assert_eq!(old_words(&strings("f(\"  4\\n  no wake was seen\")\n", false))[0].1, "no wake-up");
    assert!(old_words(&strings("f(\"a wake-up\", one.wake.events)\n", false)).is_empty());
    assert!(files(&root().join("book"), &[".md"]).len() > 20);
}

/// Files that a page tells how to make.
const MADE: &[&str] = &["kernel/uintr/user/libuintr.a"];

/// What `page` says is there: the targets of its links, and paths of this repository.
fn names_files(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    let links = prose.flat_map(|prose| prose.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    let links = links.filter(|link| !link.contains("://")).filter_map(|link| link.split('#').next());
    let folders = ["ci/", "crates/", "kernel/", "qemu/", "rivals/", "squall/", "fuzz/", "book/"];
    let paths = page.split(|letter: char| letter.is_whitespace() || "`'\"()[]|,=;".contains(letter));
    let paths = paths.map(|path| path.trim_end_matches(['.', ':', '/']));
    let paths = paths.filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
    links
        .chain(paths.filter(|path| !path.contains(['*', '{', '<', '…', '$'])))
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let root = root();
    let mut pages = files(&root.join("book"), &[".md"]);
    pages.extend(PAGES.iter().filter(|name| name.ends_with(".md")).map(|name| root.join(name)));
    let mut count = 0;
    let mut gone = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for name in names_files(&text) {
            count += 1;
            let there = [page.parent().unwrap(), &root].iter().any(|folder| folder.join(name).exists());
            if !there && !MADE.contains(&name) {
                gone.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(gone.is_empty(), "not there:\n{}", gone.join("\n"));
    assert!(count > 200, "{count}");
    let page = "[a](gone.md#there), `ci/gone.sh`, https://a.b/ci/x, [b](https://c/d)";
    assert_eq!(names_files(page), ["gone.md", "ci/gone.sh"]);
}

/// Every word of the glossary has a meaning, and none is among those that are no longer written.
#[test]
fn the_glossary_says_each_word_once_and_uses_no_old_one() {
    let design = fs::read_to_string(root().join("DESIGN.md")).unwrap();
    let section = design.split("\n## 4. Words").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut words: Vec<String> = Vec::new();
    for row in section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| word") && !line.starts_with("| today"))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 2 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
        words.extend(cells[0].split(", ").map(str::to_owned));
        assert!(old_words(cells[1]).is_empty(), "{row}");
    }
    assert!(words.len() > 25, "{words:?}");
    let count = words.len();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), count, "a word stands twice in the glossary");
}
