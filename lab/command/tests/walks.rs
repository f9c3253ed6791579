// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks over every writer: with a reader that left, and with texts
//! that a terminal or a build server would obey.
//!
//! Those over options and over what the command advises are among the unit tests (`cli/walk.rs`).
//! All are quick: `ci/check` runs them.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use clap::ValueEnum as _;
use doorbell_report::html::{Source, report};
use doorbell_report::picture::{Name, draw};
use doorbell_report::result_text::{Detail, shown};
use doorbell_report::style::Style;
use doorbell_report::verdict_format::FORMATS;
use doorbell_report::waiter_metrics::metrics;
use doorbell_report::{comparison, export, judgement, top};
use doorbell_results::machine::waiters::{User, Waiter, Waiters};
use doorbell_results::record::{ResultFile, write};
use doorbell_results::written::{is_command, is_obeyed, json};
use doorbell_verdict::compare::{RELEVANT, compare};
use serde_json::Value;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// A command whose standard output and standard error, if `gone` says so, nobody reads.
fn run(words: &str, folder: &std::path::Path, gone: [bool; 2]) -> Output {
    let stream = |gone: bool| {
        if gone { Stdio::from(OwnedFd::from(UnixStream::pair().unwrap().0)) } else { Stdio::piped() }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorbell"));
    command
        .args(words.split_whitespace().map(|word| word.replace("DATA", DATA)))
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("XDG_CONFIG_HOME", folder)
        .stdin(Stdio::null());
    command.stdout(stream(gone[0])).stderr(stream(gone[1])).output().unwrap()
}

/// Every verb that prints, as far as it takes no time.
const WRITERS: &[&str] = &[
    "--help",
    "--version",
    "ping --help",
    "ping --dry-run",
    "ping --save-plan -",
    "survey --dry-run",
    "ping null --gap 0 --count 5 --blocks 1 --placement unpinned -q",
    "ping null --gap 0 --count 5 --blocks 1 --placement unpinned --json",
    "ping null --gap 0 --count 5 --blocks 1 --placement unpinned --output -",
    "show DATA/survey.json",
    "show DATA/survey.json --details",
    "show DATA/ping.json --format json",
    "compare DATA/ping.json DATA/ping-again.json",
    "compare DATA/ping.json DATA/ping-again.json --format junit",
    "check --baseline DATA/ping.json --from DATA/ping-again.json --fail-if max>1ns",
    "check --baseline DATA/ping.json --from DATA/ping-again.json --fail-if lost>0",
    "check --baseline DATA/ping.json --from DATA/ping-again.json --fail-if max>1ns --format github",
    "gate --max 1ns --from DATA/survey.json",
    "report DATA/ping.json -o -",
    "report DATA/survey.json --picture ranges -o -",
    "fleet verdict DATA/ping.json DATA/survey.json",
    "fleet plan ssh --nodes a,b -- ping",
    "claims DATA/survey.json",
    "claims --json DATA/survey.json",
    "doctor",
    "doctor --json",
    "list",
    "list --json",
    "explain futex",
    "explain futex --json",
    "schema",
    "man",
    "completions bash",
    "model futex --hazard list",
    "top --once",
    "top --once --json",
    "top --metrics",
    "list-services",
    "list-services --json",
    "no-verb",
    "show no-file.json",
    "show /etc/hostname",
];

/// `gate … | true` ended with 0 where it had failed, and `export csv R | head -1` with 1.
#[test]
fn a_reader_who_left_changes_no_exit_status_and_is_not_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    let exports = export::ALL.iter().map(|format| format!("export {} DATA/ping.json", format.name));
    let mut ended = std::collections::BTreeSet::new();
    for words in WRITERS.iter().map(|words| (*words).to_owned()).chain(exports) {
        let heard = run(&words, folder.path(), [false, false]);
        for gone in [[true, false], [false, true], [true, true]] {
            let left = run(&words, folder.path(), gone);
            let said = String::from_utf8_lossy(&left.stderr);
            // The machine may be fit at one moment and not at the next.
            let moved = words.starts_with("doctor")
                && [&left, &heard].iter().all(|run| matches!(run.status.code(), Some(0 | 4)));
            assert!(moved || left.status == heard.status, "{words}: {gone:?}: {:?}: {said}", left.status);
            assert!(!said.contains("panicked") && !said.to_lowercase().contains("pipe"), "{words}: {said}");
        }
        ended.insert(heard.status.code());
    }
    assert!(
        ended.is_superset(&[Some(0), Some(1), Some(2), Some(3)].into()),
        "verdicts of each kind: {ended:?}"
    );
}

/// Ends lines, turns text round, is a command of a terminal, of a build server and of Markdown.
const HOSTILE: &str = "::error::x\r\u{1b}[31m\u{7f}\u{9b}\u{202e}a::b\n::set-output name=x::y\n##[error]`|* <b> a ##vso[x] \u{2028}";

