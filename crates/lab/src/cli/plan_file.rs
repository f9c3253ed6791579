// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plan files: the flags of a verb in a file, in TOML.
//!
//! A plan file is no second language beside the flags: each key is the name of a flag, or of what stands without one, and
//! what it says is put on the command line before it is read. So every verb that has `--plan` takes every one of its flags
//! from a file, with the same checks, and a flag typed beside the file counts more than the file's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::common::Usage;
use crate::nearest::{did_you_mean, nearest};

/// The flags about plan files. What stands in one cannot name another, nor say that it is to be written.
const OWN: [&str; 2] = ["plan", "save_plan"];

/// Flags that say what happens to this run on this terminal, and nothing about the plan.
const NOT_PLANNED: [&str; 5] = ["help", "version", "color", "quiet", "dry_run"];

/// The key that says which verb a file is for.
const VERB: &str = "verb";

/// A plan file is longer than this only if it is none.
const LONGEST: u64 = 1 << 20;

/// A command line with what a plan file adds.
#[derive(Debug)]
pub struct Expanded {
    pub arguments: Vec<OsString>,
    /// The file, if there is one.
    path: PathBuf,
    /// In which line of it each flag stands.
    lines: BTreeMap<String, usize>,
}

/// `arguments` with what the file after `--plan` adds, if there is such a flag. `command` is the whole definition.
pub fn expand(command: &Command, arguments: Vec<OsString>) -> Result<Expanded, Usage> {
    let plain = |arguments| Ok(Expanded { arguments, path: PathBuf::new(), lines: BTreeMap::new() });
    let mentioned = |argument: &OsString| argument.to_str().is_some_and(|text| text.starts_with("--plan"));
    if !arguments.iter().any(mentioned) {
        return plain(arguments);
    }
    // What is required may stand in the file. Any other mistake is found again, and told, when the whole is read.
    let Ok(matches) = lenient(command.clone()).try_get_matches_from(&arguments) else {
        return plain(arguments);
    };
    let (verb, given) = matches.subcommand().map_or((None, &matches), |(verb, given)| (Some(verb), given));
    let Ok(Some(path)) = given.try_get_one::<PathBuf>("plan") else { return plain(arguments) };
    let definition = match verb {
        Some(verb) => command.find_subcommand(verb).unwrap_or(command),
        None => command,
    };
    let text = read(path)?;
    let mut lines = BTreeMap::new();
    let (mut added, mut behind) = (Vec::new(), Vec::new());
    for entry in entries(path, &text)? {
        if entry.key == VERB {
            check_verb(path, &entry, verb.unwrap_or("survey"))?;
            continue;
        }
        let argument = find(definition, path, &entry)?;
        let flag = argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned();
        if given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        let tokens = tokens(argument, path, &entry)?;
        // What stands without a flag and looks like one: behind what ends them it is what it was in the file. A lone hyphen is none.
        let like_a_flag = |token: &OsString| token.len() > 1 && token.as_encoded_bytes().starts_with(b"-");
        if argument.is_positional() && tokens.iter().any(like_a_flag) {
            behind.extend(tokens);
        } else {
            added.extend(tokens);
        }
        lines.insert(flag, entry.line);
    }
    let place = verb
        .and_then(|verb| arguments.iter().skip(1).position(|argument| argument == verb))
        .map_or(1, |before| before + 2);
    let mut expanded = arguments;
    expanded.splice(place..place, added);
    if !behind.is_empty() {
        if !expanded.iter().any(|argument| argument == "--") {
            expanded.push("--".into());
        }
        expanded.extend(behind);
    }
    Ok(Expanded { arguments: expanded, path: path.clone(), lines })
}

impl Expanded {
    /// What clap says of the command line, with the line of the file that it concerns, if it does.
    pub fn blame(&self, error: &clap::Error) -> Option<Usage> {
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
        // As help shows it: `--gap <TIME>`, `[MECHANISM]...`
        let shown = argument.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
        let placed = |(flag, line): (&String, &usize)| (flag == shown).then_some(*line);
        let line = self.lines.iter().find_map(placed)?;
        let told = error.to_string();
        let told = told.strip_prefix("error: ").unwrap_or(&told);
        let told = told.split("\n\n").next().unwrap_or(told).trim_end();
        Some(Usage(format!("{}, line {line}: {told}", self.path.display())))
    }
}

