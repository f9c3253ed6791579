// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks over the whole command line: every option is given nonsense,
//! and whatever the command then advises is tried.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;

/// What people type where something else was wanted.
const WRONG: [&str; 45] = [
    "",
    " ",
    "x",
    "0",
    "-1",
    "10",
    "999",
    "1e400",
    "NaN",
    "10us",
    "10 parsec",
    "0.0000001ns",
    "0s",
    "721h",
    "2us..1us",
    "0..1us",
    "20k",
    "20/fortnight",
    "0/s",
    "0Hz",
    "1e9/s",
    "4X",
    "1T",
    "1000",
    "5%",
    "5",
    "2000%",
    "0.5%",
    "p50",
    "p100",
    "p",
    "mean>+5%",
    "p50>=+5%",
    "lost>=1",
    "p99>5%",
    "p50>-5%",
    "p50>+x%",
    "p99.9>+5%",
    "futex:p99.9>+5%",
    "lost>x",
    "200..20",
    "full:0:x",
    "wait",
    "timeout=0",
    "\u{1b}[31m\r\n::error::",
];

/// Every argument with a value, after the words that lead to its verb.
fn arguments() -> Vec<(Vec<String>, clap::Arg)> {
    fn below(command: &clap::Command, words: &[String], found: &mut Vec<(Vec<String>, clap::Arg)>) {
        let of_its_own = |argument: &&clap::Arg| argument.get_action().takes_values();
        found.extend(
            command.get_arguments().filter(of_its_own).map(|argument| (words.to_vec(), argument.clone())),
        );
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            below(verb, &[words, &[verb.get_name().to_owned()]].concat(), found);
        }
    }
    let (mut found, mut command) = (Vec::new(), super::command());
    command.build();
    below(&command, &["doorbell".to_owned()], &mut found);
    assert!(found.len() > 200, "{} arguments are no command line", found.len());
    found
}

/// The error that a command line meets. The parser is made once: it is large.
fn refused<W: Into<OsString> + Clone>(words: impl IntoIterator<Item = W>) -> Option<clap::Error> {
    thread_local!(static PARSER: std::cell::RefCell<clap::Command> = super::command().into());
    PARSER.with_borrow_mut(|parser| parser.try_get_matches_from_mut(words).err())
}

/// The error that `value` meets as the value of `argument`, if it meets one of its own.
fn met(words: &[String], argument: &clap::Arg, value: impl Into<OsString>) -> Option<String> {
    let (mut words, value): (Vec<OsString>, OsString) =
        (words.iter().map(OsString::from).collect(), value.into());
    match argument.get_long() {
        Some(flag) => {
            let mut word = OsString::from(format!("--{flag}="));
            word.push(value);
            words.push(word);
        }
        // Those after the first need one before them.
        None if argument.get_index() != Some(1) || argument.is_last_set() => return None,
        None => words.extend([OsString::from("--"), value]),
    }
    let error = refused(words)?;
    let of_the_value = [
        ErrorKind::InvalidValue,
        ErrorKind::ValueValidation,
        ErrorKind::InvalidUtf8,
        ErrorKind::UnknownArgument,
    ];
    of_the_value.contains(&error.kind()).then(|| error.render().to_string())
}

/// What a message advises to write instead.
fn advised(message: &str) -> Vec<String> {
    let written = message.split("; write for example ").skip(1).flat_map(|list| {
        let list = list.lines().next().unwrap_or_default();
        list.split(", ").flat_map(|part| part.split(" or ")).map(str::to_owned).collect::<Vec<_>>()
    });
    let quoted = ["exists: '", "did you mean '"].into_iter().flat_map(|before| {
        message.split(before).skip(1).filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned()))
    });
    written.chain(quoted).collect()
}

#[test]
fn whatever_the_command_advises_is_accepted_by_it() {
    let mut tried = BTreeSet::new();
    for (words, argument) in arguments() {
        for wrong in WRONG {
            let Some(message) = met(&words, &argument, wrong) else { continue };
            for advice in advised(&message) {
                let again = met(&words, &argument, &advice);
                assert_eq!(
                    again,
                    None,
                    "{words:?} {}: '{wrong}' is told to be '{advice}'",
                    argument.get_id()
                );
                tried.insert(advice);
            }
        }
    }
    // Of each kind of text at least one, so that a change of the
    // phrase does not leave the walk without steps.
    for one in [
        "10us",
        "timeout=100us",
        "5%",
        "p99.9",
        "p99>+5%",
        "lost>0",
        "20kHz",
        "64K",
        "20..200",
        "sqrt:4:pinned",
        "main",
    ] {
        assert!(tried.contains(one), "nobody was told {one}: {tried:?}");
    }
}