/// `result` with every text in it replaced by `HOSTILE` that a file may hold in its place.
fn hostile(result: &str) -> ResultFile {
    /// Where texts stand, places in lists left out, and how to replace all of one place.
    fn places(value: &Value, at: &str, found: &mut std::collections::BTreeSet<String>) {
        match value {
            Value::String(_) => drop(found.insert(at.to_owned())),
            Value::Array(items) => items.iter().for_each(|item| places(item, &format!("{at}/*"), found)),
            Value::Object(fields) => {
                fields.iter().for_each(|(key, field)| places(field, &format!("{at}/{key}"), found))
            }
            _ => {}
        }
    }
    fn replace(value: &mut Value, at: &[&str]) {
        match at {
            [] if value.is_string() => *value = HOSTILE.into(),
            [] => {}
            ["*", rest @ ..] => {
                value.as_array_mut().into_iter().flatten().for_each(|item| replace(item, rest));
            }
            [key, rest @ ..] => {
                if let Some(field) = value.get_mut(*key) {
                    replace(field, rest);
                }
            }
        }
    }
    let mut document: Value = serde_json::from_str(result).unwrap();
    document["name"] = "a name".into();
    document["warnings"] = serde_json::json!([{"name": "n", "cause": "c", "effect": "e", "cure": "c"}]);
    document["records"][0]["outcome"] = serde_json::json!({"kind": "failed", "cause": "c"});
    let mut found = std::collections::BTreeSet::new();
    places(&document, "", &mut found);
    let mut taken = 0;
    for place in found.iter().filter(|place| !place.ends_with("/histogram")) {
        let mut other = document.clone();
        replace(&mut other, &place.split('/').skip(1).collect::<Vec<_>>());
        // What names one of a few kinds has no room for it.
        if serde_json::from_value::<ResultFile>(other.clone()).is_ok() {
            (document, taken) = (other, taken + 1);
        }
    }
    assert!(taken > 20, "{taken} of {} places took it", found.len());
    serde_json::from_value(document).unwrap()
}

/// What of `text` would be obeyed, if anything; lines of `own` are the writer's.
fn obeyed(text: &str, own: &[&str]) -> Option<String> {
    let letter = text.chars().find(|letter| !['\n', '\t'].contains(letter) && is_obeyed(*letter));
    let line = text.lines().find(|line| is_command(line) && !own.iter().any(|own| line.starts_with(own)));
    letter.map(|letter| letter.escape_unicode().to_string()).or_else(|| line.map(str::to_owned))
}

#[test]
fn no_writer_lets_a_terminal_or_a_build_server_obey_what_a_file_holds() {
    let wide = Style { unicode: true, ..Style::PLAIN };
    let narrow = Style { width: 40, ..Style::PLAIN };
    for name in ["ping", "survey"] {
        let result = hostile(&std::fs::read_to_string(format!("{DATA}/{name}.json")).unwrap());
        for format in export::ALL {
            let mut bytes = Vec::new();
            (format.export)(&result, &mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.is_empty());
            let own: &[&str] = if format.name == "markdown" { &["## doorbell ", "### "] } else { &[] };
            assert_eq!(obeyed(&text, own), None, "export {} of {name}: {text}", format.name);
        }
        for (form, write) in FORMATS {
            let text = write(HOSTILE, &judgement::verdict(&result, &[]));
            let own: &[&str] = if form == "github" {
                &["::error title=", "::warning title=", "::notice title="]
            } else {
                &[]
            };
            assert_eq!(obeyed(&text, own), None, "--format {form} of {name}: {text}");
        }
        assert_eq!(obeyed(&write::to_json(&result), &[]), None, "--json of {name}");
        let source = || Source { name: HOSTILE.to_owned(), verdict: Vec::new(), result: result.clone() };
        let page = report(&[source()]).unwrap();
        assert_eq!(obeyed(&page, &["::before", "::after"]), None, "the page of {name}");
        for picture in Name::value_variants() {
            if let Ok(drawn) = draw(*picture, &[source()]) {
                assert_eq!(obeyed(&drawn, &[]), None, "{picture:?} of {name}");
            }
        }
        for style in [&wide, &narrow] {
            for detail in [Detail::Brief, Detail::Full] {
                let text = shown(&result, &[], detail, style);
                assert_eq!(obeyed(&text, &[]), None, "show {name} {detail:?}: {text}");
            }
            let text = comparison::comparison(&compare(&result, &result, RELEVANT), HOSTILE, HOSTILE, style);
            assert_eq!(obeyed(&text, &[]), None, "compare {name}: {text}");
        }
    }
}

/// Names of processes are their users', who may be others.
#[test]
fn no_look_at_processes_lets_their_names_be_obeyed() {
    let waiter =
        Waiter { place: 0, name: HOSTILE.to_owned(), spun_and_hit: 1, spun_in_vain: 2, slept: 3, woken: 4 };
    let user = User {
        pid: 4711,
        uid: Some(1000),
        command: HOSTILE.to_owned(),
        profile: None,
        sleep_latency_ns: None,
        sleep_price_ns: None,
        ready_ns: None,
        throttled_ns: None,
        waiters: vec![waiter],
    };
    let now = Waiters { processes: vec![user], closed: 0, steal_ns: None, taken: Instant::now() };
    for style in [Style { unicode: true, ..Style::PLAIN }, Style { width: 40, ..Style::PLAIN }] {
        let text = top::top(&now, None, &style);
        assert_eq!(obeyed(&text, &[]), None, "{text}");
    }
    let text = metrics(&now);
    assert!(text.contains("4711") && text.lines().all(|line| line.starts_with(['#', 'd'])), "{text}");
    assert_eq!(obeyed(&text, &["# "]), None, "{text}");
    let text = json(&now).unwrap();
    assert_eq!(obeyed(&text, &[]), None, "{text}");
}