/// The same definition with nothing required, in any verb.
fn lenient(command: Command) -> Command {
    let all = |command: Command| command.mut_args(|argument| argument.required(false));
    all(command).mut_subcommands(all)
}

fn read(path: &Path) -> Result<String, Usage> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > LONGEST => {
            Err(Usage(format!("{} is longer than 1 MiB: no plan file", path.display())))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(Usage(format!(
            "cannot read the plan file {}: {error}; `doorbell ping futex --save-plan FILE` writes one",
            path.display()
        ))),
    }
}

/// A key of the file.
struct Entry {
    key: String,
    line: usize,
    value: Said,
}

enum Said {
    Whether(bool),
    Values(Vec<String>),
}

fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, Usage> {
    let line_of = |at: usize| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        Usage(format!("{}, line {line}: {}", path.display(), error.message()))
    })?;
    let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let (line, key) = (line_of(key.span().start), key.get_ref().to_string());
        let value = said(value.get_ref()).map_err(|what| {
            Usage(format!(
                "{}, line {line}: {key} is {what}; a plan file has a text, a number, true, false or a list of texts and \
                 numbers for each flag",
                path.display()
            ))
        })?;
        Ok(Entry { key, line, value })
    };
    table.get_ref().iter().map(entry).collect()
}

fn said(value: &DeValue<'_>) -> Result<Said, &'static str> {
    Ok(match value {
        DeValue::Boolean(whether) => Said::Whether(*whether),
        DeValue::Array(values) => {
            let one = |value: &Spanned<DeValue<'_>>| scalar(value.get_ref());
            Said::Values(values.iter().map(one).collect::<Result<_, _>>()?)
        }
        scalar_value => Said::Values(vec![scalar(scalar_value)?]),
    })
}

fn scalar(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(_) => Err("true or false in a list"),
        DeValue::Datetime(_) => Err("a date"),
        DeValue::Array(_) => Err("a list in a list"),
        DeValue::Table(_) => Err("a table"),
    }
}

fn check_verb(path: &Path, entry: &Entry, verb: &str) -> Result<(), Usage> {
    match &entry.value {
        Said::Values(said) if *said == [verb] => Ok(()),
        Said::Values(said) => Err(Usage(format!(
            "{}, line {}: the plan is for `doorbell {}`, not for `doorbell {verb}`",
            path.display(),
            entry.line,
            said.join(" ")
        ))),
        Said::Whether(_) => {
            Err(Usage(format!("{}, line {}: verb is the name of a verb", path.display(), entry.line)))
        }
    }
}

/// The names a plan file may use, with what they stand for.
fn known(definition: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    definition
        .get_arguments()
        .filter(|argument| {
            let id = argument.get_id().as_str();
            !OWN.contains(&id) && !NOT_PLANNED.contains(&id)
        })
        .map(|argument| (argument.get_long().unwrap_or(argument.get_id().as_str()), argument))
}

fn find<'a>(definition: &'a Command, path: &Path, entry: &Entry) -> Result<&'a Arg, Usage> {
    let named = known(definition).find(|(name, _)| *name == entry.key);
    named.map(|(_, argument)| argument).ok_or_else(|| {
        let nearest = nearest(&entry.key, known(definition).map(|(name, _)| name));
        Usage(format!(
            "{}, line {}: `doorbell {}` has nothing called '{}'{}",
            path.display(),
            entry.line,
            verb_of(definition),
            entry.key,
            did_you_mean(nearest)
        ))
    })
}

/// The verb that a definition is of; without one, the survey is run.
fn verb_of(definition: &Command) -> &str {
    if definition.has_subcommands() { "survey" } else { definition.get_name() }
}

/// What would have been typed for `entry`.
fn tokens(argument: &Arg, path: &Path, entry: &Entry) -> Result<Vec<OsString>, Usage> {
    let switch = matches!(argument.get_action(), ArgAction::SetTrue);
    let flag = argument.get_long();
    match (&entry.value, flag) {
        (Said::Whether(whether), Some(flag)) if switch => {
            Ok(whether.then(|| OsString::from(format!("--{flag}"))).into_iter().collect())
        }
        (Said::Values(values), Some(flag)) if !switch => {
            Ok(values.iter().map(|value| format!("--{flag}={value}").into()).collect())
        }
        (Said::Values(values), None) => Ok(values.iter().map(Into::into).collect()),
        (said, _) => Err(Usage(format!(
            "{}, line {}: {} {}",
            path.display(),
            entry.line,
            entry.key,
            match said {
                Said::Whether(_) => "takes a value, not true or false",
                Said::Values(_) => "is switched on by true and off by false, and takes no value",
            }
        ))),
    }
}