#[test]
fn every_option_takes_its_own_default_and_every_value_that_its_help_lists() {
    for (words, argument) in arguments() {
        let defaults = argument.get_default_values().iter().map(|value| value.to_str().unwrap().to_owned());
        let listed = argument.get_possible_values();
        for value in defaults.chain(listed.iter().map(|value| value.get_name().to_owned())) {
            assert_eq!(met(&words, &argument, &value), None, "{words:?} {} {value}", argument.get_id());
        }
        let told = argument.get_help().is_some() || argument.get_long_help().is_some();
        assert!(told || argument.is_hide_set(), "{words:?} {} has no help", argument.get_id());
    }
}

#[test]
fn no_option_panics_and_each_refusal_says_of_which_it_is() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = OsString::from_vec(b"\xff\xfe".to_vec());
    for (words, argument) in arguments() {
        let huge = ["18446744073709551616", "-9223372036854775809", "1e308us", "99999999999999999999%"];
        for wrong in WRONG.into_iter().chain(huge).map(OsString::from).chain([bytes.clone()]) {
            let Some(message) = met(&words, &argument, wrong.clone()) else { continue };
            let names = argument.get_value_names().unwrap_or_default();
            let named = argument.get_long().is_some_and(|flag| message.contains(&format!("--{flag}")))
                || names.iter().any(|name| message.contains(name.as_str()))
                || message.contains("invalid UTF-8");
            assert!(named, "{words:?} {} {wrong:?}: {message}", argument.get_id());
        }
    }
}

/// The words of a command in a message or an example, without what a shell would do with it.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '\'' => quoted = !quoted,
            '|' | '>' | ';' | '&' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Why the command would not know what it is told to be, if it would not.
fn unknown(text: &str) -> Option<String> {
    let error = refused(words(text))?;
    let message = error.to_string();
    let of_what_is_left_out = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::DisplayVersion
    );
    (!of_what_is_left_out && !message.contains("a value is required")).then_some(message)
}

#[test]
fn every_command_in_a_help_text_is_one() {
    fn below(command: &clap::Command, seen: &mut usize) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().chain(super::FIRST_EXAMPLES.lines()) {
            let Some(example) = line.trim_start().strip_prefix("doorbell ") else { continue };
            // Two blanks and more set off what it is for.
            let example = format!("doorbell {}", example.split("  ").next().unwrap_or_default());
            assert_eq!(unknown(&example), None, "{}: {example}", command.get_name());
            *seen += 1;
        }
        command.get_subcommands().for_each(|verb| below(verb, seen));
    }
    let mut seen = 0;
    below(&super::command(), &mut seen);
    assert!(seen > 60, "{seen} examples");
}

#[test]
fn every_command_that_a_message_names_is_one() {
    fn files(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => files(&path, found),
                // This file has the marks it looks for.
                Some("rs") if !path.ends_with("cli/walk.rs") => {
                    found.push(std::fs::read_to_string(&path).unwrap())
                }
                _ => {}
            }
        }
    }
    let (lab, mut sources) = (Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), Vec::new());
    for crate_ in ["command", "harness", "machine", "report", "results", "subjects", "verdict", "../uintr/vm"]
    {
        files(&lab.join(crate_).join("src"), &mut sources);
    }
    let mut seen = 0;
    for source in sources {
        // A text goes on in the next line, without the blanks before it.
        let joined: Vec<&str> = source.split("\\\n").map(str::trim_start).collect();
        for named in
            joined.concat().split("`doorbell ").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0))
        {
            // What is filled in is looked at where it comes from.
            if named.contains(['{', '\n']) || named.starts_with("VERB") {
                continue;
            }
            assert_eq!(unknown(&format!("doorbell {named}")), None, "`doorbell {named}`");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} commands in messages");
}