/// The plan file that says what was said on the command line of `verb`, `given`.
pub fn of(definition: &Command, given: &ArgMatches) -> String {
    let mut text = format!("# doorbell {0} --plan FILE\n{VERB} = {0:?}\n", verb_of(definition));
    for (name, argument) in known(definition) {
        let id = argument.get_id().as_str();
        if given.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            text.push_str(&format!("{name} = true\n"));
            continue;
        }
        let values: Vec<String> =
            given.get_raw(id).into_iter().flatten().map(|value| quoted(&value.to_string_lossy())).collect();
        let line = match &values[..] {
            [value] => format!("{name} = {value}\n"),
            values => format!("{name} = [{}]\n", values.join(", ")),
        };
        text.push_str(&line);
    }
    text
}

/// A value as TOML has it: a whole number as such, anything else as a text.
fn quoted(value: &str) -> String {
    if value.parse::<i64>().is_ok_and(|number| number.to_string() == value) {
        return value.to_owned();
    }
    let mut text = String::from('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            control if control.is_control() => text.push_str(&format!("\\u{:04X}", u32::from(control))),
            letter => text.push(letter),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn arguments(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    /// The command line that `words` and a plan file of `text` make together.
    fn expanded(text: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let file = write(text);
        let mut whole = arguments(words);
        whole.extend([OsString::from("--plan"), file.path().into()]);
        let shown = |argument: OsString| argument.into_string().unwrap();
        let expanded = expand(&crate::cli::command(), whole)
            .map_err(|usage| usage.0.replace(&file.path().display().to_string(), "plan.toml"))?;
        let count = expanded.arguments.len() - 2;
        Ok(expanded.arguments.into_iter().take(count).map(shown).collect())
    }

    #[test]
    fn what_a_plan_file_says_stands_behind_the_verb_and_what_was_typed_counts_more() {
        let text = "gap = [0, \"10us\"]\nmechanisms = \"pipe\"\njson = true\nblocks = 3\ntime = '5ms'";
        assert_eq!(
            expanded(text, &["doorbell", "-q", "ping", "--time", "1s"]).unwrap(),
            [
                "doorbell",
                "-q",
                "ping",
                "--blocks=3",
                "--gap=0",
                "--gap=10us",
                "--json",
                "pipe",
                "--time",
                "1s"
            ]
        );
        let typed = expanded(text, &["doorbell", "ping", "futex", "--gap", "1ms", "--blocks", "4"]).unwrap();
        assert!(
            !typed.iter().any(|word| word == "pipe" || word == "--gap=0" || word == "--blocks=3"),
            "{typed:?}"
        );
        assert_eq!(expanded("blocks = 5", &["doorbell"]).unwrap(), ["doorbell", "--blocks=5"]);
    }

    /// `mechanisms = "--output=/etc/passwd"` was a flag.
    #[test]
    fn a_value_without_a_flag_stays_a_value_however_it_begins() {
        for value in ["--output=x", "-q", "--"] {
            let file = write(&format!("mechanisms = ['futex', '{value}']\nblocks = 3\n"));
            let mut words = arguments(&["doorbell", "ping", "--plan"]);
            words.push(file.path().into());
            let expanded = expand(&crate::cli::command(), words).unwrap();
            let matches = crate::cli::command().try_get_matches_from(&expanded.arguments).unwrap();
            let (_, given) = matches.subcommand().unwrap();
            let mechanisms: Vec<&str> =
                given.get_raw("mechanisms").unwrap().map(|raw| raw.to_str().unwrap()).collect();
            assert_eq!(mechanisms, ["futex", value]);
            assert_eq!(given.value_source("output"), None);
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_what_may_have_been_meant() {
        let ping = |text: &str| expanded(text, &["doorbell", "ping"]).unwrap_err();
        assert_eq!(
            ping("gap = 0\n\nblcoks = 3\n"),
            "plan.toml, line 3: `doorbell ping` has nothing called 'blcoks'; did you mean 'blocks'?"
        );
        assert_eq!(
            ping("verb = 'pairs'"),
            "plan.toml, line 1: the plan is for `doorbell pairs`, not for `doorbell ping`"
        );
        assert!(ping("\njson = 'yes'").starts_with("plan.toml, line 2: json is switched on by true"));
        assert!(ping("gap = true").starts_with("plan.toml, line 1: gap takes a value"));
        assert!(ping("[ping]\ngap = 0").starts_with("plan.toml, line 1: ping is a table"));
        assert!(ping("gap = 1979-05-27").starts_with("plan.toml, line 1: gap is a date"));
        assert!(ping("gap = [").starts_with("plan.toml, line 1: "));
        assert!(ping("plan = 'other.toml'").contains("has nothing called 'plan'"));
    }

    #[test]
    fn a_value_that_a_flag_does_not_take_is_told_with_its_line() {
        let file = write("blocks = 2\ngap = '10'\n");
        let mut words = arguments(&["doorbell", "ping", "--plan"]);
        words.push(file.path().into());
        let expanded = expand(&crate::cli::command(), words).unwrap();
        let error = crate::cli::command().try_get_matches_from(&expanded.arguments).unwrap_err();
        let told = expanded.blame(&error).unwrap().0;
        assert!(told.contains(", line 2: invalid value '10' for '--gap <TIME>'"), "{told}");
        assert!(told.contains("has no unit"), "{told}");
    }

    #[test]
    fn any_text_comes_back_from_a_plan_file_as_it_was() {
        for value in ["10us", "7", "-7", "007", "a\"b\\c", "tab\there", "line\nend", "µ", ""] {
            let table: toml::Table = format!("key = {}", quoted(value)).parse().unwrap();
            let number = || table["key"].as_integer().unwrap().to_string();
            let back = table["key"].as_str().map_or_else(number, str::to_owned);
            assert_eq!(back, value);
        }
    }

    fn flag(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop::sample::select(values), 0..3).prop_map(move |values| match values[..] {
            [] => Vec::new(),
            _ => vec![format!("--{name}"), values.join(",")],
        })
    }

    fn command_line() -> impl Strategy<Value = Vec<String>> {
        let lists = (
            flag("gap", &["0", "10us", "1ms", "1.5s"]),
            flag("wait", &["block", "spin", "spin-then-block=5us", "timeout=1ms"]),
            flag("size", &["0", "64", "4096"]),
            flag("contexts", &["processes", "threads"]),
            flag("load", &["idle", "full", "churn:3:pinned"]),
        );
        let ends = prop::sample::select(vec![vec![], vec!["--count", "9"], vec!["--time", "3ms"]]);
        let mechanisms =
            prop::collection::vec(prop::sample::select(&["futex", "pipe", "eventfd-epoll"][..]), 0..3);
        (lists, ends, mechanisms, 1..50_u32, any::<u64>()).prop_map(
            |(lists, ends, mechanisms, blocks, seed)| {
                let (gap, wait, size, contexts, load) = lists;
                let mut words = vec!["doorbell".to_owned(), "ping".to_owned()];
                words.extend(mechanisms.into_iter().map(str::to_owned));
                words.extend([gap, wait, size, contexts, load].concat());
                words.extend(ends.iter().map(|word| (*word).to_owned()));
                words.extend([
                    "--blocks".to_owned(),
                    blocks.to_string(),
                    "--seed".to_owned(),
                    seed.to_string(),
                ]);
                words
            },
        )
    }

    /// The plan that a command line expands to, or what it is refused with.
    fn plan(
        words: &[OsString],
        machine: &crate::machine::Machine,
    ) -> Result<crate::experiment::plan::Plan, String> {
        let matches = crate::cli::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
        let args =
            crate::cli::ping::of(matches.subcommand().unwrap().1).map_err(|error| error.to_string())?;
        let plan = crate::cli::ping::plan(&args, None, machine).map_err(|error| error.to_string())?;
        Ok(args.run.loaded(plan, machine))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn flags_written_to_a_plan_file_and_read_back_give_the_same_plan(words in command_line()) {
            let machine = crate::record::sample::result(&[], 0, |_, _| 0.0).machine;
            let command = crate::cli::command();
            let typed: Vec<OsString> = words.iter().map(Into::into).collect();
            let matches = command.clone().try_get_matches_from(&typed).unwrap();
            let file = write(&of(command.find_subcommand("ping").unwrap(), matches.subcommand().unwrap().1));
            let from_file = vec!["doorbell".into(), "ping".into(), "--plan".into(), file.path().into()];
            let expanded = expand(&command, from_file).unwrap();
            prop_assert_eq!(plan(&typed, &machine), plan(&expanded.arguments, &machine));
        }
    }
}
